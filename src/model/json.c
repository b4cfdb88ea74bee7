/* SPDX-License-Identifier: Apache-2.0 */
#include "model/json.h"

#include <string.h>

#include "base/base64.h"
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

static json_t *json_base64(const char *data, size_t len)
{
	AUTO_FREE char *text = malloc(base64_len(len) + 1);

	if (!text)
		return NULL;
	base64_put(text, data, len);
	return json_stringn_nocheck(text, base64_len(len));
}

json_t *json_bytes(const char *data, size_t len, bool truncated, const char **ret_encoding)
{
	size_t good = str_utf8_prefix(data, len);

	if (good == len || (truncated && str_utf8_is_cut(data + good, len - good))) {
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
