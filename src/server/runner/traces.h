/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as spans of traces, for the exporter (server/exporter.h). */
#ifndef SERVER_RUNNER_TRACES_H
#define SERVER_RUNNER_TRACES_H

#include "server/runner/executions.h"

#define TRACE_STEPS_MAX 96 /* of one execution */

struct trace_steps;

/* Records the steps of the run, if traces are exported. */
void traces_attach(struct execution *x, struct brig_request *req);
/* The same for a run or process in a session, which has no steps; name: "run" or "process", a static string. */
void traces_attach_piece(struct execution *x, const struct message *m, const char *name, const char *session);
/* Sends the spans of an ended execution, whose job must still exist, if it had one. */
void traces_finish(struct execution *x);
void traces_release(struct execution *x);

#endif
