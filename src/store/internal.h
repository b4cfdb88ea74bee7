/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share: its descriptors, its locks, and the look at one entry. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <sys/stat.h>

#include "store/entry.h"
#include "sys/crypto.h"

#define STORE_WRITER_PATIENCE_MS 10000 /* writing takes milliseconds; a stopped writer must not block others */

struct store {
	enum store_form form;
	struct statedir dir, index, content; /* the form's folder and its two folders */
	int lock;
	struct store_limits limits;
	struct cache_events events;
	uint64_t claim; /* the byte of the lock file that we hold; 0: none */
	bool read_only; /* nothing can be dropped or touched: verified reads only */
};

/* Locks end with their process.  0, -ETIME when the patience is over, -ECANCELED, or another -errno. */
int store_lock_byte(struct store *s, uint64_t byte, uint64_t patience_ms, int cancel_fd);
void store_unlock_byte(struct store *s, uint64_t byte);
/* The lock of those that change folders. */
int store_writer_lock(struct store *s, struct brig_error *err);
void store_writer_unlock(struct store *s);

/* Where a hit goes; what is NULL is only verified. */
struct store_take {
	struct buf *bytes;
	struct store_tree *tree;
};

/*
 * One look at the entry of a key, changing nothing.  Returns enum store_answer; *why says what is wrong with a
 * damaged one.  *fd, if not NULL, gets the open record of a hit.
 */
int store_look(const struct store *s, const struct store_key *key, const struct store_take *take,
	       struct store_info *info, int *fd, const char **why);
/* store_get(), which counts as a use of the entry or not; what is damaged or too old goes either way. */
int store_find(struct store *s, const struct store_key *key, bool is_use, const struct store_take *take,
	       struct store_info *info, struct brig_error *err);
/* A regular file of ours with one name and no access for others, opened without following links.  Or -errno; -EUCLEAN
 * if it is something else, and *why says what. */
int store_open_file(int dir, const char *name, int flags, uint64_t *size, uint64_t *used_ns, const char **why);
/* Removes a name, whatever it is, as long as it is one thing: a file, a link, an empty directory. */
void store_remove(int dir, const char *name);
/* Within the writer's lock: removes until `more` further bytes fit; all: everything.  Neither what is pinned. */
int store_make_room(struct store *s, uint64_t more, bool all, struct store_care *care, struct brig_error *err);

/* Within the writer's lock: the entry's record, for a content that is in place.  0 or negative. */
int store_publish_record(struct store *s, const struct store_key *key, const unsigned char content[STORE_HASH_LEN],
			 uint64_t size, struct brig_error *err);
/* The record of a key, whatever its age.  0 or -errno. */
int store_read_record(const struct store *s, const struct store_key *key, struct store_entry *ret);
/* The same for a record that is whole already. */
int store_write_record(struct store *s, const struct store_entry *e, struct brig_error *err);
/* Within the writer's lock: removes a content.  False: it is a tree in use, and force is not given. */
bool store_drop_content(const struct store *s, const char *name, bool force);

/* seen.c: how the entries of a tree look, without their contents. */
struct tree_state {
	struct sha256 hash;
	uint64_t began_ns, newest_ns; /* when the look began, and the last change of anything */
};
void tree_state_begin(struct tree_state *s);
void tree_state_add(struct tree_state *s, const char *path, const struct stat *st);
/* Whether the tree of this hash had this state when it was last hashed, since the machine was started. */
bool tree_seen_is(const struct store *s, const unsigned char tree[STORE_HASH_LEN],
		  const unsigned char state[STORE_HASH_LEN]);
/* It has just been hashed, and was whole; root is its folder.  If that cannot be remembered it is hashed again. */
void tree_seen_note(const struct store *s, int root, const unsigned char tree[STORE_HASH_LEN],
		    struct tree_state *state);
void tree_seen_forget(const struct store *s, const char *name);

/* tree.c */
/* ret NULL: every file is hashed; otherwise only if the tree has changed, or the machine was started, since that was done. */
int store_tree_look(const struct store *s, const struct store_entry *e, struct store_tree *ret, const char **why);
bool store_tree_drop(const struct store *s, const char *name, bool force);
/* An empty folder in the store's own, locked for as long as *ret_fd is open: whoever is killed meanwhile leaves it to the sweep. */
#define STORE_SCRATCH_MAX 32
int store_scratch_begin(struct store *s, char name[STORE_SCRATCH_MAX], int *ret_fd, struct brig_error *err);
void store_scratch_end(const struct store *s, const char *name);
/* What writers that were killed have left. */
void store_tree_sweep(const struct store *s);

#endif
