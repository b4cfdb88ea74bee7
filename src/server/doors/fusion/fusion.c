/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusion.c - SandboxFusion's /run_code (fusion.h)
 *
 * Trainers learn from these responses, so failures must be attributed correctly. Failures of the program are Failed,
 * findings of the inspection included: otherwise a model would gain by being blocked. Failures of the service are
 * SandboxError, which trainers ignore. Overload is 504, the only status that clients retry.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/doors/fusion/fusion.h"

#define TIME_USUAL  10.0 /* seconds */
#define FETCH_MAX   256
#define FILES_MAX   1024
#define CODE_MEMORY 137
#define CODE_OTHER  123

static const struct fusion_language languages[] = {
	{ "python", "python", false },
	{ "cpp", "cpp", true },
	{ "nodejs", "javascript", false },
	{ "go", "go", true },
	{ "go_test", NULL, false },
	{ "java", "java", false },
	{ "php", "php", false },
	{ "csharp", NULL, false },
	{ "bash", "bash", false },
	{ "typescript", "typescript", false },
	{ "sql", NULL, false },
	{ "rust", "rust", true },
	{ "cuda", NULL, false },
	{ "lua", "lua", false },
	{ "R", "r", false },
	{ "perl", "perl", false },
	{ "D_ut", NULL, false },
	{ "ruby", "ruby", false },
	{ "scala", NULL, false },
	{ "julia", NULL, false },
	{ "pytest", NULL, false },
	{ "junit", NULL, false },
	{ "kotlin_script", NULL, false },
	{ "jest", NULL, false },
	{ "verilog", NULL, false },
	{ "python_gpu", NULL, false },
	{ "lean", NULL, false },
	{ "swift", NULL, false },
	{ "racket", NULL, false },
	{ "c", "c", true },
};

struct job {
	json_t *doc;
	const struct fusion_language *language;
};

static void job_free(void *job)
{
	json_decref(((struct job *)job)->doc);
	free(job);
}

void fusion_error(struct client *c, unsigned status, const char *message)
{
	if (status == 503 || status == 429)
		status = 504;
	door_reply(c, status, json_pack("{s:s%}", "detail", message, str_utf8_prefix(message, strlen(message))));
}

void fusion_ping(struct client *c)
{
	door_reply(c, 200, json_string("pong"));
}

/* Datasets stay with the client, which sends each problem with its answer. */
void fusion_datasets(struct client *c)
{
	door_reply(c, 200, json_array());
}

void fusion_no_dataset(struct client *c)
{
	fusion_error(c, 400,
		     "no datasets are kept here: /submit judges a problem that comes with the request, as "
		     "config.provided_data");
}

/* ---- validation --------------------------------------------------------------------------------------------- */

const struct fusion_language *fusion_language_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(languages); i++)
		if (str_eq(languages[i].theirs, name))
			return &languages[i];
	return NULL;
}

void fusion_refuse(struct client *c, const char *type, const char *field, const char *msg, json_t *input)
{
	door_reply(c, 422,
		   json_pack("{s:[{s:s, s:[s, s], s:s, s:o}]}", "detail", "type", type, "loc", "body", field, "msg",
			     msg, "input", input ? input : json_null()));
}

bool fusion_is_text(const json_t *v)
{
	return json_is_string(v);
}

bool fusion_is_maybe_text(const json_t *v)
{
	return json_is_string(v) || json_is_null(v);
}

bool fusion_is_number(const json_t *v)
{
	return json_is_number(v);
}

bool fusion_is_files(const json_t *v)
{
	const json_t *item;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)v, key, item) if (!fusion_is_maybe_text(item)) return false;
	return json_is_object(v);
}

bool fusion_is_list(const json_t *v)
{
	const json_t *item;
	size_t i;

	json_array_foreach(v, i, item) if (!json_is_string(item)) return false;
	return json_is_array(v);
}

bool fusion_is_maybe_number(const json_t *v)
{
	return json_is_number(v) || json_is_null(v);
}

bool fusion_is_object(const json_t *v)
{
	return json_is_object(v);
}

