/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_batch.c - `brig batch`: one job per line, one result per line, many cells at once. */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/batch_lines.h"
#include "cli/batch_output.h"
#include "cli/batch_pool.h"
#include "cli/batch_progress.h"
#include "cli/batch_queue.h"
#include "cli/batch_resume.h"
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/ui.h"

#define EXIT_FAIL_ON 1
#define QUEUE_JOBS   64   /* default number of jobs on a queue at a time */
#define LAST_WORD_MS 2000 /* how long a reader may take for the remaining lines of a cancelled batch */

struct batch_values {
	const char *policy, *preset, *trust, *state, *lang, *jobs, *warm, *out, *fail_on;
	bool ordered, resume, quiet, local;
	struct wishes wishes;
	const char *queue;
	struct queue_values with;
};

static const struct option_row batch_options[] = {
	{ "jobs", 'J', OPTION_TEXT, "COUNT", offsetof(struct batch_values, jobs), NULL,
	  "cells at once; without it as many as there are cpus" },
	{ "warm", 0, OPTION_TEXT, "COUNT", offsetof(struct batch_values, warm), NULL,
	  "cells of each kind kept ready ahead of jobs; without it one for each of --jobs, up to 16; 0: none" },
	{ "ordered", 0, OPTION_FLAG, NULL, offsetof(struct batch_values, ordered), NULL,
	  "print results in the order of the jobs, not as they finish" },
	{ "out", 'o', OPTION_TEXT, "FILE", offsetof(struct batch_values, out), NULL,
	  "write the results to this file; one that has something in it is refused without --resume" },
	{ "resume", 0, OPTION_FLAG, NULL, offsetof(struct batch_values, resume), NULL,
	  "go on with the file of --out: jobs that have their result in it are left out" },
	{ "fail-on", 0, OPTION_TEXT, "WORDS", offsetof(struct batch_values, fail_on), NULL,
	  "exit with 1 if a job got one of these verdicts or judgements: timeout,wrong_answer" },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", offsetof(struct batch_values, lang), NULL,
	  "the language of jobs that name none" },
	{ "quiet", 'q', OPTION_FLAG, NULL, offsetof(struct batch_values, quiet), NULL, "no progress and no summary" },
	{ "state", 0, OPTION_TEXT, "DIR", offsetof(struct batch_values, state), NULL,
	  "folder of audit log, history and cache, as of 'brig run'" },
	{ "local", 0, OPTION_FLAG, NULL, offsetof(struct batch_values, local), NULL,
	  "make the cells here, even if a service ('brig serve') could" },
#define AT(member) offsetof(struct batch_values, member)
	{ "queue", 0, OPTION_TEXT, "URL", AT(queue), NULL,
	  "jobs run on workers of this queue (docs/QUEUE.md): nats://HOST:PORT,HOST:PORT...; --jobs, or 64, are there "
	  "at a time" },
	ROW_NODES,
	ROW_NODE_NAME,
	ROW_QUEUE_CA,
	ROW_QUEUE_CERT,
	ROW_QUEUE_KEY,
	ROW_QUEUE_CREDENTIALS,
	ROW_QUEUE_PATIENCE,
#include "cli/wish_options.def"
#undef AT
};

struct batch {
	const struct batch_values *v;
	struct batch_defaults defaults;
	struct batch_lines lines;
	struct batch_output output;
	struct batch_finished finished;
	struct batch_progress progress;
	struct batch_pool pool;
	struct brig_error err; /* why it cannot continue */
	uint64_t number;       /* of the next job */
	uint64_t failed;       /* jobs with a verdict or judgement in --fail-on */
	uint32_t warm;         /* cells kept ready */
	struct batch_queue queue;
};

/* ---- input ------------------------------------------------------------------------------------- */

static bool is_empty(const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r'))
		len--;
	return len == 0;
}

/* A job from a line, valid or not.  NULL: the line is skipped. */
static struct batch_job *make_job(struct batch *b, bool too_long, const char *line, size_t len)
{
	struct batch_job *job;

	if (!too_long && is_empty(line, len))
		return NULL;
	job = batch_job_new();
	if (!job) {
		(void)err_nomem(&b->err);
		return NULL;
	}
	if (too_long) {
		(void)snprintf(job->id, sizeof(job->id), "%llu", (unsigned long long)b->lines.number);
		(void)err_set(&job->bad, BRIG_E_USAGE, 0, "line %llu: it has more than %llu MB, the most that is read",
			      (unsigned long long)b->lines.number, (unsigned long long)(BATCH_LINE_MAX / MiB));
	} else {
		batch_job_read(job, line, len, b->lines.number, &b->defaults);
	}
	if (batch_finished_has(&b->finished, job->id)) {
		b->progress.finished++;
		batch_job_free(job);
		return NULL;
	}
	job->number = b->number++;
	return job;
}

static enum batch_next next_job(void *user, struct batch_job **ret)
{
	struct batch *b = user;
	const char *line = NULL;
	size_t len = 0;

