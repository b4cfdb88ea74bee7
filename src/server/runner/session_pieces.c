/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_pieces.c - runs in contexts, and processes
 *
 * Each has the events and listeners of an execution (executions.h) without being in its table: output goes to watching
 * clients; it ends with the library's result, to which the values shown in a notebook are added.  A run, and a process
 * that a client waits for, is freed at its end; an asynchronous process is kept for a while, with its log.
 *
 * If the client that started it disconnects, a run is interrupted and a process killed, unless it is asynchronous.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/traces.h"

#define PROCESS_MS_MAX  (24 * 3600 * 1000) /* longer than any session */
#define START_BYTES_MAX (152 * KiB)        /* in a message to the cell, leaving room for working directory and header */
#define COMMAND_KEPT    200
#define WORDS_KEPT      256
#define WORD_KEPT       (4 * KiB)

/* ---- the table --------------------------------------------------------------------------------------------------- */

struct session_piece *session_piece_find(const struct server_session *x, uint64_t tag)
{
	struct session_piece *p;

	TAILQ_FOREACH(p, &x->pieces, in_session)
	if (p->tag == tag)
		return p;
	return NULL;
}

static bool is_named(const struct session_piece *p, const struct message *m)
{
	const char *label = message_text(m, FIELD_label);
	uint64_t pid = message_number(m, FIELD_pid, 0);

	return label ? p->label && str_eq(p->label, label) : pid && p->pid == (int64_t)pid;
}

struct session_piece *session_process_find(const struct server_session *x, const struct request *req)
{
	struct session_piece *p, *ended = NULL;

	if (message_has(req->m, FIELD_item)) {
		p = session_piece_find(x, message_number(req->m, FIELD_item, 0));
		return p && p->context == 0 ? p : NULL;
	}
	TAILQ_FOREACH_REVERSE(p, &x->pieces, session_pieces, in_session)
	{
		if (p->context || !is_named(p, req->m))
			continue;
		if (p->x.state != EXECUTION_FINISHED)
			return p;
		ended = ended ? ended : p;
	}
	return ended;
}

void session_piece_free(struct session_piece *p)
{
	TAILQ_REMOVE(&p->session->pieces, p, in_session);
	p->session->n_pieces--;
	p->session->service->sessions.held -= p->held;
	events_release(&p->x);
	traces_release(&p->x);
	free(p->x.listener);
	free(p->x.result);
	brig_free(p->x.unlisted);
	json_decref(p->results);
	json_decref(p->error);
	json_decref(p->config);
	free(p->label);
	free(p->input);
	free(p->command);
	buf_release(&p->output[0]);
	buf_release(&p->output[1]);
	free(p);
}

static struct session_piece *piece_new(struct server_session *x, uint64_t context)
{
	struct session_piece *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->session = x;
	p->context = context;
	p->results = json_array();
	p->output[0] = p->output[1] = (struct buf)BUF_INIT(SESSION_OUTPUT_MAX);
	p->x.service = x->service;
	p->x.state = EXECUTION_RUNNING;
	p->x.created_ns = clock_wall_ns();
	(void)str_copy(p->x.owner, sizeof(p->x.owner), x->owner);
	(void)str_copy(p->x.trust, sizeof(p->x.trust), x->trust);
	p->x.kind = context ? "code" : "command";
	for (size_t i = 0; i < x->n_contexts; i++)
		if (context && x->context[i].tag == context)
			(void)str_copy(p->x.language, sizeof(p->x.language), x->context[i].language);
	TAILQ_INSERT_TAIL(&x->pieces, p, in_session);
	x->n_pieces++;
	return p;
}

/* Frees the oldest ended one if there are too many. */
static void forget_ended(struct server_session *x)
{
	struct session_piece *p, *oldest = NULL;
	size_t n = 0;

	TAILQ_FOREACH_REVERSE(p, &x->pieces, session_pieces, in_session)
	if (p->x.state == EXECUTION_FINISHED) {
		n++;
		oldest = p;
	}
	if (n > SESSION_ENDED_PIECES)
		session_piece_free(oldest);
}

