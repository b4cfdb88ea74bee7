/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of requests.
 *
 * Two passes.  The first, scan(), checks each byte once as it arrives, and the request line as soon as it is complete:
 * what cannot be a head is rejected without waiting for the rest.  When the empty line has arrived, the second,
 * read_head(), parses the lines, and judge_together() finally checks the fields against each other.  Whether bytes
 * arrive at once or one by one makes no difference to the outcome, because the first pass depends only on their order
 * and the second sees only complete heads.
 */
#include "net/http1_internal.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "net/host.h"

#define METHOD_MAX        24
#define LENGTH_DIGITS_MAX 18

const struct http1_trouble_info http1_trouble_info[HTTP1_TROUBLE_COUNT] = {
#define HTTP1_TROUBLE(name, status, text) { status, text },
#include "net/http1.def"
};

/* ---- characters ----------------------------------------------------------------------------------- */

bool http1_is_name_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool http1_is_value_char(unsigned char c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int http1_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* ---- places --------------------------------------------------------------------------------------- */

static bool equals(const char *bytes, struct http1_text text, const char *word, size_t len)
{
	return text.len == len && strncasecmp(bytes + text.at, word, len) == 0;
}

bool http1_is(const char *bytes, struct http1_text text, const char *word)
{
	return equals(bytes, text, word, strlen(word));
}

struct http1_text http1_trim(const char *bytes, struct http1_text text)
{
	while (text.len > 0 && is_blank(bytes[text.at])) {
		text.at++;
		text.len--;
	}
	while (text.len > 0 && is_blank(bytes[text.at + text.len - 1]))
		text.len--;
	return text;
}

bool http1_cut(const char *bytes, struct http1_text *rest, char c, struct http1_text *ret)
{
	const char *found = memchr(bytes + rest->at, c, rest->len);
	size_t len = found ? (size_t)(found - (bytes + rest->at)) : rest->len;

	*ret = (struct http1_text){ rest->at, len };
	rest->at += len + (found ? 1 : 0);
	rest->len -= len + (found ? 1 : 0);
	return found;
}

/* A list of words separated by commas. */
static bool list_has(const char *bytes, struct http1_text list, const char *word, size_t len)
{
	struct http1_text item;

	while (list.len > 0) {
		(void)http1_cut(bytes, &list, ',', &item);
		if (equals(bytes, http1_trim(bytes, item), word, len))
			return true;
	}
	return false;
}

const struct http1_line *http1_find(const char *bytes, const struct http1_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_lines; i++)
		if (http1_is(bytes, h->line[i].name, name))
			return &h->line[i];
	return NULL;
}

size_t http1_count(const char *bytes, const struct http1_head *h, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_lines; i++)
		n += http1_is(bytes, h->line[i].name, name);
	return n;
}

bool http1_has_word(const char *bytes, const struct http1_head *h, const char *name, const char *word, size_t len)
{
	for (size_t i = 0; i < h->n_lines; i++)
		if (http1_is(bytes, h->line[i].name, name) && list_has(bytes, h->line[i].value, word, len))
			return true;
	return false;
}

/* ---- the request line ----------------------------------------------------------------------------- */

static enum http1_trouble read_version(const char *bytes, struct http1_text v, struct http1_head *h)
{
	static const char form[] = "HTTP/0.0";
	const char *text = bytes + v.at;

	/* Case-sensitive: "http/1.1" may be something else to the next parser. */
	if (v.len != sizeof(form) - 1)
		return HTTP1_version_form;
	for (size_t i = 0; i < v.len; i++)
		if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return HTTP1_version_form;
	h->version_1_0 = memcmp(text, "HTTP/1.0", v.len) == 0;
	return h->version_1_0 || memcmp(text, "HTTP/1.1", v.len) == 0 ? HTTP1_ok : HTTP1_version;
}

