/* SPDX-License-Identifier: Apache-2.0 */
/* The documents behind `brig policy show --json` and `brig policy check --json`. */
#include "policy/internal.h"

#include <jansson.h>
#include <stdio.h>

#include "base/str.h"

static const char *const unit_name[] = {
	[UNIT_NONE] = "",       [UNIT_BYTES] = "bytes",     [UNIT_MILLIS] = "ms",
	[UNIT_COUNT] = "count", [UNIT_PERCENT] = "percent",
};

static json_t *list_json(const struct setting_list *list)
{
	json_t *array = json_array();

	for (const char *item = NULL; (item = setting_list_next(list, item));)
		if (json_array_append_new(array, json_string(item)) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *value_json(const struct settings *s, enum setting_key k)
{
	const struct setting_info *info = &setting_info[k];
	const void *at = setting_at_const(s, k);

	switch (info->kind) {
	case KIND_NUM:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case KIND_BOOL:
		return json_boolean(*(const bool *)at);
	case KIND_ENUM:
		return json_string(info->choices[*(const int *)at]);
	case KIND_TEXT:
		return json_string(at);
	case KIND_LIST:
		return list_json(at);
	}
	return NULL;
}

static json_t *setting_json(const struct policy_resolved *r, enum setting_key k)
{
	const struct setting_info *info = &setting_info[k];
	char text[1024];

	return json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:s}", "key", info->name, "value", value_json(&r->set, k),
			 "text", policy_value_text(&r->set, k, text, sizeof(text)), "unit", unit_name[info->unit],
			 "layer", policy_layer_name[r->origin[k].layer], "place", r->origin[k].place, "section",
			 info->section, "help", info->help);
}

/* Writes the document and lets go of it; NULL stands for memory that ran out while it was made. */
static int dump(json_t *doc, char **ret, struct brig_error *err)
{
	char *text = doc ? json_dumps(doc, JSON_INDENT(2)) : NULL;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

int policy_to_json(const struct policy_resolved *r, char **ret, struct brig_error *err)
{
	json_t *rows = json_array();
	int bad = 0;

	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		bad |= json_array_append_new(rows, setting_json(r, k));
	if (bad) {
		json_decref(rows);
		return err_nomem(err);
	}
	return dump(json_pack("{s:s, s:s, s:o}", "trust", trust_name[r->trust], "preset", r->preset, "settings", rows),
		    ret, err);
}

int policy_diags_to_json(const char *path, const struct policy_diags *d, char **ret, struct brig_error *err)
{
	json_t *rows = json_array();
	char shown[1024];
	int bad = 0;

	for (size_t i = 0; i < d->n; i++)
		bad |= json_array_append_new(rows, json_pack("{s:s, s:i, s:i, s:s}", "place", d->row[i].place, "line",
							     (int)d->row[i].line, "column", (int)d->row[i].column,
							     "message", d->row[i].msg));
	if (bad) {
		json_decref(rows);
		return err_nomem(err);
	}
	return dump(json_pack("{s:s, s:b, s:i, s:o}", "path", printable(path ? path : "", shown, sizeof(shown)),
			      "valid", d->n == 0, "dropped", (int)d->dropped, "errors", rows),
		    ret, err);
}
