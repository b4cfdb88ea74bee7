/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs in a session: a piece of code in a context, or a process. Each is a task of its own that passes through the
 * executor (executor/piece.h), which inspects and records it, and in between waits until the session has run it:
 *
 *	task: resolve, inspect      step: sees that it may run, asks the session      session: on_end
 *	      waits to be woken     <--------------------------------------------------'
 *	      verdict, record
 *
 * Code of one context runs in the order of its requests: a piece whose inspection ends early waits for its
 * predecessors.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "api/request.h"
#include "api/session.h"
#include "base/str.h"
#include "base/wait.h"
#include "executor/piece.h"

struct piece_task {
	struct piece_task *next;
	struct brig_session *session;
	struct task *task;
	struct brig_result *result;  /* until it is reported */
	struct brig_result *counted; /* the same, until it is finished */
	uint64_t tag, context;       /* context 0: a process */
	struct brig_session_process process;
	struct session_run run;
	struct brig_request req;
	struct piece piece;
	struct piece_work *work; /* to be finished once the end was reported */
	char **words;            /* heap: copies of all strings, NULL-terminated */
	char *code;
	char file_name[RUN_ID_LEN + 16];
	bool is_expected, may_run, asked, ended, finished, is_cancelled;
	struct recording *recording; /* while it runs */
	struct run_outcome outcome;
};

/* ---- copies ------------------------------------------------------------------------------------ */

static void words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

static char **words_copy(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	char **words = calloc(n_a + n_b + 1, sizeof(*words));
	bool whole = words != NULL;

	for (size_t i = 0; whole && i < n_a + n_b; i++)
		whole = (words[i] = strdup(i < n_a ? a[i] : b[i - n_a])) != NULL;
	if (whole)
		return words;
	words_free(words);
	return NULL;
}

/* ---- in the task ------------------------------------------------------------------------------- */

static void judge(const struct piece_task *p, struct result *r)
{
	const struct run_outcome *o = &p->outcome;
	static const enum verdict verdicts[] = { [RUN_DONE] = VERDICT_ok,
						 [RUN_ERROR] = VERDICT_error,
						 [RUN_TIMEOUT] = VERDICT_timeout,
						 [RUN_OUTPUT] = VERDICT_output_limit,
						 [RUN_CPU] = VERDICT_cpu_limit,
						 [RUN_DIED] = VERDICT_crash,
						 [RUN_ENDED] = VERDICT_cancelled,
						 [RUN_UNBORN] = VERDICT_error,
						 [RUN_CANCELLED] = VERDICT_cancelled,
						 [RUN_STUBBORN] = VERDICT_cancelled };
	static const char *const reasons[] = { [RUN_DONE] = "",
					       [RUN_ERROR] = "",
					       [RUN_TIMEOUT] = "it ran longer than its time limit",
					       [RUN_OUTPUT] = "it wrote more than output_limit",
					       [RUN_CPU] = "it used more cpu time than cpu_time_ms",
					       [RUN_DIED] = "its interpreter ended, and what it knew is gone",
					       [RUN_ENDED] = "the session ended first",
					       [RUN_UNBORN] = "it could not be started",
					       [RUN_CANCELLED] = "it was cancelled before it began",
					       [RUN_STUBBORN] =
						       "it was interrupted and did not stop: its interpreter was "
						       "ended, and what it knew is gone" };

	r->verdict = verdicts[o->ending];
	(void)str_copy(r->reason, sizeof(r->reason), reasons[o->ending]);
	r->exit_code = o->ending == RUN_DONE || o->ending == RUN_DIED ? o->exit_code : o->ending == RUN_ERROR ? 1 : -1;
	r->signal = o->signal;
	if (o->ending == RUN_ERROR)
		(void)snprintf(r->reason, sizeof(r->reason), "%s: %s", o->error_name, o->error_value);
	if (o->ending == RUN_DONE && o->signal == SIGXCPU) {
		/* Every process has this limit; one that sends itself the signal deceives only its caller. */
		r->verdict = VERDICT_cpu_limit;
		(void)str_copy(r->reason, sizeof(r->reason), reasons[RUN_CPU]);
	} else if (o->ending == RUN_DONE && o->signal) {
		r->verdict = VERDICT_crash;
		(void)snprintf(r->reason, sizeof(r->reason), "killed by signal %d", o->signal);
	} else if (o->ending == RUN_DONE && o->exit_code != 0) {
		r->verdict = VERDICT_error;
		(void)snprintf(r->reason, sizeof(r->reason), "exit code %d", o->exit_code);
	}
	r->usage.wall_ms = o->wall_ns / NS_PER_MS;
	r->usage.cpu_ms = o->cpu_us / 1000;
	r->usage.output_bytes = o->output_bytes;
}