static const struct fusion_member members[] = {
	{ "code", true, fusion_is_text, "string_type", "Input should be a valid string" },
	{ "language", true, fusion_is_text, "string_type", "Input should be a valid string" },
	{ "compile_timeout", false, fusion_is_number, "float_type", "Input should be a valid number" },
	{ "run_timeout", false, fusion_is_number, "float_type", "Input should be a valid number" },
	{ "memory_limit_MB", false, fusion_is_number, "int_type", "Input should be a valid integer" },
	{ "stdin", false, fusion_is_maybe_text, "string_type", "Input should be a valid string" },
	{ "files", false, fusion_is_files, "dict_type", "Input should be a valid dictionary" },
	{ "fetch_files", false, fusion_is_list, "list_type", "Input should be a valid list" },
};

/*
 * The original accepts numbers written as strings, so convert them. False: the string is not a number, and the request
 * was answered. The member's type tells integers from reals.
 */
static bool read_number(struct client *c, json_t *doc, const struct fusion_member *row, json_t *value)
{
	bool is_whole = str_eq(row->type, "int_type");
	const char *text = json_string_value(value);
	double number;
	char *end;

	if ((row->is != fusion_is_number && row->is != fusion_is_maybe_number) || !text)
		return true;
	number = strtod(text, &end);
	if (end > text && *end == '\0' && isfinite(number) && (!is_whole || number == trunc(number))) {
		(void)json_object_set_new(doc, row->name, json_real(number));
		return true;
	}
	fusion_refuse(c, is_whole ? "int_parsing" : "float_parsing", row->name,
		      is_whole ? "Input should be a valid integer, unable to parse string as an integer"
			       : "Input should be a valid number, unable to parse string as a number",
		      json_incref(value));
	return false;
}

bool fusion_check(struct client *c, json_t *doc, const struct fusion_member *rows, size_t n)
{
	if (!json_is_object(doc)) {
		fusion_refuse(c, "model_attributes_type", "",
			      "Input should be a valid dictionary or object to extract fields from", json_incref(doc));
		return false;
	}
	for (size_t k = 0; k < n; k++) {
		json_t *value = json_object_get(doc, rows[k].name);

		if (!value && rows[k].must) {
			fusion_refuse(c, "missing", rows[k].name, "Field required", json_object());
			return false;
		}
		if (value && !read_number(c, doc, &rows[k], value))
			return false;
		value = json_object_get(doc, rows[k].name);
		if (value && !rows[k].is(value)) {
			fusion_refuse(c, rows[k].type, rows[k].name, rows[k].msg, json_incref(value));
			return false;
		}
	}
	return true;
}

