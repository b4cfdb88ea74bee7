/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_job.c - turns a line of JSON into a job (base/json_read.h)
 *
 * A line cannot refer to files or directories of the host.  So running lines from others gives them no more than the
 * policy does.
 */
#include "cli/batch_job.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

/* ---- memory ------------------------------------------------------------------------------------------ */

struct batch_job *batch_job_new(void)
{
	struct batch_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->req = (struct brig_request)BRIG_REQUEST_INIT;
	job->expected = (struct judge_expected)JUDGE_EXPECTED_INIT;
	job->files_fd = FD_NONE;
	return job;
}

void batch_job_free(struct batch_job *job)
{
	if (!job)
		return;
	json_blocks_free(&job->blocks);
	fd_closep(&job->files_fd);
	json_decref(job->doc);
	free(job);
}

void *batch_job_alloc(struct batch_job *job, size_t n, size_t size)
{
	return json_blocks_alloc(&job->blocks, n, size);
}

/* ---- single values -------------------------------------------------------------------------------------- */

static int read_double(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_number(value) || json_number_value(value) < 0 || json_number_value(value) > 1e12)
		return json_complain(r, "must be a number from 0 to 1e12");
	*(double *)into = json_number_value(value);
	return 0;
}

static int read_exit_code(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 255)
		return json_complain(r, "must be a number from 0 to 255");
	*(int *)into = (int)json_integer_value(value);
	return 0;
}

/* ---- settings --------------------------------------------------------------------------------------------- */

/* The setting that an option of the command line stands for, so that both spellings work. */
static const char *setting_of(const char *name)
{
#define AT(member) 0
	static const struct option_row rows[] = {
#include "cli/wish_options.def"
	};
#undef AT

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].kind == OPTION_WISH && rows[i].key && str_eq(rows[i].name, name))
			return rows[i].key;
	return name;
}

static int read_options(struct json_reader *r, json_t *value, void *into)
{
	struct json_settings settings = { 0 };
	struct wishes *ret = into;
	int rc = json_read_settings(r, value, &settings);

	*ret = (struct wishes){ settings.item, settings.n };
	return rc;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static int read_compare(struct json_reader *r, json_t *value, void *into)
{
	const char *text;

	if (json_read_string(r, value, &text) < 0)
		return -r->err->code;
	for (enum judge_compare how = 0; how < COMPARE_COUNT; how++)
		if (str_eq(text, judge_compare_name(how))) {
			*(enum judge_compare *)into = how;
			return 0;
		}
	return json_complain(r, "must be trim, exact, tokens or float");
}

static int read_expected(struct json_reader *r, json_t *value, void *into)
{
	static const struct json_member table[] = {
		{ "stdout", json_read_bytes, offsetof(struct judge_expected, out) },
		{ "stderr", json_read_bytes, offsetof(struct judge_expected, err) },
		{ "exit_code", read_exit_code, offsetof(struct judge_expected, exit_code) },
		{ "compare", read_compare, offsetof(struct judge_expected, compare) },
		{ "tolerance", read_double, offsetof(struct judge_expected, tolerance) },
	};
	struct judge_expected *ret = into;

	ret->is_given = true;
	if (json_is_string(value))
		return json_read_bytes(r, value, &ret->out);
	return json_read_members(r, value, table, ARRAY_LEN(table), ret);
}

static int read_case(struct json_reader *r, json_t *value, struct batch_case *into)
{
	static const struct json_member table[] = {
		{ "name", json_read_string, offsetof(struct batch_case, name) },
		{ "stdin", json_read_bytes, offsetof(struct batch_case, input) },
		{ "args", json_read_strings, offsetof(struct batch_case, args) },
		{ "expected", read_expected, offsetof(struct batch_case, expected) },
		{ "points", read_double, offsetof(struct batch_case, points) },
	};

	into->points = 1;
	into->expected.is_given = true; /* a case is always judged */
	return json_read_members(r, value, table, ARRAY_LEN(table), into);
}

static int read_cases(struct json_reader *r, json_t *value, void *into)
{
	struct batch_job *job = into;
	json_t *item;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) == 0 || json_array_size(value) > BATCH_CASES_MAX)
		return json_complain(r, "must be a list of 1 to 100000 cases");
	job->cases = batch_job_alloc(job, json_array_size(value), sizeof(*job->cases));
	if (!job->cases)
		return err_nomem(r->err);
	json_array_foreach(value, i, item)
	{
		size_t len = json_enter(r, NULL, i);

		job->cases[i].expected = (struct judge_expected)JUDGE_EXPECTED_INIT;
		if (read_case(r, item, &job->cases[i]) < 0)
			return -r->err->code;
		json_leave(r, len);
	}
	job->n_cases = json_array_size(value);
	job->has_cases = true;
	return 0;
}

