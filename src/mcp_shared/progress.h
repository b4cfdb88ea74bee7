/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a running call: the end of the output since the last notification, or that it still runs. */
#ifndef MCP_SHARED_PROGRESS_H
#define MCP_SHARED_PROGRESS_H

#include <jansson.h>

#include "base/buf.h"
#include "base/clock.h"

#define PROGRESS_MAX      (4 * KiB)         /* of new output in one notification: its end */
#define PROGRESS_EVERY_NS (100 * NS_PER_MS) /* at most so often */

struct progress {
	struct buf fresh; /* output that has not been told */
	uint64_t began_ns, told_ns, n_told;
};

void progress_begin(struct progress *p, uint64_t now);
void progress_add(struct progress *p, const char *text, size_t len);
/* Something is new, and the last time was long enough ago. */
bool progress_is_due(const struct progress *p, uint64_t now);
/* The notification for this token, new; what was fresh is told with it. */
json_t *progress_tell(struct progress *p, json_t *token, uint64_t now);
void progress_release(struct progress *p);

#endif
