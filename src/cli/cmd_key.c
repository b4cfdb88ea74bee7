/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_key.c - `brig key show` and `brig key rotate`: the key with which this host signs receipts and checkpoints. */
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

static int show_keys(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "KEY", "FROM", "UNTIL", "PUBLIC KEY" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_key };
	const struct key_values *v = values;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	document_table(&table, json_object_get(doc, "keys"), /* empty_too= */ true, v->no_color, &text);
	return ui_finish(&text, status);
}

static int ask_keys(struct brig *b, const void *values UNUSED, char **ret, struct brig_error *err)
{
	return brig_keys_json(b, ret, err);
}

static int rotate_key(struct brig *b, const void *values UNUSED, char **ret, struct brig_error *err)
{
	return brig_key_rotate(b, ret, err);
}

static int key_main(const struct command *self, int argc, char **argv)
{
	struct key_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .policy_file = "", .state_dir = v.state },
			.ask = self == &command_key_rotate ? rotate_key : ask_keys,
			.show = show_keys,
			.values = &v,
			.json = v.json });
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
