/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace as a stream of bytes, from the steward of one cell to the steward of another, by and by or at once.
 *
 * Theory of operation
 *
 * Both ends are inside: what a program left in its workspace is walked through with that program's rights, and made anew with the
 * rights of the programs that will find it.  Whoever carries the bytes reads nothing of them, so a workspace can be as odd as it
 * likes: it leads nowhere but into a cell.  While it is written every other process of the cell is stopped, so that all of it is
 * of one moment; who was stopped already stays so.
 *
 * The stream is a sequence of records, each a head, a name, and what the type has behind it:
 *
 *	'd' folder  what is in it follows, up to the 'u' that belongs to it
 *	'u' up      mode and time of that folder, for nothing is made in it any more
 *	'f' file    runs of data (struct tree_run and its bytes) in their order, the last one of no bytes; between them are holes
 *	'l' link    its target: size bytes
 *	'h' other   one more name of a file that came before: size bytes, its path
 *	'p' fifo    nothing
 *	'e' end     nothing; size is the number of entries.  A stream without it is not whole
 *
 * Sockets, devices and what is not the program's to read are left out, and counted.  Extended attributes do not travel.
 */
#ifndef STEWARD_TREE_H
#define STEWARD_TREE_H

#include <sys/stat.h>

#include "base/util.h"

#define TREE_DEPTH_MAX 128
#define TREE_PIECE     262144
#define TREE_RUN_MAX   (4 * 1024 * 1024)

enum tree_type {
	TREE_FOLDER = 'd',
	TREE_UP = 'u',
	TREE_FILE = 'f',
	TREE_LINK = 'l',
	TREE_OTHER = 'h',
	TREE_FIFO = 'p',
	TREE_END = 'e'
};

struct tree_head {
	uint32_t type, mode, name_len, mtime_ns;
	int64_t mtime;
	uint64_t size;
};
struct tree_run {
	uint64_t offset, len;
};

struct tree_counts {
	uint64_t entries, bytes; /* bytes of data in files */
	uint64_t left_out;
};

/* What is in a folder, to a descriptor that may make this wait: 0 or -errno; -E2BIG: there is more than may be. */
int tree_save(int folder, int out, const struct tree_counts *most, struct tree_counts *ret);
/* 0 or -errno; -EPROTO: the stream is not sound, or not whole.  What was made until then stays. */
int tree_load(int folder, int in, struct tree_counts *ret);

#endif
