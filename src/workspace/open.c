/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project becomes a workspace: is it one, and where.
 * Which of its files are secrets, and where git keeps its own, is found by hide.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/place.h"
#include "files/tar.h"
#include "sys/private_fs.h"
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
