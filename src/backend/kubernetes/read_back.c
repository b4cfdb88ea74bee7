/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was really in force: what init read inside the pod when the program was dead (or, if it could not, before the
 * program started), and the API server's account where that is the only source.
 *
 * A node is usually another machine, so its namespaces cannot be compared with ours.  But the kernel gives the initial
 * namespace of each type a fixed inode number: an init that sees one of those shares it with its node.  Any other
 * number is the pod's own, if the server's account matches what was requested.
 */
#include <stdio.h>
#include <string.h>

#include "backend/container/answer.h"
#include "backend/kubernetes/pod.h"
#include "base/str.h"

static const struct {
	enum fact_id fact;
	enum protection protection;
	uint64_t first; /* include/linux/proc_ns.h */
} spaces[WIRE_SPACE_COUNT] = {
	{ FACT_user_ns, PROT_user_ns, 0xEFFFFFFDU },     { FACT_pid_ns, PROT_pid_ns, 0xEFFFFFFCU },
	{ FACT_mount_ns, PROT_mount_ns, 0xEFFFFFF8U },   { FACT_net_ns, PROT_net_ns, 0xEFFFFFF9U },
	{ FACT_ipc_ns, PROT_ipc_ns, 0xEFFFFFFFU },       { FACT_uts_ns, PROT_uts_ns, 0xEFFFFFFEU },
	{ FACT_cgroup_ns, PROT_cgroup_ns, 0xEFFFFFFBU }, { FACT_time_ns, PROT_time_ns, 0xEFFFFFFAU },
};

static bool is_nodes(const struct cell *c, size_t i)
{
	return c->pump.spaces.inode[i] == spaces[i].first;
}

static bool given_up(const struct cell *c, enum protection protection)
{
	return c->plan->may_degrade & PROT_BIT(protection);
}

/* Refuses before the program starts: what init cannot see now could not be shown as kept afterwards either. */
static int not_shown(const struct cell *c, enum protection protection, const char *what, struct brig_error *err)
{
	const char *class = c->host->set->kubernetes_runtime;
	const struct protection_info *info = &protection_info[protection];

	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the pod's init cannot see %s; protection '%s': %s%s%s does not show it. Use a RuntimeClass whose "
		"containers have Linux below them (runc, crun)%s",
		what, info->name, class[0] ? "the runtime of RuntimeClass '" : "the nodes' container runtime", class,
		class[0] ? "'" : "",
		info->essential ? "" : ", or, to run without the protection, name it in allow_degraded");
}

/* A row for each promise that a cluster may accept and not keep: what was found, and how to change that. */
static int check_spaces(const struct cell *c, struct brig_error *err)
{
	static const char *const names[WIRE_SPACE_COUNT] = WIRE_SPACE_NAMES;
	char what[40];

	if (!c->pump.has_spaces)
		return err_set(err, BRIG_E_REFUSED, 0, "the pod's init did not say which namespaces it has");
	for (size_t i = 0; i < WIRE_SPACE_COUNT; i++)
		if (c->pump.spaces.inode[i] == 0 && !given_up(c, spaces[i].protection)) {
			(void)snprintf(what, sizeof(what), "its '%s' namespace", names[i]);
			return not_shown(c, spaces[i].protection, what, err);
		}
	for (size_t i = 0; i < WIRE_SPACE_COUNT; i++)
		if (is_nodes(c, i) && !given_up(c, spaces[i].protection))
			return err_set(
				err, BRIG_E_REFUSED, 0,
				"the pod shares a namespace with its node: protection '%s'. For cgroup_ns: cgroup "
				"v2 on the nodes, or a container runtime that makes one (Docker: "
				"default-cgroupns-mode private). To run without it, name it in allow_degraded",
				protection_info[spaces[i].protection].name);
	return 0;
}

/*
 * Either there is no interface except lo, or init has verified that the program can create no socket that leads
 * further.
 */
static int check_network(const struct cell *c, struct brig_error *err)
{
	const struct fact *f = &c->pump.early.row[FACT_interfaces];

	if (f->known && (str_eq(f->text, "lo") || str_eq(f->text, "")))
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0, "the pod has a network (%s), and nothing keeps the program from it",
		       f->known ? f->text : "nobody says which");
}

