/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree as a byte stream, for places that no descriptor reaches: into a cell whose ids cannot read the project
 * (rootless), into a container, and back out of it.
 *
 * The stream is a sequence of records, each a fixed head (type, permission bits, length of path, length of content)
 * followed by path and content: folders before what is in them, then an end record with the counts.  Only folders,
 * regular files (holes are sent as zeroes) and links are included; permission bits without setuid, setgid and sticky;
 * no owners, no times.  A stream without its end record is not a tree.  Records are carried in blocks behind their
 * lengths, so that a reader needs few calls and takes no byte that comes after the tree.
 *
 * unpack_tree also runs in a cell's init: it allocates nothing, uses nothing in libc that takes locks, and trusts
 * nothing in the stream: names are checked, everything is created beneath dir and must be new.
 */
#ifndef FILES_PACK_H
#define FILES_PACK_H

#include "base/err.h"

struct pack_caps {
	uint64_t entries, bytes;
	bool in_part; /* of packing: what is beyond the caps, too deep or too long stays out of the stream and is no error */
	bool upper; /* it is the upper layer of an overlay, whose marks travel, too; else they are no part of a tree */
};

struct pack_counts {
	uint64_t entries, bytes;
	uint64_t room;     /* bytes in whole pages, as a tmpfs counts them; of packing and measuring only */
	uint64_t left_out; /* special files, unreadable ones, and what vanished before it was read */
	bool cut;          /* in_part: the stream has not everything */
};

/* True: leave this entry (and what is below it) out; such ones are not counted as left out. */
typedef bool (*pack_skip_fn)(void *arg, const char *path, bool is_dir);

/*
 * Writes to out (blocking): preferably a socket, because a pipe without a reader would kill this process with SIGPIPE.
 * skip may be NULL.  Reaching a cap is BRIG_E_REFUSED with what to do, before anything of that file is written; for a
 * tree that a program left, whose actions must not look like our failure, see in_part.
 */
int pack_tree(int dir, const struct pack_caps *caps, pack_skip_fn skip, void *arg, int out, struct pack_counts *ret,
	      struct brig_error *err);

/* What a tree would take, without reading contents. */
int pack_measure(int dir, const struct pack_caps *caps, pack_skip_fn skip, void *arg, struct pack_counts *ret,
		 struct brig_error *err);

struct unpack_options {
	struct pack_caps caps;
	uint32_t uid, gid; /* owner of everything; UINT32_MAX: as it comes */
	bool readable;     /* by the owner, whatever the modes say: files u+r, folders u+rx */
};

/*
 * Reads in until the end record.  0, or -errno: -EPROTO for a bad stream, -E2BIG for a cap, -EEXIST for a name that was
 * there.  Zeroes become holes.  ret->left_out is 0.
 */
int unpack_tree(int dir, int in, const struct unpack_options *o, struct pack_counts *ret);

#endif
