/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in force around a program that nothing isolates, read back from the kernel: its credentials and limits, and
 * that it shares every namespace with us.  What is not there at all (a control group, a root of its own) stays unknown,
 * which counts as not kept.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/direct/direct.h"
#include "base/fd.h"
#include "base/str.h"

/* The hard limit in one line of /proc/PID/limits: "Max open files    1024    1024    files". */
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
 * Not prlimit(2): root's program has another user id, and that call wants a privilege which containers lack.  A zombie
 * shows no limits here, but a hard limit cannot be raised, so that it is enough to have read them before.
 */
static void read_limits(const struct cell *c, struct facts *f)
{
	char pattern[256] = "|", path[48], text[4096];
	uint64_t files = 0, core = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/limits", c->program);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0 || !hard_limit(text, "Max open files", &files) ||
	    !hard_limit(text, "Max core file size", &core))
		return;
	fact_num(f, FACT_open_files_max, files, "%s", path);
	/* 1 is too small for a core file and keeps a piped core_pattern from starting; 0 does only the first. */
	if (core == 0)
		(void)fd_get_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	fact_text(f, FACT_core_dumps, core == 1 || (core == 0 && pattern[0] != '|') ? "none" : "possible", "%s", path);
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

/* The text behind "Name:" in a status file; NULL if there is none. */
static const char *field(const char *status, const char *name)
{
	char head[32];
	const char *at;

	(void)snprintf(head, sizeof(head), "\n%s:", name);
	at = strstr(status, head);
	return at ? at + strlen(head) + strspn(at + strlen(head), " \t") : NULL;
}

static void read_ids(struct facts *f, const char *status, const char *path)
{
	const char *at = field(status, "Uid");
	unsigned long id[4];
	char groups[160];
	size_t len;

	if (at && sscanf(at, "%lu %lu %lu %lu", &id[0], &id[1], &id[2], &id[3]) == 4) {
		bool one = id[0] == id[1] && id[1] == id[2] && id[2] == id[3];

		fact_num(f, FACT_host_uid, one ? id[0] : 0, "%s", path);
		fact_num(f, FACT_uid, one ? id[0] : 0, "%s", path);
	}
	at = field(status, "Groups");
	if (!at)
		return;
	len = strcspn(at, "\n");
	(void)snprintf(groups, sizeof(groups), "%.*s", (int)(len < 150 ? len : 150), at);
	while (groups[0] && groups[strlen(groups) - 1] == ' ')
		groups[strlen(groups) - 1] = '\0';
	fact_text(f, FACT_groups, groups, "%s", path);
}

static void read_status(const struct cell *c, struct facts *f)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char path[48], status[4096], text[32];
	unsigned long long caps = 0;
	const char *at = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", c->program);
	if (fd_get_at(AT_FDCWD, path, status, sizeof(status)) < 0)
		return;
	read_ids(f, status, path);
	for (size_t i = 0; i < ARRAY_LEN(sets) && (i == 0 || at); i++) {
		at = field(status, sets[i]);
		caps |= at ? strtoull(at, NULL, 16) : 0;
	}
	(void)snprintf(text, sizeof(text), "%llx", caps);
	if (at)
		fact_text(f, FACT_capabilities, text, "%s", path);
	at = field(status, "NoNewPrivs");
	if (at)
		fact_num(f, FACT_no_new_privs, strtoull(at, NULL, 10), "%s", path);
	at = field(status, "Seccomp");
	if (at)
		fact_num(f, FACT_seccomp_mode, strtoull(at, NULL, 10), "%s", path);
}

void direct_inspect_start(struct cell *c)
{
	read_namespaces(c, &c->early); /* a zombie has none */
	read_status(c, &c->early);
	read_limits(c, &c->early);
	project_facts(c, &c->early);
}

/* Two looks: while the program is there, if only as a zombie, and when everything is dead. */
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
