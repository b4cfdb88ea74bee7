/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - finds the command, and brings the process into a defined state for it. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/service.h"
#include "cli/ui.h"
#include "server/role.h"

/*
 * Descriptors 0 to 2 may be closed (FD-03): then the next file that is opened would become the program's output.
 * open() returns the lowest free number, so one open for each gap fills it.
 */
static bool fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

/* Names that users try first. */
static const struct {
	const char *word, *command;
} aliases[] = {
	{ "--help", "help" },
	{ "-h", "help" },
	{ "--version", "version" },
	{ "-V", "version" },
};

static void replace_alias(char **word)
{
	static char command[16];

	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (str_eq(*word, aliases[i].word)) {
			(void)str_copy(command, sizeof(command), aliases[i].command);
			*word = command;
		}
}

/* `brig policy --help`: the first word of several commands, which is not a command itself. */
static bool asks_for_group_help(int argc, char **argv)
{
	return argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"));
}

int main(int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct command *cmd;
	int words = 0;

	if (!fill_standard_fds())
		return EXIT_FAILED;
	/*
	 * One heap that only grows, in small steps: calloc() knows that memory just added by the kernel is zero, and
	 * returning memory would require waiting for other CPUs.  Larger blocks are mapped separately.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
	(void)mallopt(M_TOP_PAD, 16 * 1024);
	(void)mallopt(M_TRIM_THRESHOLD, 1024 * 1024 * 1024);
	(void)signal(SIGPIPE, SIG_IGN); /* a closed reader must be a write error, not kill us */
	if (role_is_spawned(argc, argv))
		return role_main();
	if (argc > 1)
		replace_alias(&argv[1]);
	cmd = command_find(argc > 0 ? argc - 1 : 0, argv + 1, &words, &err);
	if (!cmd && asks_for_group_help(argc - 1, argv + 1))
		return command_help.run(&command_help, 1, argv + 1);
	if (!cmd)
		return ui_usage("", &err);
	if (cmd->makes_cells && !(cmd->asks_service && service_is_likely()))
		brig_fork_keeper(); /* having parsed nothing but the command's name */
	return cmd->run(cmd, argc - 1 - words, argv + 1 + words);
}
