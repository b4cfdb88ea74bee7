/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jupyter.c - SandboxFusion's /run_jupyter: cells of a notebook
 *
 *	check -> create a session -> put each file -> run each cell in the default Python context ->
 *	fetch the wanted files -> end the session -> answer
 *
 * After any failure, the session is ended before the answer is sent. If the client disconnects, the session ends by its
 * timeout, which is little more than the notebook's. If a cell raises an exception, the response says so and the next
 * cell runs, as in the original.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/sealed.h"
#include "base/str.h"
#include "server/doors/fusion/fusion.h"

#define TOTAL_USUAL 45.0 /* seconds */
#define TOTAL_MAX   3600.0
#define MARGIN_MS   30000 /* for files and for starting the session */
#define CELLS_MAX   1024
#define FETCH_MAX   256
#define BYTES_MAX   (64 * MiB) /* of all output */
#define PLACE       "/workspace/"

struct notebook {
	json_t *doc, *cells, *files;        /* the request; the files that were fetched */
	void *file;                         /* iterator over the request's files: the next one to put; NULL: none */
	size_t cell, fetch;                 /* the next ones */
	uint64_t began_ns, total_ms, bytes; /* bytes: output so far */
	char session[65];
	bool is_late;
	char trouble[512]; /* a failure of the service; "": none */
};

static void notebook_free(void *p)
{
	struct notebook *n = p;

	json_decref(n->doc);
	json_decref(n->cells);
	json_decref(n->files);
	free(n);
}

