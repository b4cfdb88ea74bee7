/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each event is one line, written when it happens through the queue of live.c: a slow reader does not keep the run from
 * being monitored.  Output that is UTF-8 becomes text.  Pieces come as read from the pipe, so a character may be split:
 * its beginning is held back for the next piece.  A piece that is not UTF-8 becomes base64 as a whole.
 *
 * A cancelled run has a result like any other, so cancellation does not end the wait for the reader.
 */
#include "cli/events.h"

#include <jansson.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/ui.h"

void events_init(struct events *e)
{
	*e = (struct events){ .rest = { { .len = 0 } } };
	live_init(&e->live, -1, /* raw= */ true, /* watch= */ false);
}

/* Takes the object.  On a terminal all non-ASCII characters are escaped. */
static void put_event(struct events *e, json_t *event)
{
	size_t flags = JSON_COMPACT | (e->live.out.is_terminal ? JSON_ENSURE_ASCII : 0);
	AUTO_FREE char *text = event ? json_dumps(event, flags) : NULL;

	json_decref(event);
	if (!text) {
		e->live.out.error = ENOMEM; /* a missing line must not look as if nothing happened */
		return;
	}
	live_put(&e->live, text, strlen(text));
	live_put(&e->live, "\n", 1);
}

void events_on_started(void *user, const struct brig_started *w)
{
	put_event(user, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "event", "started", "id", w->id, "backend",
				  w->backend, "language", w->language, "trust", w->trust, "version", brig_version()));
}

void events_on_finding(void *user, const struct brig_finding *f)
{
	put_event(user, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s%, s:s%, s:s%}", "event", "finding", "rule",
				  f->rule, "severity", f->severity, "line", (json_int_t)f->line, "column",
				  (json_int_t)f->column, "end_line", (json_int_t)f->end_line, "end_column",
				  (json_int_t)f->end_column, "name", f->name, str_utf8_prefix(f->name, strlen(f->name)),
				  "message", f->message, str_utf8_prefix(f->message, strlen(f->message)), "remedy",
				  f->remedy, str_utf8_prefix(f->remedy, strlen(f->remedy))));
}

void events_on_notice(void *user, const char *text)
{
	put_event(user, json_pack("{s:s, s:s%}", "event", "notice", "text", text, str_utf8_prefix(text, strlen(text))));
}

void events_on_sample(void *user, const struct brig_sample *s)
{
	put_event(user, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "event", "sample", "at_ms", (json_int_t)s->at_ms,
				  "cpu_ms", (json_int_t)s->cpu_ms, "memory_bytes", (json_int_t)s->memory_bytes, "pids",
				  (json_int_t)s->pids, "output_bytes", (json_int_t)s->output_bytes));
}

/* ---- program output ------------------------------------------------------------------------------ */

static const char *stream_name(enum brig_stream stream)
{
	return stream == BRIG_STDOUT ? "stdout" : "stderr";
}

static void put_text(struct events *e, enum brig_stream stream, const char *data, size_t len)
{
	if (len > 0)
		put_event(e, json_pack("{s:s, s:o}", "event", stream_name(stream), "data",
				       json_stringn_nocheck(data, len)));
}

static void put_bytes(struct events *e, enum brig_stream stream, const char *data, size_t len)
{
	AUTO_FREE char *text = malloc(base64_len(len) + 1);

	if (!text) {
		put_event(e, NULL);
		return;
	}
	base64_put(text, data, len);
	put_event(e, json_pack("{s:s, s:s%, s:s}", "event", stream_name(stream), "data", text, base64_len(len),
			       "encoding", "base64"));
}

void events_on_output(void *user, enum brig_stream stream, const void *data, size_t len)
{
	struct events *e = user;
	struct events_rest *rest = &e->rest[stream == BRIG_STDERR];
	AUTO_BUF piece = BUF_INIT(len + sizeof(rest->bytes));
	size_t good;

	buf_add(&piece, rest->bytes, rest->len);
	buf_add(&piece, data, len);
	if (piece.no_memory) {
		put_event(e, NULL);
		return;
	}
	rest->len = 0;
	good = str_utf8_prefix(buf_str(&piece), piece.len);
	if (good == piece.len || str_utf8_is_cut(piece.data + good, piece.len - good)) {
		put_text(e, stream, piece.data, good);
		rest->len = piece.len - good;
		memcpy(rest->bytes, piece.data + good, rest->len);
	} else {
		put_bytes(e, stream, piece.data, piece.len);
	}
}

/* ---- the end ---------------------------------------------------------------------------------------- */

/* The library's document may contain any character that a program has written. */
static void put_result(struct events *e, const char *json)
{
	AUTO_BUF line = BUF_INIT(SIZE_MAX / 2);
	int rc;

	buf_adds(&line, "{\"event\":\"result\",\"result\":");
	buf_adds(&line, json);
	buf_adds(&line, "}\n");
	if (line.no_memory) {
		put_event(e, NULL);
	} else if (e->live.out.is_terminal) {
		rc = ui_put_json(STDOUT_FILENO, &line);
		e->live.out.error = e->live.out.error ? e->live.out.error : -rc;
	} else {
		live_put(&e->live, line.data, line.len);
	}
}

int events_end(struct events *e, const char *json, int status)
{
	const enum brig_stream streams[] = { BRIG_STDOUT, BRIG_STDERR };

	for (size_t i = 0; i < ARRAY_LEN(streams); i++)
		if (e->rest[i].len > 0)
			put_bytes(e, streams[i], e->rest[i].bytes, e->rest[i].len);
	put_result(e, json);
	live_finish(&e->live);
	return ui_written(-e->live.out.error, status);
}
