/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_wait.c - records until the answer
 *
 *	events of the run     go to the request's callbacks, as if it ran here
 *	our standard input    goes to the socket that the service reads, but not before the first event: until then the
 *	request may still have to run here, with all of its input
 *	cancellation          sends RECORD_CANCEL; the answer is still waited for, since a cancelled run has a result
 *	like any other
 *
 * The service may belong to another user, so its records are not trusted.
 */
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/service.h"
#include "server/channel.h"
#include "server/message.h"

#define PIECE_BYTES      (16 * KiB)
#define CANCEL_NS        (60 * NS_PER_SEC) /* timeout for a service that does not answer after RECORD_CANCEL */
#define RECORDS_OF_ROUND 256

struct service_call {
	const struct brig_request *req;          /* NULL: no callbacks */
	const struct service_listener *listener; /* receives events instead */
	struct channel *channel;
	struct service_answer *answer;
	json_t *result;    /* NULL: not received yet */
	int source, input; /* source and destination of the program's input; FD_NONE: ended */
	char piece[PIECE_BYTES];
	size_t piece_at, piece_len;
	uint64_t cancelled_ns; /* 0: not cancelled */
	bool is_over;
};

/* ---- events ------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *event, const char *name)
{
	const char *text = json_string_value(json_object_get(event, name));

	return text ? text : "";
}

static uint64_t count_of(const json_t *event, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(event, name));

	return n > 0 ? (uint64_t)n : 0;
}

static void on_started(const struct brig_request *req, const json_t *event)
{
	const struct brig_started what = { .size = sizeof(what),
					   .id = text_of(event, "id"),
					   .backend = text_of(event, "backend"),
					   .language = text_of(event, "language"),
					   .trust = text_of(event, "trust") };

	if (req->on_started)
		req->on_started(req->user, &what);
}

static void on_finding(const struct brig_request *req, const json_t *event)
{
	const struct brig_finding f = { .size = sizeof(f),
					.rule = text_of(event, "rule"),
					.severity = text_of(event, "severity"),
					.name = text_of(event, "name"),
					.message = text_of(event, "message"),
					.remedy = text_of(event, "remedy"),
					.line = (uint32_t)count_of(event, "line"),
					.column = (uint32_t)count_of(event, "column"),
					.end_line = (uint32_t)count_of(event, "end_line"),
					.end_column = (uint32_t)count_of(event, "end_column") };

	if (req->on_finding)
		req->on_finding(req->user, &f);
}

static void on_sample(const struct brig_request *req, const json_t *event)
{
	const struct brig_sample s = { .size = sizeof(s),
				       .at_ms = count_of(event, "at_ms"),
				       .cpu_ms = count_of(event, "cpu_ms"),
				       .memory_bytes = count_of(event, "memory_bytes"),
				       .pids = count_of(event, "pids"),
				       .output_bytes = count_of(event, "output_bytes") };

	if (req->on_sample)
		req->on_sample(req->user, &s);
}

void service_output(const json_t *event, enum brig_stream stream,
		    void (*on_output)(void *user, enum brig_stream stream, const void *data, size_t len), void *user)
{
	const json_t *data = json_object_get(event, "data");
	const char *text = json_string_value(data);
	size_t len = json_string_length(data);
	AUTO_FREE char *bytes = NULL;
	ssize_t n;

	if (!text)
		return;
	if (!str_eq(text_of(event, "encoding"), "base64")) {
		on_output(user, stream, text, len);
		return;
	}
	bytes = malloc(len + 1);
	n = bytes ? base64_get(bytes, text, len) : -1;
	if (n >= 0)
		on_output(user, stream, bytes, (size_t)n);
}

static void tell(struct service_call *w, enum event_kind kind, const json_t *event)
{
	switch (kind) {
	case EVENT_started:
		on_started(w->req, event);
		return;
	case EVENT_finding:
		on_finding(w->req, event);
		return;
	case EVENT_sample:
		on_sample(w->req, event);
		return;
	case EVENT_stdout:
	case EVENT_stderr:
		if (w->req->on_output)
			service_output(event, kind == EVENT_stdout ? BRIG_STDOUT : BRIG_STDERR, w->req->on_output,
				       w->req->user);
		return;
	case EVENT_notice:
		if (w->req->on_notice)
			w->req->on_notice(w->req->user, text_of(event, "text"));
		return;
	default:
		return;
	}
}

static int take_event(struct service_call *w, const struct record *r, struct brig_error *err)
{
	json_t *event = json_loadb(r->data, r->len, JSON_ALLOW_NUL, NULL);

	if (!event || (!w->req && !w->listener) || r->status >= EVENT_KINDS) {
		json_decref(event);
		return err_set(err, BRIG_E_SYSTEM, 0, "the service tells of something that is no event");
	}
	w->answer->is_accepted = true;
	if (r->status == EVENT_verdict && !w->result)
		w->result = json_incref(json_object_get(event, "result"));
	if (w->listener)
		w->listener->on_event(w->listener->user, (enum event_kind)r->status, event);
	else if (r->status != EVENT_verdict)
		tell(w, (enum event_kind)r->status, event);
	json_decref(event);
	return 0;
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

/* Completes the result with the parts that its document lacks, for the library's reader. */
static int take_result(struct service_call *w, const char *unlisted, struct brig_error *err)
{
	json_t *more = unlisted ? json_loads(unlisted, 0, NULL) : NULL;
	AUTO_FREE char *text = NULL;

	if (more)
		(void)json_object_set_new(w->result, "unlisted", more);
	text = json_dumps(w->result, JSON_COMPACT | JSON_REAL_PRECISION(15));
	if (!text)
		return err_nomem(err);
	w->answer->text = (struct buf)BUF_INIT(strlen(text) + 1);
	buf_adds(&w->answer->text, text);
	return w->answer->text.no_memory ? err_nomem(err) : 0;
}

