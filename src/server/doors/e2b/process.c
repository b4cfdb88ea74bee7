/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - process.Process: commands and terminals in a sandbox
 *
 * A command is a process of the session that outlives the stream that started it: a client that closes the stream
 * leaves the process running, and a client that connects later gets its output from then on. Output with no listener is
 * dropped; the exit status is kept for a while. The timeout of a Start request applies to the process: the runner kills
 * it then.
 *
 *	Start, Connect -> the runner's events -> start, data ..., end -> end of the stream
 *
 * A process is identified by its pid in the cell, or by the tag that its Start request gave it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "server/doors/e2b/connect.h"
#include "server/doors/e2b/filesystem.h"
#include "server/doors/e2b/sudo.h"

#define OUTPUT_CODE  123 /* exit code of a process that exceeded the output limit */
#define MEMORY_CODE  137
#define TERMINAL_MAX 65535
#define ROWS         24
#define COLUMNS      80

/* ---- its stream ------------------------------------------------------------------------------------------------ */

struct command {
	bool has_begun, is_pty;
	json_t *verdict; /* the last event; NULL: not yet received */
};

static void command_free(void *state)
{
	struct command *p = state;

	json_decref(p->verdict);
	free(p);
}

static bool put_event(struct client *c, const char *name, json_t *value)
{
	return connect_put(c, json_pack("{s:{s:o}}", "event", name, value));
}

static void begin(struct client *c, struct command *p, const json_t *event)
{
	p->has_begun = true;
	p->is_pty = json_is_true(json_object_get(event, "pty"));
	(void)put_event(c, "start", json_pack("{s:I}", "pid", json_integer_value(json_object_get(event, "pid"))));
}

/* E2B's clients expect base64; the runner sends text as it is and other bytes as base64. */
static void put_output(struct client *c, const char *stream, const json_t *event)
{
	const json_t *data = json_object_get(event, "data");
	size_t len = json_string_length(data);
	AUTO_FREE char *coded = NULL;
	json_t *text;

	if (!json_is_string(data))
		return;
	if (json_object_get(event, "encoding")) {
		text = json_incref(json_object_get(event, "data"));
	} else {
		coded = malloc(base64_len(len) + 1);
		if (coded)
			base64_put(coded, json_string_value(data), len);
		text = coded ? json_stringn_nocheck(coded, base64_len(len)) : NULL;
	}
	(void)put_event(c, "data", json_pack("{s:o}", stream, text));
}

static void on_event(struct client *c, enum event_kind kind, const char *text, size_t len)
{
	struct command *p = c->req->call->state;
	json_t *event;

	if (kind != EVENT_started && kind != EVENT_stdout && kind != EVENT_stderr && kind != EVENT_verdict)
		return;
	event = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	if (kind == EVENT_verdict) {
		json_decref(p->verdict);
		p->verdict = json_incref(event);
	} else if (kind == EVENT_started && !p->has_begun) {
		begin(c, p, event);
	} else if (p->has_begun && kind != EVENT_started) {
		put_output(c, p->is_pty ? "pty" : kind == EVENT_stderr ? "stderr" : "stdout", event);
	}
	json_decref(event);
}

static void on_quiet(struct client *c)
{
	const struct command *p = c->req->call->state;

	if (p->has_begun)
		(void)put_event(c, "keepalive", json_object());
}

/* ---- its end --------------------------------------------------------------------------------------------------- */

