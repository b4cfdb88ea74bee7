/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which protections this host cannot give, as far as that can be told cheaply before a cell is made.
 * It runs before every run, so nothing is forked: what only shows by doing (a forbidden user namespace,
 * a masked /proc) fails at its step in the cell's set-up, with the same refusal.
 */
#include "backend/native/cell.h"

static protection_set missing_cgroup(const struct cgroup_host *h)
{
	static const struct {
		enum cgroup_resource resource;
		enum protection protection;
	} rows[] = {
		{ CGROUP_MEMORY, PROT_memory_limit }, { CGROUP_SWAP, PROT_swap_limit },
		{ CGROUP_PIDS, PROT_pids_limit },     { CGROUP_CPU, PROT_cpu_quota },
		{ CGROUP_CPU_TIME, PROT_cpu_time },   { CGROUP_SOCKET_MEMORY, PROT_socket_memory },
	};
	protection_set missing = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!cgroup_host_has(h, rows[i].resource))
			missing |= PROT_BIT(rows[i].protection);
	return missing;
}

int native_probe(protection_set *ret_missing, const char *ret_why[PROT_COUNT], struct brig_error *err)
{
	struct cgroup_host *h = NULL;
	protection_set missing;
	int abi = landlock_abi();
	int rc = cgroup_host_open(&h, err);

	if (rc < 0)
		return rc;
	missing = missing_cgroup(h);
	cgroup_host_free(h);
	if (abi == 0)
		missing |= PROT_BIT(PROT_landlock);
	if (access("/proc/self/ns/time", F_OK) < 0)
		missing |= PROT_BIT(PROT_time_ns);
	if (access("/proc/self/ns/cgroup", F_OK) < 0)
		missing |= PROT_BIT(PROT_cgroup_ns);
	if (!idmap_has_two())
		missing |= PROT_BIT(PROT_id_separation);
	for (enum protection p = 0; p < PROT_COUNT; p++)
		ret_why[p] = missing & PROT_BIT(p) ? protection_info[p].lost : NULL;
	*ret_missing = missing;
	return 0;
}
