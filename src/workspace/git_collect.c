/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run made of the project's repository, found when every process is dead: one walk over .git of the view, in which
 * everything but the few names of git.c is passed over, and for a complete view one over the project's branches and tags,
 * for those that are gone.  Contents are read and kept only once it is known that there is a branch, a tag or a HEAD to
 * lead to them.
 */
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/overlay.h"
#include "files/foreign.h"
#include "files/walk.h"
#include "workspace/git.h"

struct git_walk {
	const struct collect_ask *ask;
	int project, view;
	struct changeset *set;
	uint64_t budget; /* bytes of small files that are compared */
	bool names_moved;
	const char *lost;
	struct brig_error *err;
	int rc;
};

static void add(struct git_walk *w, const char *path, const struct change *change, const struct before *before)
{
	struct kept_row row = { .change = *change, .before = *before };

	if (w->set->n >= w->ask->set->changes_limit) {
		w->lost = "there are more files of it than changes_limit allows";
		return;
	}
	row.change.path = strdup(path);
	if (!row.change.path || !changeset_add(w->set, &row))
		w->rc = err_nomem(w->err);
}

static bool moves_names(enum git_part part)
{
	return part == GIT_REF || part == GIT_HEAD || part == GIT_PACKED;
}

/* Only of branches and tags: git may repack objects, and the old ones of the project stay. */
static void add_deleted(struct git_walk *w, const char *path)
{
	struct before before;
	struct change change = { .kind = CHANGE_DELETED, .type = CHANGE_FILE };

	if (git_part_of(path, false) != GIT_REF || before_look(w->project, path, &w->budget, &before) < 0 ||
	    before.kind != BEFORE_FILE)
		return;
	change.mode = before.mode;
	w->names_moved = true;
	add(w, path, &change, &before);
}

/* The project's own repository was written to while the run worked on its copy. */
static bool moved_meanwhile(const struct git_walk *w, const char *path)
{
	struct stat st;
	AUTO_FD fd = beneath_look(w->project, path, &st);

	return fd >= 0 && st.st_ctim.tv_sec > 0 &&
	       (uint64_t)st.st_ctim.tv_sec * NS_PER_SEC + (uint64_t)st.st_ctim.tv_nsec > w->ask->workspace->opened_ns;
}

static void consider_file(struct git_walk *w, const char *path, enum git_part part)
{
	struct before before, now;
	struct change change = { .type = CHANGE_FILE };

	if (before_look(w->project, path, &w->budget, &before) < 0 ||
	    before_look(w->view, path, &w->budget, &now) < 0 || now.kind != BEFORE_FILE)
		return;
	if (before.kind == BEFORE_FILE && now.hashed && before.hashed &&
	    memcmp(now.sha256, before.sha256, SHA256_LEN) == 0)
		return;
	change.kind = before.kind == BEFORE_NOTHING ? CHANGE_ADDED : CHANGE_MODIFIED;
	change.mode = foreign_mode(now.mode, before.kind == BEFORE_FILE ? before.mode : 0);
	change.size = now.size;
	if (before.kind == BEFORE_FILE && moved_meanwhile(w, path))
		w->lost = "branches of the project were moved while it ran";
	w->names_moved |= moves_names(part);
	add(w, path, &change, &before);
}

/* An object that the project has is the same one: it is neither compared nor written. */
static void consider_object(struct git_walk *w, const char *path, const struct stat *st)
{
	const struct before nothing = { .kind = BEFORE_NOTHING };
	AUTO_FD fd = beneath_look(w->project, path, NULL);

	if (fd < 0)
		add(w, path,
		    &(struct change){ .kind = CHANGE_ADDED,
				      .type = CHANGE_FILE,
				      .mode = foreign_mode(st->st_mode, 0),
				      .size = (uint64_t)st->st_size },
		    &nothing);
}

static void consider_folder(struct git_walk *w, const char *path, const struct stat *st)
{
	struct before before;

	if (before_look(w->project, path, &w->budget, &before) < 0 || before.kind == BEFORE_DIR)
		return;
	add(w, path,
	    &(struct change){ .kind = before.kind == BEFORE_NOTHING ? CHANGE_ADDED : CHANGE_MODIFIED,
			      .type = CHANGE_DIR,
			      .mode = foreign_mode(st->st_mode, 0) },
	    &before);
}

static bool full_path(char dst[PATH_MAX], const char *folder, const char *path)
{
	size_t n = strlen(folder), m = strlen(path);

	if (n + 1 + m >= PATH_MAX)
		return false;
	memcpy(dst, folder, n);
	dst[n] = '/';
	memcpy(dst + n + 1, path, m + 1);
	return true;
}

struct deleted_walk {
	struct git_walk *w;
	const char *folder;
};

