/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/ui.h"

static int show_page(const struct command *cmd)
{
	AUTO_BUF page = BUF_INIT(UI_TEXT_MAX);

	if (cmd)
		options_help(cmd, &page);
	else
		commands_help(&page);
	return ui_finish(&page, EXIT_SUCCESS);
}

static int help_main(const struct command *self UNUSED, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct command *cmd;
	int words;

	if (argc == 0)
		return show_page(NULL);
	cmd = command_find(argc, argv, &words, &err);
	return cmd ? show_page(cmd) : ui_usage("", &err);
}

const struct command command_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.summary = "show this list, or the help of a command",
	.run = help_main,
};
