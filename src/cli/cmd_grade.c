/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_grade.c - `brig grade`: every submission against every case, each pair in a cell of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/batch_pool.h"
#include "cli/batch_progress.h"
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/grade.h"
#include "cli/request.h"
#include "cli/ui.h"

struct grade_values {
	const char *policy, *preset, *trust, *state, *lang, *jobs, *cases, *checker, *compare, *tolerance, *csv;
	bool json, quiet, no_color, local;
	struct wishes wishes;
};

static const struct option_row grade_options[] = {
	{ "cases", 'c', OPTION_TEXT, "CASES", offsetof(struct grade_values, cases), NULL,
	  "a file of cases, one JSON object per line, or a folder of NAME.in and NAME.out" },
	{ "checker", 0, OPTION_TEXT, "FILE", offsetof(struct grade_values, checker), NULL,
	  "a program that judges the output, run in a cell of its own for each case" },
	{ "compare", 0, OPTION_TEXT, "HOW", offsetof(struct grade_values, compare), NULL,
	  "trim (the default), exact, tokens or float, for cases that do not say" },
	{ "tolerance", 0, OPTION_TEXT, "NUMBER", offsetof(struct grade_values, tolerance), NULL,
	  "how far numbers may be off with float: 1e-6 without it" },
	{ "csv", 0, OPTION_TEXT, "FILE", offsetof(struct grade_values, csv), NULL,
	  "write the grades there as well, for a spreadsheet" },
	{ "json", 'j', OPTION_FLAG, NULL, offsetof(struct grade_values, json), NULL,
	  "print a document instead of the table" },
	{ "jobs", 'J', OPTION_TEXT, "COUNT", offsetof(struct grade_values, jobs), NULL,
	  "cells at once; without it as many as there are cpus" },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", offsetof(struct grade_values, lang), NULL,
	  "the language of all; without it each file's extension decides" },
	{ "quiet", 'q', OPTION_FLAG, NULL, offsetof(struct grade_values, quiet), NULL, "no progress and no summary" },
	{ "no-color", 0, OPTION_FLAG, NULL, offsetof(struct grade_values, no_color), NULL, "no colours" },
	{ "local", 0, OPTION_FLAG, NULL, offsetof(struct grade_values, local), NULL,
	  "make the cells here, even if a service ('brig serve') could" },
	{ "state", 0, OPTION_TEXT, "DIR", offsetof(struct grade_values, state), NULL,
	  "folder of audit log, history and cache, as of 'brig run'" },
#define AT(member) offsetof(struct grade_values, member)
#include "cli/wish_options.def"
#undef AT
};

struct grading {
	const struct grade_values *v;
	struct batch_defaults defaults;
	struct grade grade;
	struct batch_checker checker;
	char *checker_code;
	struct batch_pool pool;
	struct batch_progress progress;
	struct brig_error err;
	size_t at; /* the next pair */
};

/* ---- pairs and marks ----------------------------------------------------------------------------- */

/* One cell for each pair.  Names and contents belong to the grade, which outlives the job. */
static int fill_job(struct grading *g, struct batch_job *job, const struct grade_submission *s, struct brig_error *err)
{
	static struct brig_option read_only[] = { { "workspace_mode", "ro" } };

	job->bad = s->bad;
	job->has_cases = true;
	job->cases = &g->grade.cases.item[job->number % g->grade.cases.n];
	job->n_cases = 1;
	job->checker = g->checker;
	job->code = (struct bytes){ s->code, s->code_len };
	job->req.file_name = s->entry ? s->entry : s->name;
	job->req.language = g->v->lang;
	if (s->workspace) {
		job->req.workspace = s->workspace;
		job->req.source_path = s->entry;
		job->wishes = (struct wishes){ read_only, ARRAY_LEN(read_only) };
	}
	return job->bad.code ? 0 : batch_job_finish(job, &g->defaults, err);
}

static enum batch_next next_pair(void *user, struct batch_job **ret)
{
	struct grading *g = user;
	size_t n_cases = g->grade.cases.n;
	struct batch_job *job;

	if (g->err.code || g->at == g->grade.submissions.n * n_cases)
		return BATCH_NEXT_END;
	job = batch_job_new();
	if (!job) {
		(void)err_nomem(&g->err);
		return BATCH_NEXT_END;
	}
	job->number = g->at++;
	if (fill_job(g, job, &g->grade.submissions.item[job->number / n_cases], &g->err) < 0) {
		batch_job_free(job);
		return BATCH_NEXT_END;
	}
	*ret = job;
	return BATCH_NEXT_JOB;
}

