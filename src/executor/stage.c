/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a cell as a table of steps. If a step fails, the steps reached are undone in reverse order (INV-3). The
 * verdict is decided when all processes of the cell are dead, from the kernel's counters and init's reports over a
 * channel that the program never had.
 */
#include "executor/stage.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "executor/outside.h"
#include "executor/trace.h"
#include "executor/work.h"

static void set_verdict(struct stage *s, enum verdict v, const char *fmt, ...) PRINTF(3, 4);
static void set_verdict(struct stage *s, enum verdict v, const char *fmt, ...)
{
	va_list ap;

	s->verdict = v;
	va_start(ap, fmt);
	(void)vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
}

static void set_failure(struct stage *s)
{
	bool refused = s->err.code == BRIG_E_REFUSED;

	set_verdict(s, refused ? VERDICT_refused : VERDICT_failed, "%s", s->err.msg);
}

/* ---- verdict ---------------------------------------------------------------------------------- */

static const char *signal_name(int sig, char *dst, size_t size)
{
	const char *abbrev = sigabbrev_np(sig);

	if (abbrev)
		(void)snprintf(dst, size, "SIG%s", abbrev);
	else
		(void)snprintf(dst, size, "signal %d", sig);
	return dst;
}

static bool cpu_is_over(const struct stage *s)
{
	return s->usage.cpu_ms >= s->plan->limits.cpu_time_ms;
}

/* A limit that caused the failure, known from the kernel's counters, not from the program's output. */
static bool judge_caps(struct stage *s, const struct exit_info *e)
{
	char text[32];

	if (!e->exited && e->signal == SIGXFSZ)
		set_verdict(s, VERDICT_disk_limit, "it wrote past the disk limit of %s",
			    str_bytes(text, sizeof(text), s->plan->limits.disk_bytes));
	else if (!e->exited && (e->signal == SIGXCPU || e->signal == SIGKILL) && cpu_is_over(s))
		set_verdict(s, VERDICT_cpu_limit, "it used up its cpu time of %llu ms",
			    (unsigned long long)s->plan->limits.cpu_time_ms);
	else if (s->usage.disk_full)
		set_verdict(s, VERDICT_disk_limit, "it failed after filling the disk limit of %s",
			    str_bytes(text, sizeof(text), s->plan->limits.disk_bytes));
	else if (s->usage.pids_refused)
		set_verdict(s, VERDICT_pids_limit, "it failed after the limit of %llu processes was hit %llu times",
			    (unsigned long long)s->plan->limits.pids, (unsigned long long)s->usage.pids_refused);
	else
		return false;
	return true;
}

static void judge_exit(struct stage *s, const struct exit_info *e)
{
	char name[32];

	s->exit_code = e->exited ? e->code : -1;
	s->signal = e->exited ? 0 : e->signal;
	if (e->exited && e->code == 0)
		set_verdict(s, VERDICT_ok, "%s", "");
	else if (judge_caps(s, e))
		;
	else if (e->exited)
		set_verdict(s, VERDICT_error, "exit code %d", e->code);
	else if (e->signal == SIGSYS)
		set_verdict(s, VERDICT_crash,
			    "killed by SIGSYS: it made a system call that the filter answers with death");
	else
		set_verdict(s, VERDICT_crash, "killed by %s", signal_name(e->signal, name, sizeof(name)));
}

/* A session continues if one of its processes was killed for memory, unless that was the steward. */
static bool is_out_of_memory(const struct stage *s)
{
	const struct exit_info *e = &s->watch->exit;

	if (s->plan->session && (s->watch->ending != END_EXIT || e->exited || e->signal != SIGKILL))
		return false;
	return s->usage.oom_kills > 0;
}

