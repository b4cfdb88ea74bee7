/* SPDX-License-Identifier: Apache-2.0 */
/* `brig doctor`: what this host can enforce, row by row, and what to do about the rest. */
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

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
	ROW_NO_COLOR,
};

static enum ui_color status_color(const char *status, bool required)
{
	if (str_eq(status, "ok"))
		return UI_GREEN;
	if (str_eq(status, "missing"))
		return required ? UI_RED : UI_YELLOW;
	return UI_DIM;
}

/* The area is shown once, in its first row. */
static void add_row(struct ui_table *table, const json_t *row, char *area, size_t area_size)
{
	char name[128], status[64], detail[8192], this_area[64];

	document_text(row, "area", this_area, sizeof(this_area));
	ui_table_add(table, str_eq(this_area, area) ? "" : this_area, UI_BOLD);
	(void)str_copy(area, area_size, this_area);
	ui_table_add(table, document_text(row, "name", name, sizeof(name)), UI_PLAIN);
	document_text(row, "status", status, sizeof(status));
	ui_table_add(table, status, status_color(status, document_true(row, "required")));
	ui_table_add(table, document_text(row, "detail", detail, sizeof(detail)), UI_PLAIN);
}

/* Fixes are sentences and commands: too long for a column. */
static void add_fix(struct buf *out, const json_t *row, bool has_color, bool *first)
{
	char name[128], fix[4096], status[64];

	if (!str_eq(document_text(row, "status", status, sizeof(status)), "missing") ||
	    !*document_text(row, "fix", fix, sizeof(fix)))
		return;
	if (*first)
		ui_paint(out, has_color, UI_BOLD, "\nWhat to do\n");
	*first = false;
	buf_addf(out, "  %s%s: %s\n", document_text(row, "name", name, sizeof(name)),
		 document_true(row, "required") ? "" : " (not needed)", fix);
}

static int doctor_table(const json_t *doc, bool no_color)
{
	struct ui_table table = { .n_columns = 4 };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool ok = document_true(doc, "ok"), first = true;
	bool has_color = ui_has_color(STDOUT_FILENO, no_color);
	const json_t *row, *rows = json_object_get(doc, "rows");
	char area[64] = "";
	size_t i;

	json_array_foreach(rows, i, row) add_row(&table, row, area, sizeof(area));
	ui_table_show(&table, has_color, &text);
	ui_table_release(&table);
	json_array_foreach(rows, i, row) add_fix(&text, row, has_color, &first);
	buf_adds(&text, "\n");
	ui_paint(&text, has_color, ok ? UI_GREEN : UI_RED,
		 ok ? "This host can keep the policy." : "This host cannot keep the policy.");
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
	int status, rc;

	if (brig_open(&opts, &b, &err) < 0)
		return command_open_failed(v->policy, &err);
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
