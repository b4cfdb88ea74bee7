/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of a cell whose plan has egress: its proxy, for as long as the cell lives. */
#ifndef EXECUTOR_OUTSIDE_H
#define EXECUTOR_OUTSIDE_H

#include "egress/egress.h"
#include "executor/stage.h"

/* What a stage may reach: these hosts, within the policy's limits.  The list must outlive the stage. */
struct egress_rules outside_rules(const struct setting_list *hosts, const struct settings *set);

/* Whether the backend can have such a cell at all; negative and s->err. */
int outside_check(struct stage *s);
/* With the cell built and nothing running in it: the proxy serves its socket when this returns. */
int outside_begin(struct stage *s);
/* With the cell dead: what was asked of the proxy goes into the result.  May come twice, and without begin. */
void outside_end(struct stage *s);

#endif