static struct notebook *notebook_of(struct client *c)
{
	return c->req->call->state;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

static void answer(struct client *c)
{
	struct notebook *n = notebook_of(c);
	bool is_trouble = n->trouble[0] != '\0';
	double seconds = (double)(c->front->now_ns - n->began_ns) / (double)NS_PER_SEC;

	door_reply(c, 200,
		   json_pack("{s:s, s:s%, s:o, s:O, s:n, s:O}", "status",
			     is_trouble   ? "SandboxError"
			     : n->is_late ? "Failed"
					  : "Success",
			     "message", n->trouble, str_utf8_prefix(n->trouble, strlen(n->trouble)), "driver",
			     is_trouble ? json_null()
					: fusion_stage(n->is_late, seconds, 0, json_string(""), json_string("")),
			     "cells", n->cells, "executor_pod_name", "files", n->files));
}

static void on_ended(struct client *c, unsigned status UNUSED, const struct message *m UNUSED)
{
	answer(c);
}

static void end_session(struct client *c)
{
	message_put_text(door_fields(c), FIELD_id, notebook_of(c)->session);
	door_ask(c, ROUTE_session_delete, FD_NONE, FD_NONE, on_ended);
}

/* Reports a failure of the service. */
static void fail(struct client *c, const char *why)
{
	struct notebook *n = notebook_of(c);

	(void)snprintf(n->trouble, sizeof(n->trouble), "%s", why);
	end_session(c);
}

static void fail_with(struct client *c, const struct message *m)
{
	json_t *doc = door_answer_json(m);

	fail(c, door_answer_message(doc));
	json_decref(doc);
}

/* ---- wanted files ---------------------------------------------------------------------------------------------- */

static const char *below(const char *path)
{
	return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

/* The path in the session; false: it is empty or too long. */
static bool place_of(const char *path, char dst[1100])
{
	if (path[0] == '/')
		return snprintf(dst, 1100, "%s", path) < 1100;
	path = below(path);
	return *path && snprintf(dst, 1100, PLACE "%s", path) < 1100;
}

/* Counts the bytes of a runner answer; false: too many. */
static bool has_room(struct notebook *n, const struct message *m)
{
	size_t len = 0;

	(void)message_bytes(m, FIELD_body, &len);
	n->bytes += len;
	return n->bytes <= BYTES_MAX;
}

static void fetch_next(struct client *c);

/* Files that do not exist or are not regular files are left out. */
static void on_fetched(struct client *c, unsigned status, const struct message *m)
{
	struct notebook *n = notebook_of(c);
	const json_t *name = json_array_get(json_object_get(n->doc, "fetch_files"), n->fetch);
	size_t len = 0;
	const char *bytes = status == 200 ? message_bytes(m, FIELD_body, &len) : NULL;
	AUTO_FREE char *coded = bytes ? malloc(base64_len(len) + 1) : NULL;

	if (!has_room(n, m)) {
		fail(c, "the files that are wanted have too many bytes");
		return;
	}
	if (coded) {
		base64_put(coded, bytes, len);
		(void)json_object_set_new(n->files, json_string_value(name), json_stringn(coded, base64_len(len)));
	}
	n->fetch++;
	fetch_next(c);
}

static void fetch_next(struct client *c)
{
	struct notebook *n = notebook_of(c);
	const json_t *list = json_object_get(n->doc, "fetch_files");
	char place[1100];
	struct buf *fields;

	while (n->fetch < min_u64(json_array_size(list), FETCH_MAX) &&
	       !place_of(json_string_value(json_array_get(list, n->fetch)), place))
		n->fetch++;
	if (n->fetch >= json_array_size(list) || n->fetch >= FETCH_MAX) {
		end_session(c);
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_id, n->session);
	message_put_text(fields, FIELD_path, place);
	door_ask(c, ROUTE_session_file, FD_NONE, FD_NONE, on_fetched);
}

/* ---- cells ----------------------------------------------------------------------------------------------------- */

static json_t *display_of(const json_t *forms)
{
	/* no "json": notebooks show a dictionary as text only */
	static const char *const names[][2] = {
		{ "text", "text/plain" },   { "html", "text/html" },      { "markdown", "text/markdown" },
		{ "svg", "image/svg+xml" }, { "png", "image/png" },       { "jpeg", "image/jpeg" },
		{ "latex", "text/latex" },  { "pdf", "application/pdf" }, { "javascript", "application/javascript" },
	};
	const char *rest = json_string_value(json_object_get(forms, "extra")); /* keyed by media type already */
	json_t *bundle = rest ? json_loads(rest, 0, NULL) : NULL;

	if (!json_is_object(bundle)) {
		json_decref(bundle);
		bundle = json_object();
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *value = json_object_get(forms, names[i][0]);

		if (value)
			(void)json_object_set(bundle, names[i][1], value);
	}
	return bundle;
}

static json_t *lines_of(const char *text)
{
	json_t *lines = json_array();

	while (*text) {
		size_t len = strcspn(text, "\n");

		(void)json_array_append_new(lines, json_stringn(text, len));
		text += len + (text[len] == '\n');
	}
	return lines;
}

static json_t *error_of(const char *name, const char *value, const char *traceback)
{
	return json_pack("{s:s, s:s%, s:o}", "ename", name, "evalue", value, str_utf8_prefix(value, strlen(value)),
			 "traceback", lines_of(traceback));
}

/* What ended a cell other than its own exception; NULL: nothing. */
static json_t *ending_of(const json_t *result)
{
	static const struct {
		const char *verdict, *name;
	} rows[] = {
		{ "timeout", "TimeoutError" },
		{ "cpu_limit", "TimeoutError" },
		{ "crash", "DeadKernelError" },
		{ "memory_limit", "DeadKernelError" },
		{ "output_limit", "OutputLimitExceeded" },
	};
	const char *verdict = fusion_text(result, "verdict"), *reason = fusion_text(result, "reason");
	AUTO_BUF text = BUF_INIT(64 * KiB);

	if (str_eq(verdict, "blocked")) {
		door_findings_text(result, &text);
		return error_of("BlockedByPolicy", reason, buf_str(&text));
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].verdict, verdict))
			return error_of(rows[i].name, reason, reason);
	return NULL;
}

