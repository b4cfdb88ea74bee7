/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress of a running call: the tail of the output since the last notification, or a sign that the call still runs.
 */
#ifndef MCP_SHARED_PROGRESS_H
#define MCP_SHARED_PROGRESS_H

#include <jansson.h>

#include "base/buf.h"
#include "base/clock.h"

#define PROGRESS_MAX      (4 * KiB)         /* bytes of new output in one notification: the last ones */
#define PROGRESS_EVERY_NS (100 * NS_PER_MS) /* minimum interval */

struct progress {
	struct buf fresh; /* output not yet reported */
	uint64_t began_ns, told_ns, n_told;
};

void progress_begin(struct progress *p, uint64_t now);
void progress_add(struct progress *p, const char *text, size_t len);
/* True if there is new output and the last notification is old enough. */
bool progress_is_due(const struct progress *p, uint64_t now);
/* A new notification for this token; it reports and clears the fresh output. */
json_t *progress_tell(struct progress *p, json_t *token, uint64_t now);
void progress_release(struct progress *p);

#endif
