/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - `brig run`: one program, its output live, one exit status for verdict and program together.
 *
 * It uses the library like any third party.  Nothing is captured that is shown already: only --json keeps
 * output in the result.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/report.h"
#include "cli/ui.h"

struct run_values {
	const char *code, *lang, *policy, *preset, *trust, *input, *state, *receipt;
	bool json, watch, summary, raw, no_color;
	struct words env;
	struct wishes wishes;
};

#define AT(member) offsetof(struct run_values, member)
static const struct option_row run_options[] = {
	{ "code", 'c', OPTION_TEXT, "CODE", AT(code), NULL, "run this text instead of a file" },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", AT(lang), NULL,
	  "the language; without it the file's extension, then its first line, decides" },
	{ "policy", 'p', OPTION_TEXT, "FILE", AT(policy), NULL,
	  "policy file; without it $BRIG_POLICY, then /etc/brig/sandbox.yaml if it exists" },
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL, "untrusted, unknown or trusted" },
	{ "backend", 0, OPTION_WISH, "NAME", AT(wishes), "backend", "what makes the cell" },
	{ "timeout", 0, OPTION_WISH, "TIME", AT(wishes), "timeout", "wall-clock limit: 5, 1.5s, 200ms, 2m" },
	{ "memory", 'm', OPTION_WISH, "SIZE", AT(wishes), "mem_limit", "memory limit: 256m, 1g" },
	{ "cpus", 0, OPTION_WISH, "COUNT", AT(wishes), "cpu_count", "share of cpu time: 0.5 is half of one cpu" },
	{ "pids", 0, OPTION_WISH, "COUNT", AT(wishes), "pids_limit", "processes and threads at once" },
	{ "disk", 0, OPTION_WISH, "SIZE", AT(wishes), "disk_limit", "bytes the program may write to files" },
	{ "output-limit", 0, OPTION_WISH, "SIZE", AT(wishes), "output_limit", "bytes of stdout and stderr together" },
	{ "no-inspect", 0, OPTION_FIXED_WISH, "false", AT(wishes), "inspection",
	  "do not read the code before it runs; only with --trust trusted" },
	{ "set", 's', OPTION_WISH, "KEY=VALUE", AT(wishes), NULL, "any other setting; 'brig policy show' lists them" },
	{ "env", 'e', OPTION_LIST, "NAME=VALUE", AT(env), NULL, "environment of the program; may be repeated" },
	{ "stdin", 'i', OPTION_TEXT, "FILE", AT(input), NULL,
	  "the program's input: a file, '-' for our own (the default), 'none' for empty" },
	{ "receipt", 0, OPTION_TEXT, "FILE", AT(receipt), NULL,
	  "write a signed statement about this run there, for 'brig receipt verify'" },
	{ "state", 0, OPTION_TEXT, "DIR", AT(state), NULL,
	  "folder of audit log, history and cache; without it $BRIG_STATE, then /var/lib/brig for root and "
	  "~/.local/state/brig for others" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL,
	  "print the whole result as JSON instead of the program's output" },
	{ "watch", 'w', OPTION_FLAG, NULL, AT(watch), NULL, "show cpu, memory, processes and output while it runs" },
	{ "summary", 0, OPTION_FLAG, NULL, AT(summary), NULL,
	  "end with one line on stderr, even if it is no terminal" },
	{ "raw", 0, OPTION_FLAG, NULL, AT(raw), NULL, "let control characters of the program reach the terminal" },
	{ "no-color", 0, OPTION_FLAG, NULL, AT(no_color), NULL, "no colours" },
};

/* ---- the code -------------------------------------------------------------------------------- */

/* Everything from a descriptor, up to what the library accepts and one byte more, for it to refuse. */
static int read_code(int fd, const char *name, struct buf *ret, struct brig_error *err)
{
	char piece[16384];
	ssize_t n;

	do {
		n = fd_read_all(fd, piece, sizeof(piece));
		if (n < 0)
			return err_set(err, BRIG_E_USAGE, (int)-n, "cannot read '%.200s'", name);
		buf_add(ret, piece, (size_t)n);
	} while ((size_t)n == sizeof(piece) && !ret->full);
	return ret->no_memory ? err_nomem(err) : 0;
}

static int load_file(const char *path, struct brig_request *req, struct buf *code, struct brig_error *err)
{
	const char *slash = strrchr(path, '/');
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot open '%.200s'", path);
	req->file_name = slash ? slash + 1 : path;
	return read_code(fd, path, code, err);
}

/* Where the code comes from: -c, '-' or a file.  Exactly one of them. */
static int load_code(const struct run_values *v, const struct operands *ops, struct brig_request *req, struct buf *code,
		     struct brig_error *err)
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
		rc = read_code(STDIN_FILENO, "standard input", code, err);
	else
		rc = load_file(ops->words.item[0], req, code, err);
	req->code = buf_str(code);
	req->code_len = code->len;
	return rc;
}

/* ---- the program's input ---------------------------------------------------------------------- */

