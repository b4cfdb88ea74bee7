/* SPDX-License-Identifier: Apache-2.0 */
/* The table of languages as a document: { "languages": [ { name, aliases, extensions, ... } ] }. */
#include "api/languages.h"

#include <jansson.h>
#include <limits.h>

#include "lang/lang.h"
#include "model/json.h"

/* At most max words; a NULL ends the list early. */
static json_t *json_words(const char *const *words, size_t max)
{
	json_t *array = json_array();

	for (size_t i = 0; i < max && words[i]; i++)
		if (json_array_append_new(array, json_string(words[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

/* The tool of a step; true if the step needs none. why says what is missing. */
static bool step_tool(const struct language *lang, const struct lang_step *step, char *path, size_t size,
		      struct brig_error *why)
{
	bool bind;

	path[0] = '\0';
	return !step->tool[0] || lang_find_tool(lang, step, path, size, &bind, why) == 0;
}

static json_t *json_language(const struct language *lang)
{
	struct brig_error why = BRIG_ERROR_INIT;
	char compiler[PATH_MAX] = "", runtime[PATH_MAX] = "";
	bool installed = (!lang->compiles || step_tool(lang, &lang->compile, compiler, sizeof(compiler), &why)) &&
			 step_tool(lang, &lang->run, runtime, sizeof(runtime), &why);

	return json_pack("{s:s, s:o, s:o, s:b, s:b, s:s?, s:s?, s:s?}", "name", lang->name, "aliases",
			 json_words(lang->aliases, ARRAY_LEN(lang->aliases)), "extensions",
			 json_words(lang->extensions, ARRAY_LEN(lang->extensions)), "compiles", lang->compiles,
			 "installed", installed, "compiler", *compiler ? compiler : NULL, "runtime",
			 *runtime ? runtime : NULL, "missing", installed ? NULL : why.msg);
}

int languages_json(char **ret, struct brig_error *err)
{
	json_t *rows = json_array();
	int failed = 0;

	for (size_t i = 0; i < language_count; i++)
		failed |= json_array_append_new(rows, json_language(&languages[i]));
	if (failed) {
		json_decref(rows);
		rows = NULL;
	}
	return json_list_document("languages", rows, ret, err);
}
