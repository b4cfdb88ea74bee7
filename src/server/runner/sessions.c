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
#include "server/runner/requests.h"
#include "sys/crypto.h"

#define EVENTS_OF_A_TURN 32

static const char being_stopped[] = "the service is being stopped";

/* ---- the table -------------------------------------------------------------------------------------------- */

void sessions_init(struct sessions *t)
{
	TAILQ_INIT(&t->all);
	TAILQ_INIT(&t->transfers);
	t->epoll = t->more = FD_NONE;
}

int sessions_open(struct sessions *t, struct brig_error *err)
{
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	return t->epoll < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for sessions")
			    : session_transfers_open(t, err);
}

static struct server_session *find_any(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_id);
	struct server_session *x;

	if (req->session)
		return req->session;
	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (id && str_eq(x->id, id) && access_owns(req->token, x->owner))
		return x;
	answer_error(s, req, 404, "there is no session '%.20s'%s", id ? id : "",
		     req->token->admin ? "" : " of this token");
	return NULL;
}

struct server_session *session_find(struct service *s, const struct request *req)
{
	struct server_session *x = find_any(s, req);

	if (!x || (x->inside && !x->is_stopping))
		return x;
	answer_error(s, req, 410, "the session %s has ended: %s", x->id, x->reason[0] ? x->reason : "it was asked to");
	return NULL;
}

static void forget(struct service *s, struct server_session *x)
{
	TAILQ_REMOVE(&s->sessions.all, x, in_all);
	session_contexts_release(x);
	job_free(x->job);
	host_leave(x->host);
	json_decref(x->metadata);
	fd_closep(&x->pause_timer);
	free(x->note);
	crypto_wipe(x->key, sizeof(x->key));
	free(x);
}

/* Drops the oldest ended session. */
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

/* Checks one more session against the token's quota, including its executions; 0 or -code. */
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

