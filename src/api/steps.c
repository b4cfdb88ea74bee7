/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that its caller steps: the executor's own code in a task (base/wait.c). It runs until it has to wait, and the
 * caller polls one descriptor for everything that it may be waiting for.
 *
 * Callbacks of the request run on the caller's own stack, since their stack use is unknown. The executor gets
 * cancellation by a descriptor; here that is one of our own and, if the caller passed one, an epoll of both.
 */
#include <brig/brig.h>

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "api/handle.h"
#include "api/request.h"
#include "base/fd.h"
#include "base/wait.h"
#include "executor/environment.h"
#include "executor/watch.h"

struct brig_run {
	struct executor x;
	struct brig_request asked;   /* as the caller made it */
	struct brig_request req;     /* as the executor sees it */
	struct brig_environment env; /* the same for the creation of an environment; name NULL: a run */
	struct brig_result *result;
	int rc; /* negative: there is no result; see failure */
	struct brig_error failure;
	struct task *task;
	struct task_spares *tasks; /* of the handle */
	int cancel;                /* eventfd */
	int either;                /* epoll of that and the caller's cancel_fd; FD_NONE: there is none */
	struct live live;          /* its program, while running */
	bool finished;
};

/* ---- callbacks ------------------------------------------------------------------------------- */

/* A callback passed to the caller's stack; the function knows which members are used. */
struct relayed {
	const struct brig_request *asked;
	enum brig_stream stream;
	const void *what;
	size_t len;
};

static void relay(struct brig_run *run, void (*fn)(void *arg), const void *what)
{
	struct relayed r = { .asked = &run->asked, .what = what };

	wait_outside(fn, &r);
}

static void tell_output(void *arg)
{
	const struct relayed *r = arg;

	r->asked->on_output(r->asked->user, r->stream, r->what, r->len);
}

static void on_output(void *user, enum brig_stream stream, const void *data, size_t len)
{
	const struct brig_run *run = user;
	struct relayed r = { .asked = &run->asked, .stream = stream, .what = data, .len = len };

	wait_outside(tell_output, &r);
}

