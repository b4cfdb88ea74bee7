/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_job.c - a line of JSON becomes a job
 *
 * Each kind of object has a table of its members; one walk reads any of them, so that every complaint says where in the line
 * it is ("cases[2].expected.compare") and an unknown member is answered with the one that was probably meant.  A line names
 * nothing of the host: neither files nor folders.  So whoever passes on lines of other people gives them no more than the
 * policy does.
 */
#include "cli/batch_job.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/ustar.h"

#define PATH_TEXT_MAX 200
#define MEMBERS_MAX   24
#define NUMBER_TEXT   40

struct job_block {
	struct job_block *next;
	max_align_t data[];
};

/* One line on its way: where one is in it, and whose memory is used. */
struct reader {
	struct batch_job *job;
	struct brig_error *err;
	char path[PATH_TEXT_MAX]; /* "cases[2].expected" */
};

typedef int (*read_fn)(struct reader *r, json_t *value, void *into);

struct member {
	const char *name;
	read_fn read;
	size_t offset;
};

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
	while (job->blocks) {
		struct job_block *next = job->blocks->next;

		free(job->blocks);
		job->blocks = next;
	}
	fd_closep(&job->files_fd);
	json_decref(job->doc);
	free(job);
}

void *batch_job_alloc(struct batch_job *job, size_t n, size_t size)
{
	struct job_block *block = NULL;
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes) && !__builtin_add_overflow(bytes, sizeof(*block), &bytes))
		block = calloc(1, bytes);
	if (!block)
		return NULL;
	block->next = job->blocks;
	job->blocks = block;
	return block->data;
}

/* ---- complaints, and the walk ------------------------------------------------------------------------- */

/* "args[1] must be a string": what is wrong with the value at which one is. */
static int complain(struct reader *r, const char *what)
{
	return err_set(r->err, BRIG_E_USAGE, 0, "%s%s%s", r->path, *r->path ? " " : "the line ", what);
}

/* Goes on below a name or a number; the path's former length, for leave(). */
static size_t enter(struct reader *r, const char *name, size_t index)
{
	size_t len = strlen(r->path);

	if (name)
		(void)snprintf(r->path + len, sizeof(r->path) - len, "%s%.60s", len ? "." : "", name);
	else
		(void)snprintf(r->path + len, sizeof(r->path) - len, "[%zu]", index);
	r->path[str_utf8_prefix(r->path, strlen(r->path))] = '\0';
	return len;
}

static void leave(struct reader *r, size_t len)
{
	r->path[len] = '\0';
}