static int read_checker(struct json_reader *r, json_t *value, void *into)
{
	static const struct json_member table[] = {
		{ "language", json_read_string, offsetof(struct batch_checker, language) },
		{ "code", json_read_bytes, offsetof(struct batch_checker, code) },
		{ "options", read_options, offsetof(struct batch_checker, wishes) },
	};
	struct batch_checker *ret = into;

	if (json_read_members(r, value, table, ARRAY_LEN(table), ret) < 0)
		return -r->err->code;
	return ret->language && ret->code.data ? 0 : json_complain(r, "needs \"language\" and \"code\"");
}

/* ---- the job --------------------------------------------------------------------------------- */

static int read_id(struct json_reader *r, json_t *value, void *into)
{
	const char *text;

	if (json_read_string(r, value, &text) < 0)
		return -r->err->code;
	if (*text == '\0' || !str_copy(into, BATCH_ID_MAX + 1, text)) {
		*(char *)into = '\0';
		return json_complain(r, "must have 1 to 256 bytes");
	}
	return 0;
}

#define REQ(member) offsetof(struct batch_job, req.member)
#define JOB(member) offsetof(struct batch_job, member)
static const struct json_member job_members[] = {
	{ "id", read_id, JOB(id) },
	{ "kind", json_read_string, JOB(kind) },
	{ "language", json_read_string, REQ(language) },
	{ "file_name", json_read_string, REQ(file_name) },
	{ "code", json_read_bytes, JOB(code) },
	{ "args", json_read_strings, JOB(args) },
	{ "env", json_read_env, JOB(env) },
	{ "stdin", json_read_bytes, JOB(input) },
	{ "trust", json_read_string, REQ(trust) },
	{ "options", read_options, JOB(wishes) },
	{ "packages", json_read_strings, JOB(packages) },
	{ "files", json_read_files, JOB(files_fd) },
	{ "path", json_read_string, REQ(test_path) },
	{ "artifacts", json_read_strings, JOB(artifacts) },
	{ "inline_artifacts", json_read_string, JOB(inline_artifacts) },
	{ "expected", read_expected, JOB(expected) },
	{ "cases", read_cases, 0 },
	{ "checker", read_checker, JOB(checker) },
	{ "stop_at_failure", json_read_bool, JOB(stop_at_failure) },
	{ "retry", json_read_retry, JOB(never_again) },
};
_Static_assert(ARRAY_LEN(job_members) <= JSON_MEMBERS_MAX, "complain_unknown() has no room for all names");

static int set_kind(struct batch_job *job, struct brig_error *err)
{
	static const char *const kinds[] = {
		[BRIG_KIND_CODE] = "code",
		[BRIG_KIND_COMMAND] = "command",
		[BRIG_KIND_SHELL] = "shell",
		[BRIG_KIND_TESTS] = "tests",
	};

	for (uint32_t i = 0; job->kind && i < ARRAY_LEN(kinds); i++)
		if (str_eq(job->kind, kinds[i])) {
			job->req.kind = i;
			return 0;
		}
	return job->kind ? err_set(err, BRIG_E_USAGE, 0, "kind '%.40s' is none of code, command, shell and tests",
				   job->kind)
			 : 0;
}

/* A job's setting replaces the default for all jobs: setting one twice would be refused. */
static int merge_wishes(struct batch_job *job, struct wishes *own, const struct wishes *all, struct brig_error *err)
{
	struct brig_option *item = batch_job_alloc(job, own->n + all->n + 1, sizeof(*item));
	size_t n = 0;

	if (!item)
		return err_nomem(err);
	for (size_t i = 0; i < all->n; i++) {
		bool is_replaced = false;

		for (size_t k = 0; k < own->n; k++)
			is_replaced |= str_eq(own->item[k].key, all->item[i].key);
		if (!is_replaced)
			item[n++] = all->item[i];
	}
	for (size_t k = 0; k < own->n; k++)
		item[n++] = own->item[k];
	*own = (struct wishes){ item, n };
	return 0;
}

