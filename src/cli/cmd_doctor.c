/* SPDX-License-Identifier: Apache-2.0 */
/* `brig doctor`: what this host can enforce, row by row, and what to do about the rest. */
#include "cli/commands.h"
#include "cli/document.h"

#include "base/str.h"

struct doctor_values {
	const char *policy, *preset;
	bool json, no_color;
};

#define AT(member) offsetof(struct doctor_values, member)
static const struct option_row doctor_options[] = {
	{ "policy", 'p', OPTION_TEXT, "FILE", AT(policy), NULL, "the policy that has to be kept" },
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	{ "no-color", 0, OPTION_FLAG, NULL, AT(no_color), NULL, "no colours" },
};

static void add_row(struct ui_table *table, const json_t *row)
{
	char name[128], state[64], detail[1024], fix[2048];
	bool ok = str_eq(document_text(row, "state", state, sizeof(state)), "ok");
	bool required = document_true(row, "required");

	ui_table_add(table, document_text(row, "name", name, sizeof(name)), UI_PLAIN);
	ui_table_add(table, state, ok ? UI_GREEN : required ? UI_RED : UI_YELLOW);
	ui_table_add(table, document_text(row, "detail", detail, sizeof(detail)), UI_PLAIN);
	ui_table_add(table, ok ? "" : document_text(row, "fix", fix, sizeof(fix)), UI_PLAIN);
}

static int doctor_table(const json_t *doc, bool no_color)
{
	struct ui_table table = { .n_columns = 4 };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool ok = document_true(doc, "ok");
	bool has_color = ui_has_color(STDOUT_FILENO, no_color);
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "rows"), i, row) add_row(&table, row);
	ui_table_show(&table, has_color, &text);
	ui_table_release(&table);
	buf_adds(&text, "\n");
	ui_paint(&text, has_color, ok ? UI_GREEN : UI_RED,
		 ok ? "This host can keep the policy."
		    : "This host cannot keep the policy: see what is missing above.");
	buf_adds(&text, "\n");
	return ui_finish(&text, ok ? EXIT_SUCCESS : EXIT_FAILURE);
}

static int show_host(const struct doctor_values *v)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy, .preset = v->preset };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	json_t *doc;
	int status, rc = brig_open(&opts, &b, &err);

	if (rc == 0)
		rc = brig_doctor_json(b, &json, &err);
	brig_close(b);
	if (rc < 0)
		return ui_fail(&err);
	doc = document_read(json);
	if (!doc)
		return EXIT_FAILED;
	if (v->json)
		status = document_print(json, document_true(doc, "ok") ? EXIT_SUCCESS : EXIT_FAILURE);
	else
		status = doctor_table(doc, v->no_color);
	json_decref(doc);
	return status;
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	struct doctor_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = show_host(&v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_doctor = {
	.name = "doctor",
	.synopsis = "[OPTIONS]",
	.summary = "show what this host can enforce, and the fix for what it cannot",
	.details = "Exit status: 0 if the policy can be kept here, 1 if it cannot.\n",
	.options = doctor_options,
	.n_options = ARRAY_LEN(doctor_options),
	.run = doctor_main,
};
