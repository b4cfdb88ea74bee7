/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two texts, line by line, in the unified form. */
#ifndef WORKSPACE_LINES_H
#define WORKSPACE_LINES_H

#include "base/buf.h"

struct text {
	const char *data;
	size_t len;
};

/* Adds the hunks; nothing if the texts are the same.  False: no memory. */
bool lines_diff(struct text before, struct text after, struct buf *out);

#endif
