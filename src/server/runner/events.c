/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - the events of an execution, as in docs/EVENTS.md
 *
 * Each event is sent to the clients that watch and logged for later ones.  The log is bounded: when there are too many
 * samples, every second one is removed; when it is full, further events are omitted and a notice says so.  The result
 * is complete in any case.
 *
 * Output is sent as text if it is valid UTF-8.  It arrives in arbitrary pieces, so an incomplete character at the end
 * of a piece is held back for the next one.  A piece that is not valid UTF-8 is sent in base64 as a whole.
 */
#include <jansson.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "server/runner/answer.h"

static const char cut_notice[] =
	"{\"event\":\"notice\",\"text\":\"there were more events than are kept: the result has the "
	"whole output\"}";

/* ---- the log ------------------------------------------------------------------------------------------ */

static void drop_logged(struct execution *x, size_t i)
{
	x->log_bytes -= x->log[i].len;
	free(x->log[i].text);
}

/* Removes every second sample. */
static void thin_samples(struct execution *x)
{
	size_t kept = 0, seen = 0;

	for (size_t i = 0; i < x->n_logged; i++) {
		if (x->log[i].kind == EVENT_sample && seen++ % 2) {
			drop_logged(x, i);
			x->n_samples--;
		} else {
			x->log[kept++] = x->log[i];
		}
	}
	x->n_logged = kept;
}

static bool make_room(struct execution *x)
{
	size_t room = x->room_logged ? 2 * x->room_logged : 16;
	struct logged *log;

	if (x->n_logged < x->room_logged)
		return true;
	log = reallocarray(x->log, room, sizeof(*log));
	if (!log)
		return false;
	x->log = log;
	x->room_logged = room;
	return true;
}

/* Takes ownership of the text. */
static void log_event(struct execution *x, enum event_kind kind, char *text, size_t len)
{
	if (kind == EVENT_sample && x->n_samples == LOG_SAMPLES_MAX)
		thin_samples(x);
	if (x->log_is_cut || x->log_bytes + len > LOG_BYTES_MAX || !make_room(x)) {
		x->log_is_cut = true;
		free(text);
		return;
	}
	x->log[x->n_logged++] = (struct logged){ kind, text, len };
	x->log_bytes += len;
	x->n_samples += kind == EVENT_sample;
}

void events_release(struct execution *x)
{
	for (size_t i = 0; i < x->n_logged; i++)
		free(x->log[i].text);
	free(x->log);
	x->log = NULL;
	x->n_logged = x->room_logged = x->n_samples = x->log_bytes = 0;
}

/* ---- events ------------------------------------------------------------------------------------------- */

/* Sends the event to watching clients and logs it.  Takes ownership of the text. */
static void spread(struct execution *x, enum event_kind kind, char *text, size_t len)
{
	for (size_t i = 0; i < x->n_listeners; i++)
		if (x->listener[i].kind == WATCHES)
			event_send(x->service, x->listener[i].tag, kind, text, len);
	log_event(x, kind, text, len);
}

bool events_are_heard(const struct execution *x)
{
	bool is_watched = x->delivery != NULL;

	for (size_t i = 0; i < x->n_listeners; i++)
		is_watched |= x->listener[i].kind == WATCHES;
	return is_watched || !x->log_is_cut;
}

