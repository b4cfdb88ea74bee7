/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - W3C Trace Context
 *
 * traceparent is VERSION-TRACE-PARENT-FLAGS in hexadecimal.  A request that has one becomes a span of that trace, with
 * an id of its own, which appears in the answer, in the log and in the message to the runner.  An invalid header is
 * ignored.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "server/front/front.h"

#define TRACE_AT 3
#define SPAN_AT  36
#define FLAGS_AT 53

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr("0123456789abcdef", text[i]))
			return false;
	return true;
}

static bool is_zero(const char *text, size_t len)
{
	return strspn(text, "0") >= len;
}

/* Later versions may append fields after a dash; the ones before keep their meaning. */
static bool is_sound(const char *text, size_t len)
{
	if (len < TRACE_TEXT_LEN || text[2] != '-' || text[SPAN_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
		return false;
	if (!is_hex(text, 2) || !is_hex(text + TRACE_AT, 32) || !is_hex(text + SPAN_AT, 16) ||
	    !is_hex(text + FLAGS_AT, 2))
		return false;
	if (memcmp(text, "ff", 2) == 0 || is_zero(text + TRACE_AT, 32) || is_zero(text + SPAN_AT, 16))
		return false;
	return len == TRACE_TEXT_LEN || (memcmp(text, "00", 2) != 0 && text[TRACE_TEXT_LEN] == '-');
}

void trace_take(struct request *req, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *line = http1_find(bytes, head, "traceparent");
	const char *text = line ? bytes + line->value.at : NULL;
	unsigned long long span = 0;
	char parent[17];

	if (!line || http1_count(bytes, head, "traceparent") > 1 || !is_sound(text, line->value.len))
		return;
	if (getrandom(&span, sizeof(span), 0) != sizeof(span) || span == 0)
		return;
	(void)snprintf(req->trace, sizeof(req->trace), "00-%.32s-%016llx-%.2s", text + TRACE_AT, span, text + FLAGS_AT);
	message_put_text(&req->fields, FIELD_traceparent, req->trace);
	(void)snprintf(parent, sizeof(parent), "%.16s", text + SPAN_AT);
	message_put_text(&req->fields, FIELD_parent_span, parent);
}

void trace_ids(const struct request *req, char trace[33], char span[17])
{
	(void)snprintf(trace, 33, "%.32s", req->trace + TRACE_AT);
	(void)snprintf(span, 17, "%.16s", req->trace + SPAN_AT);
}
