/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - what an entry says of a run, made by one process and validated by the one that writes it
 *
 * The reader goes by events.def: the same members in the same order, each with a value as entry.c writes them.  So the
 * process that made the body can state anything about its run, and nothing else: it cannot end the line, add a member,
 * or name another entry's number, time or hash.
 */
#include <string.h>

#include "audit/internal.h"
#include "base/str.h"

#define DEPTH_MAX 3

int audit_body(const struct record *rec, struct buf *out, struct brig_error *err)
{
	AUTO_FREE char *text = malloc(AUDIT_BODY_MAX);
	struct line l = { .text = text, .size = AUDIT_BODY_MAX };

	if (!text)
		return err_nomem(err);
	line_record(&l, rec);
	if (l.full)
		return err_set(err, BRIG_E_INTERNAL, 0, "an audit entry would have more than %d bytes",
			       AUDIT_ENTRY_MAX);
	return buf_add(out, text, l.len) == l.len ? 0 : err_nomem(err);
}

struct body {
	const char *at, *end;
};

static bool take(struct body *b, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(b->end - b->at) < len || memcmp(b->at, word, len) != 0)
		return false;
	b->at += len;
	return true;
}

/* Behind the backslash: what is quoted, control characters, and the sign for what was no text. */
static bool take_escape(struct body *b)
{
	if (take(b, "\"") || take(b, "\\") || take(b, "ufffd") || take(b, "u007f"))
		return true;
	if ((!take(b, "u000") && !take(b, "u001")) || b->at == b->end || !*b->at || !strchr("0123456789abcdef", *b->at))
		return false;
	b->at++;
	return true;
}

static bool take_string(struct body *b)
{
	if (!take(b, "\""))
		return false;
	while (b->at < b->end && *b->at != '"') {
		if ((unsigned char)*b->at < 0x20)
			return false;
		if (*b->at++ == '\\' && !take_escape(b))
			return false;
	}
	return take(b, "\"");
}

static bool take_number(struct body *b)
{
	const char *start = b->at;

	if (take(b, "0"))
		return true;
	while (b->at < b->end && *b->at >= '0' && *b->at <= '9')
		b->at++;
	return b->at > start && b->at - start <= 20;
}

static bool take_value(struct body *b, int depth);

static bool take_list(struct body *b, const char *close, bool named, int depth)
{
	if (take(b, close))
		return true;
	do
		if ((named && (!take_string(b) || !take(b, ":"))) || !take_value(b, depth + 1))
			return false;
	while (take(b, ","));
	return take(b, close);
}

static bool take_value(struct body *b, int depth)
{
	if (depth > DEPTH_MAX || b->at == b->end)
		return false;
	if (*b->at == '"')
		return take_string(b);
	if (take(b, "["))
		return take_list(b, "]", false, depth);
	if (take(b, "{"))
		return take_list(b, "}", true, depth);
	return take(b, "null") || take_number(b);
}

const char *audit_body_fault(const char *body, size_t len, const char *id)
{
	static const char *const names[] = {
#define FIELD(name, how, value, meaning) ",\"" #name "\":",
#include "audit/events.def"
	};
	struct body b = { .at = body, .end = body + len };

	if (len > AUDIT_BODY_MAX)
		return "it is longer than any entry";
	if (!str_is_utf8(body, len))
		return "it is no text";
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!take(&b, names[i]))
			return "it has not the members that an entry of a run has, in their order";
		if (i == 0 ? !(take(&b, "\"") && take(&b, id) && take(&b, "\"")) : !take_value(&b, 0))
			return i == 0 ? "it is about another run" : "one of its values is none";
	}
	return b.at == b.end ? NULL : "it has more members than an entry of a run";
}