static bool has_room(struct service *s, const struct request *req, struct server_session *x)
{
	forget_ended(x);
	if (s->draining) {
		answer_retry(s, req, 503, 5, "the service is being stopped and takes nothing new");
		return false;
	}
	if (x->n_pieces >= SESSION_PIECES_MAX) {
		answer_retry(s, req, 429, 1, "the session %s runs %d things already: end one of them", x->id,
			     SESSION_PIECES_MAX);
		return false;
	}
	return !session_is_metered(s, req, x);
}

bool session_piece_hold(struct session_piece *p, size_t bytes)
{
	struct sessions *all = &p->session->service->sessions;

	if (all->held + bytes > SESSIONS_HELD_MAX)
		return false;
	all->held += bytes;
	p->held += bytes;
	return true;
}

/* ---- events --------------------------------------------------------------------------------------------------------- */

void session_piece_answer_promise(struct session_piece *p, uint32_t tag)
{
	const struct request req = { .tag = tag, .request_id = "-" };

	answer_json(p->session->service, &req, 202,
		    json_pack("{s:I, s:s}", "process", (json_int_t)p->tag, "state",
			      p->x.state == EXECUTION_FINISHED ? "finished" : "running"));
}

static void answer_promise(struct session_piece *p)
{
	uint32_t tag = p->promise_tag;

	p->promise_tag = 0;
	session_piece_answer_promise(p, tag);
}

static json_t *started_event(const struct session_piece *p)
{
	return json_pack("{s:s, s:I, s:I, s:b}", "event", "started", "process", (json_int_t)p->tag, "pid",
			 (json_int_t)p->pid, "pty", p->is_pty);
}

/* The process has started: sends its input, and answers an asynchronous start. */
static void take_start(struct session_piece *p, int64_t pid)
{
	struct brig_session *inside = p->session->inside;

	p->is_started = true;
	p->pid = pid;
	events_put(&p->x, EVENT_started, started_event(p));
	if (p->input && p->input_len > 0)
		(void)brig_session_input(inside, p->tag, p->input, p->input_len, NULL);
	if (p->input && !p->stays_open)
		(void)brig_session_close_input(inside, p->tag, NULL);
	free(MOVE_PTR(p->input));
	if (p->is_unwanted)
		(void)brig_session_signal(inside, p->tag, SIGKILL, NULL, NULL);
	if (p->promise_tag)
		answer_promise(p);
}

/* It did not start: a client that has not been answered gets the error as the result. */
static void answer_failure(struct session_piece *p)
{
	uint32_t tag = p->promise_tag;
	const struct request req = { .tag = tag, .request_id = "-" };

	p->promise_tag = 0;
	p->x.is_async = false;
	if (tag && !execution_listen(&p->x, tag, WAITS_FOR_RESULT, true))
		answer_retry(p->session->service, &req, 503, 1, "there is no memory for the process");
}

static void take_failure(struct session_piece *p, const struct brig_session_event *event)
{
	p->start_error = event->error;
	p->is_bad_cwd = (event->flags & BRIG_SESSION_BAD_DIR) != 0;
	answer_failure(p);
}

static void finish(struct session_piece *p)
{
	struct execution *x = &p->x;

	if (p->promise_tag)
		answer_failure(p);
	x->state = EXECUTION_FINISHED;
	x->ended_ns = clock_wall_ns();
	traces_finish(x);
	events_finish(x);
	if (!x->is_async)
		session_piece_free(p);
}

