/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/sessions.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"

#define EVENTS_OF_A_TURN 32

static const char being_stopped[] = "the service is being stopped";

/* ---- the table -------------------------------------------------------------------------------------------- */

void sessions_init(struct sessions *t)
{
	TAILQ_INIT(&t->all);
	t->epoll = FD_NONE;
}

int sessions_open(struct sessions *t, struct brig_error *err)
{
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	return t->epoll < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for sessions") : 0;
}

static struct server_session *find_any(struct service *s, const struct ask *ask)
{
	const char *id = message_text(ask->m, FIELD_id);
	struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (id && str_eq(x->id, id) && access_owns(ask->token, x->owner))
		return x;
	answer_error(s, ask, 404, "there is no session '%.20s'%s", id ? id : "",
		     ask->token->admin ? "" : " of this token");
	return NULL;
}

struct server_session *session_find(struct service *s, const struct ask *ask)
{
	struct server_session *x = find_any(s, ask);

	if (!x || (x->inside && !x->is_stopping))
		return x;
	answer_error(s, ask, 410, "the session %s has ended: %s", x->id, x->reason[0] ? x->reason : "it was asked to");
	return NULL;
}

static void forget(struct service *s, struct server_session *x)
{
	TAILQ_REMOVE(&s->sessions.all, x, in_all);
	job_free(x->job);
	host_leave(x->host);
	free(x);
}

/* The oldest that has ended goes. */
static void forget_oldest(struct service *s)
{
	struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (!x->inside) {
		s->sessions.n_ended--;
		forget(s, x);
		return;
	}
}

/* ---- quotas ------------------------------------------------------------------------------------------------ */

struct token_memory {
	const char *token;
	uint64_t memory;
};

static void add_memory(const struct admission_count *count, void *arg)
{
	struct token_memory *t = arg;

	if (str_eq(count->token, t->token))
		t->memory += count->memory;
}

/* What the token has already, with its executions; 0 or -code. */
static int check_quota(const struct service *s, const struct token *token, uint64_t memory, struct brig_error *err)
{
	struct token_memory has = { token->name, memory };
	const struct server_session *x;
	size_t n = 0;

	admission_each(s->admission, add_memory, &has);
	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (x->inside && str_eq(x->owner, token->name)) {
		n++;
		has.memory += x->memory;
	}
	if (n >= SESSIONS_OF_TOKEN || (token->quota.concurrent && n >= token->quota.concurrent))
		return err_set(err, BRIG_E_REFUSED, EDQUOT, "the token %s has %zu sessions: end one of them",
			       token->name, n);
	if (token->quota.memory && has.memory > token->quota.memory)
		return err_set(
			err, BRIG_E_REFUSED, EDQUOT,
			"the token %s may have %llu MB in all that it runs: end a session, or ask for less memory",
			token->name, (unsigned long long)(token->quota.memory / MiB));
	if (s->sessions.n_live >= SESSIONS_MAX)
		return err_set(err, BRIG_E_NOMEM, 0, "there are %d sessions already", SESSIONS_MAX);
	return 0;
}

bool session_is_metered(struct service *s, const struct ask *ask, struct server_session *x)
{
	const struct admission_ask entry = { .token = x ? x->owner : ask->token->name,
					     .quota = x ? &x->quota : &ask->token->quota };
	uint32_t retry_after = 1;
	enum admission_answer how = admission_charge_run(s->admission, &entry, clock_now_ns(), &retry_after);

	if (how == ADMISSION_RUN)
		return false;
	s->counts.refused++;
	answer_retry(s, ask, how == ADMISSION_FULL ? 503 : 429, retry_after, "the token %s %s", entry.token,
		     admission_why(how));
	return true;
}

