/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/manifest.h"

#include <string.h>

#include "base/str.h"
#include "files/beneath.h"

static const char *const before_name[BEFORE_KIND_COUNT] = { [BEFORE_NOTHING] = "nothing",
							    [BEFORE_FILE] = "file",
							    [BEFORE_DIR] = "directory",
							    [BEFORE_LINK] = "link",
							    [BEFORE_OTHER] = "other" };
static const char *const skip_name[SKIP_COUNT] = {
	[SKIP_NOT] = "",    [SKIP_SPECIAL] = "special", [SKIP_LINK] = "link",       [SKIP_SECRET] = "secret",
	[SKIP_GIT] = "git", [SKIP_BRIG] = "brig",       [SKIP_UNSOUND] = "unsound",
};

/* ---- writing ----------------------------------------------------------------------------------- */

/* Any bytes: { name: text }, or { name_hex: digits }. */
static int put_bytes(json_t *object, const char *name, const char *value)
{
	size_t len = strlen(value);
	char key[32];
	AUTO_FREE char *hex = NULL;

	if (str_is_utf8(value, len))
		return json_object_set_new(object, name, json_stringn_nocheck(value, len));
	(void)snprintf(key, sizeof(key), "%s_hex", name);
	hex = malloc(2 * len + 1);
	return hex ? json_object_set_new(object, key, json_string(hex_put(hex, value, len))) : -1;
}

static json_t *hash_or_null(const uint8_t hash[SHA256_LEN], bool hashed)
{
	char hex[SHA256_HEX + 1];

	return hashed ? json_string(hex_put(hex, hash, SHA256_LEN)) : json_null();
}

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t)min_u64(v, INT64_MAX));
}

/* Numbers as they are: those of a device or an inode may have all 64 bits, which JSON's readers do not promise. */
static json_t *folder_json(const struct changeset *c)
{
	const uint64_t raw[] = { c->folder.device, c->folder.inode, c->folder.mount, (uint64_t)c->folder.born_ns };
	char hex[2 * sizeof(raw) + 1];

	return json_pack("{s:s, s:s}", "id", hex_put(hex, raw, sizeof(raw)), "boot", c->boot);
}

json_t *manifest_head(const struct changeset *c)
{
	json_t *head = json_pack("{s:i, s:s, s:b, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "version", CHANGES_VERSION, "id",
				 c->id, "git", c->git, "folder", folder_json(c), "mode", workspace_mode_name[c->mode],
				 "created_ns", number(c->created_ns), "added", number(c->added), "modified",
				 number(c->modified), "deleted", number(c->deleted), "bytes", number(c->bytes));

	if (head && put_bytes(head, "project", c->project) < 0) {
		json_decref(head);
		return NULL;
	}
	return head;
}

static json_t *row_json(const struct kept_row *r)
{
	const struct change *c = &r->change;
	const struct before *b = &r->before;
	json_t *row = json_pack("{s:s, s:s, s:i, s:o, s:o, s:s, s:{s:s, s:i, s:o, s:I, s:I, s:o}}", "change",
				change_kind_name[c->kind], "type", change_type_name[c->type], "mode", (int)c->mode,
				"size", number(c->size), "sha256", hash_or_null(c->sha256, c->hashed), "skip",
				skip_name[r->skip], "before", "kind", before_name[b->kind], "mode", (int)b->mode,
				"size", number(b->size), "mtime_ns", (json_int_t)b->mtime_ns, "inode",
				(json_int_t)b->inode, "sha256", hash_or_null(b->sha256, b->hashed));

	if (row && (put_bytes(row, "path", c->path) < 0 || (r->target && put_bytes(row, "target", r->target) < 0))) {
		json_decref(row);
		return NULL;
	}
	return row;
}

static int add_hidden(json_t *array, const char *path)
{
	json_t *one = json_object();

	if (put_bytes(one, "path", path) < 0) {
		json_decref(one);
		return -1;
	}
	return json_array_append_new(array, one);
}

json_t *manifest_rows(const struct changeset *c)
{
	json_t *rows = json_array(), *hidden = json_array();
	int failed = 0;

	for (size_t i = 0; i < c->n; i++)
		failed |= json_array_append_new(rows, row_json(&c->row[i]));
	for (size_t i = 0; i < c->hidden.n; i++)
		failed |= add_hidden(hidden, c->hidden.item[i]);
	if (failed) {
		json_decref(rows);
		json_decref(hidden);
		return NULL;
	}
	return json_pack("{s:o, s:o}", "rows", rows, "hidden", hidden);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The heap string of put_bytes; NULL: there is none, or no memory. */
static char *get_bytes(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	char key[32], *raw;
	size_t len;

	if (text)
		return strdup(text);
	(void)snprintf(key, sizeof(key), "%s_hex", name);
	text = json_string_value(json_object_get(object, key));
	if (!text || strlen(text) % 2)
		return NULL;
	len = strlen(text) / 2;
	raw = malloc(len + 1);
	if (!raw || !hex_get(text, raw, len) || memchr(raw, '\0', len)) {
		free(raw);
		return NULL;
	}
	raw[len] = '\0';
	return raw;
}

/* The place of a member's word in a table; false: it is not in it. */
static bool get_word(const json_t *object, const char *name, const char *const *words, size_t n, int *ret)
{
	const char *text = json_string_value(json_object_get(object, name));

	for (size_t i = 0; text && i < n; i++)
		if (str_eq(words[i], text)) {
			*ret = (int)i;
			return true;
		}
	return false;
}

static bool get_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
		return false;
	*ret = (uint64_t)json_integer_value(v);
	return true;
}

