/* SPDX-License-Identifier: Apache-2.0 */
/* Reports each completed step to the caller (on_trace), to show where the time of a run goes. */
#ifndef EXECUTOR_TRACE_H
#define EXECUTOR_TRACE_H

#include <brig/brig.h>

/* From begin_ns to end_ns, by clock_now_ns(). */
static inline void trace_step(const struct brig_request *req, const char *stage, const char *step, uint64_t begin_ns,
			      uint64_t end_ns)
{
	const struct brig_trace what = {
		.size = sizeof(what), .stage = stage, .step = step, .at_ns = end_ns, .took_ns = end_ns - begin_ns
	};

	if (req->on_trace)
		req->on_trace(req->user, &what);
}

#endif