/* The other callbacks have one argument each. */
#define RELAY(name, type)                                     \
	static void tell_##name(void *arg)                    \
	{                                                     \
		const struct relayed *r = arg;                \
                                                              \
		r->asked->on_##name(r->asked->user, r->what); \
	}                                                     \
	static void on_##name(void *user, const type *what)   \
	{                                                     \
		relay(user, tell_##name, what);               \
	}
RELAY(sample, struct brig_sample)
RELAY(notice, char)
RELAY(started, struct brig_started)
RELAY(finding, struct brig_finding)
RELAY(install, struct brig_install)
RELAY(trace, struct brig_trace)
#undef RELAY

static void relay_callbacks(struct brig_run *run)
{
	const struct brig_request *asked = &run->asked;

	run->req.user = run;
	run->req.on_output = asked->on_output ? on_output : NULL;
	run->req.on_sample = asked->on_sample ? on_sample : NULL;
	run->req.on_notice = asked->on_notice ? on_notice : NULL;
	run->req.on_started = asked->on_started ? on_started : NULL;
	run->req.on_finding = asked->on_finding ? on_finding : NULL;
	run->req.on_install = asked->on_install ? on_install : NULL;
	run->req.on_trace = asked->on_trace ? on_trace : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void run_main(void *arg)
{
	struct brig_run *run = arg;

	if (run->env.name)
		run->rc = environment_create(&run->x, &run->env, &run->result->r, &run->failure);
	else
		executor_run(&run->x, &run->req, &run->result->r);
}

/* Combines the caller's descriptor and our own. */
static int join_cancel(struct brig_run *run)
{
	struct epoll_event ev = { .events = EPOLLIN };

	run->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (run->cancel < 0)
		return -errno;
	run->req.cancel_fd = run->cancel;
	if (run->asked.cancel_fd < 0)
		return 0;
	run->either = epoll_create1(EPOLL_CLOEXEC);
	if (run->either < 0 || epoll_ctl(run->either, EPOLL_CTL_ADD, run->cancel, &ev) < 0)
		return -errno;
	run->req.cancel_fd = run->either;
	if (epoll_ctl(run->either, EPOLL_CTL_ADD, run->asked.cancel_fd, &ev) == 0)
		return 0;
	return errno == EPERM ? brig_run_cancel(run) : -errno; /* for poll(2), a regular file is always readable */
}

static struct brig_run *run_new(struct brig *b)
{
	struct brig_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->cancel = run->either = FD_NONE;
	run->failure = (struct brig_error)BRIG_ERROR_INIT;
	run->x = handle_executor(b);
	run->x.live = &run->live;
	run->tasks = &b->tasks;
	return run;
}

static void run_free(struct brig_run *run)
{
	task_put(run->tasks, run->task);
	brig_result_free(run->result);
	fd_closep(&run->cancel);
	fd_closep(&run->either);
	free(run);
}

/* Allocates all memory and descriptors that the run needs before its first step. */
static int prepare(struct brig_run *run, struct brig_error *err)
{
	int rc;

	run->req = run->asked;
	relay_callbacks(run);
	rc = join_cancel(run);
	if (rc == 0)
		rc = task_take(run->tasks, run_main, run, &run->task);
	if (rc < 0)
		return err_set(err, rc == -ENOMEM ? BRIG_E_NOMEM : BRIG_E_SYSTEM, -rc,
			       "cannot begin a run that is stepped");
	run->result = result_new();
	return run->result ? 0 : err_nomem(err);
}

int brig_run_begin(struct brig *b, const struct brig_request *req, struct brig_run **ret, struct brig_error *err)
{
	struct brig_run *run;
	int rc;

	if (!b || !req || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_run_begin needs a handle, a request and a place for the run");
	run = run_new(b);
	if (!run)
		return err_nomem(err);
	rc = request_read(req, &run->asked, err);
	if (rc == 0)
		rc = prepare(run, err);
	if (rc < 0) {
		run_free(run);
		return rc;
	}
	*ret = run;
	return 0;
}

/* Callbacks and cancellation are members of a request, which the run has in any case. */
static void ask_as_request(struct brig_run *run)
{
	const struct brig_environment *env = &run->env;

	run->asked = (struct brig_request)BRIG_REQUEST_INIT;
	run->asked.user = env->user;
	run->asked.cancel_fd = env->cancel_fd;
	run->asked.on_notice = env->on_notice;
	run->asked.on_install = env->on_install;
	run->asked.on_started = env->on_started;
	run->asked.on_trace = env->on_trace;
}

static void answer_as_environment(struct brig_run *run)
{
	struct brig_environment *env = &run->env;

	env->user = run->req.user;
	env->cancel_fd = run->req.cancel_fd;
	env->on_notice = run->req.on_notice;
	env->on_install = run->req.on_install;
	env->on_started = run->req.on_started;
	env->on_trace = run->req.on_trace;
}

int brig_environment_begin(struct brig *b, const struct brig_environment *what, struct brig_run **ret,
			   struct brig_error *err)
{
	struct brig_run *run;
	int rc;

	if (!b || !what || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_environment_begin needs a handle, an environment and a place for the run");
	run = run_new(b);
	if (!run)
		return err_nomem(err);
	rc = environment_wish_read(what, &run->env, err);
	if (rc == 0) {
		ask_as_request(run);
		rc = prepare(run, err);
	}
	if (rc < 0) {
		run_free(run);
		return rc;
	}
	answer_as_environment(run);
	*ret = run;
	return 0;
}

int brig_run_fd(const struct brig_run *run)
{
	return run ? task_fd(run->task) : -BRIG_E_USAGE;
}

int brig_run_step(struct brig_run *run, struct brig_error *err)
{
	if (!run)
		return err_set(err, BRIG_E_USAGE, 0, "brig_run_step needs a run");
	if (task_is_running(run->task))
		return err_set(err, BRIG_E_USAGE, 0, "a callback cannot step the run that called it");
	run->finished = !task_step(run->task);
	return !run->finished;
}

int brig_run_cancel(struct brig_run *run)
{
	const uint64_t one = 1;

	if (!run)
		return -BRIG_E_USAGE;
	(void)!write(run->cancel, &one, sizeof(one)); /* fails only if it was written often enough before */
	return 0;
}

int brig_run_signal(struct brig_run *run, int signal)
{
	if (!run || signal < 1 || signal >= NSIG)
		return -BRIG_E_USAGE;
	if (!run->live.cell || !run->live.backend->send_signal)
		return -BRIG_E_REFUSED;
	run->live.backend->send_signal(run->live.cell, signal);
	return 0;
}

/* Each wait ends with its event or its timeout. */
static void finish(struct brig_run *run)
{
	struct pollfd p = { .fd = task_fd(run->task), .events = POLLIN };

	(void)brig_run_cancel(run);
	while (task_step(run->task))
		(void)wait_poll(&p, 1, -1);
	run->finished = true;
}

int brig_run_end(struct brig_run *run, struct brig_result **ret, struct brig_error *err)
{
	int rc;

	if (!run)
		return err_set(err, BRIG_E_USAGE, 0, "brig_run_end needs a run");
	if (task_is_running(run->task))
		return err_set(err, BRIG_E_USAGE, 0, "a callback cannot end the run that called it");
	if (!run->finished)
		finish(run);
	rc = run->rc;
	if (rc < 0 && err)
		*err = run->failure;
	if (rc == 0 && ret) {
		*ret = run->result;
		run->result = NULL;
	}
	run_free(run);
	return rc;
}
