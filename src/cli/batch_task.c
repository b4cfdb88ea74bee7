/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_task.c - one job, cell by cell
 *
 *	begin -> the program's cell -> take -+-> judged by its end or its output
 *	                                     +-> begin -> the checker's cell -> take -> judged by the checker
 *
 * once for each case.  The program's cell has ended before the checker's begins, and each has its own files and input:
 * expected output and checker are never where the program is.
 */
#include "cli/batch_task.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/ustar.h"
#include "cli/sanitize.h"
#include "cli/ui.h"

struct batch_task *batch_task_new(struct batch_job *job)
{
	struct batch_task *t = calloc(1, sizeof(*t));
	size_t n = job->n_cases > 0 ? job->n_cases : 1;

	if (!t)
		return NULL;
	t->checker_files = FD_NONE;
	t->outcome = calloc(n, sizeof(*t->outcome));
	if (!t->outcome) {
		free(t);
		return NULL;
	}
	t->job = job;
	return t;
}

void batch_task_free(struct batch_task *t)
{
	struct brig_result *r = NULL;

	if (!t)
		return;
	if (batch_task_is_at_work(t) && batch_task_end(t, &r, NULL) == 0)
		brig_result_free(r);
	for (size_t i = 0; i < t->n_outcomes; i++)
		free(t->outcome[i].message);
	free(t->outcome);
	brig_result_free(t->early);
	brig_result_free(t->program);
	brig_result_free(t->shown);
	fd_closep(&t->checker_files);
	batch_job_free(t->job);
	free(t);
}

static const struct batch_case *case_of(const struct batch_task *t)
{
	return &t->job->cases[t->n_outcomes];
}

/* ---- cells ---------------------------------------------------------------------------------------- */

/* Packs the checker's files under the names that docs/BATCH.md documents. */
static int pack_checker_files(struct batch_task *t, struct brig_error *err)
{
	const struct batch_case *c = case_of(t);
	struct bytes input = c->input.data ? c->input : t->job->input, expected = c->expected.out, actual;
	AUTO_BUF tar = BUF_INIT(4 * JSON_FILES_MAX);

	actual.data = brig_result_output(t->program, BRIG_STDOUT, &actual.len);
	if (!ustar_add_file(&tar, "input", &input) || !ustar_add_file(&tar, "actual", &actual) ||
	    !ustar_add_file(&tar, "expected", &expected))
		return err_nomem(err);
	fd_closep(&t->checker_files);
	t->checker_files = ustar_to_file(&tar);
	return t->checker_files < 0 ? err_set(err, BRIG_E_SYSTEM, -t->checker_files, "cannot keep the checker's files")
				    : 0;
}

static int checker_request(struct batch_task *t, struct brig_request *ret, struct brig_error *err)
{
	/* The order of arguments that checkers of programming contests expect. */
	static const char *const args[] = { "input", "actual", "expected" };
	const struct batch_checker *checker = &t->job->checker;

	if (pack_checker_files(t, err) < 0)
		return -err->code;
	*ret = (struct brig_request)BRIG_REQUEST_INIT;
	ret->language = checker->language;
	ret->file_name = checker->file_name;
	ret->trust = checker->trust;
	ret->code = checker->code.data;
	ret->code_len = checker->code.len;
	ret->args = args;
	ret->n_args = ARRAY_LEN(args);
	ret->options = checker->wishes.item;
	ret->n_options = checker->wishes.n;
	ret->files_fd = t->checker_files;
	return 0;
}

/* Starts a cell at the service, or here. */
static int begin_cell(struct batch_task *t, const struct batch_makers *makers, const struct brig_request *req,
		      struct brig_error *err)
{
	const char *why = makers->place ? service_only_here(req, makers->place->is_named) : NULL;
	int rc = makers->place && !t->stays ? 0 : 1;

	if (rc == 0)
		rc = why ? service_stay_here(makers->place, why, err)
			 : service_job_begin(makers->place, makers->b, req, t->job->never_again, &t->away, err);
	if (rc == -BRIG_E_SYSTEM)
		t->lost = *err;
	if (rc > 0 && req->files_fd > 0)
		(void)lseek(req->files_fd, 0, SEEK_SET);
	return rc > 0 ? brig_run_begin(makers->b, req, &t->run, err) : rc;
}

struct pollfd batch_task_waits(const struct batch_task *t)
{
	return t->away ? service_job_waits(t->away) : (struct pollfd){ .fd = brig_run_fd(t->run), .events = POLLIN };
}

int batch_task_step(struct batch_task *t, struct brig_error *err)
{
	return t->away ? service_job_step(t->away, err) : brig_run_step(t->run, err);
}

void batch_task_cancel(struct batch_task *t)
{
	if (t->away)
		service_job_cancel(t->away);
	else if (t->run)
		(void)brig_run_cancel(t->run);
}

int batch_task_end(struct batch_task *t, struct brig_result **ret, struct brig_error *err)
{
	int rc;

	if (!t->away)
		return brig_run_end(MOVE_PTR(t->run), ret, err);
	rc = service_job_end(MOVE_PTR(t->away), ret, err);
	t->stays = rc > 0;
	return rc;
}

