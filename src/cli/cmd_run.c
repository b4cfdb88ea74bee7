/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - `brig run`: runs one program, shows its output live, and exits with one status for verdict and program.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/source.h"
#include "cli/srt_settings.h"
#include "cli/ui.h"

struct run_values {
	const char *code, *lang;
	struct request_values request;
};

static const struct option_row run_options[] = {
	{ "code", 'c', OPTION_TEXT, "CODE", offsetof(struct run_values, code), NULL,
	  "run this text instead of a file" },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", offsetof(struct run_values, lang), NULL,
	  "the language; without it the file's extension, then its first line, decides" },
#define AT(member) offsetof(struct run_values, request.member)
#include "cli/request_options.def"
};

/* ---- the code -------------------------------------------------------------------------------- */

/* Loads a file, or the entry file of a directory. */
static int load_file(struct run_values *v, const char *path, struct source *source, struct brig_request *req,
		     struct buf *code, struct brig_error *err)
{
	int rc = source_find(path, v->request.workspace, source, err);
	const char *slash = strrchr(source->file, '/');
	AUTO_FD fd = FD_NONE;

	if (rc < 0)
		return rc;
	fd = request_open(source->file, FILE_STREAMS, err);
	if (fd < 0)
		return fd_move(&fd);
	req->file_name = slash ? slash + 1 : source->file;
	if (source->workspace[0])
		v->request.workspace = source->workspace;
	if (source->in_workspace[0])
		req->source_path = source->in_workspace;
	return request_read_all(fd, source->file, code, err);
}

/* Loads the code from exactly one of -c, '-', a file or a directory. */
static int load_code(struct run_values *v, const struct operands *ops, struct source *source, struct brig_request *req,
		     struct buf *code, struct brig_error *err)
{
	size_t sources = ops->words.n + (v->code != NULL);
	int rc = 0;

	if (sources == 0)
		return err_set(err, BRIG_E_USAGE, 0, "nothing to run: give a file, '-' for standard input, or -c CODE");
	if (sources > 1)
		return err_set(err, BRIG_E_USAGE, 0, "'%.80s' is one too many: arguments of the program go behind '--'",
			       ops->words.item[ops->words.n - 1]);
	if (v->code) {
		req->code = v->code;
		req->code_len = strlen(v->code);
		return 0;
	}
	if (str_eq(ops->words.item[0], "-"))
		rc = request_read_all(STDIN_FILENO, "standard input", code, err);
	else
		rc = load_file(v, ops->words.item[0], source, req, code, err);
	req->code = buf_str(code);
	req->code_len = code->len;
	return rc;
}

static int run_values(const struct command *self, struct run_values *v, const struct operands *ops)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	AUTO_BUF code = BUF_INIT(BRIG_CODE_MAX + 1);
	struct source source;
	AUTO_SRT srt = SRT_INIT;
	AUTO_FD input = FD_NONE;
	bool code_from_stdin = ops->words.n > 0 && str_eq(ops->words.item[0], "-");

	if (srt_settings_use(&v->request, &srt, &err) < 0 || load_code(v, ops, &source, &req, &code, &err) < 0 ||
	    srt_settings_keep(&v->request, &srt, &err) < 0 ||
	    request_stdin(&v->request, code_from_stdin, &req, &input, &err) < 0)
		return request_refuse(self, &v->request, &err);
	req.language = v->lang;
	req.args = ops->rest.item;
	req.n_args = ops->rest.n;
	return request_run(&v->request, &req, &(struct request_way){ .name = req.file_name });
}

static int run_main(const struct command *self, int argc, char **argv)
{
	struct run_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = run_values(self, &v, &ops);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_run = {
	.name = "run",
	.synopsis = "[OPTIONS] FILE|DIR [-- ARGS]",
	.summary = "run a program in a cell",
	.examples = "  brig run hello.py\n"
		    "  brig run -l python -c 'print(6 * 7)'\n"
		    "  brig run --timeout 5 --memory 256m --json job.js\n"
		    "  brig run --workspace . --apply tidy.py     # work on this folder, keep what it changed\n",
	.details = "FILE '-' reads the program from standard input.  A file in the workspace runs in its place,\n"
		   "with its neighbours; DIR is a workspace whose main.py, index.js, main.go ... runs.\n\n"
		   "Exit status: the program's own, 128 + signal if it crashed, or\n"
		   "  124  time limit (wall clock or cpu)       125  refused: nothing ran\n"
		   "  137  memory limit                         126  blocked by inspection: nothing ran\n"
		   "  123  output, disk or process limit        121  brig failed\n"
		   "  122  a promise was not kept               130  cancelled\n"
		   "    2  wrong use of the command line\n",
	.options = run_options,
	.n_options = ARRAY_LEN(run_options),
	.makes_cells = true,
	.asks_service = true,
	.gives_result = true,
	.run = run_main,
};
