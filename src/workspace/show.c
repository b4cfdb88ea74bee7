/* SPDX-License-Identifier: Apache-2.0 */
/* Changesets as JSON documents. */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/when.h"
#include "model/json.h"
#include "workspace/internal.h"

static json_t *head_json(const struct changeset *c)
{
	uint64_t now = clock_wall_ns();
	char text[WHEN_TEXT_MAX];

	return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "id", c->id, "project",
			 json_text(c->project), "mode", workspace_mode_name[c->mode], "created",
			 when_utc(text, sizeof(text), c->created_ns), "age_ms",
			 json_count(now > c->created_ns ? (now - c->created_ns) / NS_PER_MS : 0), "added",
			 json_count(c->added), "modified", json_count(c->modified), "deleted", json_count(c->deleted),
			 "bytes", json_count(c->bytes), "git", c->git);
}

struct listing {
	json_t *rows;
	int failed;
};

/* The newest comes first.  The text of a time sorts like the time. */
static int insert_row(json_t *rows, json_t *row)
{
	const char *created = json_string_value(json_object_get(row, "created"));
	size_t at = 0;

	while (created && at < json_array_size(rows) &&
	       strcmp(json_string_value(json_object_get(json_array_get(rows, at), "created")), created) > 0)
		at++;
	return json_array_insert_new(rows, at, row);
}

/* One that is being made, or cannot be read, is not in the list: show says why. */
static int add_one(void *arg, const struct statedir *state, const char *name, struct brig_error *err UNUSED)
{
	struct listing *l = arg;
	struct changeset set = { .row = NULL };
	AUTO_KEEPER k = KEEPER_INIT;

	if (*name != '.' && keeper_open(&k, state, name, NULL) == 0 && keeper_read(&k, &set, false, NULL) == 0)
		l->failed |= insert_row(l->rows, head_json(&set));
	changeset_release(&set);
	return 0;
}

int changeset_list_json(const struct statedir *state, char **ret, struct brig_error *err)
{
	struct listing l = { .rows = json_array() };
	int rc = keeper_each(state, add_one, &l, err);

	if (rc < 0 || l.failed) {
		json_decref(l.rows);
		return rc < 0 ? rc : err_nomem(err);
	}
	return json_list_document("workspaces", l.rows, ret, err);
}

static json_t *row_json(const struct kept_row *r)
{
	const struct change *c = &r->change;
	const char *encoding;
	json_t *path = json_bytes(c->path, strlen(c->path), false, &encoding);

	return json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:s, s:o}", "change", change_kind_name[c->kind], "type",
			 change_type_name[c->type], "size", json_count(c->size), "mode", (int)c->mode, "mode_before",
			 r->before.kind == BEFORE_NOTHING ? json_null() : json_integer((json_int_t)r->before.mode),
			 "path", path, "path_encoding", encoding, "not_applied",
			 r->skip == SKIP_NOT ? json_null() : json_string(skip_reason[r->skip]));
}

static json_t *rows_json(const struct changeset *c)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < c->n; i++)
		if (json_array_append_new(rows, row_json(&c->row[i])) < 0) {
			json_decref(rows);
			return NULL;
		}
	return rows;
}

int changeset_show_json(const struct statedir *state, const char *id, char **ret, struct brig_error *err)
{
	struct changeset set = { .row = NULL };
	AUTO_KEEPER k = KEEPER_INIT;
	json_t *doc = NULL, *rows;
	int rc = keeper_open(&k, state, id, err);

	if (rc == 0)
		rc = keeper_read(&k, &set, true, err);
	if (rc < 0) {
		changeset_release(&set);
		return rc;
	}
	rows = rows_json(&set);
	doc = head_json(&set);
	*ret = doc && json_object_set_new(doc, "changes", rows) == 0 ? json_dumps(doc, JSON_COMPACT) : NULL;
	if (!doc)
		json_decref(rows);
	json_decref(doc);
	changeset_release(&set);
	return *ret ? 0 : err_nomem(err);
}