static int set_judging(struct batch_job *job, struct brig_error *err)
{
	if (job->has_cases && job->expected.is_given)
		return err_set(err, BRIG_E_USAGE, 0, "cases have \"expected\" of their own: leave out that of the job");
	if (job->has_cases)
		return 0;
	job->cases = batch_job_alloc(job, 1, sizeof(*job->cases));
	if (!job->cases)
		return err_nomem(err);
	job->cases[0] = (struct batch_case){ .expected = job->expected, .points = 1 };
	job->cases[0].expected.is_given |= job->checker.code.data != NULL;
	job->n_cases = 1;
	return 0;
}

int batch_job_finish(struct batch_job *job, const struct batch_defaults *defaults, struct brig_error *err)
{
	struct brig_request *req = &job->req;

	if (set_kind(job, err) < 0 || set_judging(job, err) < 0 ||
	    merge_wishes(job, &job->wishes, &defaults->wishes, err) < 0 ||
	    merge_wishes(job, &job->checker.wishes, &defaults->wishes, err) < 0)
		return -err->code;
	if (job->inline_artifacts && !str_to_bytes(job->inline_artifacts, &req->inline_artifacts))
		return err_set(err, BRIG_E_USAGE, 0, "inline_artifacts '%.40s' is no size: give one such as 1m",
			       job->inline_artifacts);
	if (!req->language && !req->file_name && req->kind == BRIG_KIND_CODE)
		req->language = defaults->language;
	if (!req->trust)
		req->trust = defaults->trust;
	job->checker.trust = defaults->trust;
	req->code = job->code.data;
	req->code_len = job->code.len;
	req->env = job->env.item;
	req->n_env = job->env.n;
	req->options = job->wishes.item;
	req->n_options = job->wishes.n;
	req->packages = job->packages.item;
	req->n_packages = job->packages.n;
	req->artifacts = job->artifacts.item;
	req->n_artifacts = job->artifacts.n;
	return 0;
}

struct brig_request batch_job_request(const struct batch_job *job, const struct batch_case *c)
{
	const struct json_strings *args = c->args.is_given ? &c->args : &job->args;
	const struct bytes *input = c->input.data ? &c->input : &job->input;
	struct brig_request req = job->req;

	req.args = args->item;
	req.n_args = args->n;
	req.stdin_data = input->data;
	req.stdin_len = input->len;
	if (job->files_fd >= 0) {
		(void)lseek(job->files_fd, 0, SEEK_SET); /* the job's cells read it one after the other */
		req.files_fd = job->files_fd;
	}
	return req;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct json_reader reader_of(struct batch_job *job, struct brig_error *err)
{
	return (struct json_reader){
		.err = err, .blocks = &job->blocks, .whole = "the line", .setting_of = setting_of
	};
}

/* First, so that an error in any other member is reported for this job. */
static void take_id(struct batch_job *job)
{
	const json_t *id = json_object_get(job->doc, "id");

	if (json_string_length(id) <= BATCH_ID_MAX && json_is_string(id))
		(void)str_copy(job->id, sizeof(job->id), json_string_value(id));
}

void batch_job_read(struct batch_job *job, const char *line, size_t len, uint64_t line_number,
		    const struct batch_defaults *defaults)
{
	struct json_reader r = reader_of(job, &job->bad);
	int rc;

	job->doc = json_read_text(line, len, JSON_ALLOW_NUL, &job->bad);
	take_id(job);
	rc = job->doc ? json_read_members(&r, job->doc, job_members, ARRAY_LEN(job_members), job) : -job->bad.code;
	if (rc == 0)
		rc = batch_job_finish(job, defaults, &job->bad);
	if (job->id[0] == '\0')
		(void)snprintf(job->id, sizeof(job->id), "%llu", (unsigned long long)line_number);
	if (rc < 0)
		(void)err_wrap(&job->bad, "line %llu", (unsigned long long)line_number);
	json_read_mend(&job->bad);
}

int batch_case_read(struct batch_job *job, const char *line, size_t len, struct batch_case *ret, struct brig_error *err)
{
	struct json_reader r = reader_of(job, err);
	json_t *doc = json_read_text(line, len, JSON_ALLOW_NUL, err);
	int rc;

	if (!doc) {
		json_read_mend(err);
		return -err->code;
	}
	/* All cases of a file belong to one job, which therefore owns several documents. */
	if (!job->doc)
		job->doc = json_array();
	if (!job->doc || json_array_append_new(job->doc, doc) < 0)
		return err_nomem(err);
	rc = read_case(&r, doc, ret);
	if (rc < 0)
		json_read_mend(err);
	return rc;
}
