/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/answer.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"

static const struct {
	uint16_t status;
	const char *code;
} error_codes[] = {
	{ 400, "bad_request" },       { 401, "unauthorized" }, { 403, "forbidden" },   { 404, "not_found" },
	{ 409, "conflict" },          { 410, "ended" },        { 413, "too_large" },   { 422, "unusable" },
	{ 429, "too_many_requests" }, { 500, "internal" },     { 502, "bad_gateway" }, { 503, "unavailable" },
};

static const char *code_of(uint16_t status)
{
	for (size_t i = 0; i < ARRAY_LEN(error_codes); i++)
		if (error_codes[i].status == status)
			return error_codes[i].code;
	return "error";
}

/* ---- records ----------------------------------------------------------------------------------------- */

static void channel_put(struct service *s, const struct record *r)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (forwarded_is_tag(r->tag)) {
		forwarded_send(s, r);
		return;
	}
	if (!s->channel || s->channel_is_bad || channel_send(s->channel, r, &err) == 0)
		return;
	service_cut_front(s, &err);
}

void event_send(struct service *s, uint32_t tag, enum event_kind kind, const char *text, size_t len)
{
	channel_put(s, &(struct record){
			       .tag = tag, .type = RECORD_EVENT, .status = (uint16_t)kind, .data = text, .len = len });
}

void answer_pass_on(struct service *s, uint32_t tag, const struct record *r)
{
	channel_put(s,
		    &(struct record){
			    .tag = tag, .type = RECORD_ANSWER, .status = r->status, .data = r->data, .len = r->len });
}

static bool put_fields(struct buf *m, const struct answer *a)
{
	if (a->retry_after)
		message_put_number(m, FIELD_retry_after, a->retry_after);
	if (a->error > 0)
		message_put_number(m, FIELD_error_number, (uint64_t)a->error);
	if (a->changed)
		message_put_number(m, FIELD_changed, a->changed);
	message_put_text(m, FIELD_content_type, a->content_type);
	message_put_text(m, FIELD_location, a->location);
	message_put_text(m, FIELD_unlisted, a->unlisted);
	message_put_text(m, FIELD_who, a->who);
	message_put_text(m, FIELD_execution, a->execution);
	message_put_text(m, FIELD_verdict, a->verdict);
	if (a->body)
		message_put_bytes(m, FIELD_body, a->body, a->len);
	return !m->full && !m->no_memory;
}

void answer_send(struct service *s, uint32_t tag, const struct answer *a)
{
	static const char sorry[] =
		"{\"error\":{\"code\":\"internal\",\"message\":\"the answer has more bytes than can be "
		"sent, or than there is memory for\",\"request_id\":\"-\"}}";
	AUTO_BUF m = BUF_INIT(MESSAGE_MAX);
	struct record r = { .tag = tag, .type = RECORD_ANSWER, .status = a->status };

	if (!put_fields(&m, a)) {
		buf_release(&m);
		m = (struct buf)BUF_INIT(4 * KiB);
		message_put_bytes(&m, FIELD_body, sorry, sizeof(sorry) - 1);
		r.status = 500;
	}
	r.data = m.data;
	r.len = m.no_memory ? 0 : m.len;
	if (a->fd && r.status == a->status)
		r.fds[r.n_fds++] = *a->fd;
	channel_put(s, &r);
}

