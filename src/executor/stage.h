/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one plan in one cell, from begin to release. A request has one stage, or two: compile and run. */
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
	struct result *result; /* receives phases, samples, evidence, usage and warnings */
	/*
	 * Called while the cell is built, before anything can run in it; negative ends the stage with err. May be NULL.
	 */
	int (*between)(void *arg, struct brig_error *err);
	/*
	 * Called when all protections are in force and the inspection has passed, before the program is watched. May be
	 * NULL.
	 */
	void (*on_ready)(void *arg);
	void *between_arg; /* for both */
	bool with_stdin, with_output;
	uint64_t sample_interval_ms;
	struct buf *keep_out, *keep_err;
	struct record_stream *record_out, *record_err; /* NULL: not recorded */
	const char *collect;                           /* a file to fetch from the workspace; NULL: none */
	bool collect_anyway;                           /* whatever the verdict; a missing file counts as empty */
	struct buf *collected;
	const struct egress_rules *egress; /* with plan->egress: what the cell may connect to (outside.h) */
	/* A folder of the workspace to hand over once the cell is dead and all protections were kept; NULL: none. */
	const char *harvest;
	int (*on_harvest)(void *arg, int folder, struct brig_error *err);
	void *harvest_arg;
	/* Called every second while the program runs; NULL: samples are taken instead. */
	void (*on_tick)(struct stage *s, void *arg);
	void *tick_arg;
	const struct session_link *session; /* for plan->session; NULL: no session */
	struct live *live;                  /* publishes the running program; NULL: not wanted */
	struct work *work;                  /* workspace and artifacts (work.h); NULL: neither */
	/* Called when the cell is dead and judged; may change verdict, exit_code and reason. May be NULL. */
	void (*conclude)(struct stage *s, void *arg);
	void *conclude_arg;
	/* Called when the changes of the workspace are known, before any is applied; with conclude_arg. May be NULL. */
	void (*on_changes)(struct stage *s, void *arg);
	const char *const *ours; /* brig's own names at the top of the workspace, besides the plan's files */
	size_t n_ours;
	/* whether the interpreter was forked from a shared start; NULL: no */
	bool (*was_forked)(const struct cell *c);
	bool (*was_waiting)(const struct cell *c); /* whether the cell existed before the request; NULL: no */
	/* filled by stage_execute */
	bool built;          /* the cell was complete, and the program could start */
	bool may_have_begun; /* the program may have started, even if unobserved: it must never be run again */
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