static void add_cell(struct notebook *n, const json_t *result)
{
	json_t *display = json_array(), *errors = json_array(), *forms, *ending = ending_of(result);
	const json_t *error = json_object_get(result, "error");
	size_t i;

	json_array_foreach(json_object_get(result, "results"), i, forms)(void)
		json_array_append_new(display, display_of(forms));
	if (ending)
		(void)json_array_append_new(errors, ending);
	else if (json_is_object(error))
		(void)json_array_append_new(errors, error_of(fusion_text(error, "name"), fusion_text(error, "value"),
							     fusion_text(error, "traceback")));
	(void)json_array_append_new(
		n->cells, json_pack("{s:o, s:o, s:o, s:o}", "stdout", fusion_output(result, "stdout"), "stderr",
				    fusion_output(result, "stderr"), "display", display, "error", errors));
}

static void run_next(struct client *c);

static void end_late(struct client *c)
{
	notebook_of(c)->is_late = true;
	end_session(c);
}

static void on_ran(struct client *c, unsigned status, const struct message *m)
{
	struct notebook *n = notebook_of(c);
	json_t *result = status == 200 ? door_answer_json(m) : NULL;
	const char *verdict = fusion_text(result, "verdict");
	bool is_trouble = str_eq(verdict, "refused") || str_eq(verdict, "failed") || str_eq(verdict, "violated") ||
			  str_eq(verdict, "cancelled");

	if (!result) {
		fail_with(c, m);
		return;
	}
	if (is_trouble) {
		fail(c, fusion_text(result, "reason"));
	} else if (!has_room(n, m)) {
		fail(c, "the cells wrote and showed too many bytes");
	} else {
		add_cell(n, result);
		n->cell++;
		/*
		 * A cell that timed out after using all remaining time has used up the notebook's time, even if it is
		 * the last cell.
		 */
		if (str_eq(verdict, "timeout") && c->front->now_ns - n->began_ns >= n->total_ms * NS_PER_MS)
			end_late(c);
		else
			run_next(c);
	}
	json_decref(result);
}

/* Milliseconds left for the next cell; 0: the notebook's time is used up. */
static uint64_t time_left(struct client *c)
{
	const struct notebook *n = notebook_of(c);
	double own = json_number_value(json_object_get(n->doc, "cell_timeout"));
	uint64_t gone = (c->front->now_ns - n->began_ns) / NS_PER_MS;
	uint64_t left = n->total_ms - min_u64(n->total_ms, gone);

	return own > 0 && own < TOTAL_MAX ? min_u64(left, max_u64((uint64_t)(own * 1000), 1)) : left;
}

static void run_next(struct client *c)
{
	struct notebook *n = notebook_of(c);
	const json_t *cells = json_object_get(n->doc, "cells"), *code = json_array_get(cells, n->cell);
	uint64_t left = time_left(c);
	struct buf *fields;

	if (n->cell == json_array_size(cells)) {
		fetch_next(c);
		return;
	}
	if (left == 0) {
		end_late(c);
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_id, n->session);
	message_put_text(fields, FIELD_language, "python");
	message_put_bytes(fields, FIELD_code, json_string_value(code), json_string_length(code));
	message_put_number(fields, FIELD_timeout_ms, left);
	message_put_text(fields, FIELD_variable,
			 "BRIG_SHOW=repr"); /* show values as a notebook does (kernels/python.py) */
	door_ask(c, ROUTE_session_run, FD_NONE, FD_NONE, on_ran);
}

/* ---- input files ----------------------------------------------------------------------------------------------- */

static void put_next(struct client *c);

static void on_put(struct client *c, unsigned status, const struct message *m)
{
	struct notebook *n = notebook_of(c);

	if (status >= 300) {
		fail_with(c, m);
		return;
	}
	n->file = json_object_iter_next(json_object_get(n->doc, "files"), n->file);
	put_next(c);
}

/* Skips files whose content is null. */
static void *skip_nothing(json_t *files, void *at)
{
	while (at && !json_is_string(json_object_iter_value(at)))
		at = json_object_iter_next(files, at);
	return at;
}

