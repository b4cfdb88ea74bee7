/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a program without isolation, read back from the kernel: its credentials and limits, and which namespaces
 * it shares with us (all, except uts where the guard has its own).  What does not exist at all (a cgroup, its own root)
 * stays unknown, which counts as not kept.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/direct/direct.h"
#include "backend/guest/facts.h"
#include "base/fd.h"
#include "base/str.h"

/* The hard limit in a line of /proc/PID/limits: "Max open files    1024    1024    files". */
static bool hard_limit(const char *text, const char *name, uint64_t *ret)
{
	const char *line = strstr(text, name);
	char soft[24], hard[24];

	if (!line || sscanf(line + strlen(name), " %23s %23s", soft, hard) != 2)
		return false;
	if (str_eq(hard, "unlimited"))
		*ret = UINT64_MAX;
	return str_eq(hard, "unlimited") || str_to_u64(hard, ret);
}

/*
 * Not prlimit(2): root's program has another user id, so that call requires a privilege that containers lack.  A zombie
 * shows no limits here, but a hard limit cannot be raised, so reading it earlier is sufficient.
 */
static void read_limits(const struct cell *c, struct facts *f)
{
	char path[48], text[4096];
	uint64_t files = 0, core = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/limits", c->program);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0 || !hard_limit(text, "Max open files", &files) ||
	    !hard_limit(text, "Max core file size", &core))
		return;
	fact_num(f, FACT_open_files_max, files, "%s", path);
	fact_text(f, FACT_core_dumps, guest_core_dumps(core), "%s", path);
}

static void read_namespaces(const struct cell *c, struct facts *f)
{
	static const struct {
		enum fact_id fact;
		const char *name;
	} rows[] = {
		{ FACT_user_ns, "user" },     { FACT_pid_ns, "pid" },   { FACT_mount_ns, "mnt" },
		{ FACT_net_ns, "net" },       { FACT_ipc_ns, "ipc" },   { FACT_uts_ns, "uts" },
		{ FACT_cgroup_ns, "cgroup" }, { FACT_time_ns, "time" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stat ours, theirs;
		char path[48];

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", rows[i].name);
		if (stat(path, &ours) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", c->program, rows[i].name);
		if (stat(path, &theirs) == 0)
			fact_text(f, rows[i].fact, ours.st_ino == theirs.st_ino ? "shared" : "own", "%s:[%llu]",
				  rows[i].name, (unsigned long long)theirs.st_ino);
	}
}

static void read_status(const struct cell *c, struct facts *f)
{
	static const enum fact_id fact_of[STATUS_NUMBERS] = {
		[STATUS_UID] = FACT_host_uid,
		[STATUS_GID] = FACT_COUNT,
		[STATUS_NO_NEW_PRIVS] = FACT_no_new_privs,
		[STATUS_SECCOMP] = FACT_seccomp_mode,
		[STATUS_SECCOMP_FILTERS] = FACT_COUNT,
		[STATUS_CAPABILITIES] = FACT_COUNT,
	};
	struct guest_text caps = { .len = 0 };
	struct guest_status s;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", c->program);
	if (!guest_status_read(path, &s))
		return;
	for (size_t i = 0; i < STATUS_NUMBERS; i++)
		if (s.known[i] && fact_of[i] != FACT_COUNT)
			fact_num(f, fact_of[i], s.number[i], "%s", path);
	if (s.known[STATUS_UID])
		fact_num(f, FACT_uid, s.number[STATUS_UID], "%s", path);
	if (s.has_groups)
		fact_text(f, FACT_groups, s.groups, "%s", path);
	guest_text_number(&caps, s.number[STATUS_CAPABILITIES], 16);
	if (s.known[STATUS_CAPABILITIES])
		fact_text(f, FACT_capabilities, caps.s, "%s", path);
}

void direct_inspect_start(struct cell *c)
{
	read_namespaces(c, &c->early); /* a zombie has none */
	read_status(c, &c->early);
	read_limits(c, &c->early);
	project_facts(c, &c->early);
}

/* Two looks: while the program exists, possibly as a zombie, and when everything is dead. */
void direct_read_back(struct cell *c, struct facts *ret)
{
	if (c->guard_pidfd >= 0) {
		read_status(c, ret);
		return;
	}
	for (size_t i = 0; i < FACT_COUNT; i++)
		if (!ret->row[i].known && c->early.row[i].known)
			ret->row[i] = c->early.row[i];
	if (c->left >= 0)
		fact_num(ret, FACT_processes_left, (uint64_t)c->left, "waitpid(2) of the guard, a subreaper");
}
