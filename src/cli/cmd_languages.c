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

static int languages_table(const char *json, bool no_color)
{
	static const char *const titles[] = { "LANGUAGE", "FILES", "ALSO", "STATE", "RUNTIME OR WHAT TO DO" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	json_t *doc = document_read(json);
	const json_t *row;
	size_t i;

	if (!doc)
		return EXIT_FAILED;
	for (i = 0; i < ARRAY_LEN(titles); i++)
		ui_table_add(&table, titles[i], UI_BOLD);
	json_array_foreach(json_object_get(doc, "languages"), i, row) add_language(&table, row);
	ui_table_show(&table, ui_has_color(STDOUT_FILENO, no_color), &text);
	ui_table_release(&table);
	json_decref(doc);
	return ui_finish(&text, EXIT_SUCCESS);
}

static int show_languages(const struct languages_values *v)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = "" }; /* languages need no policy */
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc = brig_open(&opts, &b, &err);

	if (rc == 0)
		rc = brig_languages_json(b, &json, &err);
	brig_close(b);
	if (rc < 0)
		return ui_fail(&err);
	return v->json ? document_print(json, EXIT_SUCCESS) : languages_table(json, v->no_color);
}

static int languages_main(const struct command *self, int argc, char **argv)
{
	struct languages_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = show_languages(&v);
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
