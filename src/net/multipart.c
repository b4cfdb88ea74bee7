/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of several parts.
 *
 *	--boundary CR LF head CR LF CR LF data  CR LF --boundary CR LF head ...  CR LF --boundary-- [CR LF]
 *
 * The delimiter is CR LF -- boundary; the first one counts as if a CR LF stood before the body.  It has one CR, its
 * first byte, since boundaries have none.  So a partial match that fails is data as a whole, and the search restarts
 * with the current byte: no byte is examined twice, and what is held back between two calls is a prefix of the
 * delimiter, of which only the length is kept.
 */
#include "net/multipart.h"

#include <string.h>

#include "base/str.h"
#include "net/http1_internal.h"

enum trouble {
#define MULTIPART_TROUBLE(name, status, text) TROUBLE_##name,
#include "net/multipart.def"
	TROUBLE_COUNT
};

static const struct {
	unsigned status;
	const char *text;
} troubles[TROUBLE_COUNT] = {
#define MULTIPART_TROUBLE(name, status, text) { status, text },
#include "net/multipart.def"
};

static enum multipart_event refuse(struct multipart *m, enum trouble trouble)
{
	m->state = MULTIPART_BROKEN;
	m->status = troubles[trouble].status;
	m->why = troubles[trouble].text;
	return MULTIPART_BAD;
}

/* Heads of parts are heads of HTTP, and wrong in the same ways. */
static enum multipart_event refuse_http(struct multipart *m, enum http1_trouble trouble)
{
	m->state = MULTIPART_BROKEN;
	m->status = http1_trouble_info[trouble].status;
	m->why = http1_trouble_info[trouble].text;
	return MULTIPART_BAD;
}

/* ---- parameters ----------------------------------------------------------------------------------- */

static void skip(struct http1_text *text, size_t n)
{
	text->at += n;
	text->len -= n;
}

/* To the beginning of the next parameter; false: to something else.  Empty ones are allowed. */
static bool skip_semicolons(const char *bytes, struct http1_text *rest)
{
	bool any = false;

	*rest = http1_trim(bytes, *rest);
	while (rest->len > 0 && bytes[rest->at] == ';') {
		skip(rest, 1);
		*rest = http1_trim(bytes, *rest);
		any = true;
	}
	return any || rest->len == 0;
}

static struct http1_text cut_word(const char *bytes, struct http1_text *rest)
{
	struct http1_text word = { rest->at, 0 };

	while (rest->len > 0 && http1_is_name_char((unsigned char)bytes[rest->at])) {
		word.len++;
		skip(rest, 1);
	}
	return word;
}

/* "value", the marks gone; otherwise: what to say if it is none. */
static enum trouble cut_quoted(const char *bytes, struct http1_text *rest, struct http1_text *ret,
			       enum trouble otherwise)
{
	skip(rest, 1);
	if (!http1_cut(bytes, rest, '"', ret))
		return otherwise;
	/* Browsers end the name here, mail programs do not. */
	return ret->len > 0 && bytes[ret->at + ret->len - 1] == '\\' ? TROUBLE_escape : TROUBLE_ok;
}

/* ; name=value or ; name="value"; an empty name in ret: there is no more. */
static enum trouble next_parameter(const char *bytes, struct http1_text *rest, struct http1_line *ret,
				   enum trouble otherwise)
{
	*ret = (struct http1_line){ .name = { 0, 0 } };
	if (!skip_semicolons(bytes, rest))
		return otherwise;
	if (rest->len == 0)
		return TROUBLE_ok;
	ret->name = cut_word(bytes, rest);
	if (ret->name.len == 0 || rest->len < 2 || bytes[rest->at] != '=')
		return otherwise;
	skip(rest, 1);
	if (bytes[rest->at] == '"')
		return cut_quoted(bytes, rest, &ret->value, otherwise);
	ret->value = cut_word(bytes, rest);
	return ret->value.len > 0 ? TROUBLE_ok : otherwise;
}

/* Where a parameter that may be there once is put. */
struct wanted {
	const char *name;
	struct http1_text value;
	bool is_there;
};

/* word; parameters: what is wanted of them is put there, the others are left alone. */
static enum trouble read_parameters(const char *bytes, struct http1_text rest, struct wanted *wanted, size_t n,
				    enum trouble otherwise)
{
	struct http1_line p;
	enum trouble t = next_parameter(bytes, &rest, &p, otherwise);

	for (; t == TROUBLE_ok && p.name.len > 0; t = next_parameter(bytes, &rest, &p, otherwise))
		for (size_t i = 0; i < n; i++) {
			if (!http1_is(bytes, p.name, wanted[i].name))
				continue;
			if (wanted[i].is_there)
				return otherwise;
			wanted[i].is_there = true;
			wanted[i].value = p.value;
		}
	return t;
}

/* ---- the beginning -------------------------------------------------------------------------------- */

static bool is_boundary(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c != '\0' && strchr("'()+_,-./:=?", c))))
			return false;
	}
	return len > 0 && len <= MULTIPART_BOUNDARY_MAX;
}

