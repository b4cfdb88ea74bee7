/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the body of a forwarded request ends.  Behind it nothing is passed on: a server that keeps the connection
 * open in spite of us must not find a second request there, with a Host that nobody has looked at.
 */
#include "egress/request.h"

#define SIZE_DIGITS_MAX 15

struct body body_of(const struct request *req)
{
	return (struct body){ .kind = req->body,
			      .left = req->body == BODY_LENGTH ? req->length : 0,
			      .done = req->body == BODY_NONE };
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* No extensions, no spaces. */
static void take_size(struct body *b, char c)
{
	int digit = hex_value(c);

	if (digit >= 0 && b->digits < SIZE_DIGITS_MAX) {
		b->left = b->left << 4 | (unsigned)digit;
		b->digits++;
	} else if (c == '\r' && b->digits > 0) {
		b->state = CHUNK_SIZE_LF;
	} else {
		b->bad = true;
	}
}

/* One byte that is not data. */
static void take_framing(struct body *b, char c)
{
	static const struct {
		char wanted;
		enum chunk_state next;
	} steps[] = {
		[CHUNK_DATA_CR] = { '\r', CHUNK_DATA_LF },
		[CHUNK_DATA_LF] = { '\n', CHUNK_SIZE },
		/* Trailers would be headers that nobody has looked at. */
		[CHUNK_LAST_CR] = { '\r', CHUNK_LAST_LF },
		[CHUNK_LAST_LF] = { '\n', CHUNK_LAST_LF },
	};

	if (b->state == CHUNK_SIZE) {
		take_size(b, c);
		return;
	}
	if (b->state == CHUNK_SIZE_LF) {
		b->bad = c != '\n';
		b->last = b->left == 0;
		b->state = b->last ? CHUNK_LAST_CR : CHUNK_DATA;
		b->digits = 0;
		return;
	}
	b->bad = c != steps[b->state].wanted;
	b->done = !b->bad && b->state == CHUNK_LAST_LF;
	b->state = steps[b->state].next;
}

static size_t take_data(struct body *b, size_t len)
{
	size_t n = (size_t)min_u64(b->left, len);

	b->left -= n;
	return n;
}

size_t body_take(struct body *b, const char *bytes, size_t len)
{
	size_t used = 0;

	if (b->kind == BODY_LENGTH) {
		used = take_data(b, len);
		b->done = b->left == 0;
		return used;
	}
	while (used < len && !b->done && !b->bad) {
		if (b->state != CHUNK_DATA) {
			take_framing(b, bytes[used++]);
			continue;
		}
		used += take_data(b, len - used);
		if (b->left == 0)
			b->state = CHUNK_DATA_CR;
	}
	return used;
}