/* False: the request was answered. */
static bool check(struct client *c, struct job *job)
{
	if (!fusion_check(c, job->doc, members, ARRAY_LEN(members)))
		return false;
	job->language = fusion_language_of(fusion_text(job->doc, "language"));
	if (!job->language)
		fusion_refuse(c, "literal_error", "language", "Input should be a language that is known",
			      json_incref(json_object_get(job->doc, "language")));
	return job->language != NULL;
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* Takes compile, run and files. */
static json_t *response(const char *status, const char *message, json_t *compile, json_t *run, json_t *files)
{
	return json_pack("{s:s, s:s%, s:o, s:o, s:n, s:o}", "status", status, "message", message,
			 str_utf8_prefix(message, strlen(message)), "compile_result", compile, "run_result", run,
			 "executor_pod_name", "files", files);
}

static json_t *trouble(const char *message)
{
	return response("SandboxError", message, json_null(), json_null(), json_object());
}

const char *fusion_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static long signal_code(const char *name)
{
	for (int n = 1; n < NSIG; n++) {
		const char *own = sigabbrev_np(n);

		if (own && strncmp(name, "SIG", 3) == 0 && str_eq(name + 3, own))
			return 128 + n;
	}
	return CODE_MEMORY;
}

/* The exit code for a verdict. */
static long code_of(const json_t *result)
{
	const json_t *code = json_object_get(result, "exit_code");
	const char *verdict = fusion_text(result, "verdict");

	if (str_eq(verdict, "blocked"))
		return 126;
	if (str_eq(verdict, "memory_limit"))
		return CODE_MEMORY;
	if (json_is_integer(code))
		return (long)json_integer_value(code);
	return str_eq(verdict, "crash") ? signal_code(fusion_text(result, "signal")) : CODE_OTHER;
}

json_t *fusion_output(const json_t *result, const char *stream)
{
	char encoding[32];

	(void)snprintf(encoding, sizeof(encoding), "%s_encoding", stream);
	if (str_eq(fusion_text(result, encoding), "base64"))
		return json_string("[DecodeError] the output is not UTF-8");
	return door_output(result, stream);
}

static json_t *errors_of(const json_t *result)
{
	AUTO_BUF text = BUF_INIT(256 * KiB);

	if (!str_eq(fusion_text(result, "verdict"), "blocked"))
		return fusion_output(result, "stderr");
	door_findings_text(result, &text);
	return json_stringn(buf_str(&text), str_utf8_prefix(buf_str(&text), text.len));
}

json_t *fusion_stage(bool is_late, double seconds, long code, json_t *output, json_t *errors)
{
	return json_pack("{s:s, s:f, s:o, s:o, s:o}", "status", is_late ? "TimeLimitExceeded" : "Finished",
			 "execution_time", seconds, "return_code", is_late ? json_null() : json_integer(code), "stdout",
			 output, "stderr", errors);
}

static json_t *stage(const json_t *result, bool is_late)
{
	double ms = (double)json_integer_value(json_object_get(json_object_get(result, "usage"), "wall_ms"));

	return fusion_stage(is_late, ms / 1000, code_of(result), fusion_output(result, "stdout"), errors_of(result));
}

/* Those of the requested files that exist: requested name to content in base64. */
static json_t *fetched(const json_t *wanted, const json_t *result)
{
	const json_t *artifacts = json_object_get(result, "artifacts");
	json_t *files = json_object(), *name, *artifact;
	size_t i, k;

	json_array_foreach(wanted, i, name) json_array_foreach(artifacts, k, artifact)
	{
		const char *path = fusion_text(artifact, "path"), *own = json_string_value(name);
		json_t *content = json_object_get(artifact, "content");
		bool is_text = str_eq(fusion_text(artifact, "content_encoding"), "utf-8");
		AUTO_FREE char *coded = NULL;

		if (!str_eq(path, strncmp(own, "./", 2) == 0 ? own + 2 : own) || !json_is_string(content))
			continue;
		if (!is_text) {
			(void)json_object_set(files, own, content);
			continue;
		}
		coded = malloc(base64_len(json_string_length(content)) + 1);
		if (!coded)
			continue;
		base64_put(coded, json_string_value(content), json_string_length(content));
		(void)json_object_set_new(files, own, json_stringn(coded, base64_len(json_string_length(content))));
	}
	return files;
}

json_t *fusion_response(const struct fusion_language *language, const json_t *fetch, const json_t *result)
{
	static const char *const ours[] = { "refused", "violated", "failed", "cancelled" };
	const char *verdict = fusion_text(result, "verdict");
	bool is_late = str_eq(verdict, "timeout") || str_eq(verdict, "cpu_limit");
	json_t *one;

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (str_eq(verdict, ours[i]))
			return trouble(fusion_text(result, "reason"));
	one = stage(result, is_late);
	if (str_eq(fusion_text(result, "step"), "compile"))
		return response("Failed", "", one, json_null(), json_object());
	return response(str_eq(verdict, "ok") ? "Success" : "Failed", "",
			language->compiles ? fusion_stage(false, 0, 0, json_string(""), json_string("")) : json_null(),
			one, fetched(fetch, result));
}

bool fusion_is_ours(const json_t *doc)
{
	return str_eq(fusion_text(doc, "status"), "SandboxError");
}

static void on_result(struct client *c, unsigned status, const struct message *m)
{
	const struct job *job = c->req->call->state;
	json_t *result = door_answer_json(m);

	if (status == 422 || status == 403 || status == 500)
		door_reply(c, 200, trouble(door_answer_message(result)));
	else if (status != 200)
		fusion_error(c, status, door_answer_message(result));
	else
		door_reply(c, 200, fusion_response(job->language, json_object_get(job->doc, "fetch_files"), result));
	json_decref(result);
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static bool add_file(struct buf *tar, const char *path, const json_t *content)
{
	size_t len = json_string_length(content);
	AUTO_FREE char *bytes = malloc(len / 4 * 3 + 1);
	ssize_t n = bytes ? base64_get(bytes, json_string_value(content), len) : -1;
	struct bytes what = { bytes, n < 0 ? 0 : (size_t)n };

	return n >= 0 && *path && ustar_add_file(tar, strncmp(path, "./", 2) == 0 ? path + 2 : path, &what);
}

int fusion_files(const json_t *doc, const char **ret_why)
{
	AUTO_BUF tar = BUF_INIT(JSON_FILES_MAX);
	json_t *files = (json_t *)(uintptr_t)doc, *content;
	const char *path;
	int fd;

	if (json_object_size(files) > FILES_MAX)
		*ret_why = "there are too many files";
	json_object_foreach(files, path, content) if (!*ret_why && !json_is_null(content) &&
						      !add_file(&tar, path, content)) *ret_why =
		"a file has no name, is no base64 or too long";
	if (*ret_why || tar.len == 0)
		return FD_NONE;
	fd = ustar_to_file(&tar);
	if (fd < 0)
		*ret_why = "there is no room for the files";
	return fd < 0 ? FD_NONE : fd;
}

void fusion_put_limits(struct buf *fields, const json_t *time, double usual, const json_t *memory)
{
	double seconds = json_is_number(time) ? json_number_value(time) : usual, mb = json_number_value(memory);

	if (!isfinite(seconds) || seconds < 0.01 || seconds > 86400)
		seconds = seconds < 0.01 ? 0.01 : 86400;
	door_put_option(fields, "execution_timeout_ms", (uint64_t)(seconds * 1000));
	if (json_is_number(memory) && mb >= 1 && mb < 1e6)
		door_put_option(fields, "mem_limit", max_u64((uint64_t)mb, 8) * MiB);
}

/* The default is the policy's: some compilers need longer for their first program. */
static void put_compiler_time(struct buf *fields, const json_t *time)
{
	double seconds = json_number_value(time);

	if (seconds >= 0.01 && seconds < TIME_USUAL)
		door_put_option(fields, "compile_timeout_ms", (uint64_t)(seconds * 1000));
}

static void put_fetched(const json_t *doc, struct buf *fields)
{
	const json_t *list = json_object_get(doc, "fetch_files"), *name;
	size_t i;

	json_array_foreach(list, i, name)
	{
		const char *path = json_string_value(name);

		if (i < FETCH_MAX && *path && strlen(path) == json_string_length(name) && strlen(path) < 1024)
			message_put_text(fields, FIELD_artifact, strncmp(path, "./", 2) == 0 ? path + 2 : path);
	}
}

static void run(struct client *c, const struct job *job)
{
	const json_t *code = json_object_get(job->doc, "code"), *input = json_object_get(job->doc, "stdin");
	struct buf *fields = door_fields(c);
	const char *why = NULL;
	AUTO_FD files = fusion_files(json_object_get(job->doc, "files"), &why);

	if (!job->language->ours)
		why = "this language is not one that brig has";
	if (json_string_length(code) > message_max_bytes(FIELD_code) ||
	    json_string_length(input) > message_max_bytes(FIELD_input))
		why = "code or stdin is too long";
	if (why) {
		door_reply(c, 200, trouble(why));
		return;
	}
	message_put_number(fields, FIELD_kind, BRIG_KIND_CODE);
	message_put_text(fields, FIELD_language, job->language->ours);
	message_put_bytes(fields, FIELD_code, json_string_value(code), json_string_length(code));
	if (json_is_string(input))
		message_put_bytes(fields, FIELD_input, json_string_value(input), json_string_length(input));
	fusion_put_limits(fields, json_object_get(job->doc, "run_timeout"), TIME_USUAL,
			  json_object_get(job->doc, "memory_limit_MB"));
	if (job->language->compiles)
		put_compiler_time(fields, json_object_get(job->doc, "compile_timeout"));
	put_fetched(job->doc, fields);
	door_ask(c, ROUTE_execute, files, FD_NONE, on_result);
}

void fusion_run(struct client *c)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		fusion_error(c, 503, "there is no memory");
		return;
	}
	c->req->call->state = job;
	c->req->call->release = job_free;
	job->doc = door_json(c, &err);
	if (!job->doc)
		fusion_refuse(c, "json_invalid", "0", err.msg, json_object());
	else if (check(c, job))
		run(c, job);
}
