/* SPDX-License-Identifier: Apache-2.0 */
/* `brig upgrade-state`: converts what older versions left in the state directory to the current format. */
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

#include "base/str.h"

struct upgrade_values {
	const char *state;
	bool check, json, no_color;
};

#define AT(member) offsetof(struct upgrade_values, member)

static const struct option_row upgrade_options[] = {
	ROW_STATE,
	{ "check", 0, OPTION_FLAG, NULL, AT(check), NULL, "change nothing; exit status 1 if something is to do" },
	ROW_JSON,
	ROW_NO_COLOR,
};

static void add_part(struct ui_table *table, const json_t *row)
{
	char part[64], found[32], known[32], state[32], problem[512];
	bool bad = str_eq(document_text(row, "state", state, sizeof(state)), "unreadable");

	ui_table_add(table, document_text(row, "part", part, sizeof(part)), UI_PLAIN);
	ui_table_add(table, document_text(row, "found", found, sizeof(found)), UI_PLAIN);
	ui_table_add(table, document_text(row, "known", known, sizeof(known)), UI_PLAIN);
	ui_table_add(table, state, bad ? UI_RED : UI_PLAIN);
	ui_table_add(table, document_text(row, "problem", problem, sizeof(problem)), UI_PLAIN);
}

static size_t count_state(const json_t *doc, const char *wanted)
{
	const json_t *row;
	char state[32];
	size_t i, n = 0;

	json_array_foreach(json_object_get(doc, "parts"), i, row) n +=
		str_eq(document_text(row, "state", state, sizeof(state)), wanted);
	return n;
}

static int show_parts(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "PART", "FOUND", "KNOWN", "STATE", "" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_part };
	const struct upgrade_values *v = values;
	size_t done = count_state(doc, "upgraded"), old = count_state(doc, "old");
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char folder[1024];

	document_table(&table, json_object_get(doc, "parts"), /* empty_too= */ true, v->no_color, &text);
	buf_addf(&text, "\n%s: ", document_text(doc, "folder", folder, sizeof(folder)));
	if (status != EXIT_SUCCESS && old == 0)
		buf_adds(&text, "not everything can be read; what cannot was left as it is\n");
	else if (old > 0)
		buf_addf(&text, "%zu to bring up\n", old);
	else if (done > 0)
		buf_addf(&text, "%zu brought up\n", done);
	else
		buf_adds(&text, "nothing to do\n");
	return ui_finish(&text, status);
}

/* Parts that are old after an upgrade cannot be converted; after a mere check they still have to be. */
static int ask_parts(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	const struct upgrade_values *v = values;
	int rc = brig_state_upgrade(b, v->check ? BRIG_STATE_LOOK : 0, ret, err);
	json_t *doc = rc < 0 ? NULL : json_loads(*ret, 0, NULL);

	if (doc && count_state(doc, "old") > 0)
		rc = EXIT_FAILURE;
	json_decref(doc);
	return rc;
}

static int upgrade_main(const struct command *self, int argc, char **argv)
{
	struct upgrade_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .state_dir = v.state },
			.ask = ask_parts,
			.show = show_parts,
			.values = &v,
			.json = v.json,
			.not_ok = EXIT_FAILURE });
	options_release(self, &v, &ops);
	return status;
}

const struct command command_upgrade_state = {
	.name = "upgrade-state",
	.synopsis = "[OPTIONS]",
	.summary = "bring what an older brig recorded to today's form",
	.details =
		"Whoever writes to the state folder does this by itself; this command does it at once and says what\n"
		"it found.  A folder that a newer brig has used is refused.\n\n"
		"Exit status: 0 if all is in today's form, 1 if something is not, 125 if it is refused.\n",
	.examples = "  brig upgrade-state --check\n"
		    "  brig upgrade-state --state /var/lib/brig\n",
	.options = upgrade_options,
	.n_options = ARRAY_LEN(upgrade_options),
	.run = upgrade_main,
};
