/* SPDX-License-Identifier: Apache-2.0 */
/* Output that is shown live is not kept: only documents and quiet commands keep it in the result. */
#include "cli/request.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/archive.h"
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/events.h"
#include "cli/report.h"
#include "cli/service.h"

static enum document_form form_of(const struct request_values *v)
{
	return v->events ? DOCUMENT_EVENTS : v->json ? DOCUMENT_JSON : DOCUMENT_TEXT;
}

int request_refuse(const struct command *self, const struct request_values *v, const struct brig_error *err)
{
	return document_refusal(form_of(v), err, ui_usage(self->name, err));
}

/* ---- the program's input ---------------------------------------------------------------------- */

bool request_may_read_stdin(void)
{
	return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int request_open(const char *path, unsigned also, struct brig_error *err)
{
	struct stat st;
	int fd = file_open(path, also, &st);

	if (fd == -EINVAL)
		return err_set(
			err, BRIG_E_USAGE, 0, "'%.200s' is %s, not a regular file%s", path, file_kind(st.st_mode),
			S_ISFIFO(st.st_mode) ? ": it may never end; to read it all the same, redirect it (< FIFO) and "
					       "name /dev/stdin"
					     : "");
	return fd < 0 ? err_set(err, BRIG_E_USAGE, -fd, "cannot open '%.200s'", path) : fd;
}

int request_read_all(int fd, const char *name, struct buf *ret, struct brig_error *err)
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

int request_stdin(const struct request_values *v, bool code_from_stdin, struct brig_request *req, int *ret_fd,
		  struct brig_error *err)
{
	bool files_from_stdin = v->files && str_eq(v->files, "-"), taken = code_from_stdin || files_from_stdin;
	const char *wanted = v->input ? v->input : taken || v->no_input ? "none" : "-";

	if (code_from_stdin && files_from_stdin)
		return err_set(err, BRIG_E_USAGE, 0, "standard input cannot be both the code and the archive of files");

	if (v->no_input && !str_eq(wanted, "none"))
		return err_set(err, BRIG_E_USAGE, 0, "--no-stdin and --stdin %.80s exclude each other", wanted);
	if (str_eq(wanted, "none"))
		return 0;
	if (str_eq(wanted, "-") || str_eq(wanted, "inherit")) {
		if (taken)
			return err_set(err, BRIG_E_USAGE, 0, "standard input cannot be both %s and the program's input",
				       code_from_stdin ? "the code" : "the archive of files");
		req->stdin_fd = request_may_read_stdin() ? STDIN_FILENO : -1;
		return 0;
	}
	*ret_fd = request_open(wanted, FILE_STREAMS | FILE_DEVICES, err);
	if (*ret_fd < 0)
		return err_wrap(err, "the program's input");
	req->stdin_fd = *ret_fd;
	return 0;
}

/* ---- the run ---------------------------------------------------------------------------------- */

/* How the run is shown: as text, or as lines of JSON. */
struct shown {
	struct live live;
	struct events events;
};

static int show_json(const struct request_values *v, struct shown *shown, const struct brig_result *r)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_TEXT json = NULL;

	if (brig_result_json(r, &json, &err) < 0)
		return ui_fail(&err);
	if (v->events)
		return events_end(&shown->events, json, brig_result_status(r));
	return document_print(json, brig_result_status(r));
}

static int show_end(const struct request_values *v, const struct request_way *way, struct shown *shown,
		    const struct brig_result *r)
{
	const struct live *live = &shown->live;
	int status = brig_result_status(r);

	if (form_of(v) != DOCUMENT_TEXT)
		status = show_json(v, shown, r);
	else if (way->end)
		status = way->end(r, way->arg);
	else if (v->quiet)
		report_fatal(r, way->name);
	else
		report_remarks(r, way->name);
	if (v->summary || (form_of(v) == DOCUMENT_TEXT && !v->quiet && live->err.is_terminal))
		report_summary(r, ui_has_color(STDERR_FILENO, v->no_color));
	if (live->out.error == ECANCELED && status == EXIT_SUCCESS)
		status = EXIT_CANCELLED; /* part of the output was discarded */
	if (live->out.error && live->out.error != EPIPE && live->out.error != ECANCELED) {
		ui_say("cannot write the program's output: %s", strerrordesc_np(live->out.error));
		status = EXIT_FAILED;
	}
	return status;
}

/* Prints a notice that cannot wait, on a line of its own before the program's first. */
static void on_notice(void *user, const char *text)
{
	live_clear_line(user);
	ui_say("%s", text);
}

/* Before the run, so that a path that cannot be written does not waste it. */
static int open_receipt(const char *path, int *ret, struct brig_error *err)
{
	if (!path)
		return 0;
	/* Non-blocking: a FIFO without a reader is an error (ENXIO), and must not block. */
	*ret = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0644);
	if (*ret >= 0)
		(void)fcntl(*ret, F_SETFL, O_WRONLY);
	return *ret < 0 ? err_set(err, BRIG_E_USAGE, errno, "cannot open '%.200s' for the receipt", path) : 0;
}

