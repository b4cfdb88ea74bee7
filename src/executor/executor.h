/* SPDX-License-Identifier: Apache-2.0 */
/* One request, end to end: the only place that knows the order of the steps. */
#ifndef EXECUTOR_EXECUTOR_H
#define EXECUTOR_EXECUTOR_H

#include "model/result.h"

struct brig_exchange;
struct kept_hosts;
struct policy;
struct recorder;
struct rulebook;
struct live;
struct session_link;
struct warm;

/*
 * Shared by the requests of one handle. Several requests may run at once, in tasks of one thread (base/wait.h); a
 * request keeps references across waits only to objects of its own.
 */
struct executor {
	const struct policy *policy;
	struct rulebook *rules;
	struct recorder *recorder;
	struct kept_hosts *hosts;
	struct warm *warm;
	const struct brig_exchange *exchange; /* other hosts that may have artifacts; NULL: none */
	const struct session_link *session;   /* for requests of kind SUBJECT_SESSION; NULL: no session */
	struct live *live;                    /* where the running program is published (watch.h); NULL: not wanted */
};

/*
 * Runs one request under the policy.  Always fills *ret (initialised by the caller): every failure is a verdict.  Rules
 * of the inspection are loaded into the book, and the recorder's files opened, when first needed.  The request was
 * checked by the caller (api/): pointers and sizes are sound.
 */
void executor_run(const struct executor *x, const struct brig_request *req, struct result *ret);

#endif
