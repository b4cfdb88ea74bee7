/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "base/ustar.h"

#define NUMBER_TEXT 40

/* ---- memory ------------------------------------------------------------------------------------------ */

void *json_blocks_alloc(struct json_block **blocks, size_t n, size_t size)
{
	struct json_block *block = NULL;
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes) && !__builtin_add_overflow(bytes, sizeof(*block), &bytes))
		block = calloc(1, bytes);
	if (!block)
		return NULL;
	block->next = *blocks;
	*blocks = block;
	return block->data;
}

void json_blocks_free(struct json_block **blocks)
{
	while (*blocks) {
		struct json_block *next = (*blocks)->next;

		free(*blocks);
		*blocks = next;
	}
}

/* ---- documents ----------------------------------------------------------------------------------------- */

json_t *json_read_text(const char *text, size_t len, size_t flags, struct brig_error *err)
{
	size_t good = str_utf8_prefix(text, len);
	json_error_t why;
	json_t *doc;

	if (good < len) {
		(void)err_set(err, BRIG_E_USAGE, 0, "byte %zu is not UTF-8", good + 1);
		return NULL;
	}
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES | flags, &why);
	if (doc)
		return doc;
	if (why.line > 1)
		(void)err_set(err, BRIG_E_USAGE, 0, "line %d, column %d: %.200s", why.line, why.column, why.text);
	else
		(void)err_set(err, BRIG_E_USAGE, 0, "column %d: %.200s", why.column, why.text);
	return NULL;
}

void json_read_mend(struct brig_error *err)
{
	size_t good;

	while ((good = str_utf8_prefix(err->msg, strlen(err->msg))) < strlen(err->msg))
		err->msg[good] = '?';
}

/* ---- complaints, and the walk ------------------------------------------------------------------------- */

int json_complain(struct json_reader *r, const char *what)
{
	return err_set(r->err, BRIG_E_USAGE, 0, "%s %s", *r->path ? r->path : r->whole, what);
}

size_t json_enter(struct json_reader *r, const char *name, size_t index)
{
	size_t len = strlen(r->path);

	if (name)
		(void)snprintf(r->path + len, sizeof(r->path) - len, "%s%.60s", len ? "." : "", name);
	else
		(void)snprintf(r->path + len, sizeof(r->path) - len, "[%zu]", index);
	r->path[str_utf8_prefix(r->path, strlen(r->path))] = '\0';
	return len;
}

void json_leave(struct json_reader *r, size_t len)
{
	r->path[len] = '\0';
}

