/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_key.c - `brig key show` and `brig key rotate`: what this host signs receipts and checkpoints with. */
#include <string.h>

#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

struct key_values {
	const char *state;
	bool json, no_color;
};

#define AT(member) offsetof(struct key_values, member)
static const struct option_row key_options[] = {
	ROW_STATE,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	ROW_NO_COLOR,
};

static void add_key(struct ui_table *table, const json_t *row)
{
	char id[64], public[128], from[64], until[64];
	bool current = document_true(row, "current");

	ui_table_add(table, document_text(row, "id", id, sizeof(id)), UI_BOLD);
	ui_table_add(table, document_text(row, "from", from, sizeof(from)), UI_PLAIN);
	ui_table_add(table, current ? "in use" : document_text(row, "until", until, sizeof(until)),
		     current ? UI_GREEN : UI_DIM);
	ui_table_add(table, document_text(row, "public", public, sizeof(public)), UI_PLAIN);
}

static int keys_table(const char *json, bool no_color)
{
	static const char *const titles[] = { "KEY", "FROM", "UNTIL", "PUBLIC KEY" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	json_t *doc = document_read(json);
	const json_t *row;
	size_t i;

	if (!doc)
		return EXIT_FAILED;
	for (i = 0; i < ARRAY_LEN(titles); i++)
		ui_table_add(&table, titles[i], UI_BOLD);
	json_array_foreach(json_object_get(doc, "keys"), i, row) add_key(&table, row);
	ui_table_show(&table, ui_has_color(STDOUT_FILENO, no_color), &text);
	ui_table_release(&table);
	json_decref(doc);
	return ui_finish(&text, EXIT_SUCCESS);
}

static int with_keys(const struct key_values *v, int (*ask)(struct brig *b, char **ret, struct brig_error *err))
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = "", .state_dir = v->state };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc = brig_open(&opts, &b, &err);

	if (rc == 0)
		rc = ask(b, &json, &err);
	brig_close(b);
	if (rc < 0)
		return ui_fail(&err);
	return v->json ? document_print(json, EXIT_SUCCESS) : keys_table(json, v->no_color);
}

static int key_main(const struct command *self, int argc, char **argv)
{
	struct key_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = with_keys(&v, self == &command_key_rotate ? brig_key_rotate : brig_keys_json);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_key_show = {
	.name = "key show",
	.synopsis = "[OPTIONS]",
	.summary = "show the public keys of this host; the first one is made if there is none",
	.examples = "  brig key show\n",
	.options = key_options,
	.n_options = ARRAY_LEN(key_options),
	.run = key_main,
};

const struct command command_key_rotate = {
	.name = "key rotate",
	.synopsis = "[OPTIONS]",
	.summary = "sign with a new key from now on; the audit log notes it",
	.examples = "  brig key rotate\n",
	.options = key_options,
	.n_options = ARRAY_LEN(key_options),
	.run = key_main,
};
