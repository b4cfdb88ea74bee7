/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/ui.h"

struct version_values {
	char none; /* no option yet */
};

static int version_main(const struct command *self, int argc, char **argv)
{
	struct version_values v = { 0 };
	struct operands ops = { 0 };
	AUTO_BUF line = BUF_INIT(UI_TEXT_MAX);
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops)) {
		buf_addf(&line, "brig %s\n", brig_version());
		status = ui_finish(&line, EXIT_SUCCESS);
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_version = {
	.name = "version",
	.synopsis = "",
	.summary = "show the version",
	.run = version_main,
};