static void pair_done(void *user, const struct batch_task *t)
{
	struct grading *g = user;
	size_t pair = t->job->number;
	struct grade_mark *m = &g->grade.mark[pair];
	struct grade_submission *s = &g->grade.submissions.item[pair / g->grade.cases.n];
	const char *message = t->job->bad.msg;

	if (!t->shown) {
		(void)err_nomem(&g->err);
		batch_pool_cancel(&g->pool);
		return;
	}
	m->judgement = t->job->bad.code ? JUDGED_refused : batch_task_judgement(t, &message);
	m->message = *message ? strdup(message) : NULL;
	brig_result_usage(t->shown, &m->usage);
	(void)str_copy(m->id, sizeof(m->id), brig_result_id(t->shown));
	if (*brig_result_language(t->shown))
		(void)str_copy(s->language, sizeof(s->language), brig_result_language(t->shown));
	batch_progress_count(&g->progress, judgement_name(m->judgement));
}

static int no_fd(void *user)
{
	(void)user;
	return -1;
}

static void nothing(void *user)
{
	(void)user;
}

static void on_notice(void *user, const char *text)
{
	struct grading *g = user;

	batch_progress_notice(&g->progress, text);
}

static int tick(void *user)
{
	struct grading *g = user;

	return batch_progress_tick(&g->progress);
}

static const struct batch_ops grade_ops = {
	.next = next_pair,
	.input_fd = no_fd,
	.on_input = nothing,
	.output_fd = no_fd,
	.on_output = nothing,
	.done = pair_done,
	.notice = on_notice,
	.tick = tick,
};

/* ---- options ------------------------------------------------------------------------------------------- */

static int read_how(const struct grade_values *v, struct judge_expected *ret, struct brig_error *err)
{
	enum judge_compare how = COMPARE_TRIM;
	char *end = NULL;

	*ret = (struct judge_expected)JUDGE_EXPECTED_INIT;
	while (v->compare && how < COMPARE_COUNT && !str_eq(v->compare, judge_compare_name(how)))
		how++;
	if (how == COMPARE_COUNT)
		return err_set(err, BRIG_E_USAGE, 0, "--compare '%.40s' is none of trim, exact, tokens and float",
			       v->compare);
	ret->compare = how;
	if (v->tolerance)
		ret->tolerance = strtod(v->tolerance, &end);
	if (v->tolerance && (end == v->tolerance || *end || !(ret->tolerance >= 0 && ret->tolerance < 1e12)))
		return err_set(err, BRIG_E_USAGE, 0, "--tolerance '%.40s' is no number from 0 on", v->tolerance);
	return 0;
}

/* The library determines the checker's language from its extension, as for any program. */
static int read_checker(struct grading *g, struct brig_error *err)
{
	const char *path = g->v->checker, *slash = path ? strrchr(path, '/') : NULL;
	AUTO_FD fd = FD_NONE;
	struct stat st;
	ssize_t n;

	if (!path)
		return 0;
	fd = request_open(path, 0, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_wrap(err, "the checker");
	if (st.st_size > BRIG_CODE_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "the checker is longer than a program may be");
	g->checker_code = malloc((size_t)st.st_size + 1);
	n = g->checker_code ? fd_read_all(fd, g->checker_code, (size_t)st.st_size) : -ENOMEM;
	if (n < 0)
		return err_set(err, BRIG_E_SYSTEM, (int)-n, "cannot read the checker");
	g->checker.file_name = slash ? slash + 1 : path;
	g->checker.code = (struct bytes){ g->checker_code, (size_t)n };
	return 0;
}

static int prepare(struct grading *g, const struct operands *ops, struct brig_error *err)
{
	const struct grade_values *v = g->v;
	struct judge_expected how;

	if (ops->words.n != 1 || ops->rest.n > 0)
		return err_set(err, BRIG_E_USAGE, 0, "'brig grade' takes one folder of submissions");
	if (!v->cases)
		return err_set(err, BRIG_E_USAGE, 0, "--cases says what the submissions are judged by");
	if (batch_pool_slots(v->jobs, &g->pool.n_slots, err) < 0 || read_how(v, &how, err) < 0 ||
	    read_checker(g, err) < 0 || grade_cases_load(v->cases, &how, &g->grade.cases, err) < 0 ||
	    grade_submissions_load(ops->words.item[0], v->cases, &g->grade.submissions, err) < 0)
		return -err->code;
	g->grade.mark = calloc(g->grade.submissions.n, g->grade.cases.n * sizeof(*g->grade.mark));
	return g->grade.mark ? 0 : err_nomem(err);
}

/* ---- the end -------------------------------------------------------------------------------------------- */

static int write_csv(const struct grading *g, int fd)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	int rc;

	grade_csv(&g->grade, &text);
	rc = ftruncate(fd, 0) < 0 && errno != EINVAL ? -errno : ui_put_bytes(fd, &text, false);
	if (rc == 0)
		return 0;
	ui_say("cannot write the grades to '%.200s': %s", g->v->csv, strerrordesc_np(-rc));
	return EXIT_FAILED;
}

