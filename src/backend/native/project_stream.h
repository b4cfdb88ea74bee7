/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project as a stream for the init of a cell (files/pack.h), for whoever may read it: the process that a run was asked of.
 *
 * A thread packs it, because writing waits for init's reading.  The copy is memory of the cell, so it is measured first, and more
 * than half of that memory is too much.
 */
#ifndef NATIVE_PROJECT_STREAM_H
#define NATIVE_PROJECT_STREAM_H

#include "base/fd.h"
#include "model/plan.h"

struct project_stream {
	struct packer *packer;  /* NULL: there is none */
	int source;             /* what init reads; to be closed when init has it */
	uint64_t bytes, inodes; /* that the copy takes at most */
};
#define PROJECT_STREAM_NONE        \
	{                          \
		.source = FD_NONE, \
	}

/* What a copy may take of a cell's memory, with what measuring adds; and so many inodes, of a page each. */
#define PROJECT_PAGE ((uint64_t)4096) /* what a small file takes, and more than what an inode does */
static inline uint64_t project_stream_most(uint64_t memory_bytes)
{
	return memory_bytes / 2 + memory_bytes / 16 + 32 * PROJECT_PAGE;
}

/* Begins to pack plan->workspace, which must outlive the stream.  After a failure there is nothing to release. */
int project_stream_begin(struct project_stream *s, const struct plan *plan, struct brig_error *err);
/* Ends it.  The reason why packing failed, if it did, is that of the cell's failure; else it is rc, and err is left as it is. */
int project_stream_blame(struct project_stream *s, int rc, struct brig_error *err);
void project_stream_end(struct project_stream *s); /* one that was never begun is fine */

#endif