static enum trouble read_boundary(struct multipart *m, const char *bytes, size_t len)
{
	struct http1_text rest = { 0, len };
	struct wanted boundary = { .name = "boundary" };
	const char *semicolon = memchr(bytes, ';', len);
	struct http1_text type = { 0, semicolon ? (size_t)(semicolon - bytes) : len };
	enum trouble t;

	skip(&rest, type.len);
	if (!http1_is(bytes, http1_trim(bytes, type), "multipart/form-data"))
		return TROUBLE_media_type;
	t = read_parameters(bytes, rest, &boundary, 1, TROUBLE_parameters);
	if (t != TROUBLE_ok)
		return t;
	if (!is_boundary(bytes + boundary.value.at, boundary.value.len))
		return TROUBLE_boundary;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, bytes + boundary.value.at, boundary.value.len);
	m->delimiter_len = 4 + boundary.value.len;
	return TROUBLE_ok;
}

bool multipart_begin(struct multipart *m, const char *content_type, size_t len)
{
	enum trouble t;

	*m = (struct multipart){ .state = MULTIPART_IN_DATA, .matched = 2 };
	t = read_boundary(m, content_type, len);
	if (t != TROUBLE_ok)
		(void)refuse(m, t);
	return t == TROUBLE_ok;
}

/* ---- the head of a part --------------------------------------------------------------------------- */

struct part_fields {
	struct http1_text disposition, type, encoding;
};

static enum trouble keep_once(struct http1_text value, struct http1_text *ret)
{
	if (ret->at > 0)
		return TROUBLE_twice;
	*ret = value;
	return TROUBLE_ok;
}

/* Those that mean nothing here are allowed (RFC 7578, 4.8). */
static enum trouble keep_field(const char *head, const struct http1_line *line, struct part_fields *f)
{
	if (http1_is(head, line->name, "content-disposition"))
		return keep_once(line->value, &f->disposition);
	if (http1_is(head, line->name, "content-type"))
		return keep_once(line->value, &f->type);
	if (http1_is(head, line->name, "content-transfer-encoding"))
		return keep_once(line->value, &f->encoding);
	return TROUBLE_ok;
}

static bool is_verbatim(const char *head, struct http1_text encoding)
{
	return encoding.at == 0 || http1_is(head, encoding, "binary") || http1_is(head, encoding, "8bit") ||
	       http1_is(head, encoding, "7bit");
}

/* In place: what stands behind it in the head has been read. */
static const char *end_text(struct multipart *m, struct http1_text text)
{
	m->head[text.at + text.len] = '\0';
	return m->head + text.at;
}

static enum trouble read_disposition(struct multipart *m, const struct part_fields *f)
{
	struct wanted w[] = { { .name = "name" }, { .name = "filename" }, { .name = "filename*" } };
	struct http1_text rest = f->disposition, word = cut_word(m->head, &rest);
	enum trouble t;

	if (!http1_is(m->head, word, "form-data"))
		return TROUBLE_disposition;
	t = read_parameters(m->head, rest, w, ARRAY_LEN(w), TROUBLE_disposition);
	if (t != TROUBLE_ok)
		return t;
	if (w[0].value.len == 0 || !str_is_utf8(m->head + w[0].value.at, w[0].value.len))
		return TROUBLE_name;
	if (w[2].is_there || !str_is_utf8(m->head + w[1].value.at, w[1].value.len))
		return TROUBLE_file_name;
	m->name = end_text(m, w[0].value);
	m->file_name = w[1].is_there ? end_text(m, w[1].value) : NULL;
	m->type = f->type.at > 0 ? end_text(m, f->type) : NULL;
	return TROUBLE_ok;
}

static enum multipart_event read_part_head(struct multipart *m)
{
	struct http1_text rest = { 0, m->n_head }, line = http1_next_line(m->head, &rest);
	struct part_fields f = { .type = { 0, 0 } };
	enum trouble t = TROUBLE_ok;

	for (; line.len > 0 && t == TROUBLE_ok; line = http1_next_line(m->head, &rest)) {
		struct http1_line field;
		enum http1_trouble h = http1_read_field(m->head, line, &field);

		if (h != HTTP1_ok)
			return refuse_http(m, h);
		t = keep_field(m->head, &field, &f);
	}
	if (t == TROUBLE_ok && !is_verbatim(m->head, f.encoding))
		t = TROUBLE_encoding;
	if (t == TROUBLE_ok)
		t = read_disposition(m, &f);
	if (t != TROUBLE_ok)
		return refuse(m, t);
	m->n_parts++;
	m->state = MULTIPART_IN_DATA;
	return MULTIPART_PART;
}

static bool head_is_whole(const struct multipart *m)
{
	const char *end = m->head + m->n_head;

	return (m->n_head == 2 || (m->n_head >= 4 && end[-3] == '\n')) && end[-1] == '\n';
}