/* Converts "SIGKILL" to the original's wording, "signal: killed". */
static void signal_text(const char *name, char *dst, size_t size)
{
	const char *text = NULL;

	for (int i = 1; i < SIGRTMIN && !text; i++)
		if (sigabbrev_np(i) && str_eq(sigabbrev_np(i), name + (strncmp(name, "SIG", 3) == 0 ? 3 : 0)))
			text = sigdescr_np(i);
	(void)snprintf(dst, size, "signal: %s", text ? text : name);
	for (char *at = dst; *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
}

static void put_end(struct client *c, int code, bool has_exited, const char *status)
{
	json_t *end = json_pack("{s:i, s:b, s:s}", "exitCode", code, "exited", has_exited, "status", status);

	if (code != 0)
		(void)json_object_set_new(end, "error", json_string(status));
	if (put_event(c, "end", end))
		connect_end(c);
}

static void put_exit(struct client *c, int code)
{
	char status[48];

	(void)snprintf(status, sizeof(status), "exit status %d", code);
	put_end(c, code, true, status);
}

/* Adds a line of brig's to the output of the process. */
static bool put_note(struct client *c, const char *text)
{
	json_t *event = json_pack("{s:s+}", "data", "brig: ", text);

	put_output(c, "stderr", event);
	json_decref(event);
	return c->state != CLIENT_DEAD;
}

static void end_begun(struct client *c, const char *verdict, const json_t *result)
{
	const char *reason = connect_text(result, "reason"), *signal = connect_text(result, "signal");
	const json_t *code = json_object_get(result, "exit_code");
	char text[80];

	/* The sandbox ended.  That breaks connections in the original, too, and the client then checks its health. */
	if (str_eq(verdict, "cancelled"))
		client_close(c, true);
	else if (str_eq(verdict, "timeout") || str_eq(verdict, "cpu_limit"))
		connect_fail(c, CONNECT_deadline_exceeded, "%s", *reason ? reason : "the command's time was over");
	else if (str_eq(verdict, "violated") || str_eq(verdict, "failed"))
		connect_fail(c, CONNECT_internal, "%s", *reason ? reason : "the command could not be run");
	else if (str_eq(verdict, "output_limit") || str_eq(verdict, "memory_limit")) {
		if (put_note(c, *reason ? reason : verdict))
			put_exit(c, str_eq(verdict, "output_limit") ? OUTPUT_CODE : MEMORY_CODE);
	} else if (*signal) {
		signal_text(signal, text, sizeof(text));
		put_end(c, -1, false, text);
	} else {
		put_exit(c, json_is_integer(code) ? (int)json_integer_value(code) : 1);
	}
}

static void end_unborn(struct client *c, const char *verdict, const json_t *result)
{
	const char *reason = connect_text(result, "reason");
	uint64_t error = connect_number(result, "start_error");
	AUTO_BUF why = BUF_INIT(4 * KiB);

	if (str_eq(verdict, "blocked") || str_eq(verdict, "refused")) {
		door_findings_text(result, &why);
		connect_fail(c, CONNECT_permission_denied, "%s", buf_str(&why));
	} else if (json_is_true(json_object_get(result, "bad_cwd"))) {
		connect_fail(c, CONNECT_invalid_argument, "the folder to run in does not exist, or is none");
	} else if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE) {
		connect_fail(c, CONNECT_resource_exhausted, "the sandbox runs as many processes as it may");
	} else if (str_eq(verdict, "failed")) {
		connect_fail(c, CONNECT_internal, "%s", reason);
	} else {
		connect_fail(c, CONNECT_invalid_argument, "error starting process: %s", reason);
	}
}

static void on_end(struct client *c, unsigned status, const struct message *m)
{
	const struct command *p = c->req->call->state;
	const char *verdict = connect_text(p->verdict, "verdict");
	const json_t *result = json_object_get(p->verdict, "result");

	if (status != 200 || !p->verdict)
		connect_refuse(c, status, m);
	else if (p->has_begun)
		end_begun(c, verdict, result);
	else
		end_unborn(c, verdict, result);
}

/* ---- Start and Connect ----------------------------------------------------------------------------------------- */

/* Prepares the request for a stream of events; false: it was answered. */
static bool listen_to(struct client *c)
{
	struct door_call *call = c->req->call;

	call->state = calloc(1, sizeof(struct command));
	if (!call->state) {
		connect_fail(c, CONNECT_unavailable, "there is no memory for the stream");
		return false;
	}
	call->release = command_free;
	call->on_event = on_event;
	call->on_quiet = on_quiet;
	return true;
}