static enum http1_trouble judge_method(const char *bytes, struct http1_text method)
{
	for (size_t i = 0; i < method.len; i++) {
		char c = bytes[method.at + i];

		if ((c < 'A' || c > 'Z') && c != '-')
			return HTTP1_method;
	}
	if (method.len == 0)
		return HTTP1_request_line;
	return method.len > METHOD_MAX ? HTTP1_method_length : HTTP1_ok;
}

/* [/path][?query]; false: it begins with something else. */
static bool read_path(const char *bytes, struct http1_text rest, struct http1_head *h)
{
	if (rest.len > 0 && bytes[rest.at] != '/' && bytes[rest.at] != '?')
		return false;
	(void)http1_cut(bytes, &rest, '?', &h->path);
	h->query = rest;
	return true;
}

static enum http1_trouble judge_authority(const char *bytes, struct http1_text a, bool port_needed)
{
	struct host host;
	uint16_t port;

	if (memchr(bytes + a.at, '@', a.len))
		return HTTP1_user_info;
	if (!authority_parse(bytes + a.at, a.len, &host, &port) || (port_needed && port == 0))
		return HTTP1_authority;
	return HTTP1_ok;
}

/* scheme://authority[/path][?query] */
static enum http1_trouble read_address(const char *bytes, struct http1_text target, struct http1_head *h)
{
	struct http1_text rest = target;
	size_t len = 0;

	if (!http1_cut(bytes, &rest, ':', &h->scheme) ||
	    (!http1_is(bytes, h->scheme, "http") && !http1_is(bytes, h->scheme, "https")) || rest.len < 2 ||
	    memcmp(bytes + rest.at, "//", 2) != 0) {
		h->scheme = (struct http1_text){ 0, 0 };
		return HTTP1_target_form;
	}
	h->form = HTTP1_ABSOLUTE;
	rest.at += 2;
	rest.len -= 2;
	/* Some parsers treat a backslash as a slash, and then look for the host elsewhere. */
	while (len < rest.len && !strchr("/?\\", bytes[rest.at + len]))
		len++;
	h->authority = (struct http1_text){ rest.at, len };
	rest.at += len;
	rest.len -= len;
	return read_path(bytes, rest, h) ? judge_authority(bytes, h->authority, false) : HTTP1_authority;
}

static enum http1_trouble read_target(const char *bytes, struct http1_head *h)
{
	struct http1_text t = h->target;

	for (size_t i = 0; i < t.len; i++)
		if (bytes[t.at + i] <= ' ' || bytes[t.at + i] > '~' || bytes[t.at + i] == '#')
			return HTTP1_target_char;
	if (http1_is(bytes, h->method, "CONNECT")) {
		h->form = HTTP1_AUTHORITY;
		h->authority = t;
		return judge_authority(bytes, t, true);
	}
	if (http1_is(bytes, t, "*")) {
		h->form = HTTP1_ASTERISK;
		return http1_is(bytes, h->method, "OPTIONS") ? HTTP1_ok : HTTP1_asterisk;
	}
	if (bytes[t.at] == '/')
		return read_path(bytes, t, h) ? HTTP1_ok : HTTP1_target_form;
	return read_address(bytes, t, h);
}

static enum http1_trouble read_request_line(const char *bytes, struct http1_text line, struct http1_head *h)
{
	struct http1_text method, target;
	enum http1_trouble t;

	if (!http1_cut(bytes, &line, ' ', &method) || !http1_cut(bytes, &line, ' ', &target) || target.len == 0)
		return HTTP1_request_line;
	if (memchr(bytes + line.at, ' ', line.len))
		return HTTP1_request_line;
	t = judge_method(bytes, method);
	if (t == HTTP1_ok)
		t = read_version(bytes, line, h);
	if (t != HTTP1_ok)
		return t;
	h->method = method;
	h->target = target;
	return read_target(bytes, h);
}

/* ---- the fields ----------------------------------------------------------------------------------- */

