/* SPDX-License-Identifier: Apache-2.0 */
/* What a program made of its workspace, for whoever holds the descriptors of its dead cell. */
#ifndef NATIVE_PROJECT_VIEW_H
#define NATIVE_PROJECT_VIEW_H

#include "backend/native/report.h"
#include "model/plan.h"

struct project_rest {
	const struct plan *plan;
	enum project_way way;
	uint64_t copy_bytes, copy_inodes; /* of a stream, at most */
	int workspace, upper, user_ns;    /* borrowed; FD_NONE: there is none */
};

/* Every process of the cell must be dead. */
int project_view(const struct project_rest *r, struct workspace_view *ret, struct brig_error *err);
/* Whether that takes a process in the cell's user namespace. */
bool project_view_needs_carrier(const struct project_rest *r);

#endif
