/* SPDX-License-Identifier: Apache-2.0 */
/* The egress proxy of a cell whose plan has egress; it lives as long as the cell. */
#ifndef EXECUTOR_OUTSIDE_H
#define EXECUTOR_OUTSIDE_H

#include "egress/egress.h"
#include "executor/stage.h"

/* What a stage may connect to: these hosts, within the policy's limits. The list must outlive the stage. */
struct egress_rules outside_rules(const struct setting_list *hosts, const struct settings *set);

/* Checks that the backend supports such a cell; negative and s->err otherwise. */
int outside_check(struct stage *s);
/* To be called when the cell is built and nothing runs in it: on return, the proxy serves its socket. */
int outside_begin(struct stage *s);
/*
 * To be called when the cell is dead: adds the proxy's requests to the result. May be called twice, and without
 * outside_begin().
 */
void outside_end(struct stage *s);

#endif
