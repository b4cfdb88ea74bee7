/* SPDX-License-Identifier: Apache-2.0 */
/* What a program left in its workspace, for the holder of the dead cell's descriptors. */
#ifndef NATIVE_PROJECT_VIEW_H
#define NATIVE_PROJECT_VIEW_H

#include "backend/native/report.h"
#include "model/plan.h"

struct project_rest {
	const struct plan *plan;
	enum project_way way;
	uint64_t copy_bytes, copy_inodes; /* upper bounds for a stream */
	int workspace, upper, user_ns;    /* borrowed; FD_NONE: none */
};

/* Every process of the cell must be dead. */
int project_view(const struct project_rest *r, struct workspace_view *ret, struct brig_error *err);
/* Whether that requires a process in the cell's user namespace. */
bool project_view_needs_carrier(const struct project_rest *r);

#endif