static int check_processes(const struct cell *c, struct brig_error *err)
{
	const struct fact *f = &c->pump.early.row[FACT_pids_max];

	if (given_up(c, PROT_pids_limit) || (f->known && f->num <= c->plan->limits.pids))
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the pod may have more than %llu processes (pids_limit), and the API has no way to ask for less: set "
		"podPidsLimit of the kubelet to at most that, raise pids_limit to what the kubelet has, or name "
		"pids_limit in allow_degraded",
		(unsigned long long)c->plan->limits.pids);
}

/* On nodes that ignore the size limit, an emptyDir in memory may take half of the node's memory. */
static int check_disk(const struct cell *c, struct brig_error *err)
{
	const struct fact *f = &c->pump.early.row[FACT_disk_max];
	uint64_t most = c->plan->limits.disk_bytes + 3 * 4 * KiB; /* each of the three places is rounded up to a page */

	if (f->known && f->num <= most)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the pod's workspace is not bounded: its node ignores sizeLimit of emptyDir. Kubernetes 1.22 and newer "
		"keep it; before, turn on the feature gate SizeMemoryBackedVolumes of the kubelet");
}

/*
 * What nobody but init can see: the API server only repeats what was asked for.  The checks after the end would convict a run
 * whose facts are missing, but by then the program has run.
 */
static int check_shown(const struct cell *c, struct brig_error *err)
{
	static const struct {
		enum fact_id fact;
		enum protection protection;
		const char *what;
	} rows[] = {
		{ FACT_memory_max, PROT_memory_limit, "its memory limit" },
		{ FACT_swap_max, PROT_swap_limit, "its swap limit" },
		{ FACT_cpu_quota_percent, PROT_cpu_quota, "its processor quota" },
		{ FACT_capabilities, PROT_no_capabilities, "the program's capabilities" },
		{ FACT_no_new_privs, PROT_no_new_privs, "whether the program may gain privileges" },
		{ FACT_seccomp_mode, PROT_seccomp, "the program's system call filter" },
		{ FACT_root_flags, PROT_read_only_root, "how its root is mounted" },
		{ FACT_writable_mounts, PROT_read_only_root, "its mounts" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!c->pump.early.row[rows[i].fact].known && !given_up(c, rows[i].protection))
			return not_shown(c, rows[i].protection, rows[i].what, err);
	return 0;
}

int pod_check_walls(struct cell *c, struct brig_error *err)
{
	static int (*const checks[])(const struct cell *, struct brig_error *) = {
		check_spaces, check_shown, check_network, check_processes, check_disk,
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(checks); i++)
		rc = checks[i](c, err);
	return rc < 0 ? rc : lifecycle_check_limits(&c->pump, "the cluster", err);
}

/* ---- after the end -------------------------------------------------------------------------------------- */

static void read_spaces(const struct cell *c, struct facts *f)
{
	static const char *const names[WIRE_SPACE_COUNT] = WIRE_SPACE_NAMES;

	for (size_t i = 0; c->pump.has_spaces && i < WIRE_SPACE_COUNT; i++)
		if (c->pump.spaces.inode[i] != 0)
			fact_text(f, spaces[i].fact, is_nodes(c, i) ? "shared" : "own",
				  "init: %s:[%llu], and the API server's account", names[i],
				  (unsigned long long)c->pump.spaces.inode[i]);
}

void pod_read_back(struct cell *c, struct facts *ret)
{
	struct pod_status status = { .phase = POD_WAITS };

	if (!c->stopped)
		return; /* the first call comes while init is still working: it reports everything at the end */
	lifecycle_facts(&c->pump, ret);
	if (!c->violated)
		c->violated = !lifecycle_ids(&c->pump, ret, c->difference, sizeof(c->difference));
	read_spaces(c, ret);
	if (c->plan->workspace && c->after)
		fact_text(ret, FACT_project, "ro", "API server: no volume of the node; the pod had a copy");
	if (!ret->row[FACT_processes_left].known && c->gone)
		fact_num(ret, FACT_processes_left, 0, "API server: the pod is gone, by its node's word");
	if (c->after)
		pod_status_read(c->after, &status);
	fact_text(ret, FACT_engine_account,
		  c->violated ? c->difference
		  : c->after  ? "as asked"
			      : "not given",
		  "API server: the pod before the start and after the end; image %.100s", status.image_id);
}
