/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as one flat message, for the process that makes the cell.  Descriptors travel beside it: the contents of the
 * program's file are never in here.
 *
 *	"brigjob" version | size of all | run id, 16 bytes | fields of job.def | words of argv | of envp | the file | binds
 *
 * Numbers are 8 bytes, in the order of this machine: both ends run on it.  A string is its length, its bytes and a NUL; the
 * length JOB_NULL alone stands for NULL.  The reader believes nothing: every length is checked against what is left, every
 * string against NULs inside it, every number against its type, and nothing may be left over.
 *
 * Two jobs that differ in nothing but the run id ask for the same kind of cell.
 */
#ifndef MODEL_JOB_H
#define MODEL_JOB_H

#include "base/buf.h"
#include "model/plan.h"

#define JOB_MAX       (128 * KiB) /* fits into one record of a SOCK_SEQPACKET socket everywhere */
#define JOB_WORDS_MAX 2048        /* of argv and envp together */
#define JOB_BINDS_MAX 8
#define JOB_NULL      UINT64_MAX

/* Adds the plan to an empty buffer.  -BRIG_E_USAGE: it needs what no job can say, or is too large; err says what. */
int job_encode(const struct plan *plan, struct buf *ret, struct brig_error *err);

struct job {
	struct plan plan; /* points into the rest */
	struct plan_file file;
	struct plan_bind binds[JOB_BINDS_MAX];
	const char *words[JOB_WORDS_MAX + 2];
	size_t size;
	char bytes[]; /* as they came */
};

/* A job on the heap; NULL: these bytes are none, or no memory is left. */
struct job *job_decode(const void *bytes, size_t len);
/* Whether both ask for the same kind of cell. */
bool job_same_kind(const struct job *a, const struct job *b);

#endif