static int take_answer(struct service_call *w, const struct record *r, struct brig_error *err)
{
	const char *why, *body;
	struct message m;
	size_t len = 0;

	w->is_over = true;
	w->answer->status = r->status;
	if (!message_read(r->data, r->len, &m, &why))
		return err_set(err, BRIG_E_SYSTEM, 0, "the service answers with %s", why);
	w->answer->retry_after = message_number(&m, FIELD_retry_after, 0);
	if (r->status == 200 && (w->req || w->listener)) {
		if (!json_is_object(w->result))
			return err_set(err, BRIG_E_SYSTEM, 0, "the service had no room for the result");
		return take_result(w, message_text(&m, FIELD_unlisted), err);
	}
	body = message_bytes(&m, FIELD_body, &len);
	w->answer->text = (struct buf)BUF_INIT(len + 1);
	if (body)
		buf_add(&w->answer->text, body, len);
	return w->answer->text.no_memory ? err_nomem(err) : 0;
}

static int take_records(struct service_call *w, struct brig_error *err)
{
	struct record r;
	int rc = channel_flush(w->channel, err);

	for (int i = 0; rc == 0 && i < RECORDS_OF_ROUND && !w->is_over; i++) {
		int got = channel_receive(w->channel, &r, err);

		if (got <= 0)
			return got;
		for (size_t k = 0; k < r.n_fds; k++)
			fd_closep(&r.fds[k]);
		if (r.type == RECORD_EVENT)
			rc = take_event(w, &r, err);
		else if (r.type == RECORD_ANSWER)
			rc = take_answer(w, &r, err);
	}
	return rc;
}

/* ---- the program's input ------------------------------------------------------------------------------- */

/* Signals end of file to the program. */
static void end_input(struct service_call *w)
{
	if (w->input >= 0)
		(void)shutdown(w->input, SHUT_WR);
	w->source = w->input = FD_NONE;
}

