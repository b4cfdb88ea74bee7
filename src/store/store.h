/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A content-addressed store beneath one directory of the state folder: what was expensive to build is stored under a
 * key derived from all its inputs, and returned only if it is still, byte for byte, what was stored.
 *
 * The usual round:
 *
 *	store_key_begin(&maker, "compile"); store_key_add(&maker, "source", code, len); ... store_key_end(&maker, &key);
 *	store_claim(s, &key, ...);              one of several that want the same key builds it, the others wait
 *	if (store_get(s, &key, &content, ...) != STORE_HIT) { build it; store_put(s, &key, ...); }
 *	store_release(s);
 *
 * No run depends on the store: whatever fails is reported, and the caller builds as if the store were empty.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/cache.h"
#include "sys/crypto.h"
#include "sys/statedir.h"

#define STORE_HASH_LEN    SHA256_LEN
#define STORE_HEX_LEN     SHA256_HEX
#define STORE_KIND_MAX    15   /* bytes of a kind's name: lower-case letters, digits and dashes */
#define STORE_ENTRIES_MAX 8192 /* more are never kept, however small */

struct store_key {
	char kind[STORE_KIND_MAX + 1];
	unsigned char hash[STORE_HASH_LEN];
};

/* A key is the hash of its kind and of named inputs, in an encoding that no other list of inputs shares. */
struct store_key_maker {
	struct sha256 hash;
	char kind[STORE_KIND_MAX + 1];
};
void store_key_begin(struct store_key_maker *m, const char *kind);
void store_key_add(struct store_key_maker *m, const char *name, const void *data, size_t len);
void store_key_text(struct store_key_maker *m, const char *name, const char *text);
void store_key_number(struct store_key_maker *m, const char *name, uint64_t value);
void store_key_end(struct store_key_maker *m, struct store_key *ret);

struct store_limits {
	uint64_t bytes;  /* of all contents together; one content may have a quarter of it */
	uint64_t ttl_ns; /* after which an entry is no longer used */
};

struct store;

/* What one store keeps: contents of bytes in the folder "store", or whole trees in the folder "packages". */
enum store_form { STORE_BYTES, STORE_TREES };

/* Opens, and with make makes if needed, the form's folder of the state folder, which stays the caller's. */
int store_open(const struct statedir *state, enum store_form form, bool make, const struct store_limits *limits,
	       struct store **ret, struct brig_error *err);
void store_close(struct store *s); /* NULL is fine; gives up a claim */
/* What happened in this handle's life. */
const struct cache_events *store_events(const struct store *s);

enum store_answer {
	STORE_HIT,
	STORE_MISS,
	STORE_EXPIRED, /* it was there, but too old; it is gone now */
	STORE_DAMAGED, /* it was there, but not what was kept; it is gone now, and err says what was wrong */
};

struct store_info {
	struct store_key key;
	unsigned char content[STORE_HASH_LEN];
	uint64_t created_ns, used_ns; /* wall clock */
	uint64_t size, hits;
	bool pinned; /* neither age nor room removes it */
};

/*
 * The content under a key, appended to *ret, whose ceiling the caller chose (NULL: only look and verify).  Every
 * use hashes the whole content.  Returns enum store_answer, or -BRIG_E_SYSTEM, -BRIG_E_NOMEM.
 */
int store_get(struct store *s, const struct store_key *key, struct buf *ret, struct store_info *info,
	      struct brig_error *err);

enum store_put_answer { STORE_STORED, STORE_TOO_LARGE };
/* Keeps a content, making room for it first.  Returns enum store_put_answer, or negative with nothing kept. */
int store_put(struct store *s, const struct store_key *key, const void *data, size_t len, struct brig_error *err);

/* ---- trees ------------------------------------------------------------------------------------ */

/* A tree in use: it is not evicted while this is open. */
struct store_tree {
	int fd;              /* its folder */
	char path[PATH_MAX]; /* the same, absolute */
	uint64_t files, bytes;
};
#define STORE_TREE_INIT       \
	{                     \
		.fd = FD_NONE \
	}
void store_tree_close(struct store_tree *t);

/*
 * As store_get(): a use hashes every file, unless that was done since the machine was started and nothing has changed since; a
 * name, a link or a permission too many or too few is damage.
 * is_new: it was put just now, and this is no hit.
 */
int store_get_tree(struct store *s, const struct store_key *key, bool is_new, struct store_tree *ret,
		   struct store_info *info, struct brig_error *err);