static void put_next(struct client *c)
{
	struct notebook *n = notebook_of(c);
	const json_t *content;
	AUTO_FREE char *bytes = NULL;
	AUTO_FD fd = FD_NONE;
	char place[1100];
	struct buf *fields;
	ssize_t len;

	n->file = skip_nothing(json_object_get(n->doc, "files"), n->file);
	if (!n->file) {
		run_next(c);
		return;
	}
	content = json_object_iter_value(n->file);
	len = fusion_bytes(content, &bytes);
	fd = len >= 0 ? sealed_make("file", bytes, (size_t)len) : FD_NONE;
	if (fd < 0 || !place_of(json_object_iter_key(n->file), place)) {
		fail(c, "a file has no name, is no base64 or too long");
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_id, n->session);
	message_put_text(fields, FIELD_path, place);
	door_ask(c, ROUTE_session_file_put, fd, FD_NONE, on_put);
}

/* ---- the session ----------------------------------------------------------------------------------------------- */

static void on_made(struct client *c, unsigned status, const struct message *m)
{
	struct notebook *n = notebook_of(c);
	json_t *doc = door_answer_json(m);
	const char *id = json_string_value(json_object_get(doc, "id"));

	n->began_ns = c->front->now_ns;
	if (status == 201 && id && str_copy(n->session, sizeof(n->session), id)) {
		n->file = json_object_iter(json_object_get(n->doc, "files"));
		put_next(c);
	} else if (status == 422 || status == 403 || status == 500 || status == 201) {
		(void)snprintf(n->trouble, sizeof(n->trouble), "%s", door_answer_message(doc));
		answer(c);
	} else {
		fusion_error(c, status, door_answer_message(doc));
	}
	json_decref(doc);
}

static void begin(struct client *c, struct notebook *n)
{
	const json_t *total = json_object_get(n->doc, "total_timeout");
	double seconds = json_is_number(total) ? json_number_value(total) : TOTAL_USUAL;
	struct buf *fields = door_fields(c);

	if (!isfinite(seconds) || seconds > TOTAL_MAX)
		seconds = TOTAL_MAX;
	n->total_ms = seconds > 0.01 ? (uint64_t)(seconds * 1000) : 10;
	fusion_put_limits(fields, NULL, (double)n->total_ms / 1000, json_object_get(n->doc, "memory_limit_MB"));
	message_put_number(fields, FIELD_timeout_ms, n->total_ms + MARGIN_MS);
	door_ask(c, ROUTE_session_make, FD_NONE, FD_NONE, on_made);
}

/* False: the request was answered. */
static bool check(struct client *c, json_t *doc)
{
	static const struct fusion_member members[] = {
		{ "cells", true, fusion_is_list, "list_type", "Input should be a valid list" },
		{ "cell_timeout", false, fusion_is_number, "float_type", "Input should be a valid number" },
		{ "total_timeout", false, fusion_is_number, "float_type", "Input should be a valid number" },
		{ "memory_limit_MB", false, fusion_is_whole, "int_type", "Input should be a valid integer" },
		{ "kernel", false, fusion_is_text, "literal_error", "Input should be 'python3'" },
		{ "files", false, fusion_is_files, "dict_type", "Input should be a valid dictionary" },
		{ "fetch_files", false, fusion_is_list, "list_type", "Input should be a valid list" },
	};
	json_t *kernel, *cells;

	if (!fusion_check(c, doc, members, ARRAY_LEN(members)))
		return false;
	kernel = json_object_get(doc, "kernel");
	cells = json_object_get(doc, "cells");
	if (kernel && !str_eq(json_string_value(kernel), "python3")) {
		fusion_refuse(c, "literal_error", "kernel", "Input should be 'python3'", json_incref(kernel));
		return false;
	}
	if (json_array_size(cells) > CELLS_MAX) {
		fusion_refuse(c, "too_long", "cells", "List should have at most 1024 items", json_null());
		return false;
	}
	return true;
}

void fusion_jupyter(struct client *c)
{
	struct notebook *n = calloc(1, sizeof(*n));
	struct brig_error err = BRIG_ERROR_INIT;

	if (!n) {
		fusion_error(c, 503, "there is no memory");
		return;
	}
	c->req->call->state = n;
	c->req->call->release = notebook_free;
	n->cells = json_array();
	n->files = json_object();
	n->doc = door_json(c, &err);
	if (!n->doc)
		fusion_refuse_body(c, err.msg);
	else if (check(c, n->doc))
		begin(c, n);
}