static enum http1_trouble take_host(const char *bytes, struct http1_head *h, struct http1_text value,
				    struct http1_framing *f UNUSED)
{
	struct host host;
	uint16_t port;

	h->host = value;
	/* CONNECT names the host itself; some clients name the proxy in Host. */
	if (h->form == HTTP1_AUTHORITY)
		return HTTP1_ok;
	return authority_parse(bytes + value.at, value.len, &host, &port) ? HTTP1_ok : HTTP1_host_value;
}

enum http1_trouble http1_take_length(const char *bytes, struct http1_head *h, struct http1_text value,
				     struct http1_framing *f)
{
	uint64_t n = 0;

	f->length = true;
	if (value.len == 0)
		return HTTP1_length_value;
	for (size_t i = 0; i < value.len; i++)
		if (bytes[value.at + i] < '0' || bytes[value.at + i] > '9')
			return HTTP1_length_value;
	if (value.len > LENGTH_DIGITS_MAX)
		return HTTP1_length_huge;
	for (size_t i = 0; i < value.len; i++)
		n = n * 10 + (uint64_t)(bytes[value.at + i] - '0');
	h->length = n;
	h->body = n ? HTTP1_BODY_LENGTH : HTTP1_BODY_NONE;
	return HTTP1_ok;
}

enum http1_trouble http1_take_coding(const char *bytes, struct http1_head *h, struct http1_text value,
				     struct http1_framing *f)
{
	f->coding = true;
	h->body = HTTP1_BODY_CHUNKED;
	return http1_is(bytes, value, "chunked") ? HTTP1_ok : HTTP1_coding;
}

/* A proxy would remove what Connection names; these it must not. */
enum http1_trouble http1_take_connection(const char *bytes, struct http1_head *h UNUSED, struct http1_text value,
					 struct http1_framing *f UNUSED)
{
	static const char *const everybodys[] = { "host", "content-length", "transfer-encoding" };

	for (size_t i = 0; i < ARRAY_LEN(everybodys); i++)
		if (list_has(bytes, value, everybodys[i], strlen(everybodys[i])))
			return HTTP1_connection_names;
	return HTTP1_ok;
}

static enum http1_trouble take_expect(const char *bytes, struct http1_head *h, struct http1_text value,
				      struct http1_framing *f UNUSED)
{
	h->expects_continue = true;
	return http1_is(bytes, value, "100-continue") ? HTTP1_ok : HTTP1_expect;
}

/* Fields that matter here, or whose duplicates two parsers could resolve differently. */
static const struct http1_field known_fields[] = {
	{ "host", HTTP1_host_twice, take_host },
	{ "content-length", HTTP1_length_twice, http1_take_length },
	{ "transfer-encoding", HTTP1_coding_twice, http1_take_coding },
	{ "connection", HTTP1_ok, http1_take_connection },
	{ "expect", HTTP1_twice, take_expect },
	{ "authorization", HTTP1_twice, NULL },
	{ "content-type", HTTP1_twice, NULL },
	{ "idempotency-key", HTTP1_twice, NULL },
	{ "origin", HTTP1_twice, NULL },
	{ "x-api-key", HTTP1_twice, NULL },
};

enum http1_trouble http1_take_field(const struct http1_field *known, size_t n, const char *bytes, struct http1_head *h,
				    const struct http1_line *line, struct http1_framing *f)
{
	for (size_t i = 0; i < n; i++) {
		if (!http1_is(bytes, line->name, known[i].name))
			continue;
		if (known[i].twice != HTTP1_ok && http1_find(bytes, h, known[i].name))
			return known[i].twice;
		return known[i].take ? known[i].take(bytes, h, line->value, f) : HTTP1_ok;
	}
	return HTTP1_ok;
}