static enum multipart_event take_head(struct multipart *m, const char *bytes, size_t len, size_t *used)
{
	while (*used < len) {
		char c = bytes[*used], before = m->n_head ? m->head[m->n_head - 1] : '\0';
		enum http1_trouble t = http1_judge_byte(before, c);

		if (t != HTTP1_ok)
			return refuse_http(m, t);
		if (m->n_head == 0 && (c == ' ' || c == '\t'))
			return refuse_http(m, HTTP1_folded);
		if (m->n_head == MULTIPART_HEAD_MAX)
			return refuse(m, TROUBLE_head);
		m->head[m->n_head++] = c;
		++*used;
		if (head_is_whole(m))
			return read_part_head(m);
	}
	return MULTIPART_MORE;
}

/* ---- data and delimiters -------------------------------------------------------------------------- */

/* How many bytes from the first on are data, whatever comes next. */
static size_t plain_length(const struct multipart *m, const char *bytes, size_t len)
{
	const char *end = bytes + len, *from = bytes, *cr;

	while ((cr = memchr(from, '\r', (size_t)(end - from)))) {
		size_t n = (size_t)min_u64((size_t)(end - cr), m->delimiter_len);

		if (memcmp(cr, m->delimiter, n) == 0)
			return (size_t)(cr - bytes);
		from = cr + 1;
	}
	return len;
}

static enum multipart_event end_data(struct multipart *m)
{
	m->matched = 0;
	m->state = MULTIPART_IN_DELIMITER;
	m->n_tail = 0;
	return m->n_parts > 0 ? MULTIPART_PART_END : MULTIPART_MORE;
}

static enum multipart_event take_data(struct multipart *m, const char *bytes, size_t len, size_t *used,
				      const char **ret_data, size_t *ret_data_len)
{
	if (m->matched == 0) {
		*ret_data = bytes + *used;
		*ret_data_len = plain_length(m, bytes + *used, len - *used);
		*used += *ret_data_len;
		if (*ret_data_len > 0)
			return MULTIPART_DATA;
	}
	while (*used < len && m->matched < m->delimiter_len && bytes[*used] == m->delimiter[m->matched]) {
		m->matched++;
		++*used;
	}
	if (m->matched == m->delimiter_len)
		return end_data(m);
	if (*used == len)
		return MULTIPART_MORE;
	if (m->n_parts == 0)
		return refuse(m, TROUBLE_preamble);
	*ret_data = m->delimiter;
	*ret_data_len = m->matched;
	m->matched = 0;
	return MULTIPART_DATA;
}

/* CR LF and the next part, or two hyphens and the end. */
static enum multipart_event take_delimiter(struct multipart *m, const char *bytes, size_t len, size_t *used)
{
	while (*used < len && m->n_tail < 2) {
		char c = bytes[*used];

		if (m->n_tail == 0 ? c != '\r' && c != '-' : c != (m->tail[0] == '\r' ? '\n' : '-'))
			return refuse(m, TROUBLE_delimiter);
		m->tail[m->n_tail++] = c;
		++*used;
	}
	if (m->n_tail < 2)
		return MULTIPART_MORE;
	if (m->tail[0] == '-') {
		m->state = MULTIPART_BEHIND;
		m->n_tail = 0;
		return MULTIPART_DONE;
	}
	if (m->n_parts == MULTIPART_PARTS_MAX)
		return refuse(m, TROUBLE_parts);
	m->state = MULTIPART_IN_HEAD;
	m->n_head = 0;
	return MULTIPART_MORE;
}

static enum multipart_event take_behind(struct multipart *m, const char *bytes, size_t len, size_t *used)
{
	while (*used < len) {
		if (m->n_tail == 2 || bytes[*used] != "\r\n"[m->n_tail])
			return refuse(m, TROUBLE_epilogue);
		m->n_tail++;
		++*used;
	}
	return MULTIPART_MORE;
}

static enum multipart_event take_some(struct multipart *m, const char *bytes, size_t len, size_t *used,
				      const char **ret_data, size_t *ret_data_len)
{
	switch (m->state) {
	case MULTIPART_IN_DATA:
		return take_data(m, bytes, len, used, ret_data, ret_data_len);
	case MULTIPART_IN_DELIMITER:
		return take_delimiter(m, bytes, len, used);
	case MULTIPART_IN_HEAD:
		return take_head(m, bytes, len, used);
	case MULTIPART_BEHIND:
		return take_behind(m, bytes, len, used);
	case MULTIPART_BROKEN:
		break;
	}
	return MULTIPART_BAD;
}

enum multipart_event multipart_take(struct multipart *m, const char *bytes, size_t len, size_t *ret_used,
				    const char **ret_data, size_t *ret_data_len)
{
	enum multipart_event e = m->state == MULTIPART_BROKEN ? MULTIPART_BAD : MULTIPART_MORE;

	*ret_used = 0;
	*ret_data = NULL;
	*ret_data_len = 0;
	while (e == MULTIPART_MORE && *ret_used < len)
		e = take_some(m, bytes, len, ret_used, ret_data, ret_data_len);
	return e;
}

bool multipart_end(struct multipart *m)
{
	if (m->state == MULTIPART_BEHIND && m->n_tail != 1)
		return true;
	if (m->state != MULTIPART_BROKEN)
		(void)refuse(m, TROUBLE_cut);
	return false;
}
