/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket.c - Piston's WebSocket: runs a program with interactive input
 *
 *	connect -> authenticate -> 101 -> init -> choose the language -> runtime, stage -> data both ways -> exit -> 4999
 *
 * Signals go to the program, which may catch them. Before it has started (during compilation), a signal whose default
 * action terminates a process ends the run, and the exit message reports that signal.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/piston/job.h"
#include "server/front/websocket.h"

enum { CLOSE_TWICE = 4000, CLOSE_LATE, CLOSE_ERROR, CLOSE_EARLY, CLOSE_STREAM, CLOSE_SIGNAL, CLOSE_DONE = 4999 };

struct session {
	struct piston_job job; /* first member: piston_job_free() frees both */
	/* the program's end of its input; open from init on, because clients send input without waiting */
	int input;
	bool is_begun;   /* init was received */
	bool is_asked;   /* the runner has the job */
	bool is_running; /* the program has started */
	int signal;      /* the signal that ended the run before the program started; 0: none */
};

static struct session *session_of(struct client *c)
{
	return c->req->call->state;
}

/* Sends the document and takes it. False: the client is gone. */
static bool say(struct client *c, json_t *doc)
{
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (text)
		return websocket_send(c, text, strlen(text));
	client_close(c, true);
	return false;
}

void piston_socket_error(struct client *c, const char *message)
{
	if (say(c, json_pack("{s:s, s:s}", "type", "error", "message", message)))
		websocket_close(c, CLOSE_ERROR, "Notified Error");
}

/* ---- the run --------------------------------------------------------------------------------------------- */

static bool say_stage(struct client *c, const char *stage)
{
	return say(c, json_pack("{s:s, s:s}", "type", "stage", "stage", stage));
}

/* Takes the text. */
static bool say_data(struct client *c, const char *stream, json_t *text)
{
	return say(c, json_pack("{s:s, s:s, s:o}", "type", "data", "stream", stream, "data", text));
}

static void start(struct client *c)
{
	struct session *s = session_of(c);

	if (s->is_running)
		return;
	s->is_running = true;
	if (s->job.compiles &&
	    !say(c, json_pack("{s:s, s:s, s:i, s:n}", "type", "exit", "stage", "compile", "code", 0, "signal")))
		return;
	(void)say_stage(c, "run");
}

/* Reports findings and failures on the program's stderr. */
static bool say_findings(struct client *c, const json_t *result, json_t *stage)
{
	const char *verdict = json_string_value(json_object_get(result, "verdict"));

	if (!verdict || (!str_eq(verdict, "blocked") && !str_eq(verdict, "failed")))
		return true;
	return say_data(c, "stderr", json_incref(json_object_get(stage, "stderr")));
}

static json_t *signal_name(int number)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "SIG%s", sigabbrev_np(number));
	return json_string(name);
}

static void finish(struct client *c, const json_t *result)
{
	const char *step = json_string_value(json_object_get(result, "step"));
	const char *verdict = json_string_value(json_object_get(result, "verdict"));
	struct session *s = session_of(c);
	bool is_compile = step && str_eq(step, "compile") && !s->is_running;
	json_t *stage = piston_stage(result), *signal;

	if (verdict && str_eq(verdict, "refused")) {
		piston_socket_error(c, json_string_value(json_object_get(result, "reason")));
		json_decref(stage);
		return;
	}
	if (!is_compile)
		start(c);
	signal = s->signal && verdict && str_eq(verdict, "cancelled") ? signal_name(s->signal)
								      : json_incref(json_object_get(stage, "signal"));
	if (c->state == CLIENT_SOCKET && say_findings(c, result, stage) &&
	    say(c, json_pack("{s:s, s:s, s:O, s:O}", "type", "exit", "stage", is_compile ? "compile" : "run", "code",
			     json_object_get(stage, "code"), "signal", signal)))
		websocket_close(c, CLOSE_DONE, "Job Completed");
	json_decref(signal);
	json_decref(stage);
}

static void on_event(struct client *c, enum event_kind kind, const char *text, size_t len)
{
	json_t *event = kind == EVENT_started || kind == EVENT_stdout || kind == EVENT_stderr || kind == EVENT_verdict
				? json_loadb(text, len, JSON_ALLOW_NUL, NULL)
				: NULL;
	const json_t *data = json_object_get(event, "data");

	if (event && kind == EVENT_started)
		start(c);
	else if (event && kind == EVENT_verdict)
		finish(c, json_object_get(event, "result"));
	else if (event)
		(void)say_data(c, event_name[kind],
			       door_text(json_string_value(data), json_string_length(data),
					 json_is_string(json_object_get(event, "encoding"))));
	json_decref(event);
}

/* The verdict comes as an event; an error status here explains why there is none. */
static void on_answer(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? NULL : door_answer_json(m);

	input_close(c);
	if (status != 200)
		piston_socket_error(c, door_answer_message(doc));
	json_decref(doc);
}

/* Cancels the run if a signal came before the program started. */
static void end_early(struct client *c)
{
	const struct session *s = session_of(c);

	if (s->signal && s->is_asked && c->req->tag)
		front_send(c->front, &(struct record){ .type = RECORD_CANCEL, .tag = c->req->tag });
}

