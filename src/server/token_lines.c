/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_lines.c - theory of operation
 *
 * Each line is one JSON object whose members are the rows of token_members.def.  Each kind of row has a reader and a
 * writer for its field.  An unknown member is an error, because it may be a limit introduced by a newer brig, which
 * must not be ignored.  The parsed object is kept with the token, whose lists point to its strings.
 */
#include "server/token_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/when.h"

enum kind { KIND_NAME, KIND_HASH, KIND_TRUST, KIND_LIST, KIND_SMALL, KIND_LARGE, KIND_FLAG, KIND_MOMENT, KIND_COUNT };

struct row {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct token_entry */
	bool must;
	uint64_t max;
};

static const struct row rows[] = {
#define MEMBER(name, kind, field, must, max) { name, KIND_##kind, offsetof(struct token_entry, field), must, max },
#include "server/token_members.def"
};

/* ---- words ------------------------------------------------------------------------------------- */

static bool is_made_of(const char *text, const char *signs, bool upper, size_t max)
{
	size_t len = 0;

	for (; text[len]; len++) {
		char c = text[len];
		bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper && c >= 'A' && c <= 'Z');

		if (len == max || (!plain && (len == 0 || !strchr(signs, c))))
			return false;
	}
	return len > 0;
}

bool token_is_name(const char *text)
{
	return is_made_of(text, "._-", /* upper= */ true, TOKEN_NAME_MAX);
}

bool token_is_word(const char *text)
{
	return is_made_of(text, "._+-", /* upper= */ false, TOKEN_WORD_MAX);
}

static const char *const trust_names[] = {
	[TOKEN_UNTRUSTED] = "untrusted",
	[TOKEN_UNKNOWN] = "unknown",
	[TOKEN_TRUSTED] = "trusted",
};
_Static_assert(ARRAY_LEN(trust_names) == TOKEN_TRUST_COUNT, "trust_names[] misses one");

const char *token_trust_name(enum token_trust trust)
{
	return trust_names[trust];
}

bool token_trust_parse(const char *name, enum token_trust *ret)
{
	for (size_t i = 0; i < TOKEN_TRUST_COUNT; i++)
		if (str_eq(name, trust_names[i])) {
			*ret = (enum token_trust)i;
			return true;
		}
	return false;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static bool read_name(const struct row *row UNUSED, const json_t *value, void *field)
{
	const char *text = json_string_value(value);

	return text && token_is_name(text) && str_copy(field, TOKEN_NAME_MAX + 1, text);
}

static bool read_hash(const struct row *row UNUSED, const json_t *value, void *field)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == (size_t)2 * BLAKE2B_LEN && hex_get(text, field, BLAKE2B_LEN);
}

static bool read_trust(const struct row *row UNUSED, const json_t *value, void *field)
{
	const char *text = json_string_value(value);

	return text && token_trust_parse(text, field);
}

/* An empty list is refused: it could be read as everything or as nothing. */
static bool read_list(const struct row *row UNUSED, const json_t *value, void *field)
{
	size_t n = json_array_size(value);
	struct token_list *list = field;

	if (n == 0 || n > TOKEN_LIST_MAX)
		return false;
	list->item = calloc(n, sizeof(*list->item));
	if (!list->item)
		return false;
	for (; list->n < n; list->n++) {
		const char *word = json_string_value(json_array_get(value, list->n));

		if (!word || !token_is_word(word))
			return false;
		list->item[list->n] = word;
	}
	return true;
}

static bool read_number(const struct row *row, const json_t *value, uint64_t *ret)
{
	json_int_t n = json_integer_value(value);

	*ret = (uint64_t)n;
	return json_is_integer(value) && n > 0 && *ret <= row->max;
}

static bool read_large(const struct row *row, const json_t *value, void *field)
{
	return read_number(row, value, field);
}

static bool read_small(const struct row *row, const json_t *value, void *field)
{
	uint64_t n;

	if (!read_number(row, value, &n))
		return false;
	*(uint32_t *)field = (uint32_t)n;
	return true;
}

static bool read_moment(const struct row *row, const json_t *value, void *field)
{
	uint64_t n;

	if (!read_number(row, value, &n))
		return false;
	*(int64_t *)field = (int64_t)n;
	return true;
}

