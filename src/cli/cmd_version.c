/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

struct version_values {
	bool json;
};

#define AT(member) offsetof(struct version_values, member)
static const struct option_row version_options[] = { ROW_JSON };

static int show_json(void)
{
	json_t *doc = json_pack("{s:s, s:s}", "name", "brig", "version", brig_version());
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (!text) {
		ui_say("no memory left");
		return EXIT_FAILED;
	}
	return document_print(text, EXIT_SUCCESS);
}

static int show_line(void)
{
	AUTO_BUF line = BUF_INIT(UI_TEXT_MAX);

	buf_addf(&line, "brig %s\n", brig_version());
	return ui_finish(&line, EXIT_SUCCESS);
}

static int version_main(const struct command *self, int argc, char **argv)
{
	struct version_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = v.json ? show_json() : show_line();
	options_release(self, &v, &ops);
	return status;
}

const struct command command_version = {
	.name = "version",
	.synopsis = "[OPTIONS]",
	.summary = "show the version",
	.examples = "  brig version --json\n",
	.options = version_options,
	.n_options = ARRAY_LEN(version_options),
	.run = version_main,
};
