/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - `brig mcp`: a server of the Model Context Protocol on standard input and output. */
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/ui.h"
#include "mcp/mcp.h"

struct mcp_values {
	const char *workspace, *policy, *preset, *trust, *state;
	struct words settings;
	bool apply, history;
};

#define AT(member) offsetof(struct mcp_values, member)
static const struct option_row mcp_options[] = {
	{ "workspace", 0, OPTION_TEXT, "DIR", AT(workspace), NULL,
	  "the project that tools work on; without it the client's first root, if it names one" },
	{ "apply", 0, OPTION_FLAG, NULL, AT(apply), NULL,
	  "write_file changes the project at once, instead of waiting for apply_changes" },
	{ "history", 0, OPTION_FLAG, NULL, AT(history), NULL,
	  "show executions that this server did not start, too: all of the state folder's" },
	ROW_POLICY,
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL, "of every run: untrusted, unknown or trusted" },
	{ "set", 's', OPTION_LIST, "KEY=VALUE", AT(settings), NULL,
	  "a setting that every run asks for; may be repeated" },
	ROW_STATE,
};

static int serve(const struct mcp_values *v)
{
	const struct mcp_options options = {
		.workspace = v->workspace,
		.policy = v->policy,
		.preset = v->preset,
		.trust = v->trust,
		.state = v->state,
		.settings = v->settings.item,
		.n_settings = v->settings.n,
		.apply = v->apply,
		.history = v->history,
	};
	struct brig_error err = BRIG_ERROR_INIT;
	int stop_fd = cancel_open();

	if (stop_fd < 0) {
		ui_say("cannot prepare for signals");
		return EXIT_FAILED;
	}
	/* Tools run brig commands, and history and workspaces must come from one state directory. */
	if (setenv("BRIG_HOST", "none", 1) < 0)
		return EXIT_FAILED;
	return mcp_serve_stdio(&options, stop_fd, &err) < 0 ? ui_fail(&err) : EXIT_SUCCESS;
}

static int mcp_main(const struct command *self, int argc, char **argv)
{
	struct mcp_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = serve(&v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_mcp = {
	.name = "mcp",
	.synopsis = "[OPTIONS]",
	.summary = "serve agents over the Model Context Protocol",
	.examples = "  brig mcp --workspace .\n",
	.details = "For the configuration of an agent: it starts this command and talks to it over standard input and\n"
		   "output.  Programs run in cells; what they and write_file change in the project waits until\n"
		   "apply_changes.  Ends when the input does.\n\n"
		   "Exit status: 0 when the input ended, 2 wrong use, 121 if the client could not be written to.\n",
	.options = mcp_options,
	.n_options = ARRAY_LEN(mcp_options),
	.run = mcp_main,
};
