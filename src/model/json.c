/* SPDX-License-Identifier: Apache-2.0 */
#include "model/json.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

json_t *json_text(const char *s)
{
	size_t len = strlen(s), at = 0;
	AUTO_BUF clean = BUF_INIT(3 * len + 1);

	if (str_is_utf8(s, len))
		return json_stringn_nocheck(s, len);
	while (at < len) {
		size_t good = str_utf8_prefix(s + at, len - at);

		buf_add(&clean, s + at, good);
		at += good;
		if (at < len) {
			buf_adds(&clean, "\xef\xbf\xbd");
			at++;
		}
	}
	return clean.no_memory ? NULL : json_stringn(buf_str(&clean), clean.len);
}

json_t *json_text_or_null(const char *s)
{
	return *s ? json_text(s) : json_null();
}

static json_t *json_finding(const struct finding *f)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "rule", f->rule, "severity",
			 severity_name[f->severity], "line", (json_int_t)f->line, "column", (json_int_t)f->column,
			 "end_line", (json_int_t)f->end_line, "end_column", (json_int_t)f->end_column, "name",
			 json_text(f->name), "message", json_text(f->message), "remedy", json_text(f->remedy));
}

json_t *json_findings(const struct findings *f)
{
	json_t *array = json_array();

	for (size_t i = 0; i < f->n; i++)
		if (json_array_append_new(array, json_finding(&f->row[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

int json_list_document(const char *name, json_t *rows, char **ret, struct brig_error *err)
{
	json_t *doc = rows ? json_pack("{s:o}", name, rows) : NULL;
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

/* Whether these bytes, which are not UTF-8, would be with a few more: a character that was cut. */
static bool is_cut_character(const char *s, size_t len)
{
	/* One of these fits any lead byte; behind the second byte every continuation byte does. */
	static const char second[] = { '\x80', '\x90', '\xa0' };

	if (len == 0 || len > 3)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(second); i++) {
		char whole[4] = { s[0], second[i], '\x80', '\x80' };

		memcpy(whole, s, len);
		for (size_t n = len + 1; n <= sizeof(whole); n++)
			if (str_is_utf8(whole, n))
				return true;
	}
	return false;
}

static json_t *json_base64(const char *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)data;
	size_t out_len = (len + 2) / 3 * 4;
	AUTO_FREE char *text = malloc(out_len + 1);
	char *out = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i += 3, out += 4) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)in[i] << 16 | (n > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (n > 2 ? in[i + 2] : 0);

		out[0] = digits[v >> 18];
		out[1] = digits[v >> 12 & 63];
		out[2] = n > 1 ? digits[v >> 6 & 63] : '=';
		out[3] = n > 2 ? digits[v & 63] : '=';
	}
	return json_stringn_nocheck(text, out_len);
}

json_t *json_bytes(const char *data, size_t len, bool truncated, const char **ret_encoding)
{
	size_t good = str_utf8_prefix(data, len);

	if (good == len || (truncated && is_cut_character(data + good, len - good))) {
		*ret_encoding = "utf-8";
		return json_stringn_nocheck(data, good);
	}
	*ret_encoding = "base64";
	return json_base64(data, len);
}

json_t *json_count(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}
