/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read in two steps: each object's members are stored according to their rows, so that an unknown one is
 * refused with its place; then every row is handled by its kind.  Lists of domains (srt_domains.c) and of paths
 * (srt_paths.c) follow.  Nothing falls back to a default: a file with any error is refused entirely.
 */
#include "cli/srt.h"

#include <string.h>

#include "base/str.h"

enum srt_kind {
	KIND_OBJECT,        /* has members of its own */
	KIND_NEEDED_OBJECT, /* the same, required */
	KIND_LIST,          /* of strings, handled below */
	KIND_NEEDED_LIST,
	KIND_SOURCES,       /* credentials: objects with a mode */
	KIND_FLAG,          /* true and false have no effect here */
	KIND_STRICTER_FLAG, /* true results in a notice */
	KIND_STRICTER,      /* a list or an object; a notice unless it is empty */
	KIND_REFUSED_FLAG,  /* true is refused */
	KIND_REFUSED_LIST,  /* refused unless it is empty */
	KIND_REFUSED,
	KIND_NO_EFFECT,
};

/* The members as in the document; NULL: missing. */
struct members {
#define TOP(name, kind, text)         json_t *name;
#define NETWORK(name, kind, text)     json_t *name;
#define FILESYSTEM(name, kind, text)  json_t *name;
#define CREDENTIALS(name, kind, text) json_t *name;
#include "cli/srt.def"
};

struct row {
	const char *object, *name;
	enum srt_kind kind;
	const char *text;
	size_t offset;
};
static const struct row rows[] = {
#define ROW(object, name, kind, text) { object, #name, KIND_##kind, text, offsetof(struct members, name) },
#define TOP(name, kind, text)         ROW("", name, kind, text)
#define NETWORK(name, kind, text)     ROW("network", name, kind, text)
#define FILESYSTEM(name, kind, text)  ROW("filesystem", name, kind, text)
#define CREDENTIALS(name, kind, text) ROW("credentials", name, kind, text)
#include "cli/srt.def"
};

void srt_notice(struct srt *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)buf_vaddf(&s->notices, fmt, ap);
	va_end(ap);
	buf_adds(&s->notices, "\n");
}

/* ---- the members ----------------------------------------------------------------------------- */

static int put_value(struct json_reader *r UNUSED, json_t *value, void *into)
{
	*(json_t **)into = value;
	return 0;
}

/* Reads the members of one object, by its rows. */
static int read_object(struct json_reader *r, const char *object, json_t *value, struct members *m)
{
	struct json_member table[JSON_MEMBERS_MAX];
	size_t n = 0, len = *object ? json_enter(r, object, 0) : 0;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(rows) && n < ARRAY_LEN(table); i++)
		if (str_eq(rows[i].object, object))
			table[n++] = (struct json_member){ rows[i].name, put_value, rows[i].offset };
	rc = json_read_members(r, value, table, n, m);
	if (rc == 0)
		json_leave(r, len);
	return rc;
}

static bool is_empty(const json_t *value)
{
	return json_array_size(value) == 0 && json_object_size(value) == 0;
}

/* A member that must be a list of strings is checked even if it has no effect. */
static int judge_list(struct json_reader *r, json_t *value)
{
	struct json_strings strings = { 0 };

	if (json_read_strings(r, value, &strings) < 0)
		return -r->err->code;
	return strings.n > SRT_ITEMS_MAX ? json_complain(r, "has more than 256 items") : 0;
}

static int refuse(struct json_reader *r, const struct row *row)
{
	return err_set(r->err, BRIG_E_USAGE, 0, "%s cannot be honoured: %s", r->path, row->text);
}

static int judge_flag(struct srt *s, struct json_reader *r, const struct row *row, json_t *value)
{
	bool is_true;

	if (json_read_bool(r, value, &is_true) < 0)
		return -r->err->code;
	if (is_true && row->kind == KIND_REFUSED_FLAG)
		return refuse(r, row);
	if (is_true && row->kind == KIND_STRICTER_FLAG)
		srt_notice(s, "%s: %s", r->path, row->text);
	return 0;
}

static int judge_value(struct srt *s, struct json_reader *r, const struct row *row, json_t *value)
{
	switch (row->kind) {
	case KIND_FLAG:
	case KIND_STRICTER_FLAG:
	case KIND_REFUSED_FLAG:
		return judge_flag(s, r, row, value);
	case KIND_LIST:
	case KIND_NEEDED_LIST:
		return judge_list(r, value);
	case KIND_STRICTER:
		if (!json_is_array(value) && !json_is_object(value))
			return json_complain(r, "must be a list or an object");
		if (!is_empty(value))
			srt_notice(s, "%s: %s", r->path, row->text);
		return 0;
	case KIND_REFUSED_LIST:
		if (!json_is_array(value))
			return json_complain(r, "must be a list");
		return is_empty(value) ? 0 : refuse(r, row);
	case KIND_REFUSED:
		return refuse(r, row);
	case KIND_OBJECT:
	case KIND_NEEDED_OBJECT:
	case KIND_SOURCES:
	case KIND_NO_EFFECT:
		break;
	}
	return 0;
}

