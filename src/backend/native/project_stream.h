/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project as a stream for a cell's init (files/pack.h), packed by the process that was asked for the run and may read
 * the project.
 *
 * A thread packs it, because writing blocks until init reads.  The copy is charged to the cell's memory, so the project
 * is measured first, and refused if it needs more than half of that memory.
 */
#ifndef NATIVE_PROJECT_STREAM_H
#define NATIVE_PROJECT_STREAM_H

#include "base/fd.h"
#include "model/plan.h"

struct project_stream {
	struct packer *packer;  /* NULL: none */
	int source;             /* what init reads; closed when init has it */
	uint64_t bytes, inodes; /* upper bounds for the copy */
};
#define PROJECT_STREAM_NONE        \
	{                          \
		.source = FD_NONE, \
	}

/*
 * The most that a copy may take of a cell's memory, including the margin that measuring adds, in bytes; and one inode
 * per page.
 */
#define PROJECT_PAGE ((uint64_t)4096) /* size of a small file, and more than that of an inode */
static inline uint64_t project_stream_most(uint64_t memory_bytes)
{
	return memory_bytes / 2 + memory_bytes / 16 + 32 * PROJECT_PAGE;
}

/* Begins to pack plan->workspace, which must outlive the stream.  After a failure there is nothing to release. */
int project_stream_begin(struct project_stream *s, const struct plan *plan, struct brig_error *err);
/*
 * Ends the stream.  If packing failed for a reason of its own, err and the result are that reason; otherwise returns rc
 * and leaves err alone.
 */
int project_stream_blame(struct project_stream *s, int rc, struct brig_error *err);
void project_stream_end(struct project_stream *s); /* safe if it was never begun */

#endif
