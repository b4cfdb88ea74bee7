/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project that a cell shows at /workspace, and what happened to it.
 *
 * The host's files are never written by the program: whatever it changes goes to the cell's own scratch space, under
 * its disk limit, and is read back when the last process is dead.  `rw` differs from `cow` only in that the changes
 * are then moved over without being asked for.
 */
#ifndef MODEL_WORKSPACE_H
#define MODEL_WORKSPACE_H

#include "base/util.h"
#include "sys/crypto.h"

/* What a backend needs to show a project.  Everything is borrowed. */
struct plan_workspace {
	int fd;           /* the project's folder, opened for reading */
	const char *path; /* the same for messages; never opened again */
	bool read_only;
	const char *const *hidden; /* paths below it, without links or ".." in them: shown empty */
	size_t n_hidden;
	/* Files that stay what and where they are while the folders around them can be written to; by folder, each followed by
	 * those below it. */
	const char *const *held;
	size_t n_held;
	/* A path that is not taken from the project: the staged file of that name is shown.  NULL: none. */
	const char *covered;
};

/* Whether a path of the project is hidden, or covered; arg is the struct plan_workspace.  Has the form of a pack_skip_fn. */
bool plan_workspace_hides(void *arg, const char *path, bool is_dir);

/* Where a backend has left the program's view after stop. */
struct workspace_view {
	int fd;     /* a folder; the caller's to close */
	bool whole; /* the complete tree, to be compared with the project; else the upper layer of an overlay, which has
		     * only what changed: a character device 0/0 is a deletion, user.overlay.opaque hides what is below */
	bool in_part; /* a whole one from which things are missing: too deep, too many, too large with their holes */
};

enum change_kind { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_DELETED, CHANGE_KIND_COUNT };
enum change_type {
	CHANGE_FILE,
	CHANGE_DIR,
	CHANGE_LINK,
	CHANGE_SPECIAL,
	CHANGE_TYPE_COUNT
}; /* SPECIAL: never moved over */
extern const char *const change_kind_name[CHANGE_KIND_COUNT];
extern const char *const change_type_name[CHANGE_TYPE_COUNT];

struct change {
	char *path; /* heap; below the workspace, any bytes but NUL */
	enum change_kind kind;
	enum change_type type;
	unsigned mode; /* permission bits; setuid, setgid and sticky never */
	uint64_t size;
	uint8_t sha256[SHA256_LEN]; /* files; of a link: of its target */
	bool hashed;
};

enum changes_state {
	CHANGES_NONE, /* nothing changed, or nothing is kept */
	CHANGES_KEPT, /* brig workspace diff|apply|discard ID */
	CHANGES_APPLIED,
	CHANGES_INCOMPLETE, /* a cap was reached: what is listed is not all, and nothing of it can be applied */
	CHANGES_STATE_COUNT
};
extern const char *const changes_state_name[CHANGES_STATE_COUNT];

struct changes {
	bool known; /* there was a workspace, and it was looked at */
	int mode;   /* enum workspace_mode */
	enum changes_state state;
	struct change *row; /* heap; by path */
	size_t n, cap;
	uint64_t added, modified, deleted; /* counted beyond what is listed */
	uint64_t bytes;                    /* of added and modified files */
	uint64_t dropped;                  /* beyond the cap: not listed */
	bool too_large;                    /* INCOMPLETE because they alone would take more than changes_size */
	uint64_t forgotten;                /* older ones that went to make room for these */
	bool git;             /* KEPT: commits, branches or tags of the project's repository are among them */
	const char *git_lost; /* such were made and are not kept: why; static.  NULL: not so */
};

/* Copies.  False: no memory. */
bool changes_add(struct changes *c, const struct change *one);
void changes_sort(struct changes *c);
void changes_release(struct changes *c);

/* A file that was asked for and fetched. */
struct artifact {
	char *path; /* heap; below the workspace */
	uint64_t size;
	uint8_t sha256[SHA256_LEN];
	char *content; /* heap, size bytes; NULL: it is not in the result */
	bool may_execute;
};

struct artifacts {
	struct artifact *row; /* heap */
	size_t n, cap;
	uint64_t dropped; /* matched, but beyond the count or size cap, or not a regular file */
	uint64_t lost;    /* those of them that are regular files */
};

/* Copies the path, and takes the content over.  False: no memory, and the content is freed. */
bool artifacts_add(struct artifacts *a, const struct artifact *one);
void artifacts_release(struct artifacts *a);

#endif