void session_charge(struct server_session *x, uint64_t cpu_ns)
{
	const struct admission_ask entry = { .token = x->owner, .quota = &x->quota };

	x->charged_ns += cpu_ns;
	admission_charge_cpu(x->service->admission, &entry, cpu_ns, clock_now_ns());
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

static void take_result(struct server_session *x, const struct brig_result *r)
{
	struct brig_usage usage = { 0 };
	uint64_t cpu_ns;

	brig_result_usage(r, &usage);
	cpu_ns = usage.cpu_ms * NS_PER_MS;
	if (cpu_ns > x->charged_ns)
		session_charge(x, cpu_ns - x->charged_ns);
	(void)str_copy(x->verdict, sizeof(x->verdict), brig_result_verdict(r));
	if (!x->reason[0] || x->state == SESSION_STARTING)
		(void)str_copy(x->reason, sizeof(x->reason), brig_result_reason(r));
	x->reason[str_utf8_prefix(x->reason, strlen(x->reason))] = '\0';
}

/* Whoever waits for something is told that it will not come. */
static void tell_waiting(struct server_session *x)
{
	struct session_wait *w;
	struct session_piece *p;
	char why[SESSION_REASON_MAX + 64];

	while ((p = TAILQ_FIRST(&x->pieces)))
		session_piece_abandon(p);
	while ((w = TAILQ_FIRST(&x->waits))) {
		bool was_refused = w->event == 0 && (str_eq(x->verdict, "refused") || str_eq(x->verdict, "blocked"));

		(void)snprintf(why, sizeof(why), "the session %s: %s",
			       x->state == SESSION_STARTING ? "could not begin" : "has ended", x->reason);
		session_wait_refuse(x, w, was_refused ? 403 : w->event == 0 ? 500 : 410, why);
	}
}

static void finish(struct service *s, struct server_session *x)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	bool had_begun = x->state != SESSION_STARTING;

	(void)epoll_ctl(s->sessions.epoll, EPOLL_CTL_DEL, brig_session_fd(x->inside), NULL);
	if (brig_session_end(x->inside, &r, &err) < 0)
		(void)brig_result_from_error(&err, &r, NULL);
	x->inside = NULL;
	if (r)
		take_result(x, r);
	brig_result_free(r);
	tell_waiting(x);
	x->state = SESSION_ENDED;
	x->ended_ns = clock_wall_ns();
	x->n_contexts = 0;
	job_free(MOVE_PTR(x->job));
	host_leave(MOVE_PTR(x->host));
	s->sessions.n_live--;
	if (!had_begun) { /* who asked for it was told why, and nobody else knows of it */
		forget(s, x);
		return;
	}
	s->sessions.n_ended++;
}

static bool is_wanted(const struct server_session *x)
{
	const struct session_piece *p;

	TAILQ_FOREACH(p, &x->pieces, in_session)
	if (session_piece_is_wanted(p))
		return true;
	return x->n_waits > 0;
}

static void stop(struct server_session *x, const char *reason)
{
	if (x->is_stopping)
		return;
	x->is_stopping = true;
	(void)str_copy(x->reason, sizeof(x->reason), reason);
	brig_session_stop(x->inside, reason);
}

void session_go_on(struct service *s, struct server_session *x)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (s->draining && !is_wanted(x))
		stop(x, being_stopped);
	if (brig_session_step(x->inside, &err) <= 0)
		finish(s, x);
	else if (s->draining && !x->is_stopping && !is_wanted(x))
		stop(x, being_stopped);
}

void sessions_go_on(struct service *s)
{
	struct epoll_event ev[EVENTS_OF_A_TURN];
	int n = epoll_wait(s->sessions.epoll, ev, EVENTS_OF_A_TURN, 0);

	for (int i = 0; i < n; i++) /* each has one descriptor, so that none is here twice; ending one ends no other */
		session_go_on(s, ev[i].data.ptr);
}

void sessions_drain(struct service *s)
{
	struct server_session *x, *next;

	for (x = TAILQ_FIRST(&s->sessions.all); x; x = next) {
		next = TAILQ_NEXT(x, in_all);
		if (x->inside && !is_wanted(x)) {
			stop(x, being_stopped);
			session_go_on(s, x);
		}
	}
}

