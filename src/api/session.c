/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of the library: a cell that the executor creates and watches in a task, like any stepped run, and the
 * session engine (src/session), which talks over the cell's socket. They end together: the steward is asked to end, and
 * what then still runs is cancelled.
 */
#include "api/session.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "api/request.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "base/wait.h"
#include "executor/subject.h"

#define TURNS_MAX 64 /* iterations per step before other work gets its turn */

/* Runs in the task: only stores the socket for the next step. */
static void on_control(void *arg, int control)
{
	struct brig_session *s = arg;

	s->control = fcntl(control, F_DUPFD_CLOEXEC, 3);
}

static void cell_main(void *arg)
{
	struct brig_session *s = arg;

	executor_run(&s->x, &s->req, &s->result->r);
}

static void cancel(struct brig_session *s)
{
	const uint64_t one = 1;

	(void)!write(s->cancel, &one, sizeof(one));
}

/* The options are checked as for a command, although there is none. */
static int read_request(struct brig_session *s, struct brig_error *err)
{
	static const char *const words[] = { "session" };
	struct brig_request req = BRIG_REQUEST_INIT;
	int rc;

	req.kind = BRIG_KIND_COMMAND;
	req.args = words;
	req.n_args = 1;
	req.trust = s->opts.trust;
	req.options = s->opts.options;
	req.n_options = s->opts.n_options;
	req.env = s->opts.env;
	req.n_env = s->opts.n_env;
	req.environment = s->opts.environment;
	req.id = s->opts.id;
	req.who = s->opts.who;
	rc = request_read(&req, &s->req, err);
	if (rc < 0)
		return rc;
	s->req.kind = SUBJECT_SESSION;
	s->req.args = NULL;
	s->req.n_args = 0;
	s->req.on_notice = s->opts.on_notice;
	s->req.on_sample = s->opts.on_sample;
	s->req.user = s->opts.user;
	if (!s->req.id && id_random(s->id, RUN_ID_LEN) < 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the kernel gives no random numbers");
	if (s->req.id)
		(void)str_copy(s->id, sizeof(s->id), s->req.id);
	s->req.id = s->id;
	return policy_resolve(s->x.policy, s->req.trust, s->req.options, s->req.n_options, &s->resolved, err);
}

static int make_engine(struct brig_session *s, struct brig_error *err)
{
	const struct settings *set = &s->resolved.set;
	const struct session_config config = {
		.on_event = s->opts.on_event,
		.user = s->opts.user,
		.most_ms = set->session_timeout_ms,
		.timeout_ms = s->opts.timeout_ms ? s->opts.timeout_ms : set->session_timeout_ms,
		.idle_ms = set->session_idle_ms,
		.output_bytes = set->output_limit,
		.run_ms = set->execution_timeout_ms,
		.cpu_ms = set->cpu_time_ms,
	};

	if (config.timeout_ms > config.most_ms)
		return err_set(err, BRIG_E_REFUSED, 0, "session_timeout_ms is %llu ms: a session cannot last longer",
			       (unsigned long long)config.most_ms);
	return session_new(&config, &s->engine, err);
}

static int watch_both(struct brig_session *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	s->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->cancel < 0 || s->epoll < 0 || task_take(s->tasks, cell_main, s, &s->task) < 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, task_fd(s->task), &ev) < 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, session_fd(s->engine), &ev) < 0)
		return -errno;
	s->req.cancel_fd = s->cancel;
	return 0;
}

static void session_release(struct brig_session *s)
{
	session_free(s->engine);
	task_put(s->tasks, s->task);
	brig_result_free(s->result);
	fd_closep(&s->epoll);
	fd_closep(&s->cancel);
	fd_closep(&s->control);
	free(s);
}

int brig_session_begin(struct brig *b, const struct brig_session_opts *opts, struct brig_session **ret,
		       struct brig_error *err)
{
	struct brig_session *s;
	int rc;

	if (!b || !opts || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_session_begin needs a handle, options and a place for the session");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err);
	s->epoll = s->cancel = s->control = FD_NONE;
	s->link = (struct session_link){ .on_control = on_control, .arg = s };
	s->x = handle_executor(b);
	s->tasks = &b->tasks;
	s->x.session = &s->link;
	rc = versioned_read(&s->opts, sizeof(s->opts), opts, "brig_session_opts", err);
	if (rc == 0)
		rc = read_request(s, err);
	if (rc == 0)
		rc = make_engine(s, err);
	if (rc == 0 && watch_both(s) < 0)
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot begin a session");
	if (rc == 0 && !(s->result = result_new()))
		rc = err_nomem(err);
	if (rc < 0) {
		session_release(s);
		return rc;
	}
	*ret = s;
	return 0;
}

int brig_session_fd(const struct brig_session *s)
{
	return s ? s->epoll : -BRIG_E_USAGE;
}

const char *brig_session_id(const struct brig_session *s)
{
	return s ? s->id : "";
}

static void step_cell(struct brig_session *s)
{
	if (!s->finished && !task_step(s->task)) {
		s->finished = true;
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, task_fd(s->task), NULL);
		session_stop(s->engine, "its cell has ended");
	}
	if (s->control >= 0 && session_attach(s->engine, fd_move(&s->control), NULL) < 0)
		cancel(s);
}

int brig_session_step(struct brig_session *s, struct brig_error *err)
{
	if (!s)
		return err_set(err, BRIG_E_USAGE, 0, "brig_session_step needs a session");
	if (s->stepping)
		return err_set(err, BRIG_E_USAGE, 0, "a callback cannot step the session that called it");
	s->stepping = true;
	step_cell(s);
	for (int i = 0; i < TURNS_MAX && session_step(s->engine); i++)
		;
	pieces_step(s);
	if (session_must_end(s->engine))
		cancel(s);
	if (s->finished)
		pieces_finish(s);
	s->stepping = false;
	return !s->finished;
}

void brig_session_stop(struct brig_session *s, const char *reason)
{
	if (s)
		session_stop(s->engine, reason);
}

/* Completes what is left: each wait ends with its event or its timeout. */
static void finish(struct brig_session *s)
{
	cancel(s);
	while (brig_session_step(s, NULL) > 0) {
		struct pollfd p = { .fd = s->epoll, .events = POLLIN };

		(void)wait_poll(&p, 1, -1);
	}
}

int brig_session_end(struct brig_session *s, struct brig_result **ret, struct brig_error *err)
{
	if (!s)
		return err_set(err, BRIG_E_USAGE, 0, "brig_session_end needs a session");
	if (s->stepping)
		return err_set(err, BRIG_E_USAGE, 0, "a callback cannot end the session that called it");
	if (!s->finished)
		finish(s);
	if (ret)
		*ret = MOVE_PTR(s->result);
	session_release(s);
	return 0;
}
