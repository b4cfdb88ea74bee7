/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One level for each open folder: its descriptor and the names that are still to be visited, read from it at once when
 * it was entered.  Names are in one heap block per level, so memory is bounded by the limit on entries, which is
 * applied while names are read and not afterwards: a folder with a million names costs no more than the limit.
 *
 * A folder is entered from its parent's descriptor by its own name, with openat2: if it was a folder when it was
 * examined and is a link now, opening fails and it counts as vanished.
 */
#include "files/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "files/beneath.h"

#define NAMES_PIECE (32 * 1024)

struct name {
	uint32_t at;        /* in the level's text */
	unsigned char kind; /* DT_* */
};

struct level {
	int fd;
	char *text; /* names, each with its NUL */
	size_t text_len, text_cap;
	struct name *row;
	size_t n, cap, next;
	size_t path_len; /* of the walk's path at this level */
};

struct walk {
	const struct walk_caps *caps;
	walk_fn each;
	void *arg;
	struct walk_outcome *out;
	uint64_t names; /* read so far, visited or not */
	struct level level[WALK_DEPTH_MAX];
	size_t depth; /* levels in use */
	char path[WALK_PATH_MAX];
	char piece[NAMES_PIECE];
};

static void level_close(struct level *l)
{
	fd_closep(&l->fd);
	free(l->text);
	free(l->row);
	*l = (struct level){ .fd = FD_NONE };
}

static bool reserve(void **p, size_t *cap, size_t want, size_t size)
{
	size_t more = *cap ? *cap : 64;
	void *bigger;

	if (want <= *cap)
		return true;
	while (more < want)
		more *= 2;
	bigger = reallocarray(*p, more, size);
	if (!bigger)
		return false;
	*p = bigger;
	*cap = more;
	return true;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static bool add_name(struct level *l, const struct dirent64 *e)
{
	size_t len = strlen(e->d_name) + 1;

	if (l->text_len + len > UINT32_MAX || !reserve((void **)&l->text, &l->text_cap, l->text_len + len, 1) ||
	    !reserve((void **)&l->row, &l->cap, l->n + 1, sizeof(*l->row)))
		return false;
	memcpy(l->text + l->text_len, e->d_name, len);
	l->row[l->n++] = (struct name){ .at = (uint32_t)l->text_len, .kind = e->d_type };
	l->text_len += len;
	return true;
}

static int by_name(const void *a, const void *b, void *text)
{
	return strcmp((char *)text + ((const struct name *)a)->at, (char *)text + ((const struct name *)b)->at);
}

/* 0, or -errno: of the reading, or -ENOMEM. */
static int read_names(struct walk *w, struct level *l)
{
	ssize_t got;

	while ((got = getdents64(l->fd, w->piece, sizeof(w->piece))) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *e = (const void *)(w->piece + at);

			at += e->d_reclen;
			if (is_dot(e->d_name))
				continue;
			if (w->names == w->caps->entries) {
				w->out->cut = true;
				return 0;
			}
			if (!add_name(l, e))
				return -ENOMEM;
			w->names++;
		}
	return got < 0 ? -errno : 0;
}

/* Opens a folder by its name in parent.  -errno. */
static int open_folder(const struct walk *w, int parent, const char *name)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd;

	if (!w->caps->cross_mounts)
		return beneath_open_dir(parent, name);
	fd = (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Enters the folder; 0, also if it is left out and counted; -errno: of the root, or no memory. */
static int enter(struct walk *w, int parent, const char *name, size_t path_len)
{
	struct level *l = &w->level[w->depth];
	int rc;

	if (w->depth == WALK_DEPTH_MAX) {
		w->out->cut = true;
		return 0;
	}
	*l = (struct level){ .fd = open_folder(w, parent, name), .path_len = path_len };
	rc = l->fd < 0 ? l->fd : read_names(w, l);
	if (rc == 0) {
		if (!w->caps->kinds_only && l->n > 1)
			qsort_r(l->row, l->n, sizeof(*l->row), by_name, l->text);
		w->depth++;
		return 0;
	}
	level_close(l);
	if (rc == -ENOMEM || path_len == 0)
		return rc;
	if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP)
		w->out->vanished++;
	else if (rc == -EMFILE || rc == -ENFILE)
		w->out->cut = true;
	else
		w->out->unreadable++;
	return 0;
}

/* The path of name in the level's folder, into w->path; 0: it is too long. */
static size_t make_path(struct walk *w, const struct level *l, const char *name)
{
	size_t len = strlen(name), at = l->path_len;

	if (at + (at > 0) + len >= sizeof(w->path))
		return 0;
	if (at > 0)
		w->path[at++] = '/';
	memcpy(w->path + at, name, len + 1);
	return at + len;
}

static bool look(const struct walk *w, const struct level *l, const struct name *row, struct stat *st)
{
	const char *name = l->text + row->at;

	if (!w->caps->kinds_only || row->kind == DT_UNKNOWN)
		return fstatat(l->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
	*st = (struct stat){ .st_mode = DTTOIF(row->kind) };
	return true;
}

/* 1: stop. */
static int visit(struct walk *w, struct level *l, const struct name *row)
{
	struct walk_entry e = { .dir = l->fd, .name = l->text + row->at, .path = w->path };
	size_t path_len = make_path(w, l, e.name);
	struct stat st;
	enum walk_next next;

	w->out->entries++;
	if (path_len == 0) {
		w->out->cut = true;
		return 0;
	}
	if (!look(w, l, row, &st)) {
		*(errno == ENOENT ? &w->out->vanished : &w->out->unreadable) += 1;
		return 0;
	}
	e.st = &st;
	next = w->each(w->arg, &e);
	if (next == WALK_STOP) {
		w->out->stopped = true;
		return 1;
	}
	return next == WALK_ON && S_ISDIR(st.st_mode) ? enter(w, e.dir, e.name, path_len) : 0;
}

static int walk_on(struct walk *w)
{
	int rc = 0;

	while (w->depth > 0 && rc == 0) {
		struct level *l = &w->level[w->depth - 1];

		if (l->next < l->n) {
			rc = visit(w, l, &l->row[l->next++]);
		} else {
			level_close(l);
			w->depth--;
		}
	}
	while (w->depth > 0)
		level_close(&w->level[--w->depth]);
	return rc;
}

int walk_tree(int root, const struct walk_caps *caps, walk_fn each, void *arg, struct walk_outcome *ret,
	      struct brig_error *err)
{
	struct walk *w = malloc(sizeof(*w)); /* levels and buffers are filled when they are used */
	int rc;

	*ret = (struct walk_outcome){ .entries = 0 };
	if (!w)
		return err_nomem(err);
	w->caps = caps;
	w->each = each;
	w->arg = arg;
	w->out = ret;
	w->names = 0;
	w->depth = 0;
	rc = enter(w, root, ".", 0);
	if (rc == 0)
		rc = walk_on(w);
	free(w);
	if (rc == -ENOMEM)
		return err_nomem(err);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot read the folder") : 0;
}
