/* SPDX-License-Identifier: Apache-2.0 */
/* One plan in one cell, from begin to release.  A request has one such stage, or two: compile and run. */
#ifndef EXECUTOR_STAGE_H
#define EXECUTOR_STAGE_H

#include "executor/watch.h"
#include "model/record.h"
#include "model/result.h"
#include "verify/verify.h"

struct egress;
struct egress_rules;
struct work;

struct stage {
	/* filled by the caller */
	const struct backend_ops *backend;
	struct backend_host *host;
	const struct plan *plan;
	const struct brig_request *req;
	struct result *result; /* phases, samples, evidence, usage and warnings go there */
	/* Called while the cell is built, before anything can run in it: negative ends the stage, and err says why.  NULL:
	 * there is nothing to do meanwhile. */
	int (*between)(void *arg, struct brig_error *err);
	/* Called when all protections are in force and the inspection has passed, before the program is watched; NULL:
	 * not called. */
	void (*on_ready)(void *arg);
	void *between_arg; /* of both */
	bool with_stdin, with_output;
	uint64_t sample_interval_ms;
	struct buf *keep_out, *keep_err;
	struct record_stream *record_out, *record_err; /* NULL: not recorded */
	const char *collect;                           /* a file to fetch from the workspace; NULL: none */
	bool collect_anyway;                           /* whatever the verdict is; a file that is not there is empty */
	struct buf *collected;
	const struct egress_rules *egress; /* with plan->egress: what the cell may reach (outside.h) */
	/* A folder of the workspace to be handed over when the cell is dead and every promise was kept; NULL: none. */
	const char *harvest;
	int (*on_harvest)(void *arg, int folder, struct brig_error *err);
	void *harvest_arg;
	/* Called every second while it runs; NULL: not called, and samples are taken instead. */
	void (*on_tick)(struct stage *s, void *arg);
	void *tick_arg;
	const struct session_link *session; /* of plan->session; NULL: it is none */
	struct live *live;                  /* of a program; NULL: not wanted */
	struct work *work;                  /* its workspace and artifacts (work.h); NULL: neither */
	/* Called with the cell dead and judged: may change verdict, exit_code and reason.  NULL: not called. */
	void (*conclude)(struct stage *s, void *arg);
	void *conclude_arg;
	/* The same with the changes of the workspace known, before any is applied; with conclude_arg. */
	void (*on_changes)(struct stage *s, void *arg);
	const char *const *ours; /* names at the top of the workspace that are brig's, besides the plan's files */
	size_t n_ours;
	bool (*was_forked)(const struct cell *c);  /* whether its interpreter shares its start with others; likewise */
	bool (*was_waiting)(const struct cell *c); /* whether the cell was there before the request; NULL: it was not */
	/* filled by stage_execute */
	bool built;          /* the cell was there, and the program could begin */
	bool may_have_begun; /* the program, whether it was seen to or not: it is never run a second time */
	enum verdict verdict;
	char reason[RESULT_TEXT_MAX];
	int exit_code, signal;
	/* inside */
	struct cell *cell;
	struct egress *proxy;
	struct watch *watch;
	struct facts *facts;
	struct cell_usage usage;
	struct brig_error err;
};

void stage_execute(struct stage *s);

#endif
