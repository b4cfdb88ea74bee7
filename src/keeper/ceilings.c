/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ceilings that no job may exceed, whoever sent it.  The process that started the keeper passed them as a sealed
 * file or in the first record, when it had read the policy and nothing else, so a caller that is compromised later
 * cannot raise them. Numbers are compared as numbers, and paths byte by byte with the paths named in the ceilings: the
 * check never looks up or opens anything that a job names.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "backend/native/project_stream.h"
#include "base/str.h"
#include "keeper/inside.h"

static int too_much(const char *what, struct brig_error *err)
{
	return err_set(err, BRIG_E_REFUSED, 0, "the job asks for more than the keeper of cells was started for: %s",
		       what);
}

static int check_limits(const struct limits *most, const struct limits *l, struct brig_error *err)
{
	const struct {
		const char *name;
		uint64_t asked, most;
	} rows[] = {
#define ROW(field) { #field, l->field, most->field }
		ROW(cpu_percent),  ROW(cpu_time_ms), ROW(memory_bytes), ROW(pids),    ROW(disk_bytes), ROW(inodes),
		ROW(output_bytes), ROW(open_files),  ROW(startup_ms),   ROW(wall_ms), ROW(cleanup_ms),
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].asked > rows[i].most)
			return too_much(rows[i].name, err);
	/* Zero means "no limit" in the kernel's files. */
	if (l->cpu_percent == 0 || l->memory_bytes == 0 || l->pids == 0 || l->disk_bytes == 0 || l->inodes == 0 ||
	    l->wall_ms == 0 || l->cpu_time_ms == 0)
		return too_much("a cell without a limit", err);
	return 0;
}

/* A relative path without empty components, "." or "..". */
static bool is_plain_below(const char *path)
{
	for (const char *part = path;; part++) {
		size_t len = strcspn(part, "/");

		if (len == 0 || (len <= 2 && strspn(part, ".") >= len))
			return false;
		part += len;
		if (*part == '\0')
			return true;
	}
}

static bool is_plain(const char *path)
{
	return path[0] == '/' && is_plain_below(path + 1);
}

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return len > 0 && strncmp(path, folder, len) == 0 && path[len] == '/';
}

/*
 * A checked bind comes with a descriptor, so the caller was able to open it; it is mounted only if the path leads to
 * the same file.
 */
static bool may_show(const struct keep_hello *most, const struct plan_bind *b)
{
	bool below = b->checked;

	for (size_t i = 0; i < KEEP_SHOWN_MAX; i++)
		below = below || is_below(b->source, most->shown[i]) || str_eq(b->source, most->shown[i]);
	return below && is_plain(b->source) && is_plain(b->target);
}

/* Sockets of the egress proxy may only be on the cell's own loopback. */
static int check_way_out(const struct plan_egress *e, struct brig_error *err)
{
	for (size_t i = 0; e && i < e->n_places; i++)
		if (e->place[i].address >> 24 != 127)
			return too_much("a socket elsewhere than on the cell's own loopback", err);
	return 0;
}

/*
 * The project is the directory that the caller has open, mounted read-only.  Its hidden and protected paths are in the
 * contents and are checked when those are mapped (single.c).
 */
static int check_project(const struct plan_workspace *w, struct brig_error *err)
{
	if (w && w->covered && !is_plain_below(w->covered))
		return too_much("a program that lies elsewhere than in the workspace", err);
	return 0;
}

static bool is_root_of(const struct keep_hello *most, const char *rootfs)
{
	for (size_t i = 0; i < most->n_roots && i < KEEP_ROOTS_MAX; i++)
		if (str_eq(rootfs, most->root[i]))
			return true;
	return false;
}

static bool waits_for_its_file(const struct plan *plan)
{
	const size_t len = strlen(PLAN_WORKSPACE "/");

	return plan->waits_at && plan->n_files == 1 && strncmp(plan->waits_at, PLAN_WORKSPACE "/", len) == 0 &&
	       str_eq(plan->waits_at + len, plan->files[0].name) && !strchr(plan->files[0].name, '/') &&
	       plan->files[0].name[0] != '.';
}