/* Of an untrusted tree. */
struct store_import {
	int dir;                       /* read without following anything; nothing in it is believed */
	uint64_t entries;              /* more are refused */
	const unsigned char *expected; /* the hash that the tree has to have; NULL: any */
	/* filled: what is not kept because no tree of ours has it */
	uint64_t links_out; /* links that lead out of it */
	uint64_t special;   /* devices, sockets, pipes */
	uint64_t gits;      /* .git, and folders that git takes for its own */
};
/*
 * Keeps a copy: folders, files and links that stay inside, with no permission but reading and executing.  Returns
 * enum store_put_answer, or negative with nothing kept; -BRIG_E_REFUSED: it is too much, or cannot be read.
 */
int store_put_tree(struct store *s, const struct store_key *key, struct store_import *from, struct brig_error *err);

/* ---- giving and taking (give.c) ---------------------------------------------------------------- */

#define STORE_GIVEN_ENTRIES 100000

/*
 * The content of one entry is found under a further key, too, from now on: as old as it is (created_ns 0), or as old as that.
 * STORE_HIT, STORE_MISS if there is no such entry, or negative.
 */
int store_also(struct store *s, const struct store_key *from, const struct store_key *to, uint64_t created_ns,
	       struct brig_error *err);
/* Writes a content of at most so many bytes to out, packed, after having verified it; that is no use of it.  As store_get(). */
int store_pack(struct store *s, const struct store_key *key, uint64_t max, int out, struct store_info *info,
	       struct brig_error *err);
/* Something packed that somebody else sent. */
struct store_given {
	int in; /* a file, at its beginning */
	uint64_t max;
	unsigned char content[STORE_HASH_LEN]; /* what it has to be */
	uint64_t created_ns;                   /* when it was made, as the giver says */
};
/* Keeps it.  enum store_put_answer; -BRIG_E_REFUSED: it is no such thing, or another content; nothing is kept then. */
int store_unpack(struct store *s, const struct store_key *key, const struct store_given *g, struct brig_error *err);

/* ---- claims ----------------------------------------------------------------------------------- */

enum store_claim_answer { STORE_CLAIMED, STORE_BUSY, STORE_CANCELLED };
/*
 * Waits until no other process holds the claim on this key, at most patience_ms, and then holds it.  STORE_BUSY: the
 * patience is over, build without it.  cancel_fd (or -1) ends the wait when it becomes readable.  A claim ends with its
 * process, however that ends.  Returns enum store_claim_answer, or -BRIG_E_SYSTEM.
 */
int store_claim(struct store *s, const struct store_key *key, uint64_t patience_ms, int cancel_fd,
		struct brig_error *err);
void store_release(struct store *s);

/* ---- pins ------------------------------------------------------------------------------------- */

enum store_pin_answer {
	STORE_PINNED,
	STORE_PIN_ABSENT, /* there is nothing to pin: it went meanwhile */
	STORE_PIN_FULL,   /* pinned contents would take more than three quarters of the ceiling */
};
/*
 * Stores the content of one entry under a second key as well, whose record neither expires nor is evicted; only
 * store_unpin() removes it.  The entry itself is unaffected: if it is removed, or gets another content, the pinned one
 * stays. Returns enum store_pin_answer, or negative with nothing changed.
 */
int store_pin(struct store *s, const struct store_key *from, const struct store_key *pin, struct brig_error *err);
/*
 * Removes the record, and the content with it if no other entry has it and it is not in use.  *ret_gone: the content is
 * not there any more.  A pin that is not there is no error.
 */
int store_unpin(struct store *s, const struct store_key *pin, bool *ret_gone, struct brig_error *err);

/* ---- care ------------------------------------------------------------------------------------ */

struct store_list {
	struct store_info *row; /* heap; the most recently used first */
	size_t n;
	uint64_t bytes; /* of all contents; one that two entries share counts once */
};
int store_list(struct store *s, struct store_list *ret, struct brig_error *err);
void store_list_release(struct store_list *l);

struct store_care {
	uint64_t entries, bytes;          /* that remain */
	uint64_t removed, removed_bytes;  /* entries that went */
	uint64_t damaged, expired, stray; /* why they went: not what was kept, too old, files that belong to no entry */
};
/* Removes what is too old, what is too much, and what belongs to nothing; all: everything.  What is pinned stays. */
int store_prune(struct store *s, bool all, struct store_care *ret, struct brig_error *err);
/* Reads and hashes every content; what is not what was kept is removed.  on_bad (may be NULL) gets each with why. */
int store_verify(struct store *s, void (*on_bad)(void *arg, const struct store_info *info, const char *why), void *arg,
		 struct store_care *ret, struct brig_error *err);

#endif