/* Returns the exit status: a successful run without the requested receipt is a failure. */
static int write_receipt(const char *path, int fd, const char *text, int status)
{
	AUTO_BUF line = BUF_INIT(UI_TEXT_MAX);
	int rc = -ENODATA;

	if (text && ftruncate(fd, 0) < 0 && errno != EINVAL) /* a pipe has no length */
		rc = -errno;
	else if (text) {
		buf_adds(&line, text);
		buf_adds(&line, "\n");
		rc = ui_put_bytes(fd, &line, true);
	}
	if (rc == 0)
		return status;
	ui_say("no receipt in '%.200s': %s", path, text ? strerrordesc_np(-rc) : "none could be made");
	return status == EXIT_SUCCESS ? EXIT_FAILED : status;
}

/* An error that was printed is also written as a result, if one was requested. */
static int fail(const struct request_values *v, const struct brig_error *err, int status)
{
	return document_refusal(form_of(v), err, status);
}

/* ---- here or at a service ---------------------------------------------------------------------------- */

/* The part of the request that no service can handle; NULL: none. */
static const char *only_here(const struct request_values *v, const struct brig_request *req, bool is_named)
{
	const struct {
		bool is_so;
		const char *what;
	} rows[] = {
		{ v->policy, "--policy" },
		{ v->preset, "--preset" },
		{ v->state, "--state" },
		{ v->srt_settings, "--srt-settings" },
	};
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].is_so)
			return rows[i].what;
	why = service_only_here(req, is_named);
	return why ? why : service_own_policy();
}

/* The caller closes the handle, NULL or not.  *ret_status: exit status if this fails. */
static int run_here(const struct request_values *v, const struct brig_request *req, struct brig **ret_b,
		    struct brig_result **ret, int *ret_status, struct brig_error *err)
{
	const struct brig_open_opts opts = {
		.size = sizeof(opts),
		.policy_file = v->policy,
		.preset = v->preset,
		.state_dir = v->state,
	};
	int rc = brig_open(&opts, ret_b, err);

	if (rc < 0) {
		if (v->srt_settings && strncmp(err->msg, "BRIG_", strlen("BRIG_")) == 0)
			(void)err_wrap(err,
				       "%.200s, whose network.allowedDomains are BRIG_NETWORK_MODE and BRIG_WHITELIST",
				       v->srt_settings);
		*ret_status = command_open_failed(v->policy, err);
		return rc;
	}
	rc = brig_run(*ret_b, req, ret, err);
	if (rc < 0)
		*ret_status = ui_fail(err);
	return rc;
}

/* Runs at a service, or here. */
static int run_anywhere(const struct request_values *v, struct brig_request *req, struct brig **ret_b,
			struct brig_result **ret, int *ret_status, struct brig_error *err)
{
	struct service_place place;
	int rc = service_find(v->local, &place, err);

	if (rc == 0)
		return run_here(v, req, ret_b, ret, ret_status, err);
	if (rc > 0)
		rc = service_run(&place, only_here(v, req, place.is_named), req, ret, err);
	if (rc > 0)
		return run_here(v, req, ret_b, ret, ret_status, err);
	if (rc < 0)
		*ret_status = ui_fail(err);
	return rc;
}

static int run_prepared(const struct request_values *v, struct brig_request *req, const struct request_way *way,
			struct shown *shown)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *result = NULL;
	struct brig *b = NULL;
	AUTO_FD receipt = FD_NONE;
	int status = EXIT_FAILED;

	if (open_receipt(v->receipt, &receipt, &err) < 0)
		return fail(v, &err, ui_fail(&err));
	if (run_anywhere(v, req, &b, &result, &status, &err) < 0) {
		status = fail(v, &err, status);
	} else {
		live_finish(&shown->live);
		status = show_end(v, way, shown, result);
		if (v->receipt)
			status = write_receipt(v->receipt, receipt, brig_result_receipt(result), status);
	}
	brig_result_free(result);
	brig_close(b);
	return status;
}

/* Length of the first item: up to a comma, except in "[a,b]" and between versions, as in "x>=1,<2". */
static size_t package_len(const char *list)
{
	bool in_brackets = false;
	size_t i;

	for (i = 0; list[i]; i++) {
		if (list[i] == '[' || list[i] == ']')
			in_brackets = list[i] == '[';
		if (list[i] == ',' && !in_brackets && !(list[i + 1] && strchr("<>=!~", list[i + 1])))
			break;
	}
	return i;
}

