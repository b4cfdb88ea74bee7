/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - named package sets: brig_environment_*(). */
#include "executor/environment.h"

#include <jansson.h>

#include "api/handle.h"
#include "api/request.h"
#include "model/json.h"

int brig_environment_create(struct brig *b, const struct brig_environment *what, struct brig_result **ret,
			    struct brig_error *err)
{
	struct brig_environment known;
	struct brig_result *result;
	struct executor x;
	int rc;

	if (!b || !what || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_environment_create needs a handle, an environment and a place for the result");
	rc = environment_wish_read(what, &known, err);
	if (rc < 0)
		return rc;
	result = calloc(1, sizeof(*result));
	if (!result)
		return err_nomem(err);
	result_init_zeroed(&result->r);
	x = handle_executor(b);
	rc = environment_create(&x, &known, &result->r, err);
	if (rc < 0)
		brig_result_free(result);
	else
		*ret = result;
	return rc;
}

int brig_environment_check(const struct brig_environment *what, struct brig_error *err)
{
	struct brig_environment known;

	if (!what)
		return err_set(err, BRIG_E_USAGE, 0, "brig_environment_check needs an environment");
	return environment_wish_read(what, &known, err);
}

/* ---- documents ----------------------------------------------------------------------------------- */

static json_t *json_row(const struct environment_row *row)
{
	static const char *const set_name[] = {
		[ENVIRONMENT_SET_THERE] = "there", [ENVIRONMENT_SET_MISSING] = "missing"
	};
	json_t *doc;

	if (!row->env)
		return json_pack("{s:s, s:o}", "name", row->name, "problem", json_text(row->problem));
	doc = environment_json(row->env);
	if (doc && (json_object_del(doc, "version") < 0 ||
		    json_object_set_new(doc, "set", json_pack("s?", set_name[row->set])) < 0)) {
		json_decref(doc);
		doc = NULL;
	}
	return doc;
}

static int add_row(void *rows, const struct environment_row *row, struct brig_error *err)
{
	return json_array_append_new(rows, json_row(row)) < 0 ? err_nomem(err) : 0;
}

/* name: of the wanted one, NULL: all. */
static int list_rows(struct brig *b, const char *name, json_t **ret, struct brig_error *err)
{
	json_t *rows = json_array();
	int rc = rows ? environment_each(&b->recorder, policy_base(b->policy), name, add_row, rows, err)
		      : err_nomem(err);

	if (rc < 0)
		json_decref(rows);
	else
		*ret = rows;
	return rc;
}

int brig_environments_json(struct brig *b, char **ret, struct brig_error *err)
{
	json_t *rows = NULL;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_environments_json needs a handle and a place for the text");
	rc = list_rows(b, NULL, &rows, err);
	return rc < 0 ? rc : json_list_document("environments", rows, ret, err);
}

int brig_environment_json(struct brig *b, const char *name, char **ret, struct brig_error *err)
{
	json_t *rows = NULL;
	int rc;

	if (!b || !name || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_environment_json needs a handle, a name and a place for the text");
	rc = list_rows(b, name, &rows, err);
	if (rc < 0)
		return rc;
	*ret = json_dumps(json_array_get(rows, 0), JSON_COMPACT);
	json_decref(rows);
	return *ret ? 0 : err_nomem(err);
}

int brig_environment_remove(struct brig *b, const char *name, char **ret, struct brig_error *err)
{
	static const char *const left_name[] = { [ENVIRONMENT_LEFT_GONE] = "gone", [ENVIRONMENT_LEFT_KEPT] = "kept" };
	enum environment_left left;
	json_t *doc;
	int rc;

	if (!b || !name || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_environment_remove needs a handle, a name and a place for the text");
	rc = environment_remove(&b->recorder, policy_base(b->policy), name, &left, err);
	if (rc < 0)
		return rc;
	doc = json_pack("{s:o, s:s?}", "name", json_text(name), "packages", left_name[left]);
	*ret = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return *ret ? 0 : err_nomem(err);
}
