/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the native backend can provide on this host, as far as that can be determined cheaply: this runs before every
 * run, so nothing is forked.  What shows only by trying (a forbidden user namespace, a masked /proc) fails at its step
 * in the cell's set-up, with the same refusal.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "backend/native/cell.h"
#include "backend/native/waiting.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
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

/* Whether there is any controller; limiting swap needs none if there is no swap. */
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
	h->wait_library = h->steward = FD_NONE;
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
	if (!limits_disk_io(set)) /* not looked up and not promised */
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

/* The result of native_open() depends on no other setting. */
bool native_same_host(const struct settings *a, const struct settings *b)
{
	return limits_disk_io(a) == limits_disk_io(b);
}

static int reap_init(struct remains *r)
{
	int rc = r->init_pidfd >= 0 ? proc_reap(&r->init_pidfd, r->deadline_ns, NULL) : 0;

	proc_leave(&r->init_pidfd);
	return rc;
}

static int remove_groups(struct backend_host *h, struct remains *r)
{
	int rc = janitor_await(r->guarded, r->deadline_ns);

	if (rc == -ECHILD) /* the janitor was killed */
		rc = cgroup_remove(r->cgroup, r->deadline_ns);
	cgroup_free(MOVE_PTR(r->cgroup));
	janitor_release(&h->janitors, MOVE_PTR(r->guarded), r->deadline_ns);
	return rc;
}

/* Unlinks what a run has left, or any entry if id is NULL.  NULL: none. */
static struct remains *take_remains(struct backend_host *h, const char *id)
{
	for (struct remains **at = &h->remains; *at; at = &(*at)->next)
		if (!id || str_eq((*at)->id, id)) {
			struct remains *r = *at;

			*at = r->next;
			return r;
		}
	return NULL;
}

/* Appends to leftovers; returns how many things were left. */
static int settle_one(struct backend_host *h, struct remains *r, char *leftovers, size_t size)
{
	bool process = reap_init(r) < 0, group = remove_groups(h, r) < 0;
	size_t len = strlen(leftovers);
	char pid[32] = "";

	if (process)
		(void)snprintf(pid, sizeof(pid), "process %d", r->init_pid);
	(void)snprintf(leftovers + len, size - len, "%s%s%s%s%s", len && (process || group) ? ", " : "", pid,
		       process && group ? ", " : "", group ? "control group brig-" : "", group ? r->id : "");
	return process + group;
}

int native_settle(struct backend_host *h, const char *id, char *leftovers, size_t size)
{
	struct remains *r;
	int left = 0;

	*leftovers = '\0';
	while ((r = take_remains(h, id))) {
		left += settle_one(h, r, leftovers, size);
		free(r);
	}
	return left;
}

static bool is_over(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd < 0 || poll(&p, 1, 0) != 0;
}

void native_settle_ended(struct backend_host *h, native_settled_fn each, void *arg)
{
	const uint64_t now = clock_now_ns();

	for (struct remains **at = &h->remains; *at;) {
		struct remains *r = *at;
		char leftovers[256] = "";

		if (now < r->deadline_ns && !(is_over(r->init_pidfd) && janitor_is_done(r->guarded))) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		(void)settle_one(h, r, leftovers, sizeof(leftovers));
		each(arg, r, leftovers);
		free(r);
	}
}

bool native_has_remains(const struct backend_host *h)
{
	return h->remains != NULL;
}

/* The janitor answers after the last process is gone, since the groups that it removes contain it. */
const void *native_rest_of(const struct backend_host *h, const char *id, int *ret_fd)
{
	for (const struct remains *r = h->remains; r; r = r->next)
		if (str_eq(r->id, id)) {
			*ret_fd = janitor_fd(r->guarded);
			return r;
		}
	return NULL;
}

bool native_has_rest(const struct backend_host *h, const void *rest)
{
	for (const struct remains *r = h->remains; r; r = r->next)
		if (r == rest)
			return true;
	return false;
}

bool native_runs_helpers(const struct backend_host *h)
{
	return h->ids.kind == IDMAP_SUBORDINATE;
}

void native_close(struct backend_host *h)
{
	char leftovers[96];

	if (!h)
		return;
	(void)native_settle(h, NULL, leftovers, sizeof(leftovers));
	janitor_end(&h->janitors, clock_now_ns() + NS_PER_SEC);
	fd_closep(&h->wait_library);
	fd_closep(&h->steward);
	looks_free_all(h);
	cgroup_host_free(h->cgroups);
	free(h);
}