static bool put_variables(struct client *c, struct buf *fields, json_t *envs)
{
	const char *name;
	json_t *value;

	e2b_put_variables(c, fields, envs);
	json_object_foreach(envs, name, value)
	{
		AUTO_BUF text = BUF_INIT(BRIG_STRING_MAX);

		if (!json_is_string(value) || !*name || strchr(name, '=')) {
			connect_fail(c, CONNECT_invalid_argument, "envs has a variable that is none");
			return false;
		}
		(void)buf_addf(&text, "%s=%s", name, json_string_value(value));
		message_put_text(fields, FIELD_variable, buf_str(&text));
	}
	return true;
}

static bool is_shell(const char *cmd)
{
	const char *slash = strrchr(cmd, '/'), *base = slash ? slash + 1 : cmd;

	return str_eq(base, "bash") || str_eq(base, "sh");
}

/* is_line: text is a line for the shell. */
static void put_argument(struct buf *fields, const char *text, bool is_line)
{
	AUTO_BUF line = BUF_INIT(BRIG_STRING_MAX);

	if (is_line)
		e2b_without_sudo(text, &line);
	message_put_text(fields, FIELD_arg, is_line && !line.full && !line.no_memory ? buf_str(&line) : text);
}

static bool put_arguments(struct client *c, struct buf *fields, const json_t *process)
{
	const char *cmd = connect_text(process, "cmd");
	bool is_line = false;
	const json_t *arg;
	size_t i;

	if (!*cmd) {
		connect_fail(c, CONNECT_invalid_argument, "process.cmd is missing");
		return false;
	}
	message_put_text(fields, FIELD_arg, cmd);
	json_array_foreach(json_object_get(process, "args"), i, arg)
	{
		const char *text = json_string_value(arg);

		if (!text || strlen(text) != json_string_length(arg) || strlen(text) >= BRIG_STRING_MAX) {
			connect_fail(c, CONNECT_invalid_argument, "argument %zu is no text, or too long", i + 1);
			return false;
		}
		put_argument(fields, text, is_line);
		is_line = is_shell(cmd) && (str_eq(text, "-c") || str_eq(text, "-lc"));
	}
	return true;
}

/* A terminal always has an input; any other process has one unless the request says stdin: false. */
static void put_input(struct buf *fields, const json_t *request)
{
	const json_t *size = json_object_get(json_object_get(request, "pty"), "size");
	bool is_pty = json_is_object(json_object_get(request, "pty"));
	uint64_t rows = connect_number(size, "rows"), columns = connect_number(size, "cols");

	if (is_pty) {
		message_put_number(fields, FIELD_pty, 1);
		message_put_number(fields, FIELD_rows, rows ? min_u64(rows, TERMINAL_MAX) : ROWS);
		message_put_number(fields, FIELD_columns, columns ? min_u64(columns, TERMINAL_MAX) : COLUMNS);
	}
	if (is_pty || !json_is_false(json_object_get(request, "stdin")))
		message_put_number(fields, FIELD_interactive, 1);
}

static bool put_folder(struct client *c, struct buf *fields, const json_t *process)
{
	char path[E2B_PATH_MAX + 1];

	if (!filesystem_path(connect_text(process, "cwd"), path)) {
		connect_fail(c, CONNECT_invalid_argument, "cwd is no path of this user");
		return false;
	}
	message_put_text(fields, FIELD_cwd, path);
	return true;
}