static int judge_row(struct srt *s, struct json_reader *r, const struct row *row, const struct members *m)
{
	json_t *value = *(json_t *const *)((const char *)m + row->offset);

	(void)json_enter(r, *row->object ? row->object : row->name, 0);
	if (*row->object)
		(void)json_enter(r, row->name, 0);
	if (!value && (row->kind == KIND_NEEDED_LIST || row->kind == KIND_NEEDED_OBJECT))
		return json_complain(r, "is missing: srt wants it, too, if only empty");
	if (value && judge_value(s, r, row, value) < 0)
		return -r->err->code;
	json_leave(r, 0);
	return 0;
}

/* ---- credentials ----------------------------------------------------------------------------- */

struct source {
	const char *name, *mode;
};

static int read_source(struct json_reader *r, json_t *item, const char *member, const char **ret)
{
	const struct json_member table[] = {
		{ member, json_read_string, offsetof(struct source, name) },
		{ "mode", json_read_string, offsetof(struct source, mode) },
	};
	struct source source = { 0 };

	if (json_read_members(r, item, table, ARRAY_LEN(table), &source) < 0)
		return -r->err->code;
	if (!source.name || !source.mode)
		return err_set(r->err, BRIG_E_USAGE, 0, "%s must have '%s' and 'mode'", r->path, member);
	if (!str_eq(source.mode, "deny"))
		return json_complain(
			r, "has a mode that cannot be honoured: brig puts nothing in the place of a credential; "
			   "use \"deny\"");
	*ret = source.name;
	return 0;
}

/* Reads { member: ..., "mode": "deny" } from each element. */
static int read_sources(struct json_reader *r, json_t *list, const char *place, const char *member,
			struct json_strings *ret)
{
	json_t *item;
	size_t i;

	if (!list)
		return 0;
	(void)json_enter(r, place, 0);
	if (!json_is_array(list))
		return json_complain(r, "must be a list");
	if (json_array_size(list) > SRT_ITEMS_MAX)
		return json_complain(r, "has more than 256 items");
	ret->item = json_blocks_alloc(r->blocks, json_array_size(list) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_array_foreach(list, i, item)
	{
		size_t len = json_enter(r, NULL, i);

		if (read_source(r, item, member, &ret->item[ret->n++]) < 0)
			return -r->err->code;
		json_leave(r, len);
	}
	json_leave(r, 0);
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int read_members(struct srt *s, struct json_reader *r, struct members *m)
{
	if (read_object(r, "", s->doc, m) < 0 || (m->network && read_object(r, "network", m->network, m) < 0) ||
	    (m->filesystem && read_object(r, "filesystem", m->filesystem, m) < 0) ||
	    (m->credentials && read_object(r, "credentials", m->credentials, m) < 0))
		return -r->err->code;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (judge_row(s, r, &rows[i], m) < 0)
			return -r->err->code;
	return 0;
}

/* The lists were checked before; a missing one is empty. */
static int read_list(struct json_reader *r, json_t *value, struct json_strings *ret)
{
	return value ? json_read_strings(r, value, ret) : 0;
}

static int read_document(struct srt *s, struct json_reader *r, const struct srt_place *place)
{
	struct json_strings allowed = { 0 }, denied = { 0 };
	struct srt_files files = { 0 };
	struct members m = { 0 };

	if (read_members(s, r, &m) < 0 || read_list(r, m.allowedDomains, &allowed) < 0 ||
	    read_list(r, m.deniedDomains, &denied) < 0 || read_list(r, m.denyRead, &files.deny_read) < 0 ||
	    read_list(r, m.allowRead, &files.allow_read) < 0 || read_list(r, m.allowWrite, &files.allow_write) < 0 ||
	    read_list(r, m.denyWrite, &files.deny_write) < 0 ||
	    read_sources(r, m.files, "credentials.files", "path", &files.credentials) < 0 ||
	    read_sources(r, m.envVars, "credentials.envVars", "name", &s->denied_variables) < 0)
		return -r->err->code;
	if (srt_domains(s, r, &allowed, &denied) < 0 || srt_paths(s, r, &files, place) < 0)
		return -r->err->code;
	if (s->hide.full || s->whitelist.full || s->notices.full)
		return err_set(r->err, BRIG_E_USAGE, 0, "%s says more than brig can keep: shorten its lists", r->whole);
	return s->hide.no_memory || s->whitelist.no_memory || s->notices.no_memory ? err_nomem(r->err) : 0;
}

int srt_read(struct srt *s, const char *text, size_t len, const struct srt_place *place, struct brig_error *err)
{
	struct json_reader r = { .err = err, .blocks = &s->blocks, .whole = "the file" };

	s->doc = json_read_text(text, len, 0, err);
	if (s->doc && read_document(s, &r, place) == 0)
		return 0;
	json_read_mend(err);
	return -err->code;
}

void srt_release(struct srt *s)
{
	json_decref(s->doc);
	json_blocks_free(&s->blocks);
	buf_release(&s->hide);
	buf_release(&s->whitelist);
	buf_release(&s->notices);
}
