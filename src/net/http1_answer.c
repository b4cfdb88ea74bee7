/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of answers, for forwarding.  As with requests (http1.c), each byte is checked once as it arrives, and the lines
 * are parsed when the empty one has arrived.  Where the body ends is decided here, once, according to RFC 9112 section
 * 6.3, and an ambiguous answer is rejected: the next parser might choose the other interpretation.
 */
#include <string.h>

#include "net/http1_internal.h"

static const struct http1_field known_fields[] = {
	{ "content-length", HTTP1_length_twice, http1_take_length },
	{ "transfer-encoding", HTTP1_coding_twice, http1_take_coding },
	{ "connection", HTTP1_ok, http1_take_connection },
	{ "content-type", HTTP1_twice, NULL },
	{ "location", HTTP1_twice, NULL },
};

/* "HTTP/1.1 200 OK"; some leave out the reason with its blank. */
static enum http1_trouble read_status_line(const char *bytes, struct http1_text line, struct http1_head *h)
{
	const char *text = bytes + line.at;

	if (line.len < strlen("HTTP/1.1 200") ||
	    (memcmp(text, "HTTP/1.1 ", 9) != 0 && memcmp(text, "HTTP/1.0 ", 9) != 0) ||
	    (line.len > 12 && text[12] != ' '))
		return HTTP1_status_line;
	h->version_1_0 = text[7] == '0';
	for (size_t i = 9; i < 12; i++) {
		if (text[i] < '0' || text[i] > '9')
			return HTTP1_status_line;
		h->code = h->code * 10 + (unsigned)(text[i] - '0');
	}
	return h->code >= 100 && h->code <= 599 ? HTTP1_ok : HTTP1_status_line;
}

static enum http1_trouble judge_together(const char *bytes, struct http1_head *h, const struct http1_framing *f,
					 bool is_of_head)
{
	if (f->length && f->coding)
		return HTTP1_length_and_coding;
	if (f->coding && h->version_1_0)
		return HTTP1_coding_1_0;
	h->keep_alive = http1_persists(bytes, h);
	h->upgrade = !h->version_1_0 && http1_find(bytes, h, "upgrade") &&
		     http1_has_word(bytes, h, "connection", "upgrade", strlen("upgrade"));
	if (is_of_head || h->code < 200 || h->code == 204 || h->code == 304)
		h->body = HTTP1_BODY_NONE;
	else if (!f->length && !f->coding)
		h->body = HTTP1_BODY_UNTIL_END;
	return HTTP1_ok;
}

static enum http1_parse read_head(const char *bytes, bool is_of_head, struct http1_head *h)
{
	struct http1_text rest = { 0, h->used }, line = http1_next_line(bytes, &rest);
	struct http1_framing f = { .length = false };
	enum http1_trouble t = read_status_line(bytes, line, h);

	while (t == HTTP1_ok) {
		struct http1_line field;

		line = http1_next_line(bytes, &rest);
		if (line.len == 0)
			break;
		t = h->n_lines == HTTP1_LINES_MAX ? HTTP1_answer_lines : http1_read_field(bytes, line, &field);
		if (t == HTTP1_ok)
			t = http1_take_field(known_fields, ARRAY_LEN(known_fields), bytes, h, &field, &f);
		if (t == HTTP1_ok)
			h->line[h->n_lines++] = field;
	}
	if (t == HTTP1_ok)
		t = judge_together(bytes, h, &f, is_of_head);
	return t == HTTP1_ok ? HTTP1_DONE : http1_refuse(bytes, line.at, t, h);
}

/* HTTP1_DONE: the empty line has come. */
static enum http1_parse scan(const char *bytes, size_t len, size_t *seen, struct http1_head *h)
{
	static const char begins[] = "HTTP/1.";

	for (size_t i = *seen; i < len && i < HTTP1_HEAD_MAX; i++) {
		enum http1_trouble t = http1_judge_byte(i ? bytes[i - 1] : '\0', bytes[i]);

		*seen = i + 1;
		if (t == HTTP1_ok && i < strlen(begins) && bytes[i] != begins[i])
			t = HTTP1_status_line;
		if (t != HTTP1_ok)
			return http1_refuse(bytes, i, t, h);
		if (bytes[i] == '\n' && i >= 3 && bytes[i - 2] == '\n') {
			h->used = i + 1;
			return HTTP1_DONE;
		}
	}
	return len < HTTP1_HEAD_MAX ? HTTP1_MORE : http1_refuse(bytes, HTTP1_HEAD_MAX, HTTP1_answer_too_long, h);
}

enum http1_parse http1_answer_parse(const char *bytes, size_t len, size_t *seen, bool is_of_head,
				    struct http1_head *ret)
{
	enum http1_parse p;

	*ret = (struct http1_head){ .trouble = HTTP1_ok };
	p = scan(bytes, len, seen, ret);
	if (p == HTTP1_DONE)
		p = read_head(bytes, is_of_head, ret);
	if (p == HTTP1_BAD)
		ret->status = 502; /* whatever it is, the client is not to blame */
	return p;
}