static void read_piece(struct service_call *w)
{
	ssize_t n = read(w->source, w->piece, sizeof(w->piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_input(w);
		return;
	}
	w->piece_at = 0;
	w->piece_len = (size_t)n;
}

static void write_piece(struct service_call *w)
{
	ssize_t n = send(w->input, w->piece + w->piece_at, w->piece_len - w->piece_at, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) /* the program has closed its input */
		end_input(w);
	else
		w->piece_at += (size_t)n;
}

/* ---- rounds ----------------------------------------------------------------------------------------------- */

enum { SLOT_CHANNEL, SLOT_CANCEL, SLOT_SOURCE, SLOT_INPUT, SLOT_COUNT };

static void fill_slots(const struct service_call *w, struct pollfd slot[SLOT_COUNT])
{
	bool flows = w->answer->is_accepted && w->input >= 0, has_piece = w->piece_at < w->piece_len;

	slot[SLOT_CHANNEL] = (struct pollfd){ .fd = channel_fd(w->channel), .events = channel_events(w->channel) };
	slot[SLOT_CANCEL] =
		(struct pollfd){ .fd = w->req && !w->cancelled_ns ? w->req->cancel_fd : -1, .events = POLLIN };
	slot[SLOT_SOURCE] = (struct pollfd){ .fd = flows && !has_piece ? w->source : -1, .events = POLLIN };
	slot[SLOT_INPUT] = (struct pollfd){ .fd = flows && has_piece ? w->input : -1, .events = POLLOUT };
}

static int cancel(struct service_call *w, struct brig_error *err)
{
	w->cancelled_ns = clock_now_ns();
	return channel_send(w->channel, &(struct record){ .type = RECORD_CANCEL, .tag = 1 }, err);
}

static int go_on(struct service_call *w, struct brig_error *err)
{
	struct pollfd slot[SLOT_COUNT];
	int rc;

	fill_slots(w, slot);
	if (poll(slot, SLOT_COUNT, w->cancelled_ns ? 1000 : -1) < 0 && errno != EINTR)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the service");
	if (w->cancelled_ns && clock_now_ns() - w->cancelled_ns > CANCEL_NS)
		return err_set(err, BRIG_E_SYSTEM, 0, "the service does not cancel the run: see 'brig ps'");
	rc = slot[SLOT_CHANNEL].revents ? take_records(w, err) : 0;
	if (rc == 0 && slot[SLOT_CANCEL].revents)
		rc = cancel(w, err);
	if (slot[SLOT_SOURCE].revents)
		read_piece(w);
	if (slot[SLOT_INPUT].revents)
		write_piece(w);
	return rc;
}

/* ---- calls ------------------------------------------------------------------------------------------------- */

int service_call_new(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		     struct service_call **ret_call, struct brig_error *err)
{
	struct record ask = { .tag = 1,
			      .type = RECORD_ASK,
			      .status = message_protocol(),
			      .data = a->message.data,
			      .len = a->message.len,
			      .n_fds = a->n_fds };
	struct service_call *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return err_nomem(err);
	*w = (struct service_call){
		.req = req, .answer = ret, .source = req ? req->stdin_fd : FD_NONE, .input = a->input
	};
	memcpy(ask.fds, a->fds, a->n_fds * sizeof(ask.fds[0]));
	rc = channel_new(sock, &w->channel, err);
	if (rc == 0)
		rc = channel_send(w->channel, &ask, err);
	if (rc < 0) {
		service_call_free(w);
		return rc;
	}
	*ret_call = w;
	return 0;
}

void service_call_free(struct service_call *w)
{
	if (!w)
		return;
	channel_free(w->channel);
	json_decref(w->result);
	free(w);
}

void service_call_listen(struct service_call *w, const struct service_listener *listener)
{
	w->listener = listener;
}

int service_call_cancel(struct service_call *w, struct brig_error *err)
{
	return w->cancelled_ns ? 0 : cancel(w, err);
}

struct pollfd service_call_waits(const struct service_call *w)
{
	return (struct pollfd){ .fd = channel_fd(w->channel), .events = channel_events(w->channel) };
}

int service_call_step(struct service_call *w, struct brig_error *err)
{
	int rc = take_records(w, err);

	return rc < 0 ? rc : w->is_over ? 0 : 1;
}

int service_wait(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		 struct brig_error *err)
{
	struct service_call *w = NULL;
	int rc = service_call_new(sock, a, req, ret, &w, err);

	if (!w)
		return rc;
	while (rc == 0 && !w->is_over)
		rc = go_on(w, err);
	service_call_free(w);
	return rc;
}
