/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the body of a request ends, and what of its bytes is data.  A chunk is
 *
 *	1*15 hexadecimal digits *(; name [= value]) CR LF data CR LF
 *
 * the last has size 0 and is followed by trailers, if any, and an empty line.  Each byte that is not data is one step
 * of the machine below.  Extensions and trailers have no meaning here; their syntax is checked and they are dropped.
 */
#include "net/http1_internal.h"

#define SIZE_DIGITS_MAX 15

void http1_body_begin(struct http1_body_reader *r, const struct http1_head *h)
{
	*r = (struct http1_body_reader){ .kind = h->body,
					 .left = h->body == HTTP1_BODY_LENGTH      ? h->length
						 : h->body == HTTP1_BODY_UNTIL_END ? UINT64_MAX /* which never comes */
										   : 0,
					 .done = h->body == HTTP1_BODY_NONE };
}

static void fail(struct http1_body_reader *r, enum http1_trouble trouble)
{
	r->bad = true;
	r->trouble = trouble;
	r->status = http1_trouble_info[trouble].status;
	r->why = http1_trouble_info[trouble].text;
}

/* A byte of a line that is dropped; false: it cannot be part of it. */
static bool take_extra(struct http1_body_reader *r, bool sound, enum http1_trouble otherwise)
{
	if (!sound)
		fail(r, otherwise);
	else if (r->extra++ >= HTTP1_EXTRA_MAX)
		fail(r, HTTP1_extra_too_long);
	return !r->bad;
}

static void take_size(struct http1_body_reader *r, char c)
{
	int digit = http1_hex_value(c);

	if (digit >= 0 && r->digits < SIZE_DIGITS_MAX) {
		r->left = r->left << 4 | (unsigned)digit;
		r->digits++;
	} else if (c == '\r' && r->digits > 0) {
		r->state = HTTP1_CHUNK_SIZE_LF;
	} else if (c == ';' && r->digits > 0) {
		if (take_extra(r, !r->plain, HTTP1_chunk_extension))
			r->state = HTTP1_CHUNK_EXTENSION;
	} else {
		fail(r, c == '\n' ? HTTP1_chunk_line : HTTP1_chunk_size);
	}
}

/* Names and values are words. */
static void take_extension(struct http1_body_reader *r, char c)
{
	bool in_name = r->state == HTTP1_CHUNK_EXTENSION_NAME, is_word = http1_is_name_char((unsigned char)c);
	bool begins = r->state == HTTP1_CHUNK_EXTENSION || r->state == HTTP1_CHUNK_EXTENSION_EQUALS;

	if (c == '\r' && !begins) {
		r->state = HTTP1_CHUNK_SIZE_LF;
		return;
	}
	if (!take_extra(r, is_word || (!begins && c == ';') || (in_name && c == '='), HTTP1_chunk_extension))
		return;
	if (c == ';')
		r->state = HTTP1_CHUNK_EXTENSION;
	else if (c == '=')
		r->state = HTTP1_CHUNK_EXTENSION_EQUALS;
	else if (begins)
		r->state = r->state == HTTP1_CHUNK_EXTENSION ? HTTP1_CHUNK_EXTENSION_NAME : HTTP1_CHUNK_EXTENSION_VALUE;
}

static void end_size(struct http1_body_reader *r, char c)
{
	if (c != '\n')
		fail(r, HTTP1_chunk_line);
	r->state = r->left ? HTTP1_CHUNK_DATA : HTTP1_CHUNK_TRAILER;
	r->digits = 0;
}

/* A line of trailers, or the empty line behind them. */
static void take_trailer(struct http1_body_reader *r, char c)
{
	bool begins = r->state == HTTP1_CHUNK_TRAILER;

	if (begins && c == '\r') {
		r->state = HTTP1_CHUNK_LAST_LF;
	} else if (!begins && c == ':') {
		if (take_extra(r, true, HTTP1_trailer))
			r->state = HTTP1_CHUNK_TRAILER_VALUE;
	} else if (take_extra(r, !r->plain && http1_is_name_char((unsigned char)c), HTTP1_trailer)) {
		r->state = HTTP1_CHUNK_TRAILER_NAME;
	}
}

static void take_trailer_value(struct http1_body_reader *r, char c)
{
	if (c == '\r')
		r->state = HTTP1_CHUNK_TRAILER_LF;
	else
		(void)take_extra(r, http1_is_value_char((unsigned char)c), HTTP1_trailer);
}

static void expect_byte(struct http1_body_reader *r, char c, char wanted, enum http1_chunk_state next,
			enum http1_trouble otherwise)
{
	if (c != wanted)
		fail(r, otherwise);
	r->state = next;
}

/* One byte that is not data. */
static void take_framing(struct http1_body_reader *r, char c)
{
	switch (r->state) {
	case HTTP1_CHUNK_SIZE:
		take_size(r, c);
		break;
	case HTTP1_CHUNK_EXTENSION:
	case HTTP1_CHUNK_EXTENSION_NAME:
	case HTTP1_CHUNK_EXTENSION_EQUALS:
	case HTTP1_CHUNK_EXTENSION_VALUE:
		take_extension(r, c);
		break;
	case HTTP1_CHUNK_SIZE_LF:
		end_size(r, c);
		break;
	case HTTP1_CHUNK_DATA: /* taken by take_data() */
	case HTTP1_CHUNK_DATA_CR:
		expect_byte(r, c, '\r', HTTP1_CHUNK_DATA_LF, HTTP1_chunk_end);
		break;
	case HTTP1_CHUNK_DATA_LF:
		expect_byte(r, c, '\n', HTTP1_CHUNK_SIZE, HTTP1_chunk_end);
		break;
	case HTTP1_CHUNK_TRAILER:
	case HTTP1_CHUNK_TRAILER_NAME:
		take_trailer(r, c);
		break;
	case HTTP1_CHUNK_TRAILER_VALUE:
		take_trailer_value(r, c);
		break;
	case HTTP1_CHUNK_TRAILER_LF:
		expect_byte(r, c, '\n', HTTP1_CHUNK_TRAILER, HTTP1_trailer);
		break;
	case HTTP1_CHUNK_LAST_LF:
		expect_byte(r, c, '\n', HTTP1_CHUNK_LAST_LF, HTTP1_trailer);
		r->done = !r->bad;
		break;
	}
}

static bool in_data(const struct http1_body_reader *r)
{
	return r->kind != HTTP1_BODY_CHUNKED || r->state == HTTP1_CHUNK_DATA;
}

static size_t take_data(struct http1_body_reader *r, size_t len)
{
	size_t n = (size_t)min_u64(r->left, len);

	r->left -= n;
	if (r->left == 0 && r->kind == HTTP1_BODY_LENGTH)
		r->done = true;
	else if (r->left == 0)
		r->state = HTTP1_CHUNK_DATA_CR;
	return n;
}

size_t http1_body_take(struct http1_body_reader *r, const char *bytes, size_t len, size_t *ret_data_at,
		       size_t *ret_data_len)
{
	size_t used = 0;

	while (used < len && !r->done && !r->bad && !in_data(r))
		take_framing(r, bytes[used++]);
	*ret_data_at = used;
	*ret_data_len = !r->done && !r->bad && in_data(r) ? take_data(r, len - used) : 0;
	return used + *ret_data_len;
}
