/* SPDX-License-Identifier: Apache-2.0 */
/* --out FILE --resume: which jobs have their line in the file already. */
#ifndef CLI_BATCH_RESUME_H
#define CLI_BATCH_RESUME_H

#include "base/buf.h"
#include "base/err.h"

struct batch_finished {
	struct buf ids;  /* each with its NUL */
	size_t *place;   /* a hash table of where in ids one begins, plus 1; 0: free */
	size_t n, slots; /* slots is a power of two */
};

/*
 * Opens the file that results go to, created if necessary, for exclusive use.  One that has something in it is gone on
 * with (resume): its last line is cut off if it is torn, and *ret has the ids of the others; or refused.  A descriptor
 * that stands at its end, or -code.
 */
int batch_resume_open(const char *path, bool resume, struct batch_finished *ret, struct brig_error *err);
bool batch_finished_has(const struct batch_finished *f, const char *id);
void batch_finished_release(struct batch_finished *f);

#endif