/* Takes ownership of the result. */
static void take_end(struct session_piece *p, struct brig_result *r, uint64_t count)
{
	struct execution *x = &p->x;
	struct brig_usage usage = { 0 };

	(void)str_copy(x->verdict, sizeof(x->verdict), "failed");
	if (r) {
		brig_result_usage(r, &usage);
		session_charge(p->session, usage.cpu_ms * NS_PER_MS);
		(void)str_copy(x->verdict, sizeof(x->verdict), brig_result_verdict(r));
		(void)str_copy(x->id, sizeof(x->id), brig_result_id(r));
		session_piece_keep_result(p, r, count);
	}
	brig_result_free(r);
	finish(p);
}

static void keep_output(struct session_piece *p, struct buf *output, const struct brig_session_event *event)
{
	size_t n = p->x.is_async ? 2 * event->len : event->len; /* its event is kept as well */

	if (p->has_no_capture)
		return;
	if (session_piece_hold(p, n)) {
		(void)buf_add(output, event->data, event->len);
		return;
	}
	output->full = true;
	p->x.log_is_cut = true;
}

void session_piece_event(struct session_piece *p, const struct brig_session_event *event)
{
	switch (event->kind) {
	case BRIG_SESSION_DONE:
		if (p->context == 0 && event->error == 0)
			take_start(p, event->pid);
		else if (p->context == 0)
			take_failure(p, event);
		break;
	case BRIG_SESSION_OUTPUT:
		keep_output(p, &p->output[event->stream == BRIG_STDERR], event);
		events_output(&p->x, event->stream, event->data, event->len);
		break;
	case BRIG_SESSION_RESULT:
		session_piece_show(p, event);
		break;
	case BRIG_SESSION_RAN:
		take_end(p, event->result, event->count);
		break;
	default:
		break;
	}
}

void session_piece_abandon(struct session_piece *p)
{
	struct execution *x = &p->x;

	for (size_t i = 0; i < x->n_listeners; i++) {
		const struct request req = { .tag = x->listener[i].tag, .request_id = "-" };

		answer_error(x->service, &req, 410, "the session has ended");
	}
	x->n_listeners = 0;
	if (p->promise_tag) {
		const struct request req = { .tag = p->promise_tag, .request_id = "-" };

		answer_error(x->service, &req, 410, "the session has ended");
	}
	session_piece_free(p);
}

/* ---- listeners ------------------------------------------------------------------------------- */

bool session_piece_is_wanted(const struct session_piece *p)
{
	return p->x.state != EXECUTION_FINISHED && (p->x.n_listeners > 0 || p->promise_tag);
}

static void end_unwanted(struct session_piece *p)
{
	struct brig_session *inside = p->session->inside;

	if (!inside || p->x.is_async || p->x.state == EXECUTION_FINISHED)
		return;
	p->is_unwanted = true; /* if it has not started, it is killed when it does */
	if (p->context)
		(void)brig_session_cancel(inside, p->tag, NULL);
	else
		(void)brig_session_signal(inside, p->tag, SIGKILL, NULL, NULL);
}

bool session_piece_gone(struct session_piece *p, uint32_t tag)
{
	struct execution *x = &p->x;

	if (p->promise_tag == tag) {
		answer_promise(p);
		return true;
	}
	for (size_t i = 0; i < x->n_listeners; i++) {
		bool was_starter = x->listener[i].is_starter;

		if (x->listener[i].tag != tag)
			continue;
		answer_send(x->service, tag, &(struct answer){ .status = 503, .who = x->owner });
		x->listener[i] = x->listener[--x->n_listeners];
		if (was_starter)
			end_unwanted(p);
		return true;
	}
	return false;
}

bool session_piece_cancel(struct session_piece *p, uint32_t tag)
{
	for (size_t i = 0; i < p->x.n_listeners; i++)
		if (p->x.listener[i].tag == tag) {
			if (p->x.listener[i].is_starter)
				end_unwanted(p);
			return true;
		}
	return false;
}

void session_piece_all_gone(struct session_piece *p)
{
	bool had_starter = false;

	for (size_t i = 0; i < p->x.n_listeners; i++)
		had_starter |= p->x.listener[i].is_starter;
	p->x.n_listeners = 0;
	p->promise_tag = 0;
	if (had_starter)
		end_unwanted(p);
}

