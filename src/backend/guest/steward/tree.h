/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace as a stream of bytes from the steward of one cell to the steward of another, stored in between or
 * directly.
 *
 * Theory of operation
 *
 * Both ends are inside cells: the workspace is walked with the rights of the program that left it, and recreated with
 * the rights of the programs that will find it.  The carrier does not look at the bytes, so however hostile a workspace
 * is, it can only reach a cell.  While the stream is written, every other process of the cell is stopped, so the copy
 * is consistent; processes that were stopped already stay so.
 *
 * The stream is a sequence of records, each with a head, a name, and contents that depend on the type:
 *
 *	'd' directory  followed by its entries, up to the matching 'u'
 *	'u' up         mode and time of that directory, in which nothing more is created
 *	'f' file       runs of data (struct tree_run and its bytes) in order, the last one empty; between them are holes
 *	'l' link       its target: size bytes
 *	'h' hard link  another name of an earlier file: size bytes, its path
 *	'p' fifo       nothing
 *	'e' end        nothing; size is the number of entries.  A stream without it is incomplete
 *
 * Sockets, devices and files that the program cannot read are left out, and counted.  Extended attributes are not
 * copied.
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

/* Writes the contents of a directory; blocks on out.  0 or -errno; -E2BIG: a limit in *most is exceeded. */
int tree_save(int folder, int out, const struct tree_counts *most, struct tree_counts *ret);
/* 0 or -errno; -EPROTO: the stream is malformed or incomplete.  Entries created before the error stay. */
int tree_load(int folder, int in, struct tree_counts *ret);

#endif