enum http1_trouble http1_read_field(const char *bytes, struct http1_text text, struct http1_line *ret)
{
	if (!http1_cut(bytes, &text, ':', &ret->name))
		return HTTP1_no_colon;
	if (ret->name.len == 0)
		return HTTP1_name_empty;
	for (size_t i = 0; i < ret->name.len; i++)
		if (!http1_is_name_char((unsigned char)bytes[ret->name.at + i]))
			return HTTP1_name_char;
	ret->value = http1_trim(bytes, text);
	return HTTP1_ok;
}

/* ---- what the lines say together ------------------------------------------------------------------ */

/* A target that names a host must not have a different Host field. */
static bool same_host(const char *bytes, const struct http1_head *h)
{
	uint16_t usual = http1_is(bytes, h->scheme, "https") ? 443 : 80, port, other_port;
	struct host host, other;

	return authority_parse(bytes + h->authority.at, h->authority.len, &host, &port) &&
	       authority_parse(bytes + h->host.at, h->host.len, &other, &other_port) && str_eq(host.text, other.text) &&
	       (port ? port : usual) == (other_port ? other_port : usual);
}

bool http1_persists(const char *bytes, const struct http1_head *h)
{
	if (http1_has_word(bytes, h, "connection", "close", strlen("close")))
		return false;
	return !h->version_1_0 || http1_has_word(bytes, h, "connection", "keep-alive", strlen("keep-alive"));
}

static enum http1_trouble judge_together(const char *bytes, struct http1_head *h, const struct http1_framing *f)
{
	if (f->length && f->coding)
		return HTTP1_length_and_coding;
	if (f->coding && h->version_1_0)
		return HTTP1_coding_1_0;
	if (h->form == HTTP1_AUTHORITY && h->body != HTTP1_BODY_NONE)
		return HTTP1_connect_body;
	if (h->host.len == 0 && !h->version_1_0 && h->form != HTTP1_AUTHORITY)
		return HTTP1_host_missing;
	if (h->host.len > 0 && h->form == HTTP1_ABSOLUTE && !same_host(bytes, h))
		return HTTP1_host_differs;
	h->keep_alive = http1_persists(bytes, h);
	/* HTTP/1.0 has neither; an intermediary may have left them in. */
	h->upgrade = !h->version_1_0 && http1_find(bytes, h, "upgrade") &&
		     http1_has_word(bytes, h, "connection", "upgrade", strlen("upgrade"));
	h->expects_continue = h->expects_continue && !h->version_1_0 && h->body != HTTP1_BODY_NONE;
	return HTTP1_ok;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

struct http1_text http1_next_line(const char *bytes, struct http1_text *rest)
{
	struct http1_text line;

	if (http1_cut(bytes, rest, '\n', &line))
		line.len--;
	return line;
}

enum http1_parse http1_refuse(const char *bytes, size_t at, enum http1_trouble trouble, struct http1_head *h)
{
	h->trouble = trouble;
	h->status = http1_trouble_info[trouble].status;
	h->why = http1_trouble_info[trouble].text;
	h->bad_line = 1;
	for (size_t i = 0; i < at; i++)
		h->bad_line += bytes[i] == '\n';
	return HTTP1_BAD;
}

enum http1_trouble http1_judge_byte(char before, char c)
{
	if (before == '\r' && c != '\n')
		return HTTP1_bare_cr;
	if (c == '\n' && before != '\r')
		return HTTP1_bare_lf;
	if (c != '\r' && c != '\n' && !http1_is_value_char((unsigned char)c))
		return HTTP1_control;
	return before == '\n' && is_blank(c) ? HTTP1_folded : HTTP1_ok;
}

/* An LF has come: of the first line, of another one, or of the empty one. */
static enum http1_parse end_line(const char *bytes, size_t i, struct http1_head *h)
{
	struct http1_text line = { 0, i - 1 };
	enum http1_trouble t;