static int complain_unknown(struct reader *r, const char *name, const struct member *table, size_t n)
{
	const char *names[MEMBERS_MAX], *near;

	for (size_t i = 0; i < n; i++)
		names[i] = table[i].name;
	near = str_nearest(name, names, n);
	return err_set(r->err, BRIG_E_USAGE, 0, "%s%sunknown member '%.60s'%s%s%s", r->path, *r->path ? ": " : "", name,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Every member of an object by its row; into is the struct that the rows' offsets are of. */
static int read_members(struct reader *r, json_t *object, const struct member *table, size_t n, void *into)
{
	const char *name;
	json_t *value;
	int rc = 0;

	if (!json_is_object(object))
		return complain(r, "must be an object");
	json_object_foreach(object, name, value)
	{
		size_t i = 0, len;

		while (i < n && !str_eq(table[i].name, name))
			i++;
		if (i == n)
			return complain_unknown(r, name, table, n);
		len = enter(r, name, 0);
		rc = table[i].read(r, value, (char *)into + table[i].offset);
		leave(r, len);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- single values -------------------------------------------------------------------------------------- */

/* A string without NUL, which would end it early for the library. */
static int read_text(struct reader *r, json_t *value, void *into)
{
	if (!json_is_string(value))
		return complain(r, "must be a string");
	if (strlen(json_string_value(value)) != json_string_length(value))
		return complain(r, "has a NUL character, which is not possible there");
	*(const char **)into = json_string_value(value);
	return 0;
}

static int read_bool(struct reader *r, json_t *value, void *into)
{
	if (!json_is_boolean(value))
		return complain(r, "must be true or false");
	*(bool *)into = json_is_true(value);
	return 0;
}

static int read_base64(struct reader *r, json_t *value, void *into)
{
	struct batch_bytes *ret = into;
	char *bytes;
	ssize_t n;

	if (!json_is_string(value))
		return complain(r, "must be a string");
	bytes = batch_job_alloc(r->job, json_string_length(value) / 4 * 3 + 1, 1);
	if (!bytes)
		return err_nomem(r->err);
	n = base64_get(bytes, json_string_value(value), json_string_length(value));
	if (n < 0)
		return complain(r, "is not base64");
	*ret = (struct batch_bytes){ bytes, (size_t)n };
	return 0;
}

/* Text, or bytes as { "base64": ... }. */
static int read_bytes(struct reader *r, json_t *value, void *into)
{
	static const struct member table[] = { { "base64", read_base64, 0 } };
	struct batch_bytes *ret = into;

	if (json_is_object(value) && json_object_size(value) == 1)
		return read_members(r, value, table, ARRAY_LEN(table), ret);
	if (!json_is_string(value))
		return complain(r, "must be a string, or {\"base64\": ...} for bytes");
	*ret = (struct batch_bytes){ json_string_value(value), json_string_length(value) };
	return 0;
}

static int read_strings(struct reader *r, json_t *value, void *into)
{
	struct batch_strings *ret = into;
	json_t *item;
	size_t i;

	if (!json_is_array(value))
		return complain(r, "must be a list of strings");
	ret->item = batch_job_alloc(r->job, json_array_size(value) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_array_foreach(value, i, item)
	{
		size_t len = enter(r, NULL, i);

		if (read_text(r, item, &ret->item[i]) < 0)
			return -r->err->code;
		leave(r, len);
	}
	ret->n = json_array_size(value);
	ret->is_given = true;
	return 0;
}

/* { "NAME": "VALUE" } as the library takes it: "NAME=VALUE". */
static int read_env(struct reader *r, json_t *value, void *into)
{
	struct batch_strings *ret = into;
	const char *name, *text;
	json_t *item;

	if (!json_is_object(value))
		return complain(r, "must be an object of names and values");
	ret->item = batch_job_alloc(r->job, json_object_size(value) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_object_foreach(value, name, item)
	{
		size_t len = enter(r, name, 0), size = strlen(name) + json_string_length(item) + 2;
		char *both = batch_job_alloc(r->job, size, 1);

		if (read_text(r, item, &text) < 0)
			return -r->err->code;
		if (!both)
			return err_nomem(r->err);
		if (*name == '\0' || strchr(name, '='))
			return complain(r, "is no name of a variable");
		(void)snprintf(both, size, "%s=%s", name, text);
		ret->item[ret->n++] = both;
		leave(r, len);
	}
	return 0;
}

static int read_double(struct reader *r, json_t *value, void *into)
{
	if (!json_is_number(value) || json_number_value(value) < 0 || json_number_value(value) > 1e12)
		return complain(r, "must be a number from 0 to 1e12");
	*(double *)into = json_number_value(value);
	return 0;
}

static int read_exit_code(struct reader *r, json_t *value, void *into)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 255)
		return complain(r, "must be a number from 0 to 255");
	*(int *)into = (int)json_integer_value(value);
	return 0;
}

/* ---- wishes ----------------------------------------------------------------------------------------------- */

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

/* Numbers and truth values mean what they would as text. */
static const char *value_text(struct reader *r, json_t *value)
{
	char *text;

	if (json_is_boolean(value))
		return json_is_true(value) ? "true" : "false";
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value) ? json_string_value(value) : NULL;
	text = json_is_number(value) ? batch_job_alloc(r->job, NUMBER_TEXT, 1) : NULL;
	if (text && json_is_integer(value))
		(void)snprintf(text, NUMBER_TEXT, "%lld", (long long)json_integer_value(value));
	else if (text)
		(void)snprintf(text, NUMBER_TEXT, "%.15g", json_real_value(value));
	return text;
}

static int read_options(struct reader *r, json_t *value, void *into)
{
	struct wishes *ret = into;
	const char *name;
	json_t *item;

	if (!json_is_object(value))
		return complain(r, "must be an object of settings and values");
	ret->item = batch_job_alloc(r->job, json_object_size(value) + 1, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(r->err);
	json_object_foreach(value, name, item)
	{
		size_t len = enter(r, name, 0);
		struct brig_option wish = { setting_of(name), value_text(r, item) };

		if (!wish.value)
			return complain(r, "must be a string, a number or true or false");
		ret->item[ret->n++] = wish;
		leave(r, len);
	}
	return 0;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* What a path may be is said by the reader of the archive. */
bool batch_files_add(struct buf *tar, const char *path, const struct batch_bytes *content)
{
	static const char zeroes[USTAR_BLOCK];
	size_t rest = ustar_padding(content->len);

	return ustar_add_head(tar, path, 0644, content->len) &&
	       buf_add(tar, content->data, content->len) == content->len && buf_add(tar, zeroes, rest) == rest;
}

int batch_files_end(struct buf *tar, struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;

	if (!ustar_add_end(tar))
		return err_nomem(err);
	fd = memfd_create("brig-batch", MFD_CLOEXEC);
	if (fd < 0 || fd_write_all(fd, buf_str(tar), tar->len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot keep the files of a job");
	return fd_move(&fd);
}

static int read_files(struct reader *r, json_t *value, void *into)
{
	AUTO_BUF tar = BUF_INIT(BATCH_FILES_MAX);
	int *ret = into;
	const char *path;
	json_t *item;

	if (!json_is_object(value))
		return complain(r, "must be an object of paths and contents");
	json_object_foreach(value, path, item)
	{
		size_t len = enter(r, path, 0);
		struct batch_bytes content;

		if (read_bytes(r, item, &content) < 0)
			return -r->err->code;
		if (*path == '\0')
			return complain(r, "has a file without a name");
		if (!batch_files_add(&tar, path, &content))
			return tar.no_memory ? err_nomem(r->err)
					     : complain(r, "does not fit: files have 64 MB together");
		leave(r, len);
	}
	*ret = batch_files_end(&tar, r->err);
	return *ret < 0 ? *ret : 0;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static int read_compare(struct reader *r, json_t *value, void *into)
{
	const char *text;

	if (read_text(r, value, &text) < 0)
		return -r->err->code;
	for (enum judge_compare how = 0; how < COMPARE_COUNT; how++)
		if (str_eq(text, judge_compare_name(how))) {
			*(enum judge_compare *)into = how;
			return 0;
		}
	return complain(r, "must be trim, exact, tokens or float");
}

static int read_expected(struct reader *r, json_t *value, void *into)
{
	static const struct member table[] = {
		{ "stdout", read_bytes, offsetof(struct judge_expected, out) },
		{ "stderr", read_bytes, offsetof(struct judge_expected, err) },
		{ "exit_code", read_exit_code, offsetof(struct judge_expected, exit_code) },
		{ "compare", read_compare, offsetof(struct judge_expected, compare) },
		{ "tolerance", read_double, offsetof(struct judge_expected, tolerance) },
	};
	struct judge_expected *ret = into;

	ret->is_given = true;
	if (json_is_string(value))
		return read_bytes(r, value, &ret->out);
	return read_members(r, value, table, ARRAY_LEN(table), ret);
}

static int read_case(struct reader *r, json_t *value, struct batch_case *into)
{
	static const struct member table[] = {
		{ "name", read_text, offsetof(struct batch_case, name) },
		{ "stdin", read_bytes, offsetof(struct batch_case, input) },
		{ "args", read_strings, offsetof(struct batch_case, args) },
		{ "expected", read_expected, offsetof(struct batch_case, expected) },
		{ "points", read_double, offsetof(struct batch_case, points) },
	};

	into->points = 1;
	into->expected.is_given = true; /* a case is there to be judged */
	return read_members(r, value, table, ARRAY_LEN(table), into);
}

static int read_cases(struct reader *r, json_t *value, void *into)
{
	struct batch_job *job = into;
	json_t *item;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) == 0 || json_array_size(value) > BATCH_CASES_MAX)
		return complain(r, "must be a list of 1 to 100000 cases");
	job->cases = batch_job_alloc(job, json_array_size(value), sizeof(*job->cases));
	if (!job->cases)
		return err_nomem(r->err);
	json_array_foreach(value, i, item)
	{
		size_t len = enter(r, NULL, i);

		job->cases[i].expected = (struct judge_expected)JUDGE_EXPECTED_INIT;
		if (read_case(r, item, &job->cases[i]) < 0)
			return -r->err->code;
		leave(r, len);
	}
	job->n_cases = json_array_size(value);
	job->has_cases = true;
	return 0;
}

static int read_checker(struct reader *r, json_t *value, void *into)
{
	static const struct member table[] = {
		{ "language", read_text, offsetof(struct batch_checker, language) },
		{ "code", read_bytes, offsetof(struct batch_checker, code) },
		{ "options", read_options, offsetof(struct batch_checker, wishes) },
	};
	struct batch_checker *ret = into;

	if (read_members(r, value, table, ARRAY_LEN(table), ret) < 0)
		return -r->err->code;
	return ret->language && ret->code.data ? 0 : complain(r, "needs \"language\" and \"code\"");
}

/* ---- the job ---------------------------------------------------------------------------------------------------------- */

static int read_id(struct reader *r, json_t *value, void *into)
{
	const char *text;

	if (read_text(r, value, &text) < 0)
		return -r->err->code;
	if (*text == '\0' || !str_copy(into, BATCH_ID_MAX + 1, text)) {
		*(char *)into = '\0';
		return complain(r, "must have 1 to 256 bytes");
	}
	return 0;
}

#define REQ(member) offsetof(struct batch_job, req.member)
#define JOB(member) offsetof(struct batch_job, member)
static const struct member job_members[] = {
	{ "id", read_id, JOB(id) },
	{ "kind", read_text, JOB(kind) },
	{ "language", read_text, REQ(language) },
	{ "file_name", read_text, REQ(file_name) },
	{ "code", read_bytes, JOB(code) },
	{ "args", read_strings, JOB(args) },
	{ "env", read_env, JOB(env) },
	{ "stdin", read_bytes, JOB(input) },
	{ "trust", read_text, REQ(trust) },
	{ "options", read_options, JOB(wishes) },
	{ "packages", read_strings, JOB(packages) },
	{ "files", read_files, JOB(files_fd) },
	{ "path", read_text, REQ(test_path) },
	{ "artifacts", read_strings, JOB(artifacts) },
	{ "inline_artifacts", read_text, JOB(inline_artifacts) },
	{ "expected", read_expected, JOB(expected) },
	{ "cases", read_cases, 0 },
	{ "checker", read_checker, JOB(checker) },
	{ "stop_at_failure", read_bool, JOB(stop_at_failure) },
};
_Static_assert(ARRAY_LEN(job_members) <= MEMBERS_MAX, "complain_unknown() has no room for all names");

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

/* What the job says of a setting replaces what all jobs are given: said twice it would be refused. */
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
	const struct batch_strings *args = c->args.is_given ? &c->args : &job->args;
	const struct batch_bytes *input = c->input.data ? &c->input : &job->input;
	struct brig_request req = job->req;

	req.args = args->item;
	req.n_args = args->n;
	req.stdin_data = input->data;
	req.stdin_len = input->len;
	if (job->files_fd >= 0) {
		(void)lseek(job->files_fd, 0, SEEK_SET); /* a job's cells come one after the other */
		req.files_fd = job->files_fd;
	}
	return req;
}

/* ---- lines --------------------------------------------------------------------------------------------------------------- */

static json_t *parse(const char *line, size_t len, struct brig_error *err)
{
	size_t good = str_utf8_prefix(line, len);
	json_error_t why;
	json_t *doc;

	if (good < len) {
		(void)err_set(err, BRIG_E_USAGE, 0, "byte %zu is not UTF-8", good + 1);
		return NULL;
	}
	doc = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!doc)
		(void)err_set(err, BRIG_E_USAGE, 0, "column %d: %.200s", why.column, why.text);
	return doc;
}

/* Names in a complaint are cut, perhaps in the middle of a character. */
static void mend_message(struct brig_error *err)
{
	size_t good;

	while ((good = str_utf8_prefix(err->msg, strlen(err->msg))) < strlen(err->msg))
		err->msg[good] = '?';
}

/* First of all, so that a complaint about any other member is that of this job. */
static void take_id(struct batch_job *job)
{
	const json_t *id = json_object_get(job->doc, "id");

	if (json_string_length(id) <= BATCH_ID_MAX && json_is_string(id))
		(void)str_copy(job->id, sizeof(job->id), json_string_value(id));
}

void batch_job_read(struct batch_job *job, const char *line, size_t len, uint64_t line_number,
		    const struct batch_defaults *defaults)
{
	struct reader r = { .job = job, .err = &job->bad };
	int rc;

	job->doc = parse(line, len, &job->bad);
	take_id(job);
	rc = job->doc ? read_members(&r, job->doc, job_members, ARRAY_LEN(job_members), job) : -job->bad.code;
	if (rc == 0)
		rc = batch_job_finish(job, defaults, &job->bad);
	if (job->id[0] == '\0')
		(void)snprintf(job->id, sizeof(job->id), "%llu", (unsigned long long)line_number);
	if (rc < 0)
		(void)err_wrap(&job->bad, "line %llu", (unsigned long long)line_number);
	mend_message(&job->bad);
}

int batch_case_read(struct batch_job *job, const char *line, size_t len, struct batch_case *ret, struct brig_error *err)
{
	struct reader r = { .job = job, .err = err };
	json_t *doc = parse(line, len, err);
	int rc;

	if (!doc) {
		mend_message(err);
		return -err->code;
	}
	/* All cases of a file go with one job, and so do their documents. */
	if (!job->doc)
		job->doc = json_array();
	if (!job->doc || json_array_append_new(job->doc, doc) < 0)
		return err_nomem(err);
	rc = read_case(&r, doc, ret);
	if (rc < 0)
		mend_message(err);
	return rc;
}
