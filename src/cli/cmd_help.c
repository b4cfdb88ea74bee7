/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/ui.h"

static int help_main(const struct command *self UNUSED, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF page = BUF_INIT(UI_TEXT_MAX);
	const struct command *cmd = NULL;
	int words;

	if (argc == 0 || str_eq(argv[0], "--help")) {
		commands_help(&page);
	} else if (argc > 1 || !commands_group_help(argv[0], &page)) {
		cmd = command_find(argc, argv, &words, &err);
		if (!cmd)
			return ui_usage("", &err);
		options_help(cmd, &page);
	}
	return ui_finish(&page, EXIT_SUCCESS);
}

const struct command command_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.summary = "show this list, or the help of a command",
	.examples = "  brig help run\n",
	.run = help_main,
};