static void ask_start(struct client *c, const json_t *request)
{
	const json_t *process = json_object_get(request, "process");
	const char *tag = connect_text(request, "tag"), *time = door_line(c, "Connect-Timeout-Ms");
	struct buf *fields = door_fields(c);
	uint64_t ms = 0;

	if (!put_arguments(c, fields, process) || !put_variables(c, fields, json_object_get(process, "envs")) ||
	    !put_folder(c, fields, process) || !listen_to(c))
		return;
	put_input(fields, request);
	if (*tag && strlen(tag) <= message_max_bytes(FIELD_label))
		message_put_text(fields, FIELD_label, tag);
	if (time && str_to_u64(time, &ms) && ms > 0)
		message_put_number(fields, FIELD_timeout_ms, ms);
	message_put_number(fields, FIELD_stream, 1);
	message_put_number(fields, FIELD_detached, 1);
	message_put_number(fields, FIELD_no_capture, 1);
	door_ask(c, ROUTE_process_start, FD_NONE, FD_NONE, on_end);
}

/* Adds the process that the request names; false: the request was refused. */
static bool put_process(struct client *c, struct buf *fields, const json_t *request)
{
	const json_t *process = json_object_get(request, "process");
	const char *tag = connect_text(process, "tag");
	uint64_t pid = connect_number(process, "pid");

	if (pid > 0)
		message_put_number(fields, FIELD_pid, pid);
	else if (*tag && strlen(tag) <= message_max_bytes(FIELD_label))
		message_put_text(fields, FIELD_label, tag);
	else
		connect_fail(c, CONNECT_invalid_argument, "process needs a pid or a tag");
	return pid > 0 || *tag;
}

static void ask_connect(struct client *c, const json_t *request)
{
	struct buf *fields = door_fields(c);

	if (!put_process(c, fields, request) || !listen_to(c))
		return;
	message_put_number(fields, FIELD_stream, 1);
	message_put_number(fields, FIELD_live, 1);
	door_ask(c, ROUTE_process_events, FD_NONE, FD_NONE, on_end);
}

/* ---- unary calls ----------------------------------------------------------------------------------------------- */

static void on_done(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200)
		connect_reply(c, json_object());
	else
		connect_refuse(c, status, m);
}

static json_t *listed(const struct client *c, json_t *row)
{
	json_t *args = json_object_get(row, "args"), *list = json_deep_copy(args), *config, *process;
	char path[E2B_PATH_MAX + 1];

	(void)json_array_remove(list, 0);
	e2b_hide_variables(c, json_object_get(row, "env"));
	e2b_shown_path(connect_text(row, "cwd"), path);
	config = json_pack("{s:O, s:o, s:O?, s:s}", "cmd", json_array_get(args, 0), "args", list, "envs",
			   json_object_get(row, "env"), "cwd", path);
	process = json_pack("{s:o, s:I}", "config", config, "pid", json_integer_value(json_object_get(row, "pid")));
	if (json_object_get(row, "label"))
		(void)json_object_set(process, "tag", json_object_get(row, "label"));
	return process;
}

static void on_list(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc, *list, *row;
	size_t i;

	if (status != 200) {
		connect_refuse(c, status, m);
		return;
	}
	doc = door_answer_json(m);
	list = json_array();
	json_array_foreach(json_object_get(doc, "processes"), i,
			   row) if (str_eq(connect_text(row, "state"), "running") && json_object_get(row, "pid"))(void)
		json_array_append_new(list, listed(c, row));
	json_decref(doc);
	connect_reply(c, json_pack("{s:o}", "processes", list));
}

static void ask_list(struct client *c, const json_t *request UNUSED)
{
	(void)door_fields(c);
	door_ask(c, ROUTE_processes, FD_NONE, FD_NONE, on_list);
}

/* A process without an input is not an invalid argument. */
static void on_input(struct client *c, unsigned status, const struct message *m)
{
	if (message_number(m, FIELD_error_number, 0) == EPIPE)
		connect_fail(c, CONNECT_internal, "stdin is not enabled, or closed");
	else
		on_done(c, status, m);
}

static bool put_data(struct client *c, struct buf *fields, const json_t *input)
{
	const char *kind = json_object_get(input, "pty") ? "pty" : "stdin";
	size_t len = 0;
	AUTO_FREE char *bytes = connect_bytes(input, kind, &len);

	if (!bytes)
		connect_fail(c, CONNECT_invalid_argument, "input.%s must be base64", kind);
	else
		message_put_bytes(fields, FIELD_input, bytes, len);
	return bytes != NULL;
}

