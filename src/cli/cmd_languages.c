/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

struct languages_values {
	bool json, no_color;
};

#define AT(member) offsetof(struct languages_values, member)
static const struct option_row languages_options[] = {
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	ROW_NO_COLOR,
};

static void add_language(struct ui_table *table, const json_t *row)
{
	bool installed = document_true(row, "installed");
	char name[64], aliases[256], extensions[256], where[4096];
	const char *member = !installed                                      ? "missing"
			     : json_is_null(json_object_get(row, "runtime")) ? "compiler"
									     : "runtime";

	ui_table_add(table, document_text(row, "name", name, sizeof(name)), UI_BOLD);
	ui_table_add(table, document_text(row, "extensions", extensions, sizeof(extensions)), UI_PLAIN);
	ui_table_add(table, document_text(row, "aliases", aliases, sizeof(aliases)), UI_DIM);
	ui_table_add(table, installed ? "ok" : "missing", installed ? UI_GREEN : UI_YELLOW);
	ui_table_add(table, document_text(row, member, where, sizeof(where)), UI_PLAIN);
}

static int show_languages(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "LANGUAGE", "FILES", "ALSO", "STATE", "RUNTIME OR WHAT TO DO" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_language };
	const struct languages_values *v = values;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	document_table(&table, json_object_get(doc, "languages"), /* empty_too= */ true, v->no_color, &text);
	return ui_finish(&text, status);
}

static int ask_languages(struct brig *b, const void *values UNUSED, char **ret, struct brig_error *err)
{
	return brig_languages_json(b, ret, err);
}

static int languages_main(const struct command *self, int argc, char **argv)
{
	struct languages_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .policy_file = "" }, /* it needs no policy */
			.ask = ask_languages,
			.show = show_languages,
			.values = &v,
			.json = v.json });
	options_release(self, &v, &ops);
	return status;
}

const struct command command_languages = {
	.name = "languages",
	.synopsis = "[OPTIONS]",
	.summary = "list the languages and whether their runtimes are installed",
	.examples = "  brig languages\n",
	.options = languages_options,
	.n_options = ARRAY_LEN(languages_options),
	.run = languages_main,
};
