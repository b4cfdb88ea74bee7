/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the native backend can give on this host, as far as that can be told cheaply: it is asked before
 * every run, so nothing is forked.  What only shows by doing (a forbidden user namespace, a masked /proc)
 * fails at its step in the cell's set-up, with the same refusal.
 */
#include <stdio.h>

#include "backend/native/cell.h"
#include "base/fd.h"
#include "sys/proc.h"

static protection_set missing_cgroup(const struct cgroup_host *h)
{
	static const struct {
		enum cgroup_resource resource;
		enum protection protection;
	} rows[] = {
		{ CGROUP_MEMORY, PROT_memory_limit }, { CGROUP_SWAP, PROT_swap_limit },
		{ CGROUP_PIDS, PROT_pids_limit },     { CGROUP_CPU, PROT_cpu_quota },
		{ CGROUP_CPU_TIME, PROT_cpu_time },   { CGROUP_SOCKET_MEMORY, PROT_socket_memory },
		{ CGROUP_DISK_IO, PROT_disk_io },
	};
	protection_set missing = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!cgroup_host_has(h, rows[i].resource))
			missing |= PROT_BIT(rows[i].protection);
	return missing;
}

/* Whether there is any controller; the absence of a swap device needs none. */
static bool has_any_cgroup(const struct cgroup_host *h)
{
	for (enum cgroup_resource r = 0; r < CGROUP_RESOURCE_COUNT; r++)
		if (r != CGROUP_SWAP && cgroup_host_has(h, r))
			return true;
	return false;
}

static protection_set missing_namespaces(void)
{
	protection_set missing = 0;

	if (access("/proc/self/ns/time", F_OK) < 0)
		missing |= PROT_BIT(PROT_time_ns);
	if (access("/proc/self/ns/cgroup", F_OK) < 0)
		missing |= PROT_BIT(PROT_cgroup_ns);
	return missing;
}

int native_open(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
		struct brig_error *err)
{
	struct backend_host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_nomem(err);
	h->last.janitor = (struct janitor)JANITOR_NONE;
	h->last.init_pidfd = FD_NONE;
	rc = cgroup_host_open(limits_disk_io(set), &h->cgroups, err);
	if (rc < 0) {
		free(h);
		return rc;
	}
	h->has_cgroups = has_any_cgroup(h->cgroups);
	h->enters_at_clone = cgroup_host_enters_at_clone(h->cgroups);
	h->landlock_abi = landlock_abi();
	h->ids = idmap_find();
	*ret_missing = missing_cgroup(h->cgroups) | missing_namespaces();
	if (!limits_disk_io(set)) /* nobody has looked for it, and nothing is promised */
		*ret_missing &= ~PROT_BIT(PROT_disk_io);
	if (h->landlock_abi == 0)
		*ret_missing |= PROT_BIT(PROT_landlock);
	if (h->ids.kind == IDMAP_OWN)
		*ret_missing |= PROT_BIT(PROT_id_separation);
	if (h->ids.kind == IDMAP_NONE)
		*ret_missing |= PROT_BIT(PROT_user_ns);
	*ret = h;
	return 0;
}

static int bury_init(struct backend_host *h)
{
	int rc = h->last.init_pidfd >= 0 ? proc_reap(&h->last.init_pidfd, h->last.deadline_ns, NULL) : 0;

	proc_leave(&h->last.init_pidfd);
	return rc;
}

static int remove_groups(struct backend_host *h)
{
	int rc = janitor_await(&h->last.janitor, h->last.deadline_ns);

	if (rc == -ECHILD) /* somebody killed it */
		rc = cgroup_remove(h->last.cgroup, h->last.deadline_ns);
	cgroup_free(MOVE_PTR(h->last.cgroup));
	return rc;
}

int native_settle(struct backend_host *h, char *leftovers, size_t size)
{
	bool process = bury_init(h) < 0, group = remove_groups(h) < 0;
	char pid[32] = "";

	if (process)
		(void)snprintf(pid, sizeof(pid), "process %d", h->last.init_pid);
	(void)snprintf(leftovers, size, "%s%s%s%s", pid, process && group ? ", " : "",
		       group ? "control group brig-" : "", group ? h->last.id : "");
	return process + group;
}

void native_close(struct backend_host *h)
{
	char leftovers[96];

	if (!h)
		return;
	(void)native_settle(h, leftovers, sizeof(leftovers));
	cgroup_host_free(h->cgroups);
	free(h);
}