static void run(struct client *c, json_t *languages)
{
	struct session *s = session_of(c);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD files = FD_NONE, input = s->input;
	struct buf *fields;

	s->input = FD_NONE;
	if (piston_choose(&s->job, languages, &err) < 0) {
		piston_socket_error(c, err.msg);
		return;
	}
	(void)json_object_del(s->job.doc, "stdin"); /* input comes by messages */
	fields = door_fields(c);
	if (piston_put(&s->job, fields, &files, &err) < 0) {
		piston_socket_error(c, err.msg);
		return;
	}
	message_put_number(fields, FIELD_stream, 1);
	message_put_number(fields, FIELD_no_capture, 1);
	c->req->call->on_event = on_event;
	if (say(c, json_pack("{s:s, s:s, s:s}", "type", "runtime", "language", s->job.language, "version",
			     s->job.version)) &&
	    (!s->job.compiles || say_stage(c, "compile"))) {
		s->is_asked = true;
		door_ask(c, ROUTE_execute, files, input, on_answer);
		if (c->state == CLIENT_SOCKET)
			end_early(c);
	}
}

/* ---- messages of the client ----------------------------------------------------------------------------------- */

static void take_init(struct client *c, json_t *doc)
{
	struct session *s = session_of(c);
	struct brig_error err = BRIG_ERROR_INIT;

	if (s->is_begun) {
		websocket_close(c, CLOSE_TWICE, "Already Initialized");
		return;
	}
	s->is_begun = true;
	websocket_opened(c);
	if (piston_read(&s->job, json_incref(doc), &err) < 0)
		piston_socket_error(c, err.msg);
	else if (input_open(c, &s->input) < 0)
		piston_socket_error(c, "no room for the program's input");
	else
		door_with_languages(c, true, run);
}

static void take_data(struct client *c, const json_t *doc)
{
	const char *stream = json_string_value(json_object_get(doc, "stream"));
	const json_t *data = json_object_get(doc, "data");

	if (!session_of(c)->is_begun)
		websocket_close(c, CLOSE_EARLY, "Not yet initialized");
	else if (!stream || !str_eq(stream, "stdin"))
		websocket_close(c, CLOSE_STREAM, "Can only write to stdin");
	else if (!json_is_string(data))
		piston_socket_error(c, "data must be a string");
	else if (!input_write(c, json_string_value(data), json_string_length(data)))
		piston_socket_error(c, "the program does not read what it is sent");
}

/* True for signals whose default action does not terminate the process. */
static bool is_ignored(int number)
{
	static const int rows[] = { SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH };
	size_t i = 0;

	while (i < ARRAY_LEN(rows) && rows[i] != number)
		i++;
	return i < ARRAY_LEN(rows);
}

/* Number of "SIGTERM"; 0: there is no such signal. */
static int signal_of(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} others[] = { { "SIGIOT", SIGABRT }, { "SIGIO", SIGIO }, { "SIGPOLL", SIGPOLL } };

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_eq(others[i].name, name))
			return others[i].number;
	for (int n = 1; n < SIGRTMIN && strncmp(name, "SIG", 3) == 0; n++)
		if (sigabbrev_np(n) && str_eq(sigabbrev_np(n), name + 3))
			return n;
	return 0;
}

static void take_signal(struct client *c, const json_t *doc)
{
	const char *name = json_string_value(json_object_get(doc, "signal"));
	struct session *s = session_of(c);
	int number = name ? signal_of(name) : 0;

	if (!s->is_begun) {
		websocket_close(c, CLOSE_EARLY, "Not yet initialized");
	} else if (number == 0) {
		websocket_close(c, CLOSE_SIGNAL, "Invalid signal");
	} else if (s->is_running && c->req->tag) {
		front_send(c->front,
			   &(struct record){ .type = RECORD_SIGNAL, .tag = c->req->tag, .status = (uint16_t)number });
	} else if (!s->is_running && !is_ignored(number) && s->signal == 0) {
		s->signal = number;
		end_early(c);
	}
}

static void on_message(struct client *c, const char *text, size_t len, bool is_text UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = door_parse(text, len, &err);
	const char *type = json_string_value(json_object_get(doc, "type"));

	if (!doc)
		piston_socket_error(c, err.msg);
	else if (type && str_eq(type, "init"))
		take_init(c, doc);
	else if (type && str_eq(type, "data"))
		take_data(c, doc);
	else if (type && str_eq(type, "signal"))
		take_signal(c, doc);
	json_decref(doc);
}

static void on_late(struct client *c)
{
	websocket_close(c, CLOSE_LATE, "Initialization Timeout");
}

static void session_free(void *p)
{
	struct session *s = p;

	fd_closep(&s->input);
	piston_job_free(s);
}

static void begin(struct client *c)
{
	static const struct websocket_use use = { .on_message = on_message, .on_late = on_late };
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		door_error(c, 503, "there is no memory");
		return;
	}
	s->input = FD_NONE;
	c->req->call->state = s;
	c->req->call->release = session_free;
	(void)websocket_accept(c, &use);
}

/* Authenticates first, so that a bad key is refused before the handshake. */
void piston_connect(struct client *c)
{
	door_when_let_in(c, begin);
}
