/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_exec.c - `brig exec`: runs a command of this host's programs, or a shell command line, in a cell. */
#include <string.h>

#include "base/fd.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/srt_settings.h"
#include "cli/ui.h"

struct exec_values {
	const char *shell;
	struct request_values request;
};

static const struct option_row exec_options[] = {
	{ "shell", 'c', OPTION_TEXT, "LINE", offsetof(struct exec_values, shell), NULL,
	  "run this line with sh instead of a program with arguments" },
#define AT(member) offsetof(struct exec_values, request.member)
#include "cli/request_options.def"
};

/* Takes the command from the operands, before or after '--', or from --shell. */
static int choose_command(const struct exec_values *v, const struct operands *ops, struct brig_request *req,
			  struct brig_error *err)
{
	if (ops->words.n > 0)
		return err_set(err, BRIG_E_USAGE, 0, "the command goes behind '--': brig exec [OPTIONS] -- %.80s ...",
			       ops->words.item[0]);
	if (v->shell && ops->rest.n > 0)
		return err_set(err, BRIG_E_USAGE, 0, "--shell and a command behind '--' exclude each other");
	if (!v->shell && ops->rest.n == 0)
		return err_set(err, BRIG_E_USAGE, 0, "nothing to run: give a command behind '--', or --shell LINE");
	req->kind = v->shell ? BRIG_KIND_SHELL : BRIG_KIND_COMMAND;
	req->code = v->shell;
	req->code_len = v->shell ? strlen(v->shell) : 0;
	req->args = ops->rest.item;
	req->n_args = ops->rest.n;
	return 0;
}

static int exec_values(const struct command *self, struct exec_values *v, const struct operands *ops)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	AUTO_SRT srt = SRT_INIT;
	AUTO_FD input = FD_NONE;

	if (choose_command(v, ops, &req, &err) < 0 || srt_settings_use(&v->request, &srt, &err) < 0 ||
	    request_stdin(&v->request, false, &req, &input, &err) < 0)
		return request_refuse(self, &v->request, &err);
	return request_run(&v->request, &req, &(struct request_way){ .name = "command" });
}

static int exec_main(const struct command *self, int argc, char **argv)
{
	struct exec_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = exec_values(self, &v, &ops);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_exec = {
	.name = "exec",
	.synopsis = "[OPTIONS] -- COMMAND [ARGS]",
	.summary = "run a command in a cell",
	.examples = "  brig exec -- ls -l\n"
		    "  brig exec --workspace . --shell 'make && ./app'\n",
	.details = "COMMAND is executed without a shell; a name without a slash is looked for in\n"
		   "/usr/local/bin, /usr/bin and /bin of the cell.\n\n"
		   "Exit status: as of 'brig run'; a command that is not there is 125 (refused) where brig\n"
		   "can know it beforehand, else 127.\n",
	.options = exec_options,
	.n_options = ARRAY_LEN(exec_options),
	.makes_cells = true,
	.asks_service = true,
	.gives_result = true,
	.run = exec_main,
};