bool session_is_metered(struct service *s, const struct request *req, struct server_session *x)
{
	const struct admission_ask entry = { .token = x ? x->owner : req->token->name,
					     .quota = x ? &x->quota : &req->token->quota };
	uint32_t retry_after = 1;
	enum admission_answer how = admission_charge_run(s->admission, &entry, clock_now_ns(), &retry_after);

	if (how == ADMISSION_RUN)
		return false;
	s->counts.refused++;
	answer_retry(s, req, how == ADMISSION_FULL ? 503 : 429, retry_after, "the token %s %s", entry.token,
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
	if (!x->reason[0] || (x->state == SESSION_STARTING && !x->failed_status))
		(void)str_copy(x->reason, sizeof(x->reason), brig_result_reason(r));
	x->reason[str_utf8_prefix(x->reason, strlen(x->reason))] = '\0';
}

/* Answers all pending requests. */
static void tell_waiting(struct server_session *x)
{
	struct session_wait *w;
	struct session_piece *p;
	char why[SESSION_REASON_MAX + 64];

	session_watches_end(x);
	while ((p = TAILQ_FIRST(&x->pieces)))
		session_piece_abandon(p);
	while ((w = TAILQ_FIRST(&x->waits))) {
		bool was_refused = w->event == 0 && (str_eq(x->verdict, "refused") || str_eq(x->verdict, "blocked"));

		(void)snprintf(why, sizeof(why), "the session %s: %s",
			       x->state == SESSION_STARTING ? "could not begin" : "has ended", x->reason);
		session_wait_refuse(x, w,
				    was_refused        ? 403
				    : w->event != 0    ? 410
				    : x->failed_status ? x->failed_status
						       : 500,
				    why);
	}
}

static enum session_end end_of(const struct server_session *x)
{
	if (x->state == SESSION_STARTING)
		return SESSION_END_unbegun;
	return str_eq(x->verdict, "ok") ? x->end : SESSION_END_broken;
}

static void finish(struct service *s, struct server_session *x)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	bool had_begun = x->state != SESSION_STARTING;

	(void)epoll_ctl(s->sessions.epoll, EPOLL_CTL_DEL, brig_session_fd(x->inside), NULL);
	fd_closep(&x->pause_timer); /* this also removes it from the epoll set */
	if (brig_session_end(x->inside, &r, &err) < 0)
		(void)brig_result_from_error(&err, &r, NULL);
	x->inside = NULL;
	if (r)
		take_result(x, r);
	brig_result_free(r);
	s->counts.session_ends[end_of(x)]++;
	session_fork_lost(x);
	tell_waiting(x);
	x->state = SESSION_ENDED;
	x->ended_ns = clock_wall_ns();
	session_contexts_release(x);
	job_free(MOVE_PTR(x->job));
	host_leave(MOVE_PTR(x->host));
	s->sessions.n_live--;
	if (!had_begun) { /* the requesting client was told why, and no other knows it */
		idempotency_forget(&s->idempotency, x->id);
		forget(s, x);
		return;
	}
	session_address_end(x);
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

void server_session_stop(struct server_session *x, const char *reason)
{
	if (x->is_stopping)
		return;
	x->is_stopping = true;
	x->end = x->service->draining ? SESSION_END_service : SESSION_END_asked;
	(void)str_copy(x->reason, sizeof(x->reason), reason);
	brig_session_stop(x->inside, reason);
}

/* ---- a turn ------------------------------------------------------------------------------------------------- */

void session_go_on(struct service *s, struct server_session *x)
{
	struct brig_error err = BRIG_ERROR_INIT;

	session_pause_if_due(x);
	if (s->draining && !is_wanted(x))
		server_session_stop(x, being_stopped);
	if (brig_session_step(x->inside, &err) <= 0)
		finish(s, x);
	else if (s->draining && !x->is_stopping && !is_wanted(x))
		server_session_stop(x, being_stopped);
}

void sessions_go_on(struct service *s)
{
	struct epoll_event ev[EVENTS_OF_A_TURN];
	int n = epoll_wait(s->sessions.epoll, ev, EVENTS_OF_A_TURN, 0);
	bool carries = false;

	/*
	 * A session appears twice if its timer is due; only sessions that stay in the table when they end have an
	 * active timer, and ending one does not end another.
	 */
	for (int i = 0; i < n; i++) {
		struct server_session *x = ev[i].data.ptr;

		if (!x)
			carries = true;
		else if (x->inside)
			session_go_on(s, x);
	}
	if (carries) /* after the sessions: transfers end no session */
		session_transfers_go_on(s);
}

void sessions_drain(struct service *s)
{
	struct server_session *x, *next;

	for (x = TAILQ_FIRST(&s->sessions.all); x; x = next) {
		next = TAILQ_NEXT(x, in_all);
		if (x->inside && !is_wanted(x)) {
			server_session_stop(x, being_stopped);
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
		server_session_stop(x, being_stopped);
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
		while (!TAILQ_EMPTY(&x->watches))
			session_watch_free(x, TAILQ_FIRST(&x->watches));
		forget(s, x);
	}
	fd_closep(&s->sessions.more);
	fd_closep(&s->sessions.epoll);
}

/* ---- clients that disconnect ---------------------------------------------------------------------------------- */

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
		if (session_watch_gone(x, tag))
			return true;
		TAILQ_FOREACH(w, &x->waits, in_session)
		if (w->tag == tag) {
			bool is_unborn = w->event == 0; /* and no client has been told its id */

			session_wait_refuse(x, w, 503, "who asked has gone");
			/* unless another client waits for the same session */
			TAILQ_FOREACH(w, &x->waits, in_session)
			is_unborn &= w->event != 0;
			if (is_unborn) {
				server_session_stop(x, "who asked for it has gone");
				session_go_on(s, x);
			}
			return true;
		}
	}
	return false;
}

bool sessions_cancel(struct service *s, uint32_t tag)
{
	struct server_session *x;
	struct session_piece *p;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	TAILQ_FOREACH(p, &x->pieces, in_session)
	if (session_piece_cancel(p, tag)) {
		if (x->inside)
			session_go_on(s, x);
		return true;
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
		session_watches_all_gone(x);
		while ((w = TAILQ_FIRST(&x->waits))) {
			if (w->event == 0)
				server_session_stop(x, "who asked for it has gone");
			session_wait_free(x, w);
		}
	}
}

/* ---- creation ---------------------------------------------------------------------------------------------- */

/* Whether a descriptor below the part reserved for executions is free. */
static bool has_descriptors(const struct service *s)
{
	AUTO_FD probe = fcntl(s->epoll, F_DUPFD_CLOEXEC, 0);

	return probe >= 0 && (uint64_t)probe < s->fds_max;
}

int session_check_wish(struct service *s, struct request *req, struct job **ret, uint64_t *ret_memory,
		       struct brig_error *err)
{
	const struct serve_options *o = s->options;
	int rc;

	if (req->token->languages.n > 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the token %s may use some languages only, and in a session any command can be run",
			       req->token->name);
	rc = job_new(req->m, ROUTE_command, &req->beside, o->settings, o->n_settings, ret, err);

	if (rc == 0)
		rc = access_check(s->host, req->token, &o->doors, *ret, ret_memory, err);
	return rc;
}