/* Reading from a terminal that belongs to somebody else would stop us. */
static bool may_read_own_stdin(void)
{
	return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* *ret_fd is opened here and ours to close; the request borrows it. */
static int choose_stdin(const struct run_values *v, const struct operands *ops, struct brig_request *req, int *ret_fd,
			struct brig_error *err)
{
	bool code_from_stdin = ops->words.n > 0 && str_eq(ops->words.item[0], "-");
	const char *wanted = v->input ? v->input : code_from_stdin ? "none" : "-";

	if (str_eq(wanted, "none"))
		return 0;
	if (str_eq(wanted, "-")) {
		if (code_from_stdin)
			return err_set(err, BRIG_E_USAGE, 0,
				       "standard input cannot be both the code and the program's input");
		req->stdin_fd = may_read_own_stdin() ? STDIN_FILENO : -1;
		return 0;
	}
	*ret_fd = open(wanted, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (*ret_fd < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot open '%.200s' for the program's input", wanted);
	req->stdin_fd = *ret_fd;
	return 0;
}

/* ---- the run ---------------------------------------------------------------------------------- */

static int show_json(const struct brig_result *r)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF line = BUF_INIT(SIZE_MAX / 2);
	AUTO_TEXT json = NULL;

	if (brig_result_json(r, &json, &err) < 0)
		return ui_fail(&err);
	buf_adds(&line, json);
	buf_adds(&line, "\n");
	return ui_finish(&line, brig_result_status(r));
}

static int show_end(const struct run_values *v, const char *name, const struct live *live, const struct brig_result *r)
{
	int status = brig_result_status(r);

	if (v->json)
		status = show_json(r);
	else
		report_remarks(r, name);
	if (v->summary || (!v->json && live->err.is_terminal))
		report_summary(r, ui_has_color(STDERR_FILENO, v->no_color));
	if (live->out.error == ECANCELED && status == EXIT_SUCCESS)
		status = EXIT_CANCELLED; /* part of the output was not waited for */
	if (live->out.error && live->out.error != EPIPE && live->out.error != ECANCELED) {
		ui_say("cannot write the program's output: %s", strerrordesc_np(live->out.error));
		status = EXIT_FAILED;
	}
	return status;
}

/* What cannot wait for the end, on a line of its own before the program's first. */
static void on_notice(void *user UNUSED, const char *text)
{
	ui_say("%s", text);
}

/* Before the run: a place that cannot be written should not cost one. */
static int open_receipt(const char *path, int *ret)
{
	if (!path)
		return 0;
	*ret = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (*ret < 0)
		ui_say("cannot open '%.200s' for the receipt: %s", path, strerrordesc_np(errno));
	return *ret < 0 ? -1 : 0;
}

/* The exit status: a run that ended well without the receipt that was asked for did not end well. */
static int write_receipt(const char *path, int fd, const char *text, int status)
{
	int rc = -ENODATA;

	if (text && ftruncate(fd, 0) < 0 && errno != EINVAL) /* a pipe has no length */
		rc = -errno;
	else if (text)
		rc = ui_write(fd, text, strlen(text), -1);
	if (rc == 0)
		rc = ui_write(fd, "\n", 1, -1);
	if (rc == 0)
		return status;
	ui_say("no receipt in '%.200s': %s", path, text ? strerrordesc_np(-rc) : "none could be made");
	return status == EXIT_SUCCESS ? EXIT_FAILED : status;
}

static int run_request(const struct run_values *v, struct brig_request *req)
{
	const struct brig_open_opts opts = {
		.size = sizeof(opts),
		.policy_file = v->policy,
		.preset = v->preset,
		.state_dir = v->state,
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *result = NULL;
	struct brig *b = NULL;
	struct live live;
	AUTO_FD receipt = FD_NONE;
	int status;

	live_init(&live, req->cancel_fd, v->raw, v->watch);
	req->user = &live;
	req->on_output = v->json ? NULL : live_on_output;
	req->on_sample = live_on_sample; /* also a chance to catch up with a slow reader */
	req->on_notice = on_notice;
	req->flags = (v->json ? 0 : BRIG_RUN_NO_CAPTURE) | (v->receipt ? BRIG_RUN_RECEIPT : 0);
	if (open_receipt(v->receipt, &receipt) < 0)
		return EXIT_USAGE;
	if (brig_open(&opts, &b, &err) < 0)
		return command_open_failed(v->policy, &err);
	if (brig_run(b, req, &result, &err) < 0) {
		status = ui_fail(&err);
	} else {
		live_finish(&live);
		status = show_end(v, req->file_name, &live, result);
		if (v->receipt)
			status = write_receipt(v->receipt, receipt, brig_result_receipt(result), status);
	}
	brig_result_free(result);
	brig_close(b);
	return status;
}

static int run_values(const struct command *self, const struct run_values *v, const struct operands *ops)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	AUTO_BUF code = BUF_INIT(BRIG_CODE_MAX + 1);
	AUTO_FD input = FD_NONE;

	if (load_code(v, ops, &req, &code, &err) < 0 || choose_stdin(v, ops, &req, &input, &err) < 0)
		return ui_usage(self->name, &err);
	req.language = v->lang;
	req.trust = v->trust;
	req.args = ops->rest.item;
	req.n_args = ops->rest.n;
	req.env = v->env.item;
	req.n_env = v->env.n;
	req.options = v->wishes.item;
	req.n_options = v->wishes.n;
	req.cancel_fd = cancel_open();
	if (req.cancel_fd < 0) {
		ui_say("cannot prepare for signals: %s", strerrordesc_np(-req.cancel_fd));
		return EXIT_FAILED;
	}
	return run_request(v, &req);
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
	.synopsis = "[OPTIONS] FILE [-- ARGS]",
	.summary = "run a program in a cell",
	.details = "FILE '-' reads the program from standard input.\n\n"
		   "Exit status: the program's own, 128 + signal if it crashed, or\n"
		   "  124  time limit (wall clock or cpu)       125  refused: nothing ran\n"
		   "  137  memory limit                         126  blocked by inspection: nothing ran\n"
		   "  123  output, disk or process limit        121  brig failed\n"
		   "  122  a promise was not kept               130  cancelled\n"
		   "    2  wrong use of the command line\n",
	.options = run_options,
	.n_options = ARRAY_LEN(run_options),
	.run = run_main,
};