void sessions_stop(struct service *s)
{
	struct server_session *x, *next;

	for (x = TAILQ_FIRST(&s->sessions.all); x; x = next) {
		next = TAILQ_NEXT(x, in_all);
		if (!x->inside)
			continue;
		stop(x, being_stopped);
		session_go_on(s, x);
	}
}

void sessions_release(struct service *s)
{
	struct server_session *x;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (x->inside)
		brig_session_stop(x->inside, being_stopped);
	while ((x = TAILQ_FIRST(&s->sessions.all))) {
		if (x->inside)
			(void)brig_session_end(MOVE_PTR(x->inside), NULL, NULL);
		while (!TAILQ_EMPTY(&x->pieces))
			session_piece_free(TAILQ_FIRST(&x->pieces));
		while (!TAILQ_EMPTY(&x->waits))
			session_wait_free(x, TAILQ_FIRST(&x->waits));
		forget(s, x);
	}
	fd_closep(&s->sessions.epoll);
}

/* ---- clients that have gone ------------------------------------------------------------------------------- */

bool sessions_gone(struct service *s, uint32_t tag)
{
	struct server_session *x;
	struct session_piece *p;
	struct session_wait *w;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	{
		TAILQ_FOREACH(p, &x->pieces, in_session)
		if (session_piece_gone(p, tag))
			return true;
		TAILQ_FOREACH(w, &x->waits, in_session)
		if (w->tag == tag) {
			bool is_unborn = w->event == 0; /* and nobody knows its name */

			session_wait_refuse(x, w, 503, "who asked has gone");
			if (is_unborn) {
				stop(x, "who asked for it has gone");
				session_go_on(s, x);
			}
			return true;
		}
	}
	return false;
}

void sessions_all_gone(struct service *s)
{
	struct server_session *x;
	struct session_piece *p;
	struct session_wait *w;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	{
		TAILQ_FOREACH(p, &x->pieces, in_session)
		session_piece_all_gone(p);
		while ((w = TAILQ_FIRST(&x->waits))) {
			if (w->event == 0)
				stop(x, "who asked for it has gone");
			session_wait_free(x, w);
		}
	}
}

/* ---- the beginning ----------------------------------------------------------------------------------------- */

/* Descriptors above this are for executions. */
static bool has_descriptors(const struct service *s)
{
	AUTO_FD probe = fcntl(s->epoll, F_DUPFD_CLOEXEC, 0);

	return probe >= 0 && (uint64_t)probe < s->fds_max;
}

static int make_job(struct service *s, struct ask *ask, struct job **ret, uint64_t *ret_memory, struct brig_error *err)
{
	const struct serve_options *o = s->options;
	int rc;

	if (ask->token->languages.n > 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the token %s may use some languages only, and in a session any command can be run",
			       ask->token->name);
	rc = job_new(ask->m, ROUTE_command, &ask->beside, o->settings, o->n_settings, ret, err);

	if (rc == 0)
		rc = access_check(s->host, ask->token, &o->doors, *ret, ret_memory, err);
	if (rc == 0)
		rc = check_quota(s, ask->token, *ret_memory, err);
	if (rc == 0 && !has_descriptors(s))
		rc = err_set(err, BRIG_E_NOMEM, 0, "there are as many files open as can be");
	return rc;
}

static int begin(struct service *s, const struct ask *ask, struct server_session *x, struct brig_error *err)
{
	struct brig_session_opts opts = BRIG_SESSION_OPTS_INIT;
	const struct brig_request *req = &x->job->req;
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = x } };
	int rc;

	opts.trust = req->trust;
	opts.options = req->options;
	opts.n_options = req->n_options;
	opts.env = req->env;
	opts.n_env = req->n_env;
	opts.environment = req->environment;
	opts.id = x->id;
	opts.who = x->owner;
	opts.on_event = session_on_event;
	opts.user = x;
	opts.timeout_ms = message_number(ask->m, FIELD_timeout_ms, 0);
	rc = brig_session_begin(x->host->b, &opts, &x->inside, err);
	if (rc < 0)
		return rc;
	if (epoll_ctl(s->sessions.epoll, EPOLL_CTL_ADD, brig_session_fd(x->inside), &ev) < 0) {
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for a session");
		(void)brig_session_end(MOVE_PTR(x->inside), NULL, NULL);
	}
	return rc;
}

