/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query is a header of twelve bytes, one question, and perhaps an additional record (EDNS), which is neither needed nor
 * read.  The question is a name, as labels with their lengths before them, a type and a class.  Names are not compressed:
 * there is nothing before the first one that it could point to.
 *
 * The answer repeats header and question byte for byte, since resolvers compare them (some mix upper and lower case on
 * purpose), and has one address or none.
 */
#include "egress/dns.h"

#include <string.h>

#define HEADER     12
#define LABEL_MAX  63
#define NAME_BYTES 255 /* as it is written: with lengths and the empty label at its end */
#define CLASS_IN   1
#define TTL        60
#define POINTER    0xc0 /* to the name of the question */
#define IS_ANSWER  0x80 /* in the third byte of the header */
#define OPERATION  0x78
#define AUTHORITY  0x04
#define WANTS_MORE 0x01
#define HAS_MORE   0x80 /* in the fourth */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint8_t *put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static bool is_host_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/*
 * The name at *at, with dots between its labels; *at is behind it then.  -1: there is no sound one.  0: no host can have
 * it, for some label holds what would read differently as text.
 */
static int take_name(const uint8_t *bytes, size_t len, size_t *at, char text[NAME_BYTES + 1])
{
	size_t from = *at, used = 0;
	bool plain = true;

	for (;;) {
		size_t label = *at < len ? bytes[*at] : LABEL_MAX + 1;

		if (label > LABEL_MAX || label > len - *at - 1 || *at + 1 + label - from > NAME_BYTES)
			return -1;
		(*at)++;
		if (label == 0)
			break;
		if (used > 0)
			text[used++] = '.';
		for (size_t i = 0; i < label; i++) {
			plain = plain && is_host_byte(bytes[*at]);
			text[used++] = (char)bytes[(*at)++];
		}
	}
	text[used] = '\0';
	return plain && used > 0;
}

static enum dns_code parse_question(const uint8_t *bytes, size_t len, struct dns_query *q)
{
	char text[NAME_BYTES + 1];
	size_t at = HEADER;
	int name = take_name(bytes, len, &at, text);

	if (name < 0 || len - at < 4)
		return DNS_MALFORMED;
	q->type = get16(bytes + at);
	q->end = at + 4;
	q->is_host = name > 0 && host_parse(text, strlen(text), false, &q->host);
	return get16(bytes + at + 2) == CLASS_IN ? DNS_OK : DNS_NOT_DONE;
}

bool dns_parse(const uint8_t *bytes, size_t len, struct dns_query *ret)
{
	*ret = (struct dns_query){ .code = DNS_MALFORMED };
	if (len < HEADER || bytes[2] & IS_ANSWER)
		return false; /* an answer to an answer would loop forever */
	if (bytes[2] & OPERATION)
		ret->code = DNS_NOT_DONE;
	else if (len <= DNS_QUERY_MAX && get16(bytes + 4) == 1 && get16(bytes + 6) == 0 && get16(bytes + 8) == 0)
		ret->code = parse_question(bytes, len, ret);
	return true;
}

size_t dns_answer(const uint8_t *bytes, const struct dns_query *q, enum dns_code code, uint32_t address,
		  uint8_t dst[DNS_ANSWER_MAX])
{
	bool has_address = code == DNS_OK && q->end > 0 && address != 0;
	uint8_t *at = dst;

	at = put16(at, get16(bytes)); /* whose question it was */
	*at++ = (uint8_t)(IS_ANSWER | AUTHORITY | (bytes[2] & (OPERATION | WANTS_MORE)));
	*at++ = (uint8_t)(HAS_MORE | code);
	at = put16(at, q->end > 0);
	at = put16(at, has_address);
	at = put16(put16(at, 0), 0);
	if (q->end > 0) {
		memcpy(at, bytes + HEADER, q->end - HEADER);
		at += q->end - HEADER;
	}
	if (has_address) {
		at = put16(put16(put16(at, POINTER << 8 | HEADER), DNS_A), CLASS_IN);
		at = put16(put16(put16(at, 0), TTL), 4);
		at = put16(put16(at, address >> 16), address & 0xffff);
	}
	return (size_t)(at - dst);
}