static enum walk_next consider_deleted(void *arg, const struct walk_entry *e)
{
	const struct deleted_walk *d = arg;
	char path[PATH_MAX];
	struct stat st;
	AUTO_FD fd = FD_NONE;

	if (!full_path(path, d->folder, e->path) || !S_ISREG(e->st->st_mode))
		return WALK_ON;
	fd = beneath_look(d->w->view, path, &st);
	if (fd < 0 || (!d->w->ask->view->whole && overlay_is_gone(&st)))
		add_deleted(d->w, path);
	return d->w->rc < 0 ? WALK_STOP : WALK_ON;
}

static void find_deleted(struct git_walk *w, const char *folder)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	struct deleted_walk d = { .w = w, .folder = folder };
	AUTO_FD dir = beneath_open_dir(w->project, folder);
	struct walk_outcome out;

	if (dir >= 0 && walk_tree(dir, &caps, consider_deleted, &d, &out, w->err) < 0)
		w->rc = -w->err->code;
}

static enum walk_next consider(void *arg, const struct walk_entry *e)
{
	struct git_walk *w = arg;
	bool is_dir = S_ISDIR(e->st->st_mode), upper = !w->ask->view->whole;
	char path[PATH_MAX];
	enum git_part part = full_path(path, GIT_FOLDER, e->path) ? git_part_of(path, is_dir) : GIT_NEVER;

	if (part == GIT_NEVER || paths_cover(&w->ask->workspace->hidden, path))
		return WALK_SKIP;
	if (upper && overlay_is_gone(e->st)) {
		add_deleted(w, path);
		find_deleted(w, path);
	} else if (is_dir) {
		consider_folder(w, path, e->st);
		if (upper && overlay_is_opaque(w->view, path))
			find_deleted(w, path);
	} else if (S_ISREG(e->st->st_mode)) {
		if (part == GIT_OBJECT)
			consider_object(w, path, e->st);
		else
			consider_file(w, path, part);
	}
	return w->rc < 0 || w->lost ? WALK_STOP : WALK_ON;
}

/* One that the program emptied or recreated is a different repository. */
static bool is_still_there(const struct git_walk *w)
{
	struct stat st;
	AUTO_FD head = beneath_look(w->view, GIT_FOLDER "/HEAD", &st);

	if (w->ask->view->whole)
		return head >= 0 && S_ISREG(st.st_mode);
	return !(head >= 0 && !S_ISREG(st.st_mode)) && !overlay_is_opaque(w->view, GIT_FOLDER);
}

static void look(struct git_walk *w)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX };
	AUTO_FD dir = beneath_open_dir(w->view, GIT_FOLDER);
	struct walk_outcome out = { .entries = 0 };

	if (dir < 0 || !is_still_there(w))
		return;
	w->rc = walk_tree(dir, &caps, consider, w, &out, w->err);
	if (out.cut || out.unreadable || out.vanished)
		w->lost = "not all of it could be looked at";
	if (w->rc == 0 && w->ask->view->whole && !w->lost) {
		find_deleted(w, GIT_FOLDER "/refs/heads");
		find_deleted(w, GIT_FOLDER "/refs/tags");
	}
}

/* ---- contents ---------------------------------------------------------------------------------- */

static int keep(struct git_walk *w, struct keeper *k)
{
	uint64_t left = w->ask->set->disk_limit;

	for (size_t i = 0; i < w->set->n; i++) {
		struct change *c = &w->set->row[i].change;
		AUTO_FD fd = FD_NONE;
		int rc;

		if (c->kind == CHANGE_DELETED || c->type != CHANGE_FILE)
			continue;
		fd = c->size > left ? -EFBIG : beneath_open_file(w->view, c->path, NULL);
		rc = fd < 0 ? fd : keeper_add(k, fd, left, &c->size, c->sha256);
		if (rc < 0) {
			w->lost = "it is larger than disk_limit and changes_size allow, or cannot be read";
			return 0;
		}
		left -= c->size;
		c->hashed = true;
	}
	return 0;
}

int git_collect(const struct collect_ask *ask, struct keeper *k, struct changeset *ret, const char **ret_lost,
		struct brig_error *err)
{
	struct git_walk w = { .ask = ask,
			      .project = ask->workspace->fd,
			      .view = ask->view->fd,
			      .set = ret,
			      .budget = BEFORE_BYTES_MAX,
			      .err = err };
	AUTO_FD own = beneath_open_dir(w.project, GIT_FOLDER);

	if (own < 0 || ask->view->in_part)
		return 0;
	look(&w);
	if (w.rc == 0 && !w.lost && w.names_moved)
		w.rc = keep(&w, k);
	if (w.rc < 0 || w.lost || !w.names_moved)
		changeset_release(ret);
	changeset_sort(ret);
	*ret_lost = w.names_moved ? w.lost : NULL;
	return w.rc;
}
