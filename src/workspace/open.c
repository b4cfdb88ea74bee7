/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project becomes a workspace: is it one, and where.
 * Which of its files are secrets, and where git keeps its own, is found by hide.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/pack.h"
#include "files/place.h"
#include "files/tar.h"
#include "sys/caps.h"
#include "sys/private_fs.h"
#include "sys/proc.h"
#include "workspace/internal.h"

/* ---- open and close ---------------------------------------------------------------------------- */

static struct workspace *workspace_new(const struct settings *set)
{
	struct workspace *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = FD_NONE;
	w->set = set;
	w->opened_ns = clock_wall_ns();
	w->folder = (struct folder)FOLDER_INIT;
	return w;
}

static void make_plan(struct workspace *w)
{
	w->plan = (struct plan_workspace){
		.fd = w->fd,
		.path = w->path,
		.read_only = w->set->workspace_mode == WORKSPACE_RO,
		.hidden = (const char *const *)w->hidden.item,
		.n_hidden = w->hidden.n,
	};
}

int workspace_open(const char *path, const char *state, const struct settings *set, struct workspace **ret,
		   struct brig_error *err)
{
	struct workspace *w = workspace_new(set);
	int rc;

	if (!w)
		return err_nomem(err);
	rc = folder_open(path, "workspace", false, &w->folder, err);
	if (rc == 0)
		rc = place_check(&w->folder, "workspace", state, err);
	w->fd = w->folder.fd;
	w->path = w->folder.path;
	if (rc == 0)
		rc = hide_find(w, err);
	if (rc < 0) {
		workspace_close(w);
		return rc;
	}
	make_plan(w);
	*ret = w;
	return 0;
}

int workspace_from_archive(int archive, int cancel_fd, const struct settings *set, struct workspace **ret,
			   struct brig_error *err)
{
	/* In the cell they are memory, too: what takes more than half of that would be refused there. */
	const struct untar_caps caps = { .entries = set->inodes_limit, .bytes = set->mem_limit / 2 };
	struct workspace *w = workspace_new(set);
	int rc;

	if (!w)
		return err_nomem(err);
	w->from_archive = true;
	w->path = "the archive of files";
	w->fd = w->folder.fd = private_fs(caps.bytes + caps.entries * 4096, caps.entries + 16);
	if (w->fd < 0)
		rc = err_set(err, BRIG_E_SYSTEM, -w->fd,
			     "cannot make a file system in memory for the archive of files");
	else
		rc = untar(archive, w->fd, &caps, cancel_fd, err);
	if (rc < 0) {
		workspace_close(w);
		return rc;
	}
	make_plan(w);
	*ret = w;
	return 0;
}

/* Empty, for the cell to put something over: the path of a folder ends with a slash, which is cut off in what is kept. */
static int make_hidden(struct workspace *w, const char *marked, struct brig_error *err)
{
	char path[PATH_MAX];
	size_t len = strlen(marked);
	bool is_dir = len > 0 && marked[len - 1] == '/';
	const char *name;
	AUTO_FD parent = FD_NONE, file = FD_NONE;

	if (!str_copy(path, sizeof(path), marked) || len == 0)
		return err_set(err, BRIG_E_USAGE, 0, "a hidden path of the project is none");
	if (is_dir)
		path[len - 1] = '\0';
	parent = beneath_open_parent(w->fd, path, &name);
	if (parent >= 0 && is_dir && mkdirat(parent, name, 0755) < 0)
		return err_set(err, BRIG_E_USAGE, errno, "hidden folder '%.200s' of the project", path);
	if (parent >= 0 && !is_dir)
		file = beneath_create(w->fd, path, 0644);
	if (parent < 0 || (!is_dir && file < 0))
		return err_set(err, BRIG_E_USAGE, parent < 0 ? -parent : -file, "hidden file '%.200s' of the project",
			       path);
	return paths_add(&w->hidden, path) ? 0 : err_nomem(err);
}