/* Takes ownership of the object.  If there is no memory, the event is omitted and the log marked as incomplete. */
void events_put(struct execution *x, enum event_kind kind, json_t *event)
{
	char *text = event && events_are_heard(x) ? json_dumps(event, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	json_decref(event);
	if (!text) {
		x->log_is_cut = true;
		return;
	}
	if (x->delivery)
		worker_event(x, kind, text, len);
	spread(x, kind, text, len);
}

void events_pass_on(struct execution *x, enum event_kind kind, const char *text, size_t len)
{
	char *own = malloc(len + 1);

	if (!own) {
		x->log_is_cut = true;
		return;
	}
	memcpy(own, text, len);
	own[len] = '\0';
	spread(x, kind, own, len);
}

void events_queued(struct execution *x, size_t position)
{
	events_put(x, EVENT_queued,
		   json_pack("{s:s, s:s, s:I}", "event", "queued", "id", x->id, "position", (json_int_t)position));
}

static void on_started(void *user, const struct brig_started *w)
{
	struct execution *x = user;

	(void)str_copy(x->language, sizeof(x->language), w->language);
	(void)str_copy(x->trust, sizeof(x->trust), w->trust);
	events_put(x, EVENT_started,
		   json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "event", "started", "id", w->id, "backend", w->backend,
			     "language", w->language, "trust", w->trust, "version", brig_version()));
}

static void on_finding(void *user, const struct brig_finding *f)
{
	events_put(user, EVENT_finding,
		   json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s%, s:s%, s:s%}", "event", "finding", "rule",
			     f->rule, "severity", f->severity, "line", (json_int_t)f->line, "column",
			     (json_int_t)f->column, "end_line", (json_int_t)f->end_line, "end_column",
			     (json_int_t)f->end_column, "name", f->name, str_utf8_prefix(f->name, strlen(f->name)),
			     "message", f->message, str_utf8_prefix(f->message, strlen(f->message)), "remedy",
			     f->remedy, str_utf8_prefix(f->remedy, strlen(f->remedy))));
}

static void on_notice(void *user, const char *text)
{
	events_put(user, EVENT_notice,
		   json_pack("{s:s, s:s%}", "event", "notice", "text", text, str_utf8_prefix(text, strlen(text))));
}

static void on_sample(void *user, const struct brig_sample *s)
{
	events_put(user, EVENT_sample,
		   json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "event", "sample", "at_ms", (json_int_t)s->at_ms,
			     "cpu_ms", (json_int_t)s->cpu_ms, "memory_bytes", (json_int_t)s->memory_bytes, "pids",
			     (json_int_t)s->pids, "output_bytes", (json_int_t)s->output_bytes));
}

/* ---- output -------------------------------------------------------------------------------------------------- */

/*
 * Each event must fit into a record.  A longer one would be a file in memory, and thousands of these, queued for a slow
 * reader, would exhaust the front's descriptors.
 */
#define TEXT_PIECE  (CHANNEL_INLINE_MAX / 6 - 64)     /* an escaped control character has six bytes */
#define BYTES_PIECE (CHANNEL_INLINE_MAX / 4 * 3 - 96) /* in base64 */

/* Splits text between characters. */
static void put_text(struct execution *x, enum event_kind kind, const char *data, size_t len)
{
	while (len > 0 && events_are_heard(x)) {
		size_t n = len <= TEXT_PIECE ? len : str_utf8_prefix(data, TEXT_PIECE);

		events_put(x, kind,
			   json_pack("{s:s, s:o}", "event", event_name[kind], "data", json_stringn_nocheck(data, n)));
		data += n;
		len -= n;
	}
}

static void put_piece(struct execution *x, enum event_kind kind, const char *data, size_t len)
{
	AUTO_FREE char *text = malloc(base64_len(len) + 1);

	if (text)
		base64_put(text, data, len);
	events_put(x, kind,
		   text ? json_pack("{s:s, s:s%, s:s}", "event", event_name[kind], "data", text, base64_len(len),
				    "encoding", "base64")
			: NULL);
}

static void put_bytes(struct execution *x, enum event_kind kind, const char *data, size_t len)
{
	for (size_t at = 0; at < len && events_are_heard(x); at += BYTES_PIECE)
		put_piece(x, kind, data + at, min_u64(len - at, BYTES_PIECE));
}