bool request_split(const struct words *lists, char **ret_text, const char ***ret, size_t *ret_n)
{
	size_t bytes = 1, commas = lists->n, used = 0;

	for (size_t i = 0; i < lists->n; i++) {
		bytes += strlen(lists->item[i]) + 1;
		for (const char *c = lists->item[i]; *c; c++)
			commas += *c == ',';
	}
	*ret_text = malloc(bytes);
	*ret = calloc(commas + 1, sizeof(**ret));
	if (!*ret_text || !*ret)
		return false;
	for (size_t i = 0; i < lists->n; i++)
		for (const char *c = lists->item[i]; *c;) {
			size_t len = package_len(c);

			memcpy(*ret_text + used, c, len);
			(*ret_text)[used + len] = '\0';
			(*ret)[(*ret_n)++] = *ret_text + used;
			used += len + 1;
			c += len + (c[len] == ',');
		}
	return true;
}

static int fill_work(const struct request_values *v, struct brig_request *req, struct brig_error *err)
{
	static const char *const everything[] = { "**" };

	if (v->inline_artifacts && !str_to_bytes(v->inline_artifacts, &req->inline_artifacts))
		return err_set(err, BRIG_E_USAGE, 0, "--inline-artifacts '%.80s' is no size: give one such as 1m",
			       v->inline_artifacts);
	req->workspace = v->workspace;
	req->venv = v->venv;
	req->environment = v->environment;
	req->out_dir = v->out_dir;
	req->artifacts = v->artifacts.item;
	req->n_artifacts = v->artifacts.n;
	if ((v->out_dir || v->out_tar || req->inline_artifacts) && v->artifacts.n == 0) {
		req->artifacts = everything;
		req->n_artifacts = ARRAY_LEN(everything);
	}
	req->flags |= (v->apply ? BRIG_RUN_APPLY : 0) | (v->apply_git ? BRIG_RUN_APPLY_GIT : 0) |
		      (v->project_packages ? BRIG_RUN_PROJECT_PACKAGES : 0) | (v->overwrite ? BRIG_RUN_OVERWRITE : 0);
	if (archive_open_in(v->files, &req->files_fd, err) < 0)
		return -err->code;
	return archive_open_out(v->out_tar, &req->out_fd, err);
}

static double millis(uint64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

/* Prints when a step ended, relative to the begin of the first step; its name; its duration. */
static void on_trace(void *user UNUSED, const struct brig_trace *step)
{
	static uint64_t begin_ns; /* for the only request of this process */

	if (begin_ns == 0)
		begin_ns = step->at_ns - step->took_ns;
	ui_say("+%.2f ms  %s%s%s %.2f", millis(step->at_ns - begin_ns), step->stage, *step->stage ? ": " : "",
	       step->step, millis(step->took_ns));
}

/* Output that is shown live need not be kept; a result that is a document contains it. */
static void fill_callbacks(const struct request_values *v, bool keep, struct shown *shown, struct brig_request *req)
{
	const char *trace = getenv("BRIG_TRACE");

	req->on_trace = trace && *trace && !str_eq(trace, "0") ? on_trace : NULL;
	if (v->events) {
		req->user = &shown->events;
		req->on_started = events_on_started;
		req->on_finding = events_on_finding;
		req->on_notice = events_on_notice;
		req->on_output = events_on_output;
		req->on_sample = events_on_sample;
		return;
	}
	req->user = &shown->live;
	req->on_output = keep ? NULL : live_on_output;
	req->on_sample = live_on_sample; /* also retries writing to a slow reader */
	req->on_notice = v->quiet ? NULL : on_notice;
	req->on_install = v->quiet ? NULL : live_on_install;
}

int request_run(const struct request_values *v, const struct brig_request *what, const struct request_way *way)
{
	struct brig_request req = *what;
	bool is_document = form_of(v) != DOCUMENT_TEXT, keep = is_document || way->quiet;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FREE char *package_text = NULL;
	AUTO_FREE const char **packages = NULL;
	struct shown shown;

	req.trust = v->trust;
	req.env = v->env.item;
	req.n_env = v->env.n;
	req.options = v->wishes.item;
	req.n_options = v->wishes.n;
	if (fill_work(v, &req, &err) < 0)
		return fail(v, &err, ui_fail(&err));
	if (!request_split(&v->packages, &package_text, &packages, &req.n_packages)) {
		(void)err_nomem(&err);
		return fail(v, &err, ui_fail(&err));
	}
	req.packages = packages;
	req.flags |= (keep ? 0 : BRIG_RUN_NO_CAPTURE) | (v->receipt ? BRIG_RUN_RECEIPT : 0);
	req.cancel_fd = is_document ? cancel_open_for_reader(STDOUT_FILENO) : cancel_open();
	if (req.cancel_fd < 0) {
		(void)err_set(&err, BRIG_E_SYSTEM, -req.cancel_fd, "cannot prepare for signals");
		return fail(v, &err, ui_fail(&err));
	}
	live_init(&shown.live, req.cancel_fd, v->raw, v->watch);
	events_init(&shown.events);
	fill_callbacks(v, keep, &shown, &req);
	return run_prepared(v, &req, way, &shown);
}
