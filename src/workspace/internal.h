/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of this folder: an opened project, and a changeset as it is kept. */
#ifndef WORKSPACE_INTERNAL_H
#define WORKSPACE_INTERNAL_H

#include <limits.h>

#include "files/folder.h"
#include "workspace/paths.h"
#include "workspace/workspace.h"

/* Entries of a tree that are looked at, whatever the settings say. */
#define ENTRIES_MAX 1000000
/* Bytes of the project's own files that are hashed to know them again; larger ones are known by size and time. */
#define BEFORE_BYTES_MAX (1 * GiB)

struct workspace {
	struct folder folder;
	int fd; /* of folder, and its path */
	const char *path;
	const struct settings *set;
	struct path_list hidden;
	struct path_list git; /* each .git: the program may write to its copy, and nothing below is a change */
	uint64_t opened_ns;   /* CLOCK_REALTIME: later changes in the project are not the program's */
	struct plan_workspace plan;
	bool from_archive;
};

/* Whether the policy hides what would have this name, were it there. */
bool workspace_hides(const struct settings *set, const char *path, bool is_dir);
/* Fills hidden and git of an opened project. */
int hide_find(struct workspace *w, struct brig_error *err);

/* Whether a path is, or is inside, a tool's cache (caches.def). */
bool is_tool_cache(const char *path);

/* ---- changesets -------------------------------------------------------------------------------- */

enum before_kind { BEFORE_NOTHING, BEFORE_FILE, BEFORE_DIR, BEFORE_LINK, BEFORE_OTHER, BEFORE_KIND_COUNT };

/* What stood at a path of the project when the run ended. */
struct before {
	enum before_kind kind;
	unsigned mode;
	uint64_t size;
	int64_t mtime_ns;
	uint8_t sha256[SHA256_LEN]; /* of a file's content, a link's target */
	bool hashed;
	uint64_t inode; /* of a folder: by which it is known again when its permissions change */
};

/* Why a change is not moved over. */
enum skip { SKIP_NOT, SKIP_SPECIAL, SKIP_LINK, SKIP_SECRET, SKIP_GIT, SKIP_BRIG, SKIP_UNSOUND, SKIP_COUNT };
extern const char *const skip_reason[SKIP_COUNT]; /* a sentence; NULL for SKIP_NOT */

struct kept_row {
	struct change change; /* owns path */
	struct before before;
	char *target; /* of a link; heap, else NULL */
	enum skip skip;
	bool git; /* of .git, and asked for: git_take has checked it */
};

struct changeset {
	char id[64];
	char project[PATH_MAX];
	struct folder_id folder; /* which the project is; inode 0: not noted */
	char boot[FOLDER_BOOT_LEN + 1];
	int mode; /* enum workspace_mode */
	uint64_t created_ns;
	uint64_t added, modified, deleted, bytes;
	bool git; /* rows of the repository are kept besides, for who asks for them */
	struct path_list hidden;
	struct kept_row *row; /* by path */
	size_t n, cap;
};

/* Takes path and target of *row over.  False: no memory, and they are freed. */
bool changeset_add(struct changeset *c, struct kept_row *row);
void changeset_sort(struct changeset *c);
/* The row of a path, of a sorted one; NULL: there is none. */
const struct kept_row *changeset_find(const struct changeset *c, const char *path);
void changeset_release(struct changeset *c);

/* The folder at the top of a project in which an apply prepares what comes; no program makes one. */
#define STAGING_PREFIX ".brig-apply-"

/*
 * Leaves out of a sorted changeset, with a reason, what must not come into the project as it is: names of git's and of
 * ours, folders that would be git's under another name, links that lead out of the tree as it will be.  Asked when
 * changes are kept, to be shown, and again when they are applied: the project may be another by then.
 */
int changeset_judge(struct changeset *c, int project, struct brig_error *err);
/*
 * The project that a changeset is of: held, the descriptor of the run that made it, or what its path leads to now.
 * Refused if that is another folder than the run's, or in a place where none may be.
 */
int changeset_project(const struct changeset *c, const struct folder *held, const char *state, struct folder *ret,
		      struct brig_error *err);