static void execute(void *arg, struct recording *recording, struct result *result)
{
	struct piece_task *p = arg;

	p->recording = recording;
	p->may_run = true;
	while (!p->ended)
		wait_for_wake();
	p->recording = NULL;
	judge(p, result);
}

/* The recorder has its part to do, and we have ours. */
static void write_text(void *arg)
{
	struct piece_task *p = arg;

	(void)result_text_make(&p->result->r, &p->result->text, NULL); /* else it is made when it is asked for */
}

static void piece_main(void *arg)
{
	struct piece_task *p = arg;

	executor_run_piece(p->work, &p->result->r);
}

/* ---- from the session -------------------------------------------------------------------------- */

static void on_output(void *arg, enum brig_stream stream, const char *data, size_t len)
{
	struct piece_task *p = arg;

	if (p->recording)
		record_stream_add(stream == BRIG_STDOUT ? &p->recording->rec.out : &p->recording->rec.err, data, len);
}

static void end(struct piece_task *p, const struct run_outcome *how)
{
	if (p->ended)
		return;
	p->outcome = *how;
	p->ended = true;
	task_wake(p->task);
}

static void on_end(void *arg, const struct run_outcome *how)
{
	end(arg, how);
}

/* ---- life -------------------------------------------------------------------------------------- */

static void piece_free(struct piece_task *p)
{
	executor_finish_piece(p->work);
	brig_result_free(p->counted);
	if (p->task)
		task_put(p->session->tasks, p->task);
	brig_result_free(p->result);
	words_free(p->words);
	free(p->code);
	free(p);
}

static int piece_enter(struct brig_session *s, struct piece_task *p, struct brig_error *err)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct executor x = s->x;

	p->session = s;
	p->req.trust = s->req.trust;
	p->req.options = s->req.options;
	p->req.n_options = s->req.n_options;
	p->req.who = s->req.who;
	p->piece = (struct piece){ .req = &p->req,
				   .execute = execute,
				   .meanwhile = write_text,
				   .arg = p,
				   .resolved = &s->resolved,
				   .digest = &s->digest };
	x.session = NULL;
	p->work = executor_begin_piece(&x, &p->piece); /* first: another process inspects while all else is made */
	p->run.hooks = (struct run_hooks){ .on_output = on_output, .on_end = on_end, .arg = p };
	p->result = p->counted = result_new();
	if (p->result)
		p->result->others = 1;
	if (!p->work || !p->result || task_take(s->tasks, piece_main, p, &p->task) < 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, task_fd(p->task), &ev) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot begin a run in a session");
	p->tag = session_next_tag(s->engine);
	p->next = s->pieces;
	s->pieces = p;
	return 0;
}

static struct piece_task *piece_new(struct brig_error *err)
{
	struct piece_task *p = calloc(1, sizeof(*p));

	if (!p) {
		(void)err_nomem(err);
		return NULL;
	}
	p->req = (struct brig_request)BRIG_REQUEST_INIT;
	return p;
}