/* ---- runs -------------------------------------------------------------------------------------------------------------- */

/* The context named in the request, or the default one of its language, which is created if necessary. */
static int choose_context(struct server_session *x, const struct request *req, uint64_t *ret, struct brig_error *err)
{
	const char *language = message_text(req->m, FIELD_language);

	*ret = message_number(req->m, FIELD_context, 0);
	for (size_t i = 0; *ret && i < x->n_contexts; i++)
		if (x->context[i].tag == *ret)
			return 0;
	if (*ret)
		return err_set(err, BRIG_E_USAGE, ENOENT, "the session has no context %llu", (unsigned long long)*ret);
	if (!language)
		language = "python";
	return session_context_default(x, language, message_text(req->m, FIELD_cwd), ret, err);
}

static int begin_run(struct session_piece *p, const struct request *req, struct brig_error *err)
{
	struct brig_session_code what = BRIG_SESSION_CODE_INIT;
	AUTO_FREE const char **env = calloc(message_count(req->m, FIELD_variable) + 1, sizeof(*env));

	if (!env)
		return err_nomem(err);
	what.context = p->context;
	what.code = message_bytes(req->m, FIELD_code, &what.code_len);
	if (!what.code)
		what.code = "";
	message_texts(req->m, FIELD_variable, env);
	what.env = env;
	what.n_env = message_count(req->m, FIELD_variable);
	what.timeout_ms = message_number(req->m, FIELD_timeout_ms, 0);
	if (brig_session_run(p->session->inside, &what, &p->tag, err) < 0)
		return -err->code;
	/* The run may have to wait for others; watching clients learn at once that it was accepted. */
	if (events_are_heard(&p->x))
		events_put(&p->x, EVENT_started,
			   json_pack("{s:s, s:I}", "event", "started", "context", (json_int_t)p->context));
	return 0;
}

/* Registers the starting client as a listener, or for the 202 answer. */
static bool listen_to(struct session_piece *p, const struct request *req)
{
	bool watches = message_number(req->m, FIELD_stream, 0) != 0;
	bool is_detached = watches && p->context == 0 && message_number(req->m, FIELD_detached, 0) != 0;
	bool is_promised;

	p->has_no_capture = message_number(req->m, FIELD_no_capture, 0) != 0;
	is_promised = message_number(req->m, FIELD_async, 0) != 0 && !watches && p->context == 0;
	p->x.is_async = is_promised || p->has_key;
	p->x.log_is_cut = !p->x.is_async; /* no client can request its events later */
	if (is_detached) {
		p->x.is_async = true;
	} else if (is_promised) {
		p->promise_tag = req->tag;
		return true;
	}
	return execution_listen(&p->x, req->tag, watches ? WATCHES : WAITS_FOR_RESULT, true);
}

static void begin(struct service *s, struct request *req, struct server_session *x, uint64_t context,
		  int (*fn)(struct session_piece *p, const struct request *req, struct brig_error *err))
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct session_piece *p = piece_new(x, context);

	if (p)
		traces_attach_piece(&p->x, req->m, context ? "run" : "process", x->id);
	if (p && !session_piece_remember(s, req, p)) {
		session_piece_free(p);
	} else if (!p || !listen_to(p, req)) {
		if (p)
			session_piece_free(p);
		answer_retry(s, req, 503, 1, "there is no memory for the run");
	} else if (fn(p, req, &err) < 0) {
		session_piece_free(p);
		session_trouble(s, req, &err);
	} else {
		s->counts.session_runs++;
	}
	session_go_on(s, x);
}

void handle_session_run(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t context = 0;

	if (!x || session_piece_is_repeated(s, req, x) || !has_room(s, req, x))
		return;
	if (choose_context(x, req, &context, &err) < 0) {
		session_trouble(s, req, &err);
		return;
	}
	begin(s, req, x, context, begin_run);
}