/* The steward of a session waits for its session and has no program file. */
static bool may_wait(const struct plan *plan)
{
	return plan->session ? plan->n_files == 0 : waits_for_its_file(plan);
}

int ceilings_check(const struct keep_hello *most, const struct plan *plan, struct brig_error *err)
{
	int rc = check_limits(&most->most, &plan->limits, err);

	if (rc < 0)
		return rc;
	if (plan->uid == 0 || plan->gid == 0 || plan->uid > INT32_MAX || plan->gid > INT32_MAX)
		return too_much("the user id", err);
	if (plan->may_degrade & ~most->may_degrade)
		return too_much("protections that it would go without", err);
	if (plan->disk_io_bps != 0 && most->disk_io_bps == 0)
		return too_much("a limit on disks, which this keeper has not looked for", err);
	if (!is_root_of(most, plan->rootfs))
		return too_much("another root", err);
	for (size_t i = 0; i < plan->n_binds; i++)
		if (!may_show(most, &plan->binds[i]))
			return too_much("a folder of the host that it may not show", err);
	for (size_t i = 0; i < plan->n_files; i++)
		if (!is_plain_below(plan->files[i].name))
			return too_much("a file that lies elsewhere than in the workspace", err);
	if (plan->waits_at && !may_wait(plan))
		return too_much("a program that lies elsewhere than in the workspace", err);
	rc = check_project(plan->workspace, err);
	return rc < 0 ? rc : check_way_out(plan->egress, err);
}

static bool is_socket(int fd, int type)
{
	int has_type = 0, domain = 0;
	socklen_t len = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &has_type, &len) == 0 && has_type == type &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

/* The copy is charged to the cell's memory, and init enlarges the scratch tmpfs by its size. */
int ceilings_check_stream(const struct plan *plan, const struct keep_stream *s, int source, struct brig_error *err)
{
	const uint64_t most = project_stream_most(plan->limits.memory_bytes);

	if (s->bytes > most || s->inodes > most / PROJECT_PAGE)
		return too_much("a project that takes most of the cell's memory", err);
	if (!is_socket(source, SOCK_STREAM))
		return too_much("a project that comes from something else than a socket", err);
	return 0;
}

/*
 * The caller may send any descriptor that it can open.  The channel must be a unix SOCK_SEQPACKET socket, or sending
 * would act on something else.  The contents must be a memfd sealed against writing and resizing, or the caller could
 * make the cell block on it, crash on it, or run something other than what was inspected.  A bind must be a file or a
 * directory, a project a directory.
 */
int ceilings_check_descriptors(const struct job *job, const struct keep_message *m, uint64_t *ret_size,
			       struct brig_error *err)
{
	const int sealed = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	const int *fds = m->fds;
	const size_t last_bind = KEEP_RUN_FDS + job_bind_fds(job);
	int seals = fcntl(fds[KEEP_FD_CONTENTS], F_GET_SEALS);
	struct stat st;

	if (m->n_fds != last_bind + (job->plan.workspace != NULL))
		return too_much("another number of descriptors than it has words for", err);
	if (!is_socket(fds[KEEP_FD_CHANNEL], SOCK_SEQPACKET))
		return too_much("a channel over something that is no socket of its kind", err);
	if (seals < 0 || (seals & sealed) != sealed || fstat(fds[KEEP_FD_CONTENTS], &st) < 0 || !S_ISREG(st.st_mode))
		return too_much("files that are not in a sealed file in memory", err);
	*ret_size = (uint64_t)st.st_size;
	for (size_t i = KEEP_RUN_FDS; i < last_bind; i++)
		if (fstat(fds[i], &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
			return too_much("something to be shown that is no folder and no file", err);
	if (last_bind < m->n_fds && (fstat(fds[last_bind], &st) < 0 || !S_ISDIR(st.st_mode)))
		return too_much("a project that is no folder", err);
	return 0;
}