	if (i >= 3 && bytes[i - 2] == '\n') {
		h->used = i + 1;
		return HTTP1_DONE;
	}
	if (memchr(bytes, '\n', i))
		return HTTP1_MORE;
	t = read_request_line(bytes, line, h);
	return t == HTTP1_ok ? HTTP1_MORE : http1_refuse(bytes, 0, t, h);
}

/* Report the same about the request line, which was valid, whichever call has parsed it. */
static enum http1_parse refuse_byte(const char *bytes, size_t i, enum http1_trouble trouble, struct http1_head *h)
{
	const char *end = memchr(bytes, '\n', i);

	if (end)
		(void)read_request_line(bytes, (struct http1_text){ 0, (size_t)(end - bytes) - 1 }, h);
	return http1_refuse(bytes, i, trouble, h);
}

static enum http1_parse scan(const char *bytes, size_t len, size_t *seen, struct http1_head *h)
{
	for (size_t i = *seen; i < len && i < HTTP1_HEAD_MAX; i++) {
		enum http1_trouble t = http1_judge_byte(i ? bytes[i - 1] : '\0', bytes[i]);
		enum http1_parse p;

		*seen = i + 1;
		if (i == 0 && (bytes[i] < 'A' || bytes[i] > 'Z'))
			t = HTTP1_not_http;
		if (t != HTTP1_ok)
			return refuse_byte(bytes, i, t, h);
		if (bytes[i] != '\n')
			continue;
		p = end_line(bytes, i, h);
		if (p != HTTP1_MORE)
			return p;
	}
	if (len < HTTP1_HEAD_MAX)
		return HTTP1_MORE;
	return refuse_byte(bytes, HTTP1_HEAD_MAX,
			   memchr(bytes, '\n', HTTP1_HEAD_MAX) ? HTTP1_head_too_long : HTTP1_line_too_long, h);
}

static enum http1_parse read_head(const char *bytes, struct http1_head *h)
{
	struct http1_text rest = { 0, h->used }, line = http1_next_line(bytes, &rest);
	struct http1_framing f = { .length = false };
	enum http1_trouble t = read_request_line(bytes, line, h);

	while (t == HTTP1_ok) {
		struct http1_line field;

		line = http1_next_line(bytes, &rest);
		if (line.len == 0)
			break;
		t = h->n_lines == HTTP1_LINES_MAX ? HTTP1_too_many_lines : http1_read_field(bytes, line, &field);
		if (t == HTTP1_ok)
			t = http1_take_field(known_fields, ARRAY_LEN(known_fields), bytes, h, &field, &f);
		if (t == HTTP1_ok)
			h->line[h->n_lines++] = field;
	}
	if (t != HTTP1_ok)
		return http1_refuse(bytes, line.at, t, h);
	t = judge_together(bytes, h, &f);
	if (t == HTTP1_ok)
		return HTTP1_DONE;
	(void)http1_refuse(bytes, 0, t, h);
	h->bad_line = 0;
	return HTTP1_BAD;
}

enum http1_parse http1_head_parse(const char *bytes, size_t len, size_t *seen, struct http1_head *ret)
{
	enum http1_parse p;

	*ret = (struct http1_head){ .trouble = HTTP1_ok };
	p = scan(bytes, len, seen, ret);
	return p == HTTP1_DONE ? read_head(bytes, ret) : p;
}

/* ---- percent-decoding ----------------------------------------------------------------------------- */

bool http1_decode(const char *raw, size_t len, char *dst, size_t size, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)raw[i];

		if (c == '%') {
			int high = i + 2 < len ? http1_hex_value(raw[i + 1]) : -1;
			int low = high >= 0 ? http1_hex_value(raw[i + 2]) : -1;

			if (low < 0)
				return false;
			c = high << 4 | low;
			i += 2;
		}
		if (c == '\0' || n + 1 >= size)
			return false;
		dst[n++] = (char)c;
	}
	if (n >= size)
		return false;
	dst[n] = '\0';
	*ret_len = n;
	return true;
}