/* Keeps two descriptors, no capability and nothing of its parent's life. */
static _Noreturn void unpacker_main(int dir, int tree, const struct unpack_options *options)
{
	struct pack_counts counts;
	int rc = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0, low = dir < tree ? dir : tree,
	    high = dir < tree ? tree : dir;

	(void)close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		(void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	(void)close_range((unsigned)high + 1, ~0U, 0);
	if (rc == 0)
		rc = caps_clear(); /* for good: it executes nothing */
	if (rc == 0)
		rc = unpack_tree(dir, tree, options, &counts);
	_exit(-rc & 0xff);
}

/*
 * In a separate process: it reads untrusted bytes, and takes as long as there are files, for which a service must not
 * make others wait.
 */
static int unpack_apart(int dir, int tree, const struct unpack_options *options)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		unpacker_main(dir, tree, options);
	if (pid < 0)
		return -errno;
	status = proc_wait(pid);
	if (status < 0)
		return status;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int unpack_project(struct workspace *w, int tree, const char *const *hidden, size_t n_hidden,
			  struct brig_error *err)
{
	/* In the cell it is memory, too, of which a copy may take half. */
	const uint64_t room = w->set->mem_limit / 2;
	const struct unpack_options options = { .caps = { .entries = room / 4096, .bytes = room },
						.uid = UINT32_MAX,
						.gid = UINT32_MAX,
						.readable = true };
	int rc;

	w->fd = w->folder.fd = private_fs(2 * room, options.caps.entries + n_hidden + 16);
	if (w->fd < 0)
		return err_set(err, BRIG_E_SYSTEM, -w->fd, "cannot make a file system in memory for the project");
	rc = unpack_apart(w->fd, tree, &options);
	if (rc == -E2BIG || rc == -ENOSPC)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the project takes more than half of the cell's memory (mem_limit): raise it, leave out "
			       "with workspace_hide what is not needed, or use --local");
	if (rc < 0)
		return err_set(err, BRIG_E_USAGE, -rc, "the packed project cannot be read");
	for (size_t i = 0; i < n_hidden && rc == 0; i++)
		rc = make_hidden(w, hidden[i], err);
	paths_sort(&w->hidden);
	return rc;
}

int workspace_from_tree(int tree, const char *const *hidden, size_t n_hidden, const struct settings *set,
			struct workspace **ret, struct brig_error *err)
{
	struct workspace *w = workspace_new(set);
	int rc;

	if (!w)
		return err_nomem(err);
	w->from_archive = true;
	w->path = "the project";
	rc = unpack_project(w, tree, hidden, n_hidden, err);
	if (rc < 0) {
		workspace_close(w);
		return rc;
	}
	make_plan(w);
	*ret = w;
	return 0;
}

bool workspace_is_archive(const struct workspace *w)
{
	return w->from_archive;
}

void workspace_close(struct workspace *w)
{
	if (!w)
		return;
	folder_close(&w->folder);
	paths_release(&w->hidden);
	paths_release(&w->git);
	free(w);
}

const struct folder *workspace_folder(const struct workspace *w)
{
	return &w->folder;
}

const struct plan_workspace *workspace_plan(const struct workspace *w)
{
	return &w->plan;
}

bool same_bytes(int fd, const char *data, size_t len)
{
	char piece[16384];
	size_t at = 0;
	ssize_t n;

	while ((n = fd_read_all(fd, piece, sizeof(piece))) > 0) {
		if ((size_t)n > len - at || memcmp(piece, data + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
	}
	return n == 0 && at == len;
}

void workspace_cover(struct workspace *w, const char *path)
{
	w->plan.covered = path;
}

enum workspace_name workspace_at(const struct workspace *w, const char *path, const void *data, size_t len,
				 unsigned *ret_mode)
{
	struct stat st;
	AUTO_FD seen = beneath_look(w->fd, path, &st);
	AUTO_FD fd = FD_NONE;

	if (seen == -ENOENT)
		return WORKSPACE_ABSENT;
	if (seen < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != len || paths_cover(&w->hidden, path))
		return WORKSPACE_OTHER;
	fd = beneath_open_file(w->fd, path, &st);
	*ret_mode = st.st_mode & 0777;
	return fd >= 0 && same_bytes(fd, data, len) ? WORKSPACE_SAME : WORKSPACE_OTHER;
}
