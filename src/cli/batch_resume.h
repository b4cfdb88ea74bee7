/* SPDX-License-Identifier: Apache-2.0 */
/* --out FILE --resume: finds the jobs that have a line in the file already. */
#ifndef CLI_BATCH_RESUME_H
#define CLI_BATCH_RESUME_H

#include "base/buf.h"
#include "base/err.h"

struct batch_finished {
	struct buf ids;  /* each with its NUL */
	size_t *place;   /* hash table with the offset of an id in ids plus 1; 0: free */
	size_t n, slots; /* slots is a power of two */
};

/*
 * Opens the file for results, created if necessary, for exclusive use.  If it is not empty: with resume, cuts off its
 * last line if that is incomplete and fills *ret with the ids of the others; otherwise fails.  Returns a descriptor
 * positioned at the end, or -code.
 */
int batch_resume_open(const char *path, bool resume, struct batch_finished *ret, struct brig_error *err);
bool batch_finished_has(const struct batch_finished *f, const char *id);
void batch_finished_release(struct batch_finished *f);

#endif