/* ---- processes ---------------------------------------------------------------------------------------------------------- */

static int keep_input(struct session_piece *p, const struct request *req, struct brig_error *err)
{
	size_t len = 0;
	const char *data = message_bytes(req->m, FIELD_input, &len);

	p->stays_open = message_number(req->m, FIELD_interactive, 0) != 0;
	if (!data && !p->stays_open)
		return 0;
	if (len > MiB)
		return err_set(err, BRIG_E_USAGE, 0, "stdin has more than 1 MB: write it to a file of the session");
	p->input = malloc(len + 1);
	if (!p->input)
		return err_nomem(err);
	if (data)
		memcpy(p->input, data, len);
	p->input_len = len;
	return 0;
}

/* Checks the limit of a start message to the cell. */
static int check_words(const char *const *words, size_t n, struct brig_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += strlen(words[i]) + 1;
	if (bytes <= START_BYTES_MAX)
		return 0;
	return err_set(err, BRIG_E_USAGE, E2BIG,
		       "arguments and variables have %zu bytes, more than %d: write them to a file", bytes,
		       (int)START_BYTES_MAX);
}

/* Arguments for listings; long ones are truncated. */
static json_t *words_list(const char *const *words, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(
			list, json_stringn(words[i], str_utf8_prefix(words[i], min_u64(strlen(words[i]), WORD_KEPT))));
	return list;
}

json_t *session_variables(const char *const *words, size_t n, size_t max)
{
	json_t *env = json_object();

	for (size_t i = 0; i < n; i++) {
		const char *value = strchr(words[i], '=');
		AUTO_FREE char *name = value ? strndup(words[i], (size_t)(value - words[i])) : NULL;

		if (name)
			(void)json_object_set_new(
				env, name,
				json_stringn(value + 1, str_utf8_prefix(value + 1, min_u64(strlen(value + 1), max))));
	}
	return env;
}

/* words: arguments, followed by variables. */
static int keep_config(struct session_piece *p, const struct request *req, const char *const *words, size_t n_argv,
		       struct brig_error *err)
{
	const char *label = message_text(req->m, FIELD_label), *cwd = message_text(req->m, FIELD_cwd);
	size_t n_env = message_count(req->m, FIELD_variable);

	p->label = label ? strdup(label) : NULL;
	p->config = json_pack("{s:o, s:o, s:s?}", "args", words_list(words, min_u64(n_argv, WORDS_KEPT)), "env",
			      session_variables(words + n_argv, min_u64(n_env, WORDS_KEPT), WORD_KEPT), "cwd",
			      cwd && str_is_utf8(cwd, strlen(cwd)) ? cwd : NULL);
	return p->config && (p->label || !label) ? 0 : err_nomem(err);
}

static int begin_process(struct session_piece *p, const struct request *req, struct brig_error *err)
{
	struct brig_session_process what = BRIG_SESSION_PROCESS_INIT;
	size_t n_argv = message_count(req->m, FIELD_arg), n_env = message_count(req->m, FIELD_variable);
	AUTO_FREE const char **words = calloc(n_argv + n_env + 1, sizeof(*words));
	int rc;

	if (!words)
		return err_nomem(err);
	rc = keep_input(p, req, err);
	if (rc < 0)
		return rc;
	message_texts(req->m, FIELD_arg, words);
	message_texts(req->m, FIELD_variable, words + n_argv);
	what.argv = words;
	what.n_argv = n_argv;
	what.env = words + n_argv;
	what.n_env = n_env;
	what.cwd = message_text(req->m, FIELD_cwd);
	what.flags =
		(p->input ? BRIG_PROCESS_STDIN : 0) | (message_number(req->m, FIELD_pty, 0) ? BRIG_PROCESS_PTY : 0);
	what.rows = (uint32_t)min_u64(message_number(req->m, FIELD_rows, 0), 65535);
	what.columns = (uint32_t)min_u64(message_number(req->m, FIELD_columns, 0), 65535);
	what.timeout_ms = min_u64(message_number(req->m, FIELD_timeout_ms, 0), PROCESS_MS_MAX);
	p->is_pty = (what.flags & BRIG_PROCESS_PTY) != 0;
	p->command = n_argv > 0 ? strndup(words[0], COMMAND_KEPT) : NULL;
	rc = check_words(words, n_argv + n_env, err);
	if (rc == 0)
		rc = keep_config(p, req, words, n_argv, err);
	if (rc < 0)
		return rc;
	return brig_session_start(p->session->inside, &what, &p->tag, err);
}

