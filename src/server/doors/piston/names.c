/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - languages whose names in Piston differ from brig's */
#include "base/str.h"
#include "server/doors/piston/job.h"

#define VERSION_NONE "1.0.0" /* for a runtime whose version is unknown */
#define OTHERS_MAX   6

static const struct names {
	const char *ours, *theirs, *others[OTHERS_MAX];
} rows[] = {
	{ "cpp", "c++", { "cpp", "g++", "cxx", "cplusplus" } },
	{ "bash", "bash", { "sh", "shell" } },
	{ "shell", "dash", { "dash" } },
	{ "typescript", "typescript", { "ts", "node-ts", "tsc", "tsx", "ts-node" } },
	{ "ruby", "ruby", { "ruby3", "rb" } },
	{ "r", "rscript", { "r", "rlang" } },
};

static const struct names *names_of(const json_t *language)
{
	const char *name = json_string_value(json_object_get(language, "name"));

	for (size_t i = 0; name && i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].ours, name))
			return &rows[i];
	return NULL;
}

static bool is_called(const struct names *row, const char *name)
{
	if (str_eq(row->theirs, name))
		return true;
	for (size_t i = 0; i < OTHERS_MAX && row->others[i]; i++)
		if (str_eq(row->others[i], name))
			return true;
	return false;
}

json_t *piston_find(json_t *languages, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *language = is_called(&rows[i], name) ? door_language(languages, rows[i].ours) : NULL;

		if (language)
			return language;
	}
	return door_language(languages, name);
}

const char *piston_name(const json_t *language)
{
	const struct names *row = names_of(language);
	const char *name = json_string_value(json_object_get(language, "name"));

	return row ? row->theirs : name ? name : "";
}

json_t *piston_aliases(const json_t *language)
{
	const struct names *row = names_of(language);
	json_t *list;

	if (!row)
		return json_incref(json_object_get(language, "aliases"));
	list = json_array();
	for (size_t i = 0; i < OTHERS_MAX && row->others[i]; i++)
		(void)json_array_append_new(list, json_string(row->others[i]));
	return list;
}

const char *piston_version(const json_t *language)
{
	const char *text = json_string_value(json_object_get(language, "version"));

	return text ? text : VERSION_NONE;
}