static void ask_input(struct client *c, const json_t *request)
{
	struct buf *fields = door_fields(c);

	if (put_process(c, fields, request) && put_data(c, fields, json_object_get(request, "input")))
		door_ask(c, ROUTE_process_input, FD_NONE, FD_NONE, on_input);
}

static void ask_close(struct client *c, const json_t *request)
{
	struct buf *fields = door_fields(c);

	if (!put_process(c, fields, request))
		return;
	message_put_number(fields, FIELD_close, 1);
	door_ask(c, ROUTE_process_input, FD_NONE, FD_NONE, on_input);
}

static void ask_signal(struct client *c, const json_t *request)
{
	const char *name = connect_text(request, "signal");
	uint64_t n = str_eq(name, "SIGNAL_SIGKILL")   ? SIGKILL
		     : str_eq(name, "SIGNAL_SIGTERM") ? SIGTERM
						      : connect_number(request, "signal");
	struct buf *fields = door_fields(c);

	if (n != SIGKILL && n != SIGTERM) {
		connect_fail(c, CONNECT_unimplemented, "signal must be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
		return;
	}
	if (!put_process(c, fields, request))
		return;
	message_put_number(fields, FIELD_signal, n);
	door_ask(c, ROUTE_process_signal, FD_NONE, FD_NONE, on_done);
}

static void ask_update(struct client *c, const json_t *request)
{
	const json_t *size = json_object_get(json_object_get(request, "pty"), "size");
	uint64_t rows = connect_number(size, "rows"), columns = connect_number(size, "cols");
	struct buf *fields = door_fields(c);

	if (rows == 0 || rows > TERMINAL_MAX || columns == 0 || columns > TERMINAL_MAX) {
		connect_fail(c, CONNECT_invalid_argument, "pty.size needs cols and rows from 1 to %d", TERMINAL_MAX);
		return;
	}
	if (!put_process(c, fields, request))
		return;
	message_put_number(fields, FIELD_rows, rows);
	message_put_number(fields, FIELD_columns, columns);
	door_ask(c, ROUTE_process_resize, FD_NONE, FD_NONE, on_done);
}

/* ---- handlers -------------------------------------------------------------------------------------------------- */

CONNECT_HANDLER(start, ask_start)
CONNECT_HANDLER(connect, ask_connect)
CONNECT_HANDLER(processes, ask_list)
CONNECT_HANDLER(send_input, ask_input)
CONNECT_HANDLER(close_stdin, ask_close)
CONNECT_HANDLER(send_signal, ask_signal)
CONNECT_HANDLER(update, ask_update)

/* The complete stream has arrived, so its input is written at once. */
static void stream_input_found(struct client *c)
{
	json_t *list = connect_check_user(c) ? connect_requests(c) : NULL, *message;
	AUTO_BUF bytes = BUF_INIT(FRONT_BODY_MAX);
	struct buf *fields;
	bool is_good;
	size_t i;

	if (!list)
		return;
	fields = door_fields(c);
	json_array_foreach(list, i, message)
	{
		const json_t *input = json_object_get(json_object_get(message, "data"), "input");
		size_t len = 0;
		AUTO_FREE char *piece = NULL;

		if (input)
			piece = connect_bytes(input, json_object_get(input, "pty") ? "pty" : "stdin", &len);
		(void)buf_add(&bytes, piece, piece ? len : 0);
	}
	is_good = put_process(c, fields, json_object_get(json_array_get(list, 0), "start"));
	json_decref(list);
	if (!is_good)
		return;
	message_put_bytes(fields, FIELD_input, buf_str(&bytes), bytes.len);
	door_ask(c, ROUTE_process_input, FD_NONE, FD_NONE, on_input);
}

void e2b_stream_input(struct client *c)
{
	e2b_with_sandbox(c, E2B_ENVD, stream_input_found);
}