/* Takes the job, unless there is no memory for the session. */
static struct server_session *session_new(struct service *s, const struct ask *ask, struct job *job, uint64_t memory)
{
	struct server_session *x = calloc(1, sizeof(*x));

	if (!x || id_random(x->id, EXECUTION_ID_LEN) < 0) {
		free(x);
		return NULL;
	}
	TAILQ_INIT(&x->waits);
	TAILQ_INIT(&x->pieces);
	x->service = s;
	x->job = job;
	x->host = host_keep(s->host);
	x->memory = memory;
	x->quota = ask->token->quota;
	x->created_ns = clock_wall_ns();
	(void)str_copy(x->owner, sizeof(x->owner), ask->token->name);
	(void)str_copy(x->trust, sizeof(x->trust),
		       job->req.trust ? job->req.trust : token_trust_name(s->host->default_trust));
	TAILQ_INSERT_TAIL(&s->sessions.all, x, in_all);
	return x;
}

static void answer_refused(struct service *s, const struct ask *ask, const struct brig_error *err)
{
	s->counts.refused++;
	if (err->sys == EDQUOT)
		answer_retry(s, ask, 429, 10, "%s", err->msg);
	else
		answer_trouble(s, ask, err);
}

void ask_session_make(struct service *s, struct ask *ask)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct server_session *x;
	struct job *job = NULL;
	uint64_t memory = 0;

	if (s->draining) {
		answer_retry(s, ask, 503, 5, "the service is being stopped and takes nothing new");
		return;
	}
	while (s->sessions.n_ended > SESSIONS_ENDED_MAX)
		forget_oldest(s);
	if (make_job(s, ask, &job, &memory, &err) < 0) {
		job_free(job);
		answer_refused(s, ask, &err);
		return;
	}
	x = session_is_metered(s, ask, NULL) ? NULL : session_new(s, ask, job, memory);
	if (!x) {
		job_free(job);
		return;
	}
	if (begin(s, ask, x, &err) < 0) {
		forget(s, x);
		answer_trouble(s, ask, &err);
		return;
	}
	s->sessions.n_live++;
	if (!session_wait_for(s, ask, x, 0))
		stop(x, "there was no memory for it");
	session_go_on(s, x);
}

/* ---- looking ------------------------------------------------------------------------------------------------ */

void ask_sessions(struct service *s, struct ask *ask)
{
	json_t *list = json_array();
	const struct server_session *x;

	TAILQ_FOREACH_REVERSE(x, &s->sessions.all, session_list, in_all)
	if (access_owns(ask->token, x->owner))
		(void)json_array_append_new(list, session_document(x));
	answer_json(s, ask, 200, json_pack("{s:o}", "sessions", list));
}

void ask_session(struct service *s, struct ask *ask)
{
	const struct server_session *x = find_any(s, ask);

	if (x)
		answer_json(s, ask, 200, session_document(x));
}

void ask_session_delete(struct service *s, struct ask *ask)
{
	struct server_session *x = find_any(s, ask);

	if (!x)
		return;
	if (x->inside)
		stop(x, "it was asked to");
	answer_json(s, ask, x->inside ? 202 : 200, session_document(x));
	if (x->inside)
		session_go_on(s, x);
}

void ask_session_timeout(struct service *s, struct ask *ask)
{
	struct server_session *x = session_find(s, ask);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!x)
		return;
	if (brig_session_set_timeout(x->inside, message_number(ask->m, FIELD_timeout_ms, 0), &err) < 0)
		session_trouble(s, ask, &err);
	else
		answer_json(s, ask, 200, session_document(x));
	session_go_on(s, x);
}