static int make_job(struct service *s, struct request *req, struct job **ret, uint64_t *ret_memory,
		    struct brig_error *err)
{
	int rc = session_check_wish(s, req, ret, ret_memory, err);

	if (rc == 0)
		rc = check_quota(s, req->token, *ret_memory, err);
	if (rc == 0 && !has_descriptors(s))
		rc = err_set(err, BRIG_E_NOMEM, 0, "there are as many files open as can be");
	return rc;
}

static const struct host_level *level_of(const struct server_session *x)
{
	enum token_trust trust = x->host->default_trust;

	(void)token_trust_parse(x->trust, &trust);
	return &x->host->level[trust];
}

static int begin(struct service *s, const struct request *req, struct server_session *x, struct brig_error *err)
{
	struct brig_session_opts opts = BRIG_SESSION_OPTS_INIT;
	const struct brig_request *what = &x->job->req;
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = x } };
	int rc;

	opts.trust = what->trust;
	opts.options = what->options;
	opts.n_options = what->n_options;
	opts.env = what->env;
	opts.n_env = what->n_env;
	opts.environment = what->environment;
	opts.id = x->id;
	opts.who = x->owner;
	opts.on_event = session_on_event;
	opts.on_sample = session_on_sample;
	opts.user = x;
	opts.timeout_ms = message_number(req->m, FIELD_timeout_ms, 0);
	if (access_door(req->m) != DOOR_api && opts.timeout_ms > level_of(x)->session_ms)
		opts.timeout_ms = 0; /* longer timeouts in other protocols are lowered to the limit */
	x->timeout_ms = opts.timeout_ms ? opts.timeout_ms : level_of(x)->session_ms;
	x->pauses = message_number(req->m, FIELD_pauses, 0) != 0;
	x->resumes = message_number(req->m, FIELD_resumes, 0) != 0;
	x->needs_key = message_number(req->m, FIELD_needs_key, 0) != 0;
	if (x->pauses)
		opts.timeout_ms = 0;
	rc = x->pauses ? session_make_timer(s, x, err) : 0;
	if (rc < 0)
		return rc;
	rc = brig_session_begin(x->host->b, &opts, &x->inside, err);
	if (rc < 0)
		return rc;
	if (epoll_ctl(s->sessions.epoll, EPOLL_CTL_ADD, brig_session_fd(x->inside), &ev) < 0) {
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for a session");
		(void)brig_session_end(MOVE_PTR(x->inside), NULL, NULL);
	}
	return rc;
}

/* A new id, or the one that was published already. */
static bool choose_id(const struct service *s, const struct request *req, char ret[EXECUTION_ID_LEN + 1])
{
	const char *id = message_text(req->m, FIELD_session_id);
	const struct server_session *x;

	if (!id)
		return id_random(ret, EXECUTION_ID_LEN) == 0;
	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (str_eq(x->id, id))
		return false;
	return str_copy(ret, EXECUTION_ID_LEN + 1, id);
}

/* Takes the job, unless it returns NULL: out of memory. */
static struct server_session *session_new(struct service *s, const struct request *req, struct job *job,
					  uint64_t memory)
{
	struct server_session *x = calloc(1, sizeof(*x));
	const char *note = message_text(req->m, FIELD_note), *wish;
	static const char *const network = "network_mode";
	size_t which;

	if (!x || !choose_id(s, req, x->id) || id_random(x->key, SESSION_KEY_LEN) < 0 ||
	    (note && !(x->note = strdup(note)))) {
		free(x);
		return NULL;
	}
	TAILQ_INIT(&x->waits);
	TAILQ_INIT(&x->pieces);
	TAILQ_INIT(&x->watches);
	x->pause_timer = FD_NONE;
	x->service = s;
	x->job = job;
	x->host = host_keep(s->host);
	x->memory = memory;
	x->quota = req->token->quota;
	x->created_ns = clock_wall_ns();
	(void)str_copy(x->owner, sizeof(x->owner), req->token->name);
	(void)str_copy(x->trust, sizeof(x->trust),
		       job->req.trust ? job->req.trust : token_trust_name(s->host->default_trust));
	x->cpu_percent = level_of(x)->cpu_percent;
	x->disk = level_of(x)->disk;
	wish = job_wish(job, &network, 1, &which);
	(void)str_copy(x->network, sizeof(x->network), wish ? wish : level_of(x)->network);
	if (message_has(req->m, FIELD_shared_id))
		(void)str_copy(x->shared_id, sizeof(x->shared_id), message_text(req->m, FIELD_shared_id));
	TAILQ_INSERT_TAIL(&s->sessions.all, x, in_all);
	return x;
}

