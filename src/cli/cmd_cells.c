/* SPDX-License-Identifier: Apache-2.0 */
/* `brig ps` and `brig reap`: lists cells of all backends, and removes those whose owner is dead. */
#include <stdio.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

struct cells_values {
	const char *policy;
	bool json, no_color;
	bool reap; /* determined by the command, not an option */
};

#define AT(member) offsetof(struct cells_values, member)
static const struct option_row cells_options[] = {
	{ "policy", 'p', OPTION_TEXT, "FILE", AT(policy), NULL, "the policy, which says where the engine is" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	ROW_NO_COLOR,
};

static const char *state_of(const json_t *row)
{
	return document_true(row, "orphan") ? "orphan" : document_true(row, "waiting") ? "waiting" : "alive";
}

static void add_cell(struct ui_table *table, const json_t *row, bool removed)
{
	static const char *const texts[] = { "id", "backend", "language", "owner" };
	const char *state = removed ? "removed" : state_of(row);
	char text[128], age[32];
	json_int_t ms = json_integer_value(json_object_get(row, "age_ms"));

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ui_table_add(table, document_text(row, texts[i], text, sizeof(text)), i == 0 ? UI_BOLD : UI_PLAIN);
	ui_table_add(table, ui_millis(age, sizeof(age), (uint64_t)ms), UI_PLAIN);
	ui_table_add(table, state, str_eq(state, "orphan") ? UI_RED : UI_GREEN);
	ui_table_add(table, document_text(row, "name", text, sizeof(text)), UI_DIM);
}

static int show_cells(const json_t *doc, const void *values, int status)
{
	const struct cells_values *v = values;
	static const char *const titles[] = { "RUN", "BACKEND", "LANGUAGE", "OWNER", "AGE", "STATE", "NAME" };
	const json_t *row, *rows = json_object_get(doc, v->reap ? "removed" : "cells");
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool has_color = ui_has_color(STDOUT_FILENO, v->no_color);
	char backend[32], note[1024];
	size_t i;

	for (i = 0; i < ARRAY_LEN(titles); i++)
		ui_table_add(&table, titles[i], UI_BOLD);
	json_array_foreach(rows, i, row) add_cell(&table, row, v->reap);
	if (json_array_size(rows) > 0)
		ui_table_show(&table, has_color, &text);
	else
		buf_adds(&text, v->reap ? "Nothing to remove.\n" : "No cells.\n");
	ui_table_release(&table);
	json_array_foreach(json_object_get(doc, "notes"), i, row)
		ui_say("note: %s: %s", document_text(row, "backend", backend, sizeof(backend)),
		       document_text(row, "note", note, sizeof(note)));
	return ui_finish(&text, status);
}

static int ask_cells(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	const struct cells_values *v = values;

	return v->reap ? brig_reap_json(b, ret, err) : brig_ps_json(b, ret, err);
}

static int cells_main(const struct command *self, int argc, char **argv)
{
	struct cells_values v = { .reap = self == &command_reap };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .policy_file = v.policy },
			.ask = ask_cells,
			.show = show_cells,
			.values = &v,
			.json = v.json,
			.not_ok = EXIT_FAILED });
	options_release(self, &v, &ops);
	return status;
}

const struct command command_ps = {
	.name = "ps",
	.synopsis = "[OPTIONS]",
	.summary = "list the cells of all backends that are there now",
	.examples = "  brig ps\n",
	.details = "A cell whose owner is dead is an orphan; 'brig reap' removes it.  One that is kept ready for\n"
		   "a later run is waiting.  A backend that is not there, such as an engine that does not run,\n"
		   "is a note.\n\n"
		   "Exit status: 0, or 121 if a backend could not be asked.\n",
	.options = cells_options,
	.n_options = ARRAY_LEN(cells_options),
	.run = cells_main,
};

const struct command command_reap = {
	.name = "reap",
	.synopsis = "[OPTIONS]",
	.summary = "remove the cells whose owner is dead",
	.examples = "  brig reap\n",
	.details = "Cells clean up after themselves, also when brig is killed; this is for what is left when\n"
		   "everything was killed at once.  Cells of a living brig are never touched.\n\n"
		   "Exit status: 0, or 121 if something could not be removed.\n",
	.options = cells_options,
	.n_options = ARRAY_LEN(cells_options),
	.run = cells_main,
};