static bool read_flag(const struct row *row UNUSED, const json_t *value, void *field)
{
	*(bool *)field = json_is_true(value);
	return json_is_boolean(value);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* Values for a line, in which json_null() is omitted.  NULL: out of memory. */

static json_t *write_name(const void *field)
{
	return json_string(field);
}

static json_t *write_hash(const void *field)
{
	char hex[2 * BLAKE2B_LEN + 1];

	return json_string(hex_put(hex, field, BLAKE2B_LEN));
}

static json_t *write_trust(const void *field)
{
	return json_string(token_trust_name(*(const enum token_trust *)field));
}

static json_t *write_list(const void *field)
{
	const struct token_list *list = field;
	json_t *array = list->n ? json_array() : json_null();

	for (size_t i = 0; array && i < list->n; i++)
		if (json_array_append_new(array, json_string(list->item[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *write_number(uint64_t n)
{
	return n ? json_integer((json_int_t)min_u64(n, INT64_MAX)) : json_null();
}

static json_t *write_small(const void *field)
{
	return write_number(*(const uint32_t *)field);
}

static json_t *write_large(const void *field)
{
	return write_number(*(const uint64_t *)field);
}

static json_t *write_moment(const void *field)
{
	return write_number((uint64_t) * (const int64_t *)field);
}

static json_t *write_flag(const void *field)
{
	return json_boolean(*(const bool *)field);
}

static const struct {
	bool (*read)(const struct row *row, const json_t *value, void *field);
	json_t *(*write)(const void *field);
	const char *must_be;
} kinds[] = {
	[KIND_NAME] = { read_name, write_name, "must be 1 to 64 letters, digits, '.', '_' and '-', the first no sign" },
	[KIND_HASH] = { read_hash, write_hash, "must be 64 hexadecimal digits in lower case" },
	[KIND_TRUST] = { read_trust, write_trust, "must be untrusted, unknown or trusted" },
	[KIND_LIST] = { read_list, write_list, "must be a list of 1 to 32 names in lower case" },
	[KIND_SMALL] = { read_small, write_small, "must be a whole number above 0, and not that large" },
	[KIND_LARGE] = { read_large, write_large, "must be a whole number above 0, and not that large" },
	[KIND_FLAG] = { read_flag, write_flag, "must be true or false" },
	[KIND_MOMENT] = { read_moment, write_moment, "must be seconds since 1970" },
};
_Static_assert(ARRAY_LEN(kinds) == KIND_COUNT, "kinds[] misses one");

static const void *field_of(const struct row *row, const struct token_entry *entry)
{
	return (const char *)entry + row->offset;
}

/* ---- lines ------------------------------------------------------------------------------------- */

/* Position of a line, for error messages. */
struct place {
	const char *file;
	size_t line;
};

#define REMEDY "fix or remove that line, or put the right file back; until then no token is known"

static int complain(struct brig_error *err, const struct place *at, const char *what, const char *why)
{
	return err_set(err, BRIG_E_REFUSED, 0, "'%.180s' line %zu: %.80s %s; " REMEDY, at->file, at->line, what, why);
}

static const struct row *row_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static int members_read(json_t *line, const struct place *at, struct token_entry *entry, struct brig_error *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(line, name, value)
	{
		const struct row *row = row_named(name);

		if (!row)
			return complain(err, at, "has a member that is not known here,",
					"of a newer brig or a typing error");
		if (!kinds[row->kind].read(row, value, (char *)entry + row->offset))
			return complain(err, at, row->name, kinds[row->kind].must_be);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].must && !json_object_get(line, rows[i].name))
			return complain(err, at, rows[i].name, "is missing");
	return 0;
}

static void entry_release(struct token_entry *entry)
{
	free(entry->token.languages.item);
	free(entry->token.backends.item);
	free(entry->token.environments.item);
	free(entry->token.doors.item);
	json_decref(entry->line);
}

void token_entries_release(struct token_entries *entries)
{
	for (size_t i = 0; i < entries->n; i++)
		entry_release(&entries->item[i]);
	free(entries->item);
	*entries = (struct token_entries){ 0 };
}

static int check_unique(const struct token_entries *all, const struct token_entry *one, const struct place *at,
			struct brig_error *err)
{
	for (size_t i = 0; i < all->n; i++) {
		if (str_eq(all->item[i].token.name, one->token.name))
			return complain(err, at, one->token.name, "is the name of a token above, too");
		if (memcmp(all->item[i].hash, one->hash, sizeof(one->hash)) == 0)
			return complain(err, at, one->token.name, "has the secret of a token above");
	}
	return 0;
}

/* Parses one line into the next entry, which is owned by `all` even if it is refused. */
static int line_read(const char *text, size_t len, const struct place *at, struct token_entries *all,
		     struct brig_error *err)
{
	struct token_entry *entry = &all->item[all->n];
	json_error_t why;
	int rc;

	if (len > TOKEN_LINE_MAX)
		return complain(err, at, "has", "more bytes than a token needs");
	*entry = (struct token_entry){ 0 };
	entry->line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(entry->line)) { /* jansson's own message would quote the line */
		json_decref(entry->line);
		return complain(err, at, "is", "no JSON object");
	}
	rc = members_read(entry->line, at, entry, err);
	if (rc == 0)
		rc = check_unique(all, entry, at, err);
	all->n++;
	return rc;
}

static int lines_read(const char *text, size_t len, const char *file, struct token_entries *all, struct brig_error *err)
{
	struct place at = { file, 0 };
	size_t used = 0;
	int rc = 0;

	while (rc == 0 && used < len) {
		const char *line = text + used, *end = memchr(line, '\n', len - used);

		at.line++;
		if (!end)
			return complain(err, &at, "has", "no end: the file was cut");
		if (all->n == TOKENS_MAX)
			return complain(err, &at, "is", "one token too many");
		rc = line_read(line, (size_t)(end - line), &at, all, err);
		used = (size_t)(end - text) + 1;
	}
	return rc;
}

int token_lines_read(const char *text, size_t len, const char *file, struct token_entries *ret, struct brig_error *err)
{
	struct token_entries all = { 0 };
	size_t lines = 1;
	int rc;

	for (size_t i = 0; i < len && lines <= TOKENS_MAX; i++)
		lines += text[i] == '\n';
	all.item = calloc(lines, sizeof(*all.item));
	if (!all.item)
		return err_nomem(err);
	rc = lines_read(text, len, file, &all, err);
	if (rc < 0)
		token_entries_release(&all);
	else
		*ret = all;
	return rc;
}

/* Takes ownership of value; false: out of memory. */
static bool member_put(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value) == 0;
}

int token_line_write(const struct token_entry *entry, struct buf *out, struct brig_error *err)
{
	json_t *object = json_object();
	AUTO_FREE char *text = NULL;
	bool good = object;

	for (size_t i = 0; good && i < ARRAY_LEN(rows); i++) {
		json_t *value = kinds[rows[i].kind].write(field_of(&rows[i], entry));

		if (!json_is_null(value))
			good = member_put(object, rows[i].name, value);
	}
	if (good)
		text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (!text)
		return err_nomem(err);
	buf_adds(out, text);
	buf_adds(out, "\n");
	return out->no_memory ? err_nomem(err) : 0;
}

/* ---- the document ------------------------------------------------------------------------------ */

static const char *state_of(const struct token *t, int64_t now_s)
{
	if (t->revoked)
		return "revoked";
	return t->expires && now_s >= t->expires ? "expired" : "active";
}

static json_t *moment_text(const void *field)
{
	int64_t seconds = *(const int64_t *)field;
	char text[WHEN_TEXT_MAX];

	return seconds ? json_string(when_utc(text, sizeof(text), (uint64_t)seconds * NS_PER_SEC)) : json_null();
}

json_t *token_object(const struct token *token, int64_t now_s)
{
	const struct token_entry entry = { .token = *token };
	json_t *object = json_object();
	bool good = object;

	for (size_t i = 0; good && i < ARRAY_LEN(rows); i++) {
		const void *field = field_of(&rows[i], &entry);

		if (rows[i].kind == KIND_HASH) /* not shown; the derived state takes its place */
			good = member_put(object, "state", json_string(state_of(token, now_s)));
		else if (rows[i].kind == KIND_MOMENT)
			good = member_put(object, rows[i].name, moment_text(field));
		else
			good = member_put(object, rows[i].name, kinds[rows[i].kind].write(field));
	}
	if (good)
		return object;
	json_decref(object);
	return NULL;
}