void events_output(struct execution *x, enum brig_stream stream, const void *data, size_t len)
{
	struct cut_character *cut = &x->cut[stream == BRIG_STDERR];
	enum event_kind kind = stream == BRIG_STDERR ? EVENT_stderr : EVENT_stdout;
	AUTO_BUF piece = BUF_INIT(len + sizeof(cut->bytes));
	size_t good;

	buf_add(&piece, cut->bytes, cut->len);
	buf_add(&piece, data, len);
	if (piece.no_memory) {
		x->log_is_cut = true;
		return;
	}
	cut->len = 0;
	good = str_utf8_prefix(buf_str(&piece), piece.len);
	if (good == piece.len || str_utf8_is_cut(piece.data + good, piece.len - good)) {
		put_text(x, kind, piece.data, good);
		cut->len = piece.len - good;
		memcpy(cut->bytes, piece.data + good, cut->len);
	} else {
		put_bytes(x, kind, piece.data, piece.len);
	}
}

static void on_output(void *user, enum brig_stream stream, const void *data, size_t len)
{
	events_output(user, stream, data, len);
}

void events_attach(struct execution *x, struct brig_request *req)
{
	req->user = x;
	req->on_output = on_output;
	req->on_sample = on_sample;
	req->on_notice = on_notice;
	req->on_started = on_started;
	req->on_finding = on_finding;
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

/* The result is the library's document, embedded verbatim. */
static bool verdict_text(const struct execution *x, struct buf *out)
{
	buf_addf(out, "{\"event\":\"verdict\",\"id\":\"%s\",\"verdict\":\"%s\",\"result\":", x->id, x->verdict);
	buf_adds(out, x->result ? x->result : "null");
	buf_adds(out, "}");
	return !out->full && !out->no_memory;
}

static void send_verdict(const struct execution *x, uint32_t tag, const struct buf *text)
{
	event_send(x->service, tag, EVENT_verdict, text->data, text->len);
	answer_send(x->service, tag,
		    &(struct answer){ .status = 200,
				      .who = x->owner,
				      .execution = x->id,
				      .verdict = x->verdict,
				      .unlisted = x->unlisted });
}

static void flush_cut(struct execution *x)
{
	for (size_t i = 0; i < ARRAY_LEN(x->cut); i++)
		if (x->cut[i].len > 0) {
			put_bytes(x, i ? EVENT_stderr : EVENT_stdout, x->cut[i].bytes, x->cut[i].len);
			x->cut[i].len = 0;
		}
}

/* If the verdict with its result exceeds a message or memory, it is sent without. */
static void make_verdict(const struct execution *x, struct buf *out)
{
	if (verdict_text(x, out))
		return;
	buf_release(out);
	*out = (struct buf)BUF_INIT(KiB);
	buf_addf(out, "{\"event\":\"verdict\",\"id\":\"%s\",\"verdict\":\"%s\",\"result\":null}", x->id, x->verdict);
}

void events_finish(struct execution *x)
{
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);
	bool is_watched = false;

	flush_cut(x);
	for (size_t i = 0; i < x->n_listeners; i++)
		is_watched |= x->listener[i].kind == WATCHES;
	if (is_watched)
		make_verdict(x, &text);
	for (size_t i = 0; i < x->n_listeners; i++) {
		if (x->listener[i].kind == WATCHES)
			send_verdict(x, x->listener[i].tag, &text);
		else
			execution_answer_result(x->service, x, x->listener[i].tag);
	}
	x->n_listeners = 0;
}

void events_replay_end(const struct execution *x, uint32_t tag)
{
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);

	make_verdict(x, &text);
	send_verdict(x, tag, &text);
}

void events_replay(const struct execution *x, uint32_t tag)
{
	for (size_t i = 0; i < x->n_logged; i++)
		event_send(x->service, tag, x->log[i].kind, x->log[i].text, x->log[i].len);
	if (x->log_is_cut)
		event_send(x->service, tag, EVENT_notice, cut_notice, sizeof(cut_notice) - 1);
	if (x->state == EXECUTION_FINISHED)
		events_replay_end(x, tag);
}
