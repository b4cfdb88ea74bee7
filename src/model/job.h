/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as one flat message, for the process that makes the cell.  Descriptors travel beside it, and what files contain is
 * never in here:
 *
 *	contents	one file with what is in the plan's files, one behind the other, then the certificates, then the paths of
 *			a project that are hidden or held, each with a NUL behind it; of a job that waits for its program, that
 *			program alone
 *	binds		of each checked one, in their order, what its path must lead to; all are but in jobs that wait
 *	project		its folder, if there is one
 *
 *	"brigjob" version | size of all | run id, 16 bytes | fields of job.def | words of argv | of envp | files | binds | way out |
 *	project
 *
 * Numbers are 8 bytes in host byte order: both ends run on this machine.  A string is its length, its bytes and a NUL;
 * the length JOB_NULL alone stands for NULL.  The reader trusts nothing: every length is checked against what is left,
 * every string against NULs inside it, every number against its type, and nothing may be left over.
 *
 * Two jobs that differ in nothing but the run id ask for the same kind of cell.
 */
#ifndef MODEL_JOB_H
#define MODEL_JOB_H

#include "base/buf.h"
#include "model/plan.h"

#define JOB_MAX            (128 * KiB) /* fits into one record of a SOCK_SEQPACKET socket everywhere */
#define JOB_WORDS_MAX      2048        /* of argv and envp together */
#define JOB_WORD_BYTES_MAX (64 * KiB)  /* so that the rest fits, whatever it is */
#define JOB_FILES_MAX      64
#define JOB_BINDS_MAX      8
#define JOB_PATHS_MAX      65536 /* of a project: how many are hidden or held; each is looked for one by one */
#define JOB_NULL           UINT64_MAX

/* What a plan needs and no job can say; NULL: nothing. */
const char *job_lacks(const struct plan *plan);
/* Adds the plan to an empty buffer.  -BRIG_E_USAGE: it needs something that a job cannot describe, or is too large; err
 * says what. */
int job_encode(const struct plan *plan, struct buf *ret, struct brig_error *err);

struct job {
	struct plan plan; /* points into the rest */
	struct plan_file files[JOB_FILES_MAX], certificates;
	struct plan_bind binds[JOB_BINDS_MAX];
	struct plan_egress egress;
	struct plan_workspace workspace;
	uint64_t paths_size; /* in contents */
	const char **paths;  /* heap: what is hidden, then what is held; NULL before its contents are set */
	const char *words[JOB_WORDS_MAX + 2];
	size_t size;
	char bytes[]; /* as they came */
};

/* A job on the heap; NULL: not a valid job, or out of memory. */
struct job *job_decode(const void *bytes, size_t len);
void job_destroy(struct job *job); /* NULL is fine */
/* How many descriptors of binds belong to it. */
size_t job_bind_fds(const struct job *job);
/* What the paths of a project take in contents, and the paths themselves. */
uint64_t job_paths_size(const struct plan_workspace *w);
typedef int (*job_path_fn)(void *arg, const char *path, size_t len_with_nul); /* not 0 ends it, and is returned */
int job_each_path(const struct plan_workspace *w, job_path_fn fn, void *arg);
/* Its files and its project get what is in contents, which must outlive it.  False: contents are of another size, its paths are
 * none that a tree has, or no memory is left. */
bool job_set_contents(struct job *job, const char *contents, uint64_t size);
/* Whether both ask for the same kind of cell. */
bool job_same_kind(const struct job *a, const struct job *b);

#endif