/* Checks the strings of a process as for any request, and copies them. */
static int fill_process(struct piece_task *p, const struct brig_session_process *what, struct brig_error *err)
{
	size_t n_cwd = what->cwd != NULL;
	struct brig_request checked = p->req;
	int rc;

	checked.kind = BRIG_KIND_COMMAND;
	checked.args = what->argv;
	checked.n_args = what->n_argv;
	checked.env = what->env;
	checked.n_env = what->n_env;
	rc = brig_request_check(&checked, err);
	if (rc < 0)
		return rc;
	p->words = words_copy(what->argv, what->n_argv, what->env, what->n_env);
	p->code = n_cwd ? strdup(what->cwd) : NULL;
	if (!p->words || (n_cwd && !p->code))
		return err_nomem(err);
	p->process = *what;
	p->process.argv = (const char *const *)p->words;
	p->process.env = p->process.argv + what->n_argv;
	p->process.cwd = p->code;
	p->req = checked;
	p->req.args = p->process.argv;
	p->req.env = p->process.env;
	return 0;
}

/* The result of starting: its tag, or it is freed. */
static int piece_begun(struct piece_task *p, int rc, uint64_t *ret_tag)
{
	if (rc < 0 && p)
		piece_free(p);
	if (rc == 0 && ret_tag)
		*ret_tag = p->tag;
	return rc;
}

int piece_begin_process(struct brig_session *s, const struct brig_session_process *what, uint64_t *ret_tag,
			struct brig_error *err)
{
	struct piece_task *p = piece_new(err);
	int rc = p ? fill_process(p, what, err) : -BRIG_E_NOMEM;

	if (rc == 0)
		rc = piece_enter(s, p, err);
	return piece_begun(p, rc, ret_tag);
}

static int fill_code(struct brig_session *s, struct piece_task *p, const struct brig_session_code *what,
		     struct brig_error *err)
{
	uint64_t most = s->resolved.set.execution_timeout_ms;

	p->context = what->context;
	p->req.language = session_context_language(s->engine, what->context);
	if (!p->req.language)
		return err_set(err, BRIG_E_USAGE, ENOENT, "the session has no such context");
	p->words = words_copy(NULL, 0, what->env, what->n_env);
	p->code = malloc(what->code_len + 1);
	if (!p->words || !p->code)
		return err_nomem(err);
	memcpy(p->code, what->code, what->code_len);
	p->code[what->code_len] = '\0';
	(void)snprintf(p->file_name, sizeof(p->file_name), "session-%s", s->id);
	p->req.file_name = p->file_name;
	p->req.code = p->code;
	p->req.code_len = what->code_len;
	p->req.env = (const char *const *)p->words;
	p->req.n_env = what->n_env;
	p->run = (struct session_run){ .context = what->context,
				       .code = p->code,
				       .code_len = what->code_len,
				       .env = p->req.env,
				       .n_env = what->n_env,
				       .timeout_ms =
					       what->timeout_ms && what->timeout_ms < most ? what->timeout_ms : most };
	return brig_request_check(&p->req, err);
}

int piece_begin_code(struct brig_session *s, const struct brig_session_code *what, uint64_t *ret_tag,
		     struct brig_error *err)
{
	struct piece_task *p = piece_new(err);
	int rc = p ? fill_code(s, p, what, err) : -BRIG_E_NOMEM;

	if (rc == 0)
		rc = session_reserve(s->engine, what->context, err);
	if (rc == 0) {
		rc = piece_enter(s, p, err);
		if (rc < 0)
			session_unreserve(s->engine, what->context);
	}
	return piece_begun(p, rc, ret_tag);
}

/* ---- stepping ---------------------------------------------------------------------------------- */

