/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as spans of traces, for the exporter (server/exporter.h). */
#ifndef SERVER_RUNNER_TRACES_H
#define SERVER_RUNNER_TRACES_H

#include "server/runner/executions.h"

#define TRACE_STEPS_MAX 96 /* of one execution */

struct trace_steps;

/* Steps of its run are written down from now on, if there is an exporter. */
void traces_attach(struct execution *x, struct brig_request *req);
/* It has ended, and has its job still: what was written down goes out. */
void traces_finish(struct execution *x);
void traces_release(struct execution *x);

#endif