void batch_task_begin(struct batch_task *t, const struct batch_makers *makers, brig_notice_fn on_notice, void *user)
{
	struct brig_request req = BRIG_REQUEST_INIT;
	struct brig_error err = t->job->bad, why = BRIG_ERROR_INIT;
	int rc = -err.code;

	if (rc == 0 && t->is_checking)
		rc = checker_request(t, &req, &err);
	else if (rc == 0)
		req = batch_job_request(t->job, case_of(t));
	req.on_notice = on_notice;
	req.user = user;
	if (rc == 0)
		rc = begin_cell(t, makers, &req, &err);
	if (rc < 0 && brig_result_from_error(&err, &t->early, &why) < 0)
		t->no_memory = t->is_done = true;
}

/* ---- results ---------------------------------------------------------------------------------------- */

/* Takes the result of the case's program. */
static void finish_case(struct batch_task *t, struct brig_result *r, enum judgement j, const char *message)
{
	struct batch_outcome *o = &t->outcome[t->n_outcomes++];
	bool was_accepted = t->n_accepted + 1 == t->n_outcomes; /* all earlier ones were */

	o->judgement = j;
	o->message = *message ? strdup(message) : NULL;
	t->no_memory |= *message && !o->message;
	o->exit_code = brig_result_exit_code(r);
	(void)str_copy(o->verdict, sizeof(o->verdict), brig_result_verdict(r));
	(void)str_copy(o->id, sizeof(o->id), brig_result_id(r));
	brig_result_usage(r, &o->usage);
	t->n_accepted += j == JUDGED_accepted;
	if (was_accepted) {
		brig_result_free(t->shown);
		t->shown = MOVE_PTR(r);
	}
	brig_result_free(r);
	t->is_done = t->job->bad.code || t->n_outcomes == t->job->n_cases ||
		     (t->job->stop_at_failure && t->n_accepted < t->n_outcomes);
}

static void judge_program(struct batch_task *t, struct brig_result *r)
{
	const struct judge_expected *e = &case_of(t)->expected;
	char message[JUDGE_MESSAGE_MAX] = "";
	enum judgement j = JUDGED_NOT;

	if (e->is_given && judge_end(e, r, &j, message) > 0) {
		if (t->job->checker.code.data) {
			t->program = r;
			t->is_checking = true;
			return;
		}
		j = judge_output(e, r, message);
	}
	finish_case(t, r, j, message);
}

void batch_task_take(struct batch_task *t, struct brig_result *r)
{
	char message[JUDGE_MESSAGE_MAX] = "";
	enum judgement j;

	if (t->job->bad.code) {
		finish_case(t, r, JUDGED_NOT, "");
	} else if (t->is_checking) {
		j = judge_checked(r, message);
		brig_result_free(r);
		t->is_checking = false;
		fd_closep(&t->checker_files);
		finish_case(t, MOVE_PTR(t->program), j, message);
	} else {
		judge_program(t, r);
	}
}

enum judgement batch_task_judgement(const struct batch_task *t, const char **ret_message)
{
	const struct batch_outcome *o = t->outcome;
	size_t i = 0;

	while (i + 1 < t->n_outcomes && o[i].judgement == JUDGED_accepted)
		i++;
	if (ret_message)
		*ret_message = o[i].message ? o[i].message : "";
	return o[i].judgement;
}

/* ---- the line ------------------------------------------------------------------------------------------- */

static json_t *case_document(const struct batch_task *t, size_t i)
{
	const struct batch_outcome *o = &t->outcome[i];
	const char *name = t->job->cases[i].name, *message = o->message ? o->message : "";
	char number[24];

	(void)snprintf(number, sizeof(number), "%zu", i + 1);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I}", "name", name ? name : number, "judgement",
			 judgement_name(o->judgement), "message", message, "id", o->id, "verdict", o->verdict,
			 "exit_code", o->exit_code < 0 ? json_null() : json_integer(o->exit_code), "wall_ms",
			 (json_int_t)o->usage.wall_ms, "cpu_ms", (json_int_t)o->usage.cpu_ms, "memory_peak_bytes",
			 (json_int_t)o->usage.memory_peak_bytes);
}

/* The members before those of the result. */
static json_t *head_document(const struct batch_task *t)
{
	json_t *head = json_pack("{s:s}", "job", t->job->id), *cases = json_array();
	const char *message;
	enum judgement j = batch_task_judgement(t, &message);

	for (size_t i = 0; t->job->has_cases && i < t->n_outcomes; i++)
		(void)json_array_append_new(cases, case_document(t, i));
	if (j != JUDGED_NOT)
		(void)json_object_set_new(head, "judgement", json_string(judgement_name(j)));
	if (j != JUDGED_NOT)
		(void)json_object_set_new(head, "judged",
					  json_pack("{s:s, s:I, s:I, s:O}", "message", message, "passed",
						    (json_int_t)t->n_accepted, "total", (json_int_t)t->job->n_cases,
						    "cases", cases));
	json_decref(cases);
	return head;
}

bool batch_task_line(const struct batch_task *t, struct buf *out)
{
	json_t *head = head_document(t);
	AUTO_FREE char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_TEXT result = NULL;

	json_decref(head);
	if (!text || t->no_memory || brig_result_json(t->shown, &result, &err) < 0)
		return false;
	text[strlen(text) - 1] = ','; /* the result continues the object */
	sanitize_text(SANITIZE_JSON, text, strlen(text), out);
	sanitize_text(SANITIZE_JSON, result + 1, strlen(result + 1), out);
	buf_adds(out, "\n");
	return !out->no_memory && !out->full;
}