/* What is at path of the project now; budget: bytes that may still be hashed.  0 or -errno. */
int before_look(int project, const char *path, uint64_t *budget, struct before *ret);
bool before_same(const struct before *a, const struct before *b);

/* ---- the folder of one changeset: head.json, rows.json, git.json, contents under their hashes ---- */

struct keeper {
	struct statedir all; /* "workspaces" */
	struct statedir dir; /* one of them */
	char name[80];       /* of it */
	uint64_t bytes;      /* of disk that the contents take */
	uint64_t room;       /* that all may take together */
};
#define KEEPER_INIT                                                             \
	{                                                                       \
		.all = STATEDIR_INIT, .dir = STATEDIR_INIT, .room = UINT64_MAX, \
	}

/* A new one, not visible to others until it is finished, and gone if it is not. */
int keeper_begin(struct keeper *k, const struct statedir *state, const char *id, struct brig_error *err);
/* Keeps the content of a file of at most max bytes; *ret_size and hash tell what was read.  -EFBIG: it has more;
 * -EDQUOT: what is kept now takes more than there is room for, and cannot be finished. */
int keeper_add(struct keeper *k, int fd, uint64_t max, uint64_t *ret_size, uint8_t hash[SHA256_LEN]);
/* Makes it one that can be found; the oldest others go if there is no room, *ret_forgotten tells how many.  1: it alone
 * takes more than there is room for, or others cannot go because they are in use, and it is not kept. */
int keeper_finish(struct keeper *k, const struct changeset *c, const struct changeset *git, uint64_t *ret_forgotten,
		  struct brig_error *err);
/* Opens one of any name, and locks it not; -errno. */
int keeper_reach(struct keeper *k, const struct statedir *all, const char *name);
/* The folder of all, for keeper_each_in: 1; 0: nothing was kept yet. */
int keeper_open_all(const struct statedir *state, struct statedir *ret, struct brig_error *err);
/* When it was kept; 0: it is unfinished. */
uint64_t keeper_made_ns(const struct statedir *dir);
/* Bytes of disk that a changeset's folder takes with what is in it. */
uint64_t keeper_disk(int dir);
/* Forgets the oldest ones until those that are left leave room for so many bytes; the caller holds the lock on all.
 * *ret_forgotten: how many.  False: they do not. */
bool room_make(const struct statedir *all, uint64_t ceiling, uint64_t wanted, uint64_t *ret_forgotten);
/* One that is there; locked against others. */
int keeper_open(struct keeper *k, const struct statedir *state, const char *id, struct brig_error *err);
int keeper_read(const struct keeper *k, struct changeset *ret, bool with_rows, struct brig_error *err);
/* The rows of the repository, of a changeset that says that it has some. */
int keeper_read_git(const struct keeper *k, struct changeset *ret, struct brig_error *err);
/* A kept content, for reading; -errno. */
int keeper_content(const struct keeper *k, const uint8_t hash[SHA256_LEN]);
/* Calls each with the name of every one, unfinished ones (which begin with a dot) included. */
typedef int (*keeper_fn)(void *arg, const struct statedir *state, const char *name, struct brig_error *err);
int keeper_each(const struct statedir *state, keeper_fn each, void *arg, struct brig_error *err);
/* The same, handing on the folder that they are in instead of the state folder. */
int keeper_each_in(const struct statedir *all, keeper_fn each, void *arg, struct brig_error *err);
/* Removes it and closes; what was not finished goes with it. */
int keeper_drop(struct keeper *k);
void keeper_close(struct keeper *k);
#define AUTO_KEEPER           \
	CLEANUP(keeper_close) \
	struct keeper

/* Whether a file has exactly this content, from where it is read now. */
bool same_bytes(int fd, const char *data, size_t len);
/* Copies in order up to max bytes from one descriptor to an empty file (negative: nowhere), hashing; zeroes become holes.
 * -EFBIG: there are more. */
int copy_hashed(int from, int to, uint64_t max, uint64_t *ret_size, uint8_t hash[SHA256_LEN]);

#endif
