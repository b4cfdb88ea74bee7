/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/container/answer.h"

#include <string.h>

#include "base/str.h"

#define KEY_MAX 64

/* ---- values --------------------------------------------------------------------------------------- */

static json_t *parse(const char *data, size_t len, size_t flags, struct brig_error *err)
{
	json_error_t why;
	json_t *v = json_loadb(data ? data : "", len, JSON_REJECT_DUPLICATES | flags, &why);
	char text[JSON_ERROR_TEXT_LENGTH];

	if (!v)
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the answer is not JSON: %s",
			      answer_clean(text, sizeof(text), why.text));
	return v;
}

json_t *answer_parse(const char *data, size_t len, struct brig_error *err)
{
	return parse(data, len, 0, err);
}

/* Accepts "null", too. */
json_t *answer_parse_any(const char *data, size_t len, struct brig_error *err)
{
	return parse(data, len, JSON_DECODE_ANY, err);
}

json_t *answer_parse_object(const char *data, size_t len, size_t flags, struct brig_error *err)
{
	json_t *v = parse(data, len, flags, err);

	if (v && !json_is_object(v)) {
		json_decref(v);
		v = NULL;
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the answer is not an object");
	}
	return v;
}

json_t *answer_at(const json_t *v, const char *path)
{
	json_t *at = NULL;

	while (v && path) {
		const char *dot = strchrnul(path, '.');
		char key[KEY_MAX];

		if ((size_t)(dot - path) >= sizeof(key))
			return NULL;
		memcpy(key, path, (size_t)(dot - path));
		key[dot - path] = '\0';
		at = json_object_get(v, key); /* NULL unless v is an object */
		v = at;
		path = *dot ? dot + 1 : NULL;
	}
	return path ? NULL : at;
}

const char *answer_text(const json_t *v, const char *path)
{
	return json_string_value(answer_at(v, path));
}

const char *answer_text_or(const json_t *v, const char *path, const char *otherwise)
{
	const char *text = answer_text(v, path);

	return text ? text : otherwise;
}

bool answer_i64(const json_t *v, const char *path, int64_t *ret)
{
	const json_t *at = answer_at(v, path);

	if (!json_is_integer(at))
		return false;
	*ret = json_integer_value(at);
	return true;
}

bool answer_u64(const json_t *v, const char *path, uint64_t *ret)
{
	int64_t value;

	if (!answer_i64(v, path, &value) || value < 0)
		return false;
	*ret = (uint64_t)value;
	return true;
}

bool answer_bool(const json_t *v, const char *path, bool *ret)
{
	const json_t *at = answer_at(v, path);

	if (!json_is_boolean(at))
		return false;
	*ret = json_is_true(at);
	return true;
}

bool answer_is_empty(const json_t *v, const char *path)
{
	const json_t *at = answer_at(v, path);

	switch (at ? json_typeof(at) : JSON_NULL) {
	case JSON_STRING:
		return json_string_length(at) == 0;
	case JSON_INTEGER:
		return json_integer_value(at) == 0;
	case JSON_ARRAY:
		return json_array_size(at) == 0;
	case JSON_OBJECT:
		return json_object_size(at) == 0;
	case JSON_NULL:
	case JSON_FALSE:
		return true;
	default:
		return false;
	}
}

bool answer_has_item(const json_t *v, const char *path, const char *item)
{
	const json_t *list = answer_at(v, path);
	const char *text;
	size_t i;
	json_t *at;

	json_array_foreach(list, i, at)
	{
		text = json_string_value(at);
		if (text && str_eq(text, item))
			return true;
	}
	return false;
}

/* ---- text ----------------------------------------------------------------------------------------- */

const char *answer_clean(char *dst, size_t size, const char *text)
{
	size_t n = 0;

	if (size == 0)
		return "";
	for (; *text && n + 1 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c > ' ' && c <= '~')
			dst[n++] = (char)c;
		else if (c >= 0x80)
			dst[n++] = '?';
		else if (n > 0 && dst[n - 1] != ' ') /* a run of spaces and control characters becomes one space */
			dst[n++] = ' ';
	}
	while (n > 0 && dst[n - 1] == ' ')
		n--;
	dst[n] = '\0';
	return dst;
}