	while (!b->err.code && batch_output_has_room(&b->output, b->number)) {
		enum batch_line got = batch_lines_next(&b->lines, &line, &len);

		if (got == BATCH_LINE_END)
			return BATCH_NEXT_END;
		if (got == BATCH_LINE_WAIT)
			return BATCH_NEXT_WAIT;
		*ret = make_job(b, got == BATCH_LINE_TOO_LONG, line, len);
		if (*ret)
			return BATCH_NEXT_JOB;
	}
	return b->err.code ? BATCH_NEXT_END : BATCH_NEXT_WAIT;
}

/* Reads no job that cannot be started, so a slow batch slows down its writer. */
static int input_fd(void *user)
{
	struct batch *b = user;

	return batch_output_has_room(&b->output, b->number) ? b->lines.fd : -1;
}

static void on_input(void *user)
{
	struct batch *b = user;
	int rc = batch_lines_read(&b->lines);

	if (rc < 0 && rc != -EAGAIN) {
		(void)err_set(&b->err, BRIG_E_SYSTEM, -rc, "cannot read the jobs");
		batch_pool_cancel(&b->pool);
	}
}

/* ---- output ---------------------------------------------------------------------------------------- */

static int output_fd(void *user)
{
	struct batch *b = user;

	return batch_output_is_waiting(&b->output) ? b->output.fd : -1;
}

/* Cancels the batch if its results cannot be written. */
static void check_output(struct batch *b)
{
	if (b->output.error)
		batch_pool_cancel(&b->pool);
}

static void on_output(void *user)
{
	struct batch *b = user;

	batch_output_write(&b->output, 0);
	check_output(b);
}

/* Whether a list such as "timeout,wrong_answer" contains word. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; list && *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == len && memcmp(list, word, len) == 0)
			return true;
	return false;
}

static void job_done(void *user, const struct batch_task *t)
{
	struct batch *b = user;
	const char *verdict = t->shown ? brig_result_verdict(t->shown) : "";
	enum judgement j = t->shown ? batch_task_judgement(t, NULL) : JUDGED_NOT;
	AUTO_BUF line = BUF_INIT(SIZE_MAX / 2);

	if (!batch_task_line(t, &line)) {
		(void)err_nomem(&b->err);
		batch_pool_cancel(&b->pool);
		return;
	}
	b->failed +=
		list_has(b->v->fail_on, verdict) || (j != JUDGED_NOT && list_has(b->v->fail_on, judgement_name(j)));
	batch_progress_count(&b->progress, j != JUDGED_NOT ? judgement_name(j) : verdict);
	batch_output_put(&b->output, t->job->number, &line);
	check_output(b);
}

static void on_notice(void *user, const char *text)
{
	struct batch *b = user;

	batch_progress_notice(&b->progress, text);
}

static int tick(void *user)
{
	struct batch *b = user;

	return batch_progress_tick(&b->progress);
}

static const struct batch_ops batch_ops = {
	.next = next_job,
	.input_fd = input_fd,
	.on_input = on_input,
	.output_fd = output_fd,
	.on_output = on_output,
	.done = job_done,
	.notice = on_notice,
	.tick = tick,
};

/* ---- the batch ------------------------------------------------------------------------------------------ */

/* Writes what is left, whole lines only.  A reader that does not read at the end is not waited for. */
static int end_batch(struct batch *b)
{
	bool is_cancelled = b->pool.is_cancelled;

	batch_output_write(&b->output, is_cancelled ? LAST_WORD_MS : -1);
	if (b->v->out && !b->output.error && fsync(b->output.fd) < 0)
		b->output.error = errno;
	batch_progress_end(&b->progress, is_cancelled, b->pool.n_dropped);
	if (b->err.code)
		return ui_fail(&b->err);
	if (b->output.error)
		return ui_written(-b->output.error, EXIT_FAILED);
	if (is_cancelled)
		return EXIT_CANCELLED;
	return b->failed > 0 ? EXIT_FAIL_ON : EXIT_SUCCESS;
}

/* Starts a front of our own, for workers elsewhere. */
static int use_queue(struct batch *b)
{
	const struct batch_values *v = b->v;
	struct serve_options checked = { 0 };

	if (v->policy || v->preset || v->local || v->warm)
		return err_set(
			&b->err, BRIG_E_USAGE, 0,
			"--queue has jobs run by workers, whose policy counts: leave out --policy, --preset, --local "
			"and --warm");
	if (queue_read(v->queue, &v->with, &checked, &b->err) < 0 ||
	    batch_queue_start(&b->queue, v->queue, &v->with, v->state, &b->pool.place, &b->err) < 0)
		return -b->err.code;
	batch_pool_use_place(&b->pool);
	return 0;
}

/* The option that only this process can follow; NULL: none. */
static const char *only_here(const struct batch_values *v)
{
	return v->policy ? "--policy" : v->preset ? "--preset" : v->state ? "--state" : v->warm ? "--warm" : NULL;
}