static bool get_hash(const json_t *object, uint8_t hash[SHA256_LEN], bool *ret_hashed)
{
	const json_t *v = json_object_get(object, "sha256");

	*ret_hashed = json_is_string(v);
	if (json_is_null(v))
		return true;
	return *ret_hashed && json_string_length(v) == SHA256_HEX && hex_get(json_string_value(v), hash, SHA256_LEN);
}

/* One that is not there is not noted: who needs it refuses. */
static bool read_folder(const json_t *o, struct changeset *ret)
{
	const char *id = json_string_value(json_object_get(o, "id"));
	const char *boot = json_string_value(json_object_get(o, "boot"));
	uint64_t raw[4];

	if (!o)
		return true;
	if (!id || strlen(id) != 2 * sizeof(raw) || !hex_get(id, raw, sizeof(raw)) || !boot ||
	    !str_copy(ret->boot, sizeof(ret->boot), boot))
		return false;
	ret->folder =
		(struct folder_id){ .device = raw[0], .inode = raw[1], .mount = raw[2], .born_ns = (int64_t)raw[3] };
	return true;
}

bool manifest_read_head(const json_t *head, struct changeset *ret)
{
	AUTO_FREE char *project = get_bytes(head, "project"), *id = get_bytes(head, "id");
	uint64_t version;

	ret->git = json_is_true(json_object_get(head, "git"));
	return project && id && read_folder(json_object_get(head, "folder"), ret) &&
	       get_number(head, "version", CHANGES_VERSION, &version) && version == CHANGES_VERSION &&
	       str_copy(ret->project, sizeof(ret->project), project) && str_copy(ret->id, sizeof(ret->id), id) &&
	       get_word(head, "mode", workspace_mode_name, WORKSPACE_MODE_COUNT, &ret->mode) &&
	       get_number(head, "created_ns", INT64_MAX, &ret->created_ns) &&
	       get_number(head, "added", INT64_MAX, &ret->added) &&
	       get_number(head, "modified", INT64_MAX, &ret->modified) &&
	       get_number(head, "deleted", INT64_MAX, &ret->deleted) &&
	       get_number(head, "bytes", INT64_MAX, &ret->bytes);
}

static bool read_before(const json_t *o, struct before *b)
{
	uint64_t mode;
	int kind;

	if (!get_word(o, "kind", before_name, BEFORE_KIND_COUNT, &kind) || !get_number(o, "mode", 0777, &mode) ||
	    !get_number(o, "size", INT64_MAX, &b->size) || !get_hash(o, b->sha256, &b->hashed))
		return false;
	b->kind = (enum before_kind)kind;
	b->mode = (unsigned)mode;
	b->mtime_ns = json_integer_value(json_object_get(o, "mtime_ns"));
	b->inode = (uint64_t)json_integer_value(json_object_get(o, "inode"));
	return true;
}

static bool read_row(const json_t *o, struct kept_row *r)
{
	struct change *c = &r->change;
	int kind, type, skip;
	uint64_t mode;

	c->path = get_bytes(o, "path");
	r->target = get_bytes(o, "target");
	if (!c->path || !beneath_is_path(c->path, strlen(c->path)) ||
	    !get_word(o, "change", change_kind_name, CHANGE_KIND_COUNT, &kind) ||
	    !get_word(o, "type", change_type_name, CHANGE_TYPE_COUNT, &type) ||
	    !get_word(o, "skip", skip_name, SKIP_COUNT, &skip) || !get_number(o, "mode", 0777, &mode) ||
	    !get_number(o, "size", INT64_MAX, &c->size) || !get_hash(o, c->sha256, &c->hashed) ||
	    !read_before(json_object_get(o, "before"), &r->before))
		return false;
	c->kind = (enum change_kind)kind;
	c->type = (enum change_type)type;
	c->mode = (unsigned)mode;
	r->skip = (enum skip)skip;
	/* What could not be moved over has no business here. */
	return c->kind == CHANGE_DELETED || r->skip != SKIP_NOT ||
	       (c->type == CHANGE_LINK ? r->target != NULL : c->type != CHANGE_FILE || c->hashed);
}

bool manifest_read_rows(const json_t *doc, struct changeset *ret)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(doc, "rows"), i, one)
	{
		struct kept_row row = { .target = NULL };

		if (!read_row(one, &row)) {
			free(row.change.path);
			free(row.target);
			return false;
		}
		if (!changeset_add(ret, &row))
			return false;
	}
	json_array_foreach(json_object_get(doc, "hidden"), i, one)
	{
		AUTO_FREE char *path = get_bytes(one, "path");

		if (!path || !paths_add(&ret->hidden, path))
			return false;
	}
	paths_sort(&ret->hidden);
	changeset_sort(ret);
	return json_is_array(json_object_get(doc, "rows"));
}