static void answer_refused(struct service *s, const struct request *req, const struct brig_error *err)
{
	s->counts.refused++;
	if (err->sys == EDQUOT)
		answer_retry(s, req, 429, 10, "%s", err->msg);
	else
		answer_trouble(s, req, err);
}

/*
 * A session requested under a name chosen by the client is shared with every client that uses the same name; permitted
 * only with --no-auth, where all clients have all permissions anyway.  True: it exists or is starting, and the request
 * has been answered or waits for it.
 */
static bool is_shared(struct service *s, const struct request *req)
{
	const char *id = message_text(req->m, FIELD_shared_id);
	struct server_session *x;

	if (!id)
		return false;
	if (!s->options->no_auth) {
		answer_error(s, req, 403, "a session is shared without a token only with --no-auth");
		return true;
	}
	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (str_eq(x->shared_id, id) && x->inside && !x->is_stopping)
		break;
	if (!x)
		return false;
	if (x->state == SESSION_READY)
		answer_json(s, req, 200, session_document_for(x, access_door(req->m)));
	else if (session_can_wait(s, req, x))
		(void)session_wait_for(s, req, x, 0);
	return true;
}

struct server_session *session_make(struct service *s, struct request *req, bool is_unfilled)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct server_session *x;
	struct job *job = NULL;
	uint64_t memory = 0;

	if (s->draining) {
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
		return NULL;
	}
	while (s->sessions.n_ended > SESSIONS_ENDED_MAX)
		forget_oldest(s);
	if (make_job(s, req, &job, &memory, &err) < 0) {
		job_free(job);
		answer_refused(s, req, &err);
		return NULL;
	}
	if (session_is_metered(s, req, NULL)) {
		job_free(job);
		return NULL;
	}
	x = session_new(s, req, job, memory);
	if (!x) {
		job_free(job);
		answer_retry(s, req, 503, 1, "there is no memory for another session");
		return NULL;
	}
	x->is_unfilled = is_unfilled;
	if (begin(s, req, x, &err) < 0) {
		forget(s, x);
		answer_trouble(s, req, &err);
		return NULL;
	}
	s->sessions.n_live++;
	s->counts.sessions++;
	(void)session_address_put(x);
	if (!session_wait_for(s, req, x, 0))
		server_session_stop(x, "there was no memory for it");
	return x;
}

void handle_session_make(struct service *s, struct request *req)
{
	struct server_session *x;

	if (session_is_repeated(s, req))
		return;
	if (message_has(req->m, FIELD_snapshot)) {
		handle_session_restore(s, req);
		return;
	}
	x = is_shared(s, req) ? NULL : session_make(s, req, false);
	if (!x)
		return;
	session_remember(s, req, x);
	session_go_on(s, x);
}

/* ---- queries ----------------------------------------------------------------------------------------------- */

json_t *sessions_list(const struct service *s, const struct request *req)
{
	json_t *list = json_array();
	const struct server_session *x;

	TAILQ_FOREACH_REVERSE(x, &s->sessions.all, session_list, in_all)
	if (access_owns(req->token, x->owner))
		(void)json_array_append_new(list, session_document_for(x, access_door(req->m)));
	return list;
}

void handle_sessions(struct service *s, struct request *req)
{
	answer_json(s, req, 200, json_pack("{s:o}", "sessions", sessions_list(s, req)));
}

void handle_session(struct service *s, struct request *req)
{
	const struct server_session *x = find_any(s, req);
	json_t *doc = x ? session_document_for(x, access_door(req->m)) : NULL;

	if (doc && x->job && message_number(req->m, FIELD_with_variables, 0))
		(void)json_object_set_new(doc, "variables",
					  session_variables(x->job->req.env, x->job->req.n_env, BRIG_STRING_MAX));
	if (x)
		answer_json(s, req, 200, doc);
}

void handle_session_delete(struct service *s, struct request *req)
{
	struct server_session *x = find_any(s, req);

	if (!x)
		return;
	if (access_door(req->m) != DOOR_api &&
	    /* their clients expect the first deletion to succeed and later ones to fail */
	    (!x->inside || x->is_stopping)) {
		answer_error(s, req, 410, "the session %s has ended", x->id);
		return;
	}
	if (x->inside)
		server_session_stop(x, "it was asked to");
	answer_json(s, req, x->inside ? 202 : 200, session_document(x));
	if (x->inside)
		session_go_on(s, x);
}
