/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work_json.h"

#include <string.h>

#include "model/json.h"

/* Fills an array with n rows; a row that cannot be made fails the array. */
static json_t *rows(const void *list, size_t n, json_t *(*row)(const void *list, size_t i))
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(array, row(list, i)) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

/* A file name may hold any bytes: what is not UTF-8 is base64, and path_encoding says so. */
static json_t *with_path(const char *path, json_t *object)
{
	const char *encoding;

	if (json_object_set_new(object, "path", json_bytes(path, strlen(path), false, &encoding)) < 0 ||
	    json_object_set_new(object, "path_encoding", json_string(encoding)) < 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *json_sha256(const uint8_t hash[SHA256_LEN])
{
	char hex[SHA256_HEX + 1];

	return json_string(hex_put(hex, hash, SHA256_LEN));
}

static json_t *denied_row(const void *list, size_t i)
{
	const struct denied_row *d = &((const struct denied *)list)->row[i];

	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind", denied_kind_name[d->kind], "what", json_text(d->what),
			 "count", json_count(d->count), "why", json_text(d->why), "fix", json_text_or_null(d->fix));
}

json_t *json_denied(const struct denied *d)
{
	return rows(d, d->n, denied_row);
}

static json_t *network_row(const void *list, size_t i)
{
	const struct network_row *n = &((const struct network *)list)->row[i];

	return json_pack("{s:o, s:i, s:b, s:o, s:o, s:o, s:o}", "host", json_text(n->host), "port", (int)n->port,
			 "allowed", n->allowed, "reason", json_text_or_null(n->reason), "count", json_count(n->count),
			 "sent_bytes", json_count(n->sent_bytes), "received_bytes", json_count(n->received_bytes));
}

json_t *json_network(const struct network *n)
{
	return rows(n, n->n, network_row);
}

json_t *json_workspace(const struct result *r)
{
	const struct changes *c = &r->changes;

	if (!c->known)
		return json_null();
	return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "mode", workspace_mode_name[c->mode], "state",
			 changes_state_name[c->state], "git", c->git, "added", json_count(c->added), "modified",
			 json_count(c->modified), "deleted", json_count(c->deleted), "bytes", json_count(c->bytes),
			 "dropped", json_count(c->dropped));
}

static json_t *change_row(const void *list, size_t i)
{
	const struct change *c = &((const struct changes *)list)->row[i];

	return with_path(c->path, json_pack("{s:s, s:s, s:o, s:i, s:o}", "change", change_kind_name[c->kind], "type",
					    change_type_name[c->type], "size", json_count(c->size), "mode",
					    (int)c->mode, "sha256", c->hashed ? json_sha256(c->sha256) : json_null()));
}

json_t *json_changes(const struct changes *c)
{
	return rows(c, c->n, change_row);
}

static json_t *artifact_row(const void *list, size_t i)
{
	const struct artifact *a = &((const struct artifacts *)list)->row[i];
	json_t *row = json_pack("{s:o, s:o}", "size", json_count(a->size), "sha256", json_sha256(a->sha256));
	const char *encoding;

	if ((a->may_execute && json_object_set_new(row, "executable", json_true()) < 0) ||
	    (a->content &&
	     (json_object_set_new(row, "content", json_bytes(a->content, a->size, false, &encoding)) < 0 ||
	      json_object_set_new(row, "content_encoding", json_string(encoding)) < 0))) {
		json_decref(row);
		return NULL;
	}
	return with_path(a->path, row);
}

json_t *json_artifacts(const struct artifacts *a)
{
	return rows(a, a->n, artifact_row);
}

static json_t *left_row(const void *list, size_t i)
{
	const struct artifact *a = &((const struct artifacts *)list)->row[i];

	return with_path(a->path, json_pack("{s:o}", "size", json_count(a->size)));
}

json_t *json_left(const struct artifacts *a)
{
	return rows(a, a->n, left_row);
}

static json_t *failure_row(const void *list, size_t i)
{
	const struct test_failure *f = &((const struct test_report *)list)->row[i];

	return json_pack("{s:o, s:o, s:o, s:o}", "name", json_text(f->name), "message",
			 json_text(f->message ? f->message : ""), "file", json_text_or_null(f->file ? f->file : ""),
			 "line", f->line ? json_integer(f->line) : json_null());
}

json_t *json_tests(const struct test_report *t)
{
	if (!t->known)
		return json_null();
	return json_pack("{s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "framework", t->framework, "complete",
			 t->complete, "report", t->sealed ? "sealed" : "own word", "test_files",
			 t->held ? "held" : "compared", "passed", json_count(t->passed), "failed",
			 json_count(t->failed), "skipped", json_count(t->skipped), "failures",
			 rows(t, t->n, failure_row), "dropped", json_count(t->dropped));
}

json_t *json_packages(const struct result_packages *p)
{
	if (p->state == PACKAGES_NONE)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "state", packages_state_name[p->state], "ecosystem",
			 p->ecosystem, "key", p->key, "content", p->content, "files", json_count(p->files), "bytes",
			 json_count(p->bytes), "age_ms",
			 p->state != PACKAGES_INSTALLED ? json_count(p->age_ms) : json_null());
}

json_t *json_diff(const struct result *r)
{
	const char *encoding;
	json_t *text = json_bytes(buf_str(&r->diff), r->diff.len, false, &encoding);

	return text ? json_pack("{s:o, s:s, s:b}", "text", text, "encoding", encoding, "truncated", r->diff_is_cut)
		    : NULL;
}