static int complain_unknown(struct json_reader *r, const char *name, const struct json_member *table, size_t n)
{
	const char *names[JSON_MEMBERS_MAX], *near;
	size_t known = 0;

	for (; known < n && known < ARRAY_LEN(names); known++)
		names[known] = table[known].name;
	near = str_nearest(name, names, known);
	return err_set(r->err, BRIG_E_USAGE, 0, "%s%sunknown member '%.60s'%s%s%s", r->path, *r->path ? ": " : "", name,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int json_read_members(struct json_reader *r, json_t *object, const struct json_member *table, size_t n, void *into)
{
	const char *name;
	json_t *value;
	int rc = 0;

	if (!json_is_object(object))
		return json_complain(r, "must be an object");
	json_object_foreach(object, name, value)
	{
		size_t i = 0, len;

		while (i < n && !str_eq(table[i].name, name))
			i++;
		if (i == n)
			return complain_unknown(r, name, table, n);
		len = json_enter(r, name, 0);
		rc = table[i].read(r, value, (char *)into + table[i].offset);
		json_leave(r, len);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- single values -------------------------------------------------------------------------------------- */

/* A NUL would end the string early for the library. */
int json_read_string(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_string(value))
		return json_complain(r, "must be a string");
	if (strlen(json_string_value(value)) != json_string_length(value))
		return json_complain(r, "has a NUL character, which is not possible there");
	*(const char **)into = json_string_value(value);
	return 0;
}

int json_read_bool(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_boolean(value))
		return json_complain(r, "must be true or false");
	*(bool *)into = json_is_true(value);
	return 0;
}

int json_read_retry(struct json_reader *r, json_t *value, void *into)
{
	const char *text = json_string_value(value);

	if (!text || (!str_eq(text, "never") && !str_eq(text, "allowed")))
		return json_complain(r, "must be \"never\" or \"allowed\"");
	*(bool *)into = str_eq(text, "never");
	return 0;
}

static int read_base64(struct json_reader *r, json_t *value, void *into)
{
	struct bytes *ret = into;
	char *bytes;
	ssize_t n;

	if (!json_is_string(value))
		return json_complain(r, "must be a string");
	bytes = json_blocks_alloc(r->blocks, json_string_length(value) / 4 * 3 + 1, 1);
	if (!bytes)
		return err_nomem(r->err);
	n = base64_get(bytes, json_string_value(value), json_string_length(value));
	if (n < 0)
		return json_complain(r, "is not base64");
	*ret = (struct bytes){ bytes, (size_t)n };
	return 0;
}

int json_read_bytes(struct json_reader *r, json_t *value, void *into)
{
	static const struct json_member table[] = { { "base64", read_base64, 0 } };
	struct bytes *ret = into;

	if (json_is_object(value) && json_object_size(value) == 1)
		return json_read_members(r, value, table, ARRAY_LEN(table), ret);
	if (!json_is_string(value))
		return json_complain(r, "must be a string, or {\"base64\": ...} for bytes");
	*ret = (struct bytes){ json_string_value(value), json_string_length(value) };
	return 0;
}

int json_read_strings(struct json_reader *r, json_t *value, void *into)
{
	struct json_strings *ret = into;
	json_t *item;
	size_t i;

	if (!json_is_array(value))
		return json_complain(r, "must be a list of strings");
	ret->item = json_blocks_alloc(r->blocks, json_array_size(value) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_array_foreach(value, i, item)
	{
		size_t len = json_enter(r, NULL, i);

		if (json_read_string(r, item, &ret->item[i]) < 0)
			return -r->err->code;
		json_leave(r, len);
	}
	ret->n = json_array_size(value);
	ret->is_given = true;
	return 0;
}

int json_read_env(struct json_reader *r, json_t *value, void *into)
{
	struct json_strings *ret = into;
	const char *name, *text;
	json_t *item;

	if (!json_is_object(value))
		return json_complain(r, "must be an object of names and values");
	ret->item = json_blocks_alloc(r->blocks, json_object_size(value) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_object_foreach(value, name, item)
	{
		size_t len = json_enter(r, name, 0), size = strlen(name) + json_string_length(item) + 2;
		char *both = json_blocks_alloc(r->blocks, size, 1);

		if (json_read_string(r, item, &text) < 0)
			return -r->err->code;
		if (!both)
			return err_nomem(r->err);
		if (*name == '\0' || strchr(name, '='))
			return json_complain(r, "is no name of a variable");
		(void)snprintf(both, size, "%s=%s", name, text);
		ret->item[ret->n++] = both;
		json_leave(r, len);
	}
	return 0;
}

/* ---- settings --------------------------------------------------------------------------------------------- */

/* Numbers and truth values mean what they would as text. */
static const char *value_text(struct json_reader *r, json_t *value)
{
	char *text;

	if (json_is_boolean(value))
		return json_is_true(value) ? "true" : "false";
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value) ? json_string_value(value) : NULL;
	text = json_is_number(value) ? json_blocks_alloc(r->blocks, NUMBER_TEXT, 1) : NULL;
	if (text && json_is_integer(value))
		(void)snprintf(text, NUMBER_TEXT, "%lld", (long long)json_integer_value(value));
	else if (text)
		(void)snprintf(text, NUMBER_TEXT, "%.15g", json_real_value(value));
	return text;
}

int json_read_settings(struct json_reader *r, json_t *value, void *into)
{
	struct json_settings *ret = into;
	const char *name;
	json_t *item;

	if (!json_is_object(value))
		return json_complain(r, "must be an object of settings and values");
	ret->item = json_blocks_alloc(r->blocks, json_object_size(value) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_object_foreach(value, name, item)
	{
		size_t len = json_enter(r, name, 0);
		struct brig_option wish = { r->setting_of ? r->setting_of(name) : name, value_text(r, item) };

		if (!wish.value)
			return json_complain(r, "must be a string, a number or true or false");
		ret->item[ret->n++] = wish;
		json_leave(r, len);
	}
	return 0;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* What a path may be is said by the reader of the archive. */
int json_read_files(struct json_reader *r, json_t *value, void *into)
{
	AUTO_BUF tar = BUF_INIT(JSON_FILES_MAX);
	const char *path;
	json_t *item;
	int fd;

	if (!json_is_object(value))
		return json_complain(r, "must be an object of paths and contents");
	json_object_foreach(value, path, item)
	{
		size_t len = json_enter(r, path, 0);
		struct bytes content;

		if (json_read_bytes(r, item, &content) < 0)
			return -r->err->code;
		if (*path == '\0')
			return json_complain(r, "has a file without a name");
		if (!ustar_add_file(&tar, path, &content))
			return tar.no_memory ? err_nomem(r->err)
					     : json_complain(r, "does not fit: files have 64 MB together");
		json_leave(r, len);
	}
	fd = ustar_to_file(&tar);
	if (fd < 0)
		return err_set(r->err, BRIG_E_SYSTEM, -fd, "cannot keep the files that were sent");
	*(int *)into = fd;
	return 0;
}