static int show(const struct grading *g, int csv)
{
	AUTO_BUF page = BUF_INIT(UI_TEXT_MAX);
	AUTO_FREE char *json = g->v->json ? grade_json(&g->grade) : NULL;
	int status = EXIT_SUCCESS;

	if (g->pool.is_cancelled)
		status = EXIT_CANCELLED;
	else if (batch_progress_of(&g->progress, judgement_name(JUDGED_judge_failed)) > 0)
		status = EXIT_FAILED;
	if (csv >= 0 && write_csv(g, csv) != 0)
		status = EXIT_FAILED;
	if (json)
		return document_print(json, status);
	if (g->v->json) {
		ui_say("out of memory");
		return EXIT_FAILED;
	}
	grade_table(&g->grade, ui_has_color(STDOUT_FILENO, g->v->no_color), &page);
	return ui_finish(&page, status);
}

/* The option that only this process can follow; NULL: none. */
static const char *only_here(const struct grade_values *v)
{
	return v->policy ? "--policy" : v->preset ? "--preset" : v->state ? "--state" : NULL;
}

static int open_and_run(struct grading *g, int csv)
{
	struct brig_open_opts opts = {
		.size = sizeof(opts), .policy_file = g->v->policy, .preset = g->v->preset, .state_dir = g->v->state
	};

	(void)batch_pool_warm(NULL, g->pool.n_slots, &opts.warm_cells, &g->err);
	if (batch_pool_choose(&g->pool, g->v->local, only_here(g->v), &g->err) < 0)
		return ui_fail(&g->err);
	g->pool.cancel_fd = cancel_open();
	if (g->pool.cancel_fd < 0) {
		(void)err_set(&g->err, BRIG_E_SYSTEM, -g->pool.cancel_fd, "cannot prepare for signals");
		return ui_fail(&g->err);
	}
	if (brig_open(&opts, &g->pool.makers.b, &g->err) < 0)
		return command_open_failed(g->v->policy, &g->err);
	batch_progress_init(&g->progress, g->v->quiet, "runs");
	g->progress.total = g->grade.submissions.n * g->grade.cases.n;
	(void)batch_pool_run(&g->pool, &g->err);
	brig_close(g->pool.makers.b);
	batch_progress_end(&g->progress, g->pool.is_cancelled, g->pool.n_dropped);
	return g->err.code ? ui_fail(&g->err) : show(g, csv);
}

static void release(struct grading *g)
{
	for (size_t i = 0; g->grade.mark && i < g->grade.submissions.n * g->grade.cases.n; i++)
		free(g->grade.mark[i].message);
	free(g->grade.mark);
	grade_submissions_release(&g->grade.submissions);
	grade_cases_release(&g->grade.cases);
	free(g->checker_code);
}

static int grade_values(const struct command *self, const struct grade_values *v, const struct operands *ops)
{
	struct grading g = { .v = v, .err = BRIG_ERROR_INIT };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD csv = FD_NONE;
	int status;

	g.defaults = (struct batch_defaults){ .trust = v->trust, .wishes = v->wishes };
	g.pool.ops = &grade_ops;
	g.pool.user = &g;
	if (prepare(&g, ops, &err) == 0 && v->csv) {
		/* Before the runs, so that a path that cannot be written does not waste them. */
		csv = open(v->csv, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0644);
		if (csv < 0)
			(void)err_set(&err, BRIG_E_USAGE, errno, "cannot open '%.200s' for the grades", v->csv);
	}
	if (err.code)
		status = ui_fail_or_usage(self->name, &err);
	else
		status = open_and_run(&g, csv);
	release(&g);
	return status;
}

static int grade_main(const struct command *self, int argc, char **argv)
{
	struct grade_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = grade_values(self, &v, &ops);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_grade = {
	.name = "grade",
	.synopsis = "[OPTIONS] DIR --cases CASES",
	.summary = "judge every program in a folder by every case",
	.examples = "  brig grade submissions --cases cases\n"
		    "  brig grade submissions --cases cases.jsonl --timeout 2 --csv grades.csv\n"
		    "  brig grade submissions --cases cases --checker check.py --json\n",
	.details = "A submission is a file, whose extension says its language, or a folder in which main.py,\n"
		   "index.js, main.go ... begins.  Each of them runs for each case in a cell of its own, in which\n"
		   "nothing of cases, checker or other submissions is.\n\n"
		   "Exit status: 0 if all were judged, whatever they got, 121 if one could not be, 130 if it was\n"
		   "interrupted, 125 if the policy is wrong, 2 if the command line or the cases are.\n",
	.options = grade_options,
	.n_options = ARRAY_LEN(grade_options),
	.run = grade_main,
};
