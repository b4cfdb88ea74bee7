/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects that cells work in: which of their files are hidden, what a run changed, and applying that.
 *
 *	workspace_open        the project's folder, and what of it must be hidden -> plan_workspace
 *	workspace_collect     the program's view after its end -> changes, kept in the state folder under the run's id
 *	workspace_artifacts   files that were asked for -> a folder of the caller's
 *	changeset_*           diff, apply, discard: later, by id
 */
#ifndef WORKSPACE_WORKSPACE_H
#define WORKSPACE_WORKSPACE_H

#include "base/buf.h"
#include "base/err.h"
#include "files/folder.h"
#include "model/settings.h"
#include "model/workspace.h"
#include "sys/statedir.h"

struct workspace; /* an opened project */

/*
 * Refused: not a folder, a place that place.h refuses (the system's, a home, the state folder, one in it or above it),
 * and a project of which it cannot be said what must be hidden.  state: path of the state folder, which need not be
 * there.  set must outlive it.
 */
int workspace_open(const char *path, const char *state, const struct settings *set, struct workspace **ret,
		   struct brig_error *err);
/*
 * A project that came as a tar archive and is in a private in-memory file system.  Nothing of it is hidden: the sender
 * chose its contents.  Its changes can be listed and fetched, and there is nothing to apply them to.
 */
int workspace_from_archive(int archive, int cancel_fd, const struct settings *set, struct workspace **ret,
			   struct brig_error *err);
/*
 * The same for a project that another process has opened and packed (files/pack.h), with folders, permissions and
 * links.  hidden: the paths that it hides, a folder's with a trailing slash; none of them is in the tree, and each
 * appears empty.
 */
int workspace_from_tree(int tree, const char *const *hidden, size_t n_hidden, const struct settings *set,
			struct workspace **ret, struct brig_error *err);
bool workspace_is_archive(const struct workspace *w); /* of both: nothing of this host can be written */
void workspace_close(struct workspace *w);            /* NULL is fine */
/* Valid until close. */
const struct folder *workspace_folder(const struct workspace *w);
const struct plan_workspace *workspace_plan(const struct workspace *w);
/*
 * What stands at a path of the project now.  Its owner may change that at any moment, so nothing may be
 * run because it was the same: workspace_cover().
 */
enum workspace_name { WORKSPACE_ABSENT, WORKSPACE_SAME, WORKSPACE_OTHER };
enum workspace_name workspace_at(const struct workspace *w, const char *path, const void *data, size_t len,
				 unsigned *ret_mode);
/* In the cell a staged file stands at this path, whatever the project has there or will have.  Borrowed. */
void workspace_cover(struct workspace *w, const char *path);

/* The file that covers the project's: as long as the program leaves it as it is, it is no change.  name NULL: none. */
struct covering {
	const char *name;
	const void *data;
	size_t len;
	unsigned mode;
};

struct collect_ask {
	const struct workspace *workspace;
	const struct workspace_view *view;
	const struct statedir *state; /* NULL: nothing is kept, changes are only listed */
	const char *id;               /* of the run */
	const char *const *ours;      /* names at the top that brig itself staged: no changes */
	size_t n_ours;
	struct covering covering;
	const struct settings *set; /* caps */
};
/* Fills ret; state KEPT if there is something to apply and it was kept. */
int workspace_collect(const struct collect_ask *ask, struct changes *ret, struct brig_error *err);

/*
 * The changes of a project that came as an archive, as a unified diff: texts by lines, others are named.  False: there was
 * more than room for it, in the buffer or in what may be read; what is there is whole files.
 */
bool workspace_diff(const struct workspace *w, const struct workspace_view *view, const struct changes *changes,
		    struct buf *ret);

struct artifacts_ask {
	const struct workspace_view *view;
	const char *const *pattern;
	size_t n_patterns;
	const struct changes *changes; /* only files that are in it; NULL: all of the view */
	const struct folder *out;      /* NULL: only list */
	int archive;                   /* a descriptor that they are written to as a tar archive; 0: none */
	int cancel_fd;                 /* ends the waiting for who reads that */
	bool overwrite;                /* files that are there already are replaced */
	bool *matched;                 /* of each pattern: whether a file did; NULL: nobody asks */
	uint64_t inline_bytes;         /* of contents that come into the result */
	struct buf *not_copied; /* "path: why\n" for each that was not, though it could have been; NULL: nobody asks */
	const char *const *ours;
	size_t n_ours;
	const struct settings *set;
};
int workspace_artifacts(const struct artifacts_ask *ask, struct artifacts *ret, struct brig_error *err);

/* Names files in the workspace of a run that nobody asked for any of: the first few, and in dropped how many more. */
struct left_ask {
	const char *const *ours;
	size_t n_ours;
	struct artifacts *ret;
};
void workspace_left(int dir, const struct left_ask *ask);
/* The same for one file that a backend names; what is in a folder that would not be entered is passed over. */
void workspace_left_one(const struct left_ask *ask, const char *path, uint64_t size);

/* ---- changesets: what runs left in the state folder ----------------------------------------------- */

#define CHANGES_VERSION 1 /* of the document that each has */

/* JSON documents for `brig workspace ...`; data/schemas has no schema for them, docs/WORKSPACES.md does. */
int changeset_list_json(const struct statedir *state, char **ret, struct brig_error *err);
/* The changes of one, as in a result, with the project's path. */
int changeset_show_json(const struct statedir *state, const char *id, char **ret, struct brig_error *err);
/* A unified diff of text files; others are named. */
int changeset_diff(const struct statedir *state, const char *id, struct buf *ret, struct brig_error *err);
/*
 * Applies the changes, all or, if a file of the project is no longer what the run saw, none: BRIG_E_REFUSED names the
 * first such file.  Links that lead out of the project and special files are not applied but named in *ret_skipped (may
 * be NULL).  held: the project, if the run that made them still has it open; NULL: it is looked up, and must be the
 * same folder.  with_git: also the commits, branches and tags of its repository.  The changeset is gone afterwards.
 */
int changeset_apply(const struct statedir *state, const char *id, const struct folder *held, bool with_git,
		    struct buf *ret_skipped, struct brig_error *err);
/* Whether a repository is there that commits can be applied to; refused with the reason, if not. */
int workspace_check_git(const struct workspace *w, struct brig_error *err);
int changeset_discard(const struct statedir *state, const char *id, struct brig_error *err);
/* How many are kept, and the disk space that they take. */
int changeset_usage(const struct statedir *state, uint64_t *ret_count, uint64_t *ret_bytes, struct brig_error *err);
/* Forgets those older than days. */
int changeset_expire(const struct statedir *state, uint64_t days, struct brig_error *err);

#endif