static int open_and_run(struct batch *b)
{
	const struct brig_open_opts opts = { .size = sizeof(opts),
					     .policy_file = b->v->policy,
					     .preset = b->v->preset,
					     .state_dir = b->v->state,
					     .warm_cells = b->warm };

	if ((b->v->queue ? use_queue(b) : batch_pool_choose(&b->pool, b->v->local, only_here(b->v), &b->err)) < 0) {
		batch_queue_end(&b->queue);
		return ui_fail(&b->err);
	}
	if (brig_open(&opts, &b->pool.makers.b, &b->err) < 0) {
		batch_queue_end(&b->queue);
		return command_open_failed(b->v->policy, &b->err);
	}
	if (!b->v->quiet)
		b->progress.total = batch_lines_count(b->lines.fd);
	(void)batch_pool_run(&b->pool, &b->err);
	brig_close(b->pool.makers.b);
	batch_queue_end(&b->queue);
	return end_batch(b);
}

static int prepare(struct batch *b, const struct operands *ops, int *input, int *output, struct brig_error *err)
{
	const struct batch_values *v = b->v;
	const char *name = ops->words.n == 1 && ops->rest.n == 0 ? ops->words.item[0] : NULL;

	if (!name)
		return err_set(err, BRIG_E_USAGE, 0, "'brig batch' takes one file of jobs, or '-' for standard input");
	if (v->resume && !v->out)
		return err_set(err, BRIG_E_USAGE, 0, "--resume needs the file to go on with: --out FILE");
	if (batch_pool_slots(v->jobs, &b->pool.n_slots, err) < 0 ||
	    batch_pool_warm(v->warm, b->pool.n_slots, &b->warm, err) < 0)
		return -err->code;
	if (v->queue && !v->jobs)
		b->pool.n_slots = QUEUE_JOBS;
	if (!str_eq(name, "-")) {
		*input = request_open(name, FILE_STREAMS, err);
		if (*input < 0)
			return err_wrap(err, "the jobs");
	}
	if (v->out) {
		*output = batch_resume_open(v->out, v->resume, &b->finished, err);
		if (*output < 0)
			return err_wrap(err, "--out");
	}
	b->lines = (struct batch_lines)BATCH_LINES_INIT(*input >= 0 ? *input : STDIN_FILENO, BATCH_LINE_MAX);
	return batch_output_init(&b->output, *output >= 0 ? *output : STDOUT_FILENO, v->ordered, b->pool.n_slots, err);
}

static int batch_values(const struct command *self, const struct batch_values *v, const struct operands *ops)
{
	struct batch b = { .v = v, .err = BRIG_ERROR_INIT };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD input = FD_NONE, output = FD_NONE;
	int status;

	b.defaults = (struct batch_defaults){ .language = v->lang, .trust = v->trust, .wishes = v->wishes };
	b.pool.ops = &batch_ops;
	b.pool.user = &b;
	if (prepare(&b, ops, &input, &output, &err) < 0) {
		status = ui_fail_or_usage(self->name, &err);
	} else {
		b.pool.cancel_fd = v->out ? cancel_open() : cancel_open_for_reader(STDOUT_FILENO);
		batch_progress_init(&b.progress, v->quiet, "jobs");
		if (b.pool.cancel_fd < 0) {
			(void)err_set(&err, BRIG_E_SYSTEM, -b.pool.cancel_fd, "cannot prepare for signals");
			status = ui_fail(&err);
		} else {
			status = open_and_run(&b);
		}
	}
	batch_lines_release(&b.lines);
	batch_output_release(&b.output);
	batch_finished_release(&b.finished);
	return status;
}

static int batch_main(const struct command *self, int argc, char **argv)
{
	struct batch_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = batch_values(self, &v, &ops);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_batch = {
	.name = "batch",
	.synopsis = "[OPTIONS] JOBS.jsonl|-",
	.summary = "run many programs, one job and one result per line",
	.examples =
		"  brig batch jobs.jsonl > results.jsonl\n"
		"  brig batch --jobs 8 --ordered --timeout 2 jobs.jsonl\n"
		"  brig batch --out results.jsonl --resume jobs.jsonl   # go on after an interruption\n"
		"  brig batch --queue nats://10.0.0.1:4222 --nodes nodes.list jobs.jsonl   # on workers elsewhere\n",
	.details = "Each line of JOBS is a JSON object: id, kind, language, code, args, env, stdin, files, packages,\n"
		   "trust, options; and to be judged: expected, cases, checker.  Each line that is printed is a\n"
		   "result with the job's id as \"job\", and with its \"judgement\".  A line that is no job gets a\n"
		   "result too: refused, with its place.\n\n"
		   "Options such as --timeout count for jobs that do not say otherwise.\n\n"
		   "Exit status: 0 if every job got a result, whatever it is, 1 if one is in --fail-on,\n"
		   "130 if it was interrupted, 121 if results could not be written or the service has gone,\n"
		   "125 if the policy is wrong, 2 if the command line is.\n",
	.options = batch_options,
	.n_options = ARRAY_LEN(batch_options),
	.run = batch_main,
};