void handle_process_start(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);

	if (x && !session_piece_is_repeated(s, req, x) && has_room(s, req, x))
		begin(s, req, x, 0, begin_process);
}

static json_t *process_document(const struct session_piece *p, bool with_result)
{
	bool is_over = p->x.state == EXECUTION_FINISHED;
	json_t *doc = json_pack("{s:I, s:s, s:s%, s:s?}", "process", (json_int_t)p->tag, "state",
				is_over ? "finished" : "running", "command", p->command ? p->command : "",
				p->command ? str_utf8_prefix(p->command, strlen(p->command)) : 0, "verdict",
				is_over ? p->x.verdict : NULL);
	json_t *result = with_result && is_over && p->x.result ? json_loads(p->x.result, JSON_ALLOW_NUL, NULL) : NULL;

	(void)json_object_update(doc, p->config);
	if (p->pid)
		(void)json_object_set_new(doc, "pid", json_integer(p->pid));
	if (p->label)
		(void)json_object_set_new(doc, "label", json_string(p->label));
	if (doc && with_result)
		(void)json_object_set_new(doc, "result", result ? result : json_null());
	return doc;
}

void handle_processes(struct service *s, struct request *req)
{
	const struct server_session *x = session_find(s, req);
	const struct session_piece *p;
	json_t *list;

	if (!x)
		return;
	list = json_array();
	TAILQ_FOREACH(p, &x->pieces, in_session)
	if (p->context == 0)
		(void)json_array_append_new(list, process_document(p, false));
	answer_json(s, req, 200, json_pack("{s:o}", "processes", list));
}

static struct session_piece *find_process(struct service *s, const struct request *req)
{
	const struct server_session *x = session_find(s, req);
	struct session_piece *p = x ? session_process_find(x, req) : NULL;

	if (x && !p)
		answer_errno(
			s, req, 404, ESRCH, "there is no process %llu in this session",
			(unsigned long long)message_number(req->m, FIELD_item, message_number(req->m, FIELD_pid, 0)));
	return p;
}

void handle_process(struct service *s, struct request *req)
{
	const struct session_piece *p = find_process(s, req);

	if (p)
		answer_json(s, req, 200, process_document(p, true));
}

/* Sends the start event, and the end if it has ended; other events follow as they occur. */
static void tell_from_now(struct service *s, struct session_piece *p, uint32_t tag)
{
	json_t *event = p->is_started ? started_event(p) : NULL; /* otherwise it is sent when the process starts */
	AUTO_FREE char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	json_decref(event);
	if (text)
		event_send(s, tag, EVENT_started, text, strlen(text));
	if (p->x.state == EXECUTION_FINISHED)
		events_replay_end(&p->x, tag);
}

void handle_process_events(struct service *s, struct request *req)
{
	struct session_piece *p = find_process(s, req);

	if (!p)
		return;
	if (p->x.state != EXECUTION_FINISHED && !execution_listen(&p->x, req->tag, WATCHES, false))
		answer_retry(s, req, 503, 1, "too many wait for this process already");
	else if (message_number(req->m, FIELD_live, 0))
		tell_from_now(s, p, req->tag);
	else
		events_replay(&p->x, req->tag);
}
