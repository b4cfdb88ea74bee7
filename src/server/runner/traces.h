/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as spans of traces, for the exporter (server/exporter.h). */
#ifndef SERVER_RUNNER_TRACES_H
#define SERVER_RUNNER_TRACES_H

#include "server/runner/executions.h"

#define TRACE_STEPS_MAX 96 /* of one execution */

struct trace_steps;

/* Steps of its run are written down from now on, if there is an exporter. */
void traces_attach(struct execution *x, struct brig_request *req);
/* The same of what is run in a session; name: "run" or "process", which stays.  It has no steps. */
void traces_attach_piece(struct execution *x, const struct message *m, const char *name, const char *session);
/* It has ended, and has its job still, if it had one: what was written down goes out. */
void traces_finish(struct execution *x);
void traces_release(struct execution *x);

#endif