/* Nothing forbids it: passes it to the session. */
static void ask_session(struct piece_task *p)
{
	struct session *engine = p->session->engine;
	const struct run_outcome unborn = { .ending = p->context ? RUN_UNBORN : RUN_ENDED };
	const struct run_outcome cancelled = { .ending = RUN_CANCELLED };
	int rc;

	if (p->is_cancelled) {
		end(p, &cancelled);
		return;
	}
	p->asked = true;
	p->run.tag = p->tag;
	if (p->context)
		rc = session_run(engine, &p->run, NULL);
	else
		rc = session_start(engine, p->tag, &p->process, &p->run.hooks, NULL);
	if (rc < 0)
		end(p, &unborn);
}

static void tell(struct piece_task *p)
{
	struct brig_session *s = p->session;
	struct brig_session_event e = { .size = sizeof(e), .kind = BRIG_SESSION_DONE, .tag = p->tag, .fd = -1 };

	if (!p->asked && p->context)
		session_unreserve(s->engine, p->context);
	if (!p->context && (!p->asked || p->outcome.ending == RUN_ENDED)) {
		e.error = EPERM;
		if (s->opts.on_event && !p->asked)
			s->opts.on_event(s->opts.user, &e);
	}
	e.kind = BRIG_SESSION_RAN;
	e.error = 0;
	e.count = p->outcome.count;
	e.result = p->result;
	if (!s->opts.on_event)
		return;
	p->result = NULL;
	s->opts.on_event(s->opts.user, &e);
}

static void piece_step(struct piece_task *p)
{
	/* While it waits for its turn or its end, only end() makes it continue. */
	if (p->finished || (p->may_run && !p->ended) || task_is_running(p->task))
		return;
	p->finished = !task_step(p->task);
}

/* True if no earlier piece of its context is left to run. */
static bool is_its_turn(const struct piece_task *p)
{
	for (const struct piece_task *each = p->session->pieces; each && p->context; each = each->next)
		if (each->context == p->context && each->tag < p->tag && !each->ended && !each->finished)
			return false;
	return true;
}

/* Another process is inspecting; meanwhile, the kernel of the context can start. */
static void expect(struct piece_task *p)
{
	if (p->is_expected || !p->context || p->may_run || p->finished || !is_its_turn(p))
		return;
	p->is_expected = true;
	session_expect(p->session->engine, p->context);
}

static void collect(struct brig_session *s)
{
	for (struct piece_task **at = &s->pieces; *at;) {
		struct piece_task *p = *at;

		if (!p->finished) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, task_fd(p->task), NULL);
		tell(p);
		piece_free(p);
		at = &s->pieces; /* the callback may have added one */
	}
}

void pieces_step(struct brig_session *s)
{
	for (struct piece_task *p = s->pieces; p; p = p->next)
		piece_step(p);
	collect(s);
	for (struct piece_task *p = s->pieces; p; p = p->next)
		if (p->may_run && !p->asked && !p->ended && is_its_turn(p))
			ask_session(p);
		else
			expect(p);
}

int piece_cancel(struct brig_session *s, uint64_t tag, struct brig_error *err)
{
	const struct run_outcome cancelled = { .ending = RUN_CANCELLED };
	struct piece_task *p = s->pieces;

	while (p && (p->tag != tag || !p->context))
		p = p->next;
	if (!p)
		return err_set(err, BRIG_E_USAGE, ENOENT, "the session has no such run");
	p->is_cancelled = true;
	if (p->asked)
		session_cancel(s->engine, p->context, tag);
	else if (p->may_run)
		end(p, &cancelled);
	return 0;
}

void pieces_finish(struct brig_session *s)
{
	const struct run_outcome over = { .ending = RUN_ENDED };

	session_abandon(s->engine);
	while (s->pieces) {
		struct pollfd p = { .fd = task_fd(s->pieces->task), .events = POLLIN };

		for (struct piece_task *each = s->pieces; each; each = each->next) {
			each->asked = each->asked || each->may_run;
			if (each->may_run)
				end(each, &over);
		}
		pieces_step(s);
		if (s->pieces)
			(void)wait_poll(&p, 1, 10);
	}
}