int answer_begin_file(const char *content_type, const char *who, uint64_t changed, uint64_t len, uint64_t *ret_before)
{
	AUTO_FD fd = memfd_create("brig-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	AUTO_BUF m = BUF_INIT(4 * KiB);
	int rc;

	if (fd < 0)
		return -errno;
	message_put_text(&m, FIELD_content_type, content_type);
	message_put_text(&m, FIELD_who, who);
	if (changed)
		message_put_number(&m, FIELD_changed, changed);
	message_put_head(&m, FIELD_body, len);
	if (m.full || m.no_memory)
		return -ENOMEM;
	rc = fd_write_all(fd, m.data, m.len);
	*ret_before = m.len;
	return rc < 0 ? rc : fd_move(&fd);
}

/* Sends the contents of the file to the front on another node. */
static void forward_file(struct service *s, const struct record *r, int file)
{
	void *bytes = mmap(NULL, r->len, PROT_READ, MAP_SHARED, file, 0);
	struct record whole = *r;

	if (bytes == MAP_FAILED) {
		answer_send(s, r->tag, &(struct answer){ .status = 500 });
		return;
	}
	whole.data = bytes;
	channel_put(s, &whole);
	(void)munmap(bytes, r->len);
}

void answer_send_file(struct service *s, uint32_t tag, uint16_t status, int file, uint64_t len)
{
	const struct record r = { .tag = tag, .type = RECORD_ANSWER, .status = status, .len = len };
	struct brig_error err = BRIG_ERROR_INIT;

	if (sealed_close(file) < 0) {
		answer_send(s, tag, &(struct answer){ .status = 500 });
		return;
	}
	if (forwarded_is_tag(tag)) {
		forward_file(s, &r, file);
		return;
	}
	if (s->channel && !s->channel_is_bad && channel_send_file(s->channel, &r, file, &err) < 0)
		service_cut_front(s, &err);
}

/* ---- documents ------------------------------------------------------------------------------------------ */

static const char *who_asks(const struct request *req)
{
	return req->token ? req->token->name : NULL;
}

/* Properties of an answer with a body. */
struct how {
	uint16_t status;
	uint32_t retry_after;
	int error;
};

static void send_text(struct service *s, const struct request *req, const struct how *how, const char *text)
{
	answer_send(s, req->tag,
		    &(struct answer){ .status = text ? how->status : 500,
				      .who = who_asks(req),
				      .retry_after = how->retry_after,
				      .error = how->error,
				      .body = text,
				      .len = text ? strlen(text) : 0 });
}

void answer_json(struct service *s, const struct request *req, uint16_t status, json_t *doc)
{
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	send_text(s, req, &(struct how){ .status = status }, text);
}

void answer_document(struct service *s, const struct request *req, char *text)
{
	send_text(s, req, &(struct how){ .status = 200 }, text);
	brig_free(text);
}

static void send_error(struct service *s, const struct request *req, const struct how *how, const char *message)
{
	size_t len = str_utf8_prefix(message, strlen(message));
	json_t *doc = json_pack("{s:{s:s, s:s%, s:s}}", "error", "code", code_of(how->status), "message", message, len,
				"request_id", req->request_id);
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	send_text(s, req, how, text);
}

void answer_error(struct service *s, const struct request *req, uint16_t status, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	send_error(s, req, &(struct how){ .status = status }, message);
}

void answer_retry(struct service *s, const struct request *req, uint16_t status, uint32_t retry_after, const char *fmt,
		  ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	send_error(s, req, &(struct how){ .status = status, .retry_after = retry_after }, message);
}

void answer_errno(struct service *s, const struct request *req, uint16_t status, int error, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	send_error(s, req, &(struct how){ .status = status, .error = error }, message);
}

void answer_trouble(struct service *s, const struct request *req, const struct brig_error *err)
{
	static const uint16_t status[] = {
		[BRIG_E_USAGE] = 422,  [BRIG_E_POLICY] = 500, [BRIG_E_REFUSED] = 403,
		[BRIG_E_SYSTEM] = 500, [BRIG_E_NOMEM] = 503,  [BRIG_E_INTERNAL] = 500,
	};
	uint16_t with = err->code > 0 && (size_t)err->code < ARRAY_LEN(status) ? status[err->code] : 500;

	send_error(s, req, &(struct how){ .status = with, .retry_after = with == 503 ? 1 : 0, .error = err->sys },
		   err->msg);
}
