/* SPDX-License-Identifier: Apache-2.0 */
#include "api/members.h"

#include <string.h>

#include "base/str.h"

#define REPLACED "\xef\xbf\xbd" /* U+FFFD */

/* ---- one member ------------------------------------------------------------------------------------- */

int member_complain(struct brig_error *err, const char *name, const char *what)
{
	return err_set(err, BRIG_E_USAGE, 0, "the result's member '%.60s' %s", name, what);
}

static int read_text(const json_t *v, const struct member *m, char *dst, struct brig_error *err)
{
	const char *text;

	if (json_is_null(v) && m->kind == AS_TEXT_OR_NULL) {
		*dst = '\0';
		return 0;
	}
	if (!json_is_string(v))
		return member_complain(err, m->name, "is no text");
	text = json_string_value(v);
	if (json_string_length(v) != strlen(text))
		return member_complain(err, m->name, "has a NUL");
	if (str_copy(dst, m->size, text))
		return 0;
	/* Only invalid UTF-8, replaced by U+FFFD, can make a text longer in the document: then it is cut. */
	if (!strstr(text, REPLACED))
		return member_complain(err, m->name, "is longer than it can be");
	dst[str_utf8_prefix(dst, m->size - 1)] = '\0';
	return 0;
}

/* A number from 0 to max; null means 0 where allowed. */
static int read_number(const json_t *v, const struct member *m, uint64_t max, uint64_t *ret, struct brig_error *err)
{
	bool may_be_null = m->kind == AS_COUNT_OR_NULL || m->kind == AS_U32_OR_NULL;

	*ret = 0;
	if (may_be_null && json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
		return member_complain(err, m->name, "is no number that it can be");
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

/* The index of a word. */
static int read_word(const json_t *v, const struct member *m, int *ret, struct brig_error *err)
{
	const char *text = json_string_value(v);

	for (size_t i = 0; text && i < m->n_words; i++)
		if (str_eq(text, m->words[i])) {
			*ret = (int)i;
			return 0;
		}
	return member_complain(err, m->name, "is none of its words");
}

static int read_millis(const json_t *v, const struct member *m, uint64_t *ret, struct brig_error *err)
{
	double ms = json_is_number(v) ? json_number_value(v) : -1;

	if (!(ms >= 0) || ms > 1e15)
		return member_complain(err, m->name, "is no time");
	*ret = (uint64_t)(ms * 1e3 + 0.5) * 1000;
	return 0;
}

static int read_number_into(const json_t *v, const struct member *m, void *to, struct brig_error *err)
{
	uint64_t max = m->kind == AS_PORT                               ? UINT16_MAX
		       : m->kind == AS_U32 || m->kind == AS_U32_OR_NULL ? UINT32_MAX
									: INT64_MAX;
	uint64_t n;
	int rc = read_number(v, m, max, &n, err);

	if (rc < 0)
		return rc;
	if (m->kind == AS_PORT)
		*(uint16_t *)to = (uint16_t)n;
	else if (m->kind == AS_U32 || m->kind == AS_U32_OR_NULL)
		*(uint32_t *)to = (uint32_t)n;
	else
		*(uint64_t *)to = n;
	return 0;
}

static int read_flag(const json_t *v, const struct member *m, bool *ret, struct brig_error *err)
{
	int word = 0, rc = 0;

	if (m->kind == AS_WORD_FLAG)
		rc = read_word(v, m, &word, err);
	else if (!json_is_boolean(v))
		rc = member_complain(err, m->name, "is neither true nor false");
	if (rc == 0)
		*ret = m->kind == AS_WORD_FLAG ? word == 1 : json_is_true(v);
	return rc;
}

int member_read(const json_t *v, const struct member *m, void *to, struct brig_error *err)
{
	switch (m->kind) {
	case AS_TEXT:
	case AS_TEXT_OR_NULL:
		return read_text(v, m, to, err);
	case AS_FLAG:
	case AS_WORD_FLAG:
		return read_flag(v, m, to, err);
	case AS_WORD:
		return read_word(v, m, to, err);
	case AS_MILLIS:
		return read_millis(v, m, to, err);
	case AS_OTHER:
	case AS_OTHER_MAYBE:
		return 0;
	default:
		return read_number_into(v, m, to, err);
	}
}

int members_read(const json_t *object, const char *name, const struct member *members, size_t n, void *base,
		 struct brig_error *err)
{
	size_t seen = 0;

	if (!json_is_object(object))
		return member_complain(err, name, "is no object");
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_object_get(object, members[i].name);
		int rc;

		seen += v != NULL;
		if (!v && members[i].kind == AS_OTHER_MAYBE)
			continue;
		if (!v)
			return member_complain(err, members[i].name, "is missing");
		rc = member_read(v, &members[i], (char *)base + members[i].at, err);
		if (rc < 0)
			return rc;
	}
	return seen == json_object_size(object) ? 0 : member_complain(err, name, "has members that are not known here");
}