static void judge(struct stage *s)
{
	const struct limits *l = &s->plan->limits;
	char text[32];

	if (s->watch->ending == END_FAILED) {
		set_failure(s);
		return;
	}
	if (s->watch->ending == END_MEMORY || is_out_of_memory(s)) {
		set_verdict(s, VERDICT_memory_limit, "it needed more than its memory of %s",
			    str_bytes(text, sizeof(text), l->memory_bytes));
		s->signal = SIGKILL;
		return;
	}
	switch (s->watch->ending) {
	case END_WALL:
		set_verdict(s, VERDICT_timeout, "it ran longer than %llu ms", (unsigned long long)l->wall_ms);
		break;
	case END_CPU:
		set_verdict(s, VERDICT_cpu_limit, "it used up its cpu time of %llu ms",
			    (unsigned long long)l->cpu_time_ms);
		break;
	case END_OUTPUT:
		set_verdict(s, VERDICT_output_limit, "it wrote more than %s of output",
			    str_bytes(text, sizeof(text), l->output_bytes));
		break;
	case END_CANCELLED:
		set_verdict(s, VERDICT_cancelled, "the caller gave up");
		break;
	default:
		judge_exit(s, &s->watch->exit);
		return;
	}
	s->signal = SIGKILL;
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* 0, or -1 with the verdict for rc set. */
static int unless_failed(struct stage *s, int rc)
{
	if (rc < 0)
		set_failure(s);
	return rc < 0 ? -1 : 0;
}

static int step_begin(struct stage *s)
{
	const struct backend_notice notify = { s->req->on_notice, s->req->user };
	int rc = outside_check(s);

	if (rc == 0)
		rc = work_check(s->work, s->backend, &s->err);
	if (rc == 0 && s->plan->session && !s->backend->has_sessions)
		rc = err_set(&s->err, BRIG_E_REFUSED, 0, "backend %s has no sessions: they need backend native",
			     s->backend->name);
	if (rc == 0)
		rc = s->backend->begin(s->host, s->plan, &notify, &s->cell, &s->err);
	return unless_failed(s, rc);
}

/* The cell is built meanwhile, if the backend can delegate that. */
static int step_between(struct stage *s)
{
	struct pollfd gave_up = { .fd = s->req->cancel_fd, .events = POLLIN };

	if (gave_up.fd >= 0 && poll(&gave_up, 1, 0) > 0) {
		set_verdict(s, VERDICT_cancelled, "the caller gave up");
		return -1;
	}
	return unless_failed(s, s->between ? s->between(s->between_arg, &s->err) : 0);
}

static int step_finish(struct stage *s)
{
	int rc;

	s->may_have_begun = s->plan->start_at_once && !s->plan->waits_at;
	rc = unless_failed(s, s->backend->finish(s->cell, &s->err));
	s->built = rc == 0;
	s->result->kept = s->built && s->was_waiting;
	s->result->warm = s->result->kept && s->was_waiting(s->cell);
	s->result->forked = s->result->kept && s->was_forked(s->cell);
	return rc;
}

static void undo_begin(struct stage *s)
{
	char leftovers[256];

	if (s->backend->destroy(s->cell, leftovers, sizeof(leftovers)) > 0)
		result_left_behind(s->result, leftovers);
	s->cell = NULL;
}

static int step_outside(struct stage *s)
{
	return unless_failed(s, outside_begin(s));
}

#define TICK_MS 1000

static void tick(void *arg)
{
	struct stage *s = arg;

	s->on_tick(s, s->tick_arg);
}

static int step_watch(struct stage *s)
{
	struct watch *w = s->watch;

	w->backend = s->backend;
	w->cell = s->cell;
	w->plan = s->plan;
	w->req = s->req;
	w->with_stdin = s->with_stdin;
	w->with_output = s->with_output;
	w->sample_interval_ms = s->sample_interval_ms;
	w->samples = &s->result->samples;
	w->out = (struct stream_sink){ .stream = BRIG_STDOUT, .keep = s->keep_out, .record = s->record_out };
	w->err = (struct stream_sink){ .stream = BRIG_STDERR, .keep = s->keep_err, .record = s->record_err };
	w->session = s->session;
	w->live = s->live;
	if (s->on_tick) {
		w->on_tick = tick;
		w->tick_arg = s;
		w->sample_interval_ms = TICK_MS;
	}
	if (s->on_ready)
		s->on_ready(s->between_arg);
	watch_run(w, &s->err);
	return 0; /* the evidence is wanted however it ended */
}

static void note_denied(struct stage *s)
{
	struct denied *d = &s->result->denied;

	if (!s->backend->denied)
		return;
	s->backend->denied(s->cell, d);
	if (d->unseen)
		result_warn(s->result, "%s", d->unseen);
	d->unseen = NULL; /* reported; a second cell has its own text */
}

/* Evidence is read twice: from the cell with its processes, and from what remains without them. */
static int step_read_back(struct stage *s)
{
	uint64_t deadline_ns;

	s->backend->read_back(s->cell, s->facts);
	deadline_ns = clock_now_ns() + s->plan->limits.cleanup_ms * NS_PER_MS;
	if (s->backend->stop(s->cell, &s->err) < 0)
		s->watch->ending = END_FAILED;
	outside_end(s);
	if (!watch_drain(s->watch, deadline_ns))
		result_warn(s->result,
			    "a process of the cell still holds its output after cleanup_timeout_ms (%llu ms): what "
			    "it writes from now on is not in the result",
			    (unsigned long long)s->plan->limits.cleanup_ms);
	s->backend->usage(s->cell, &s->usage);
	s->backend->read_back(s->cell, s->facts);
	note_denied(s);
	fact_num(s->facts, FACT_cpu_used_ms, s->usage.cpu_ms, "the cell's cpu clock");
	fact_num(s->facts, FACT_wall_used_ms, s->watch->wall_ns / NS_PER_MS, "CLOCK_MONOTONIC");
	fact_num(s->facts, FACT_output_used, s->watch->output_bytes, "the output pipes");
	return 0;
}

static void read_collected(struct stage *s, int fd)
{
	char *piece = s->watch->piece; /* free for use, since the program's output is complete */
	ssize_t n;

	while ((n = read(fd, piece, WATCH_PIECE)) > 0)
		if (buf_add(s->collected, piece, (size_t)n) < (size_t)n)
			return;
}

static int step_collect(struct stage *s)
{
	AUTO_FD fd = FD_NONE;

	judge(s);
	if (!s->collect || (s->verdict != VERDICT_ok && !s->collect_anyway))
		return 0;
	fd = s->backend->open_output(s->cell, s->collect);
	if (fd >= 0)
		read_collected(s, fd);
	if (s->collect_anyway)
		return 0; /* the caller judges it */
	if (fd < 0)       /* not "error", whose exit status would be the step's, which is 0 */
		set_verdict(s, VERDICT_failed, "the %s step ended well but left no file '%s'", s->plan->step,
			    s->collect);
	if (s->collected->full || s->collected->no_memory)
		set_verdict(s, VERDICT_failed, "the output of the %s step is too large", s->plan->step);
	return 0;
}

static int step_verify(struct stage *s)
{
	struct result *r = s->result;
	struct verify_outcome v;

	if (s->watch->ending == END_FAILED)
		return 0; /* no protections to check */
	v = verify_run(s->plan, s->facts, &r->evidence);
	r->degraded |= v.degraded;
	if (v.first_broken)
		set_verdict(s, VERDICT_violated, "the promise '%s' was not kept; see the evidence", v.first_broken);
	return 0;
}

static int step_harvest(struct stage *s)
{
	AUTO_FD fd = FD_NONE;

	if (!s->harvest || s->verdict != VERDICT_ok)
		return 0;
	fd = s->backend->open_folder(s->cell, s->harvest);
	if (fd < 0)
		set_verdict(s, VERDICT_failed, "the %s step ended well but left no folder '%s'", s->plan->step,
			    s->harvest);
	else if (s->on_harvest(s->harvest_arg, fd, &s->err) < 0)
		set_failure(s);
	return 0;
}

static int step_conclude(struct stage *s)
{
	if (s->conclude)
		s->conclude(s, s->conclude_arg);
	return 0;
}

/*
 * A request that could not be fulfilled is not a success, even if the program ended well. If the limits keep brig from
 * examining everything, that is the program's fault, not brig's.
 */
static int step_work(struct stage *s)
{
	bool too_much;

	if (s->watch->ending == END_FAILED || work_collect(s) == 0)
		return 0;
	too_much = s->result->changes.state == CHANGES_INCOMPLETE;
	if (s->verdict == VERDICT_ok)
		set_verdict(s, too_much ? VERDICT_disk_limit : VERDICT_failed, "the program ended well, but %s",
			    s->err.msg);
	else
		result_warn(s->result, "%s", s->err.msg);
	return 0;
}

static const struct {
	const char *name; /* for traces */
	enum run_phase phase;
	int (*up)(struct stage *s);
	void (*down)(struct stage *s);
} steps[] = {
	{ "begin", PHASE_CREATE, step_begin, undo_begin }, { "inspect", PHASE_INSPECT, step_between, NULL },
	{ "finish", PHASE_CREATE, step_finish, NULL },     { "start", PHASE_CREATE, step_outside, outside_end },
	{ "watch", PHASE_RUN, step_watch, NULL },          { "read back", PHASE_VERIFY, step_read_back, NULL },
	{ "collect", PHASE_VERIFY, step_collect, NULL },   { "verify", PHASE_VERIFY, step_verify, NULL },
	{ "conclude", PHASE_VERIFY, step_conclude, NULL }, { "harvest", PHASE_VERIFY, step_harvest, NULL },
	{ "changes", PHASE_VERIFY, step_work, NULL },
};

static void note_usage(struct stage *s)
{
	struct result *r = s->result;

	r->usage.wall_ms = s->watch->wall_ns / NS_PER_MS;
	r->usage.cpu_ms = s->usage.cpu_ms;
	r->usage.memory_peak_bytes = s->usage.memory_peak_bytes;
	r->usage.pids_peak = s->usage.pids_peak;
	r->usage.output_bytes = s->watch->output_bytes;
	r->out_truncated = s->watch->out.truncated;
	r->err_truncated = s->watch->err.truncated;
	if (s->verdict == VERDICT_ok && s->usage.pids_refused)
		result_warn(r, "the limit of %llu processes was hit %llu times",
			    (unsigned long long)s->plan->limits.pids, (unsigned long long)s->usage.pids_refused);
	if (s->plan->session && s->usage.oom_kills)
		result_warn(r, "processes were killed because the session needed more than its memory: %llu",
			    (unsigned long long)s->usage.oom_kills);
	if (s->verdict == VERDICT_ok && s->usage.disk_full)
		result_warn(r, "the disk limit was reached");
}

static void run_steps(struct stage *s)
{
	uint64_t mark = clock_now_ns(), now;
	size_t i;
	int rc = 0;

	for (i = 0; i < ARRAY_LEN(steps) && rc == 0; i++) {
		rc = steps[i].up(s);
		now = clock_now_ns();
		s->result->phase_ns[steps[i].phase] += now - mark;
		trace_step(s->req, s->plan->step, steps[i].name, mark, now);
		mark = now;
	}
	if (rc < 0)
		i--; /* the failed step has undone itself */
	while (i-- > 0)
		if (steps[i].down)
			steps[i].down(s);
	assert(!s->cell); /* INV-3: whichever step failed, no cell is left */
	now = clock_now_ns();
	s->result->phase_ns[PHASE_RELEASE] += now - mark;
	trace_step(s->req, s->plan->step, "release", mark, now);
}

void stage_execute(struct stage *s)
{
	char *pieces;

	s->exit_code = -1;
	s->signal = 0;
	s->built = false;
	s->watch = calloc(1, sizeof(*s->watch));
	s->facts = calloc(1, sizeof(*s->facts));
	pieces = malloc(2 * WATCH_PIECE); /* not zeroed: most runs touch little of it */
	if (!s->watch || !s->facts || !pieces) {
		set_verdict(s, VERDICT_failed, "no memory left");
	} else {
		*s->watch = (struct watch)WATCH_INIT;
		s->watch->piece = pieces;
		s->watch->input = pieces + WATCH_PIECE;
		run_steps(s);
		note_usage(s);
	}
	free(pieces);
	free(s->watch);
	free(s->facts);
}
