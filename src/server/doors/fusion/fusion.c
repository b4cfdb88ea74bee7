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
#define FETCH_BYTES (32 * MiB) /* as much as a result may have */
#define PATH_BYTES  1025
#define FILES_MAX   1024
#define CODE_MEMORY 137
#define CODE_OTHER  123

/* A language without a separate compile step is compiled at program start if its last member is true. */
static const struct fusion_language languages[] = {
	{ "python", "python", false },
	{ "cpp", "cpp", true },
	{ "nodejs", "javascript", false },
	{ "go", "go", true },
	{ "go_test", NULL, false },
	{ "java", "java", true, true },
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

static bool is_language(const json_t *v)
{
	return json_is_string(v) && fusion_language_of(json_string_value(v));
}

static const struct fusion_member members[] = {
	{ "code", true, fusion_is_text, "string_type", "Input should be a valid string" },
	{ "language", true, is_language, "literal_error", "Input should be the name of a language that is known" },
	{ "compile_timeout", false, fusion_is_number, "float_type", "Input should be a valid number" },
	{ "run_timeout", false, fusion_is_number, "float_type", "Input should be a valid number" },
	{ "memory_limit_MB", false, fusion_is_whole, "int_type", "Input should be a valid integer" },
	{ "stdin", false, fusion_is_maybe_text, "string_type", "Input should be a valid string" },
	{ "files", false, fusion_is_files, "dict_type", "Input should be a valid dictionary" },
	{ "fetch_files", false, fusion_is_list, "list_type", "Input should be a valid list" },
};

/* False: the request was answered. */
static bool check(struct client *c, struct job *job)
{
	if (!fusion_check(c, job->doc, members, ARRAY_LEN(members)))
		return false;
	job->language = fusion_language_of(fusion_text(job->doc, "language"));
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

/* The exit code that corresponds to a verdict. */
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

/* The content of a file that the program created or changed, in base64; NULL: there is no such file. */
static json_t *made(const json_t *result, const char *name)
{
	json_t *artifacts = json_object_get(result, "artifacts"), *artifact, *content;
	AUTO_FREE char *coded = NULL;
	size_t i, len;

	json_array_foreach(artifacts, i, artifact)
	{
		content = json_object_get(artifact, "content");
		if (!str_eq(fusion_text(artifact, "path"), name) || !json_is_string(content))
			continue;
		if (!str_eq(fusion_text(artifact, "content_encoding"), "utf-8"))
			return json_incref(content);
		len = json_string_length(content);
		coded = malloc(base64_len(len) + 1);
		if (coded)
			base64_put(coded, json_string_value(content), len);
		return coded ? json_stringn(coded, base64_len(len)) : NULL;
	}
	return NULL;
}

static bool is_deleted(const json_t *result, const char *name)
{
	const json_t *changes = json_object_get(result, "changes"), *change;
	size_t i;

	json_array_foreach(changes, i, change)
	{
		const char *path = fusion_text(change, "path");
		size_t len = strlen(path);

		if (str_eq(fusion_text(change, "change"), "deleted") && strncmp(path, name, len) == 0 &&
		    (name[len] == '\0' || name[len] == '/'))
			return true;
	}
	return false;
}

/* An input file that the program did not change: its content from the request. */
static json_t *kept(const json_t *request, const json_t *result, const char *name)
{
	json_t *files = json_object_get(request, "files"), *content, *found = NULL;
	char own[PATH_BYTES];
	const char *path;

	/* of several with one name the last one was passed */
	json_object_foreach(files, path, content) if (json_is_string(content) && door_path(path, own, sizeof(own)) &&
						      str_eq(own, name)) found = content;
	return found && !is_deleted(result, name) ? json_incref(found) : NULL;
}

static void note_lost(struct buf *message, const char *name)
{
	if (message->len == 0)
		(void)buf_addf(message,
			       "fetch_files could not all be returned, their contents exceed %d MB together: '%.100s'",
			       (int)(FETCH_BYTES / MiB), name);
	else
		(void)buf_addf(message, ", '%.100s'", name);
}

static bool is_made(const json_t *result, const char *name)
{
	json_t *artifacts = json_object_get(result, "artifacts"), *artifact;
	size_t i;

	json_array_foreach(artifacts, i, artifact) if (str_eq(fusion_text(artifact, "path"), name)) return true;
	return false;
}

/*
 * The requested files that exist: the name as requested, and the content in base64. Adds a note of those that exist and
 * cannot be returned to message.
 */
static json_t *fetched(const json_t *request, const json_t *result, struct buf *message)
{
	const json_t *wanted = json_object_get(request, "fetch_files"), *name;
	json_int_t n_lost = json_integer_value(json_object_get(result, "artifacts_lost"));
	json_t *files = json_object();
	size_t i;

	json_array_foreach(wanted, i, name)
	{
		char path[PATH_BYTES];
		json_t *content;

		if (!door_path(json_string_value(name), path, sizeof(path)))
			continue;
		content = made(result, path);
		if (!content && is_made(result, path))
			note_lost(message, json_string_value(name));
		else if (!content)
			content = kept(request, result, path);
		if (content)
			(void)json_object_set_new(files, json_string_value(name), content);
	}
	if (n_lost > 0)
		(void)buf_addf(message,
			       "%s%" JSON_INTEGER_FORMAT " of fetch_files could not be returned: artifacts_limit or "
			       "artifacts_size of the policy was reached",
			       message->len > 0 ? "; " : "", n_lost);
	if (json_array_size(wanted) > FETCH_MAX)
		(void)buf_addf(message, "%sfetch_files has %zu names: those after the first %d were not looked for",
			       message->len > 0 ? "; " : "", json_array_size(wanted), FETCH_MAX);
	return files;
}

/* True if Java's launcher could not compile the program and therefore did not start it. */
static bool is_compiler_error(const struct fusion_language *language, const json_t *result)
{
	static const char last[] = "error: compilation failed\n";
	const char *errors = fusion_text(result, "stderr");
	size_t len = strlen(errors), n = strlen(last);

	return language->at_start && str_eq(fusion_text(result, "verdict"), "error") && len >= n &&
	       str_eq(errors + len - n, last) && !*fusion_text(result, "stdout");
}

json_t *fusion_response(const struct fusion_language *language, const json_t *request, const json_t *result)
{
	static const char *const ours[] = { "refused", "violated", "failed", "cancelled" };
	const char *verdict = fusion_text(result, "verdict");
	bool is_late = str_eq(verdict, "timeout") || str_eq(verdict, "cpu_limit");
	AUTO_BUF message = BUF_INIT(2 * KiB);
	json_t *one, *files;

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (str_eq(verdict, ours[i]))
			return trouble(fusion_text(result, "reason"));
	one = stage(result, is_late);
	if (str_eq(fusion_text(result, "step"), "compile") || is_compiler_error(language, result))
		return response("Failed", "", one, json_null(), json_object());
	files = fetched(request, result, &message);
	return response(str_eq(verdict, "ok") ? "Success" : "Failed", buf_str(&message),
			language->compiles ? fusion_stage(false, 0, 0, json_string(""), json_string("")) : json_null(),
			one, files);
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
		door_reply(c, 200, fusion_response(job->language, job->doc, result));
	json_decref(result);
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

ssize_t fusion_bytes(const json_t *content, char **ret)
{
	const char *text = json_string_value(content);
	size_t len = json_string_length(content), n = 0;
	AUTO_FREE char *plain = malloc(len + 1);
	ssize_t size;

	for (size_t i = 0; plain && i < len; i++)
		if (!strchr(" \t\r\n", text[i]) || !text[i])
			plain[n++] = text[i];
	*ret = plain ? malloc(n / 4 * 3 + 1) : NULL;
	size = *ret ? base64_get(*ret, plain, n) : -1;
	return size;
}

static bool add_file(struct buf *tar, const char *path, const json_t *content)
{
	AUTO_FREE char *bytes = NULL;
	ssize_t n = fusion_bytes(content, &bytes);
	struct bytes what = { bytes, n < 0 ? 0 : (size_t)n };
	char name[PATH_BYTES];

	return n >= 0 && door_path(path, name, sizeof(name)) && ustar_add_file(tar, name, &what);
}

int fusion_files(const json_t *doc, int *ret_files, struct brig_error *err)
{
	AUTO_BUF tar = BUF_INIT(JSON_FILES_MAX);
	json_t *files = (json_t *)(uintptr_t)doc, *content;
	const char *path;

	if (json_object_size(files) > FILES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "there are too many files: at most %d are accepted", FILES_MAX);
	json_object_foreach(
		files, path,
		content) if (!json_is_null(content) &&
			     !add_file(&tar, path,
				       content)) return err_set(err, BRIG_E_USAGE, 0,
								"a file has no name, is no base64 or too long");
	return door_files(&tar, ret_files, err);
}

void fusion_put_code(struct buf *fields, const struct fusion_language *language, const char *code, size_t len)
{
	static const char tag[] = "<?php";
	size_t blanks = strspn(code, " \t\r\n\v\f");
	AUTO_BUF tagged = BUF_INIT(message_max_bytes(FIELD_code));

	if (!str_eq(language->theirs, "php") || strncmp(code + blanks, tag, strlen(tag)) == 0 ||
	    len - blanks + sizeof(tag) > message_max_bytes(FIELD_code)) {
		message_put_bytes(fields, FIELD_code, code, len);
		return;
	}
	(void)buf_addf(&tagged, "%s\n", tag);
	(void)buf_add(&tagged, code + blanks, len - blanks);
	message_put_bytes(fields, FIELD_code, buf_str(&tagged), tagged.len);
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

/* Only shortens the policy's default: some compilers need longer than that for their first program. */
static void put_compiler_time(struct buf *fields, const json_t *time)
{
	double seconds = json_number_value(time);

	if (seconds >= 0.01 && seconds < TIME_USUAL)
		door_put_option(fields, "compile_timeout_ms", (uint64_t)(seconds * 1000));
}

/* Files outside the folder are never returned, but the request runs all the same. */
static bool leads_out(const char *path)
{
	for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/')
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2]))
			return true;
	return false;
}

/* Artifacts are patterns: one for exactly this path. */
static void put_pattern(struct buf *fields, const char *path)
{
	AUTO_BUF pattern = BUF_INIT(4 * PATH_BYTES);

	(void)buf_adds(&pattern, "/");
	for (const char *at = path; *at; at++)
		(void)(strchr("*?[\\", *at) ? buf_addf(&pattern, "\\%c", *at) : (int)buf_add(&pattern, at, 1));
	message_put_text(fields, FIELD_artifact, buf_str(&pattern));
}

static void put_fetched(const json_t *doc, struct buf *fields)
{
	const json_t *list = json_object_get(doc, "fetch_files"), *name;
	size_t i;

	json_array_foreach(list, i, name)
	{
		char path[PATH_BYTES];

		if (i < FETCH_MAX && strlen(json_string_value(name)) == json_string_length(name) &&
		    door_path(json_string_value(name), path, sizeof(path)) && !leads_out(path))
			put_pattern(fields, path);
	}
	if (json_array_size(list) > 0)
		message_put_number(fields, FIELD_inline_artifacts, FETCH_BYTES);
}

static void run(struct client *c, const struct job *job)
{
	const json_t *code = json_object_get(job->doc, "code"), *input = json_object_get(job->doc, "stdin");
	struct buf *fields = door_fields(c);
	struct brig_error err = BRIG_ERROR_INIT;
	const char *why = NULL;
	AUTO_FD files = FD_NONE;

	if (fusion_files(json_object_get(job->doc, "files"), &files, &err) < 0)
		why = err.msg;
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
	fusion_put_code(fields, job->language, json_string_value(code), json_string_length(code));
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
		fusion_refuse_body(c, err.msg);
	else if (check(c, job))
		run(c, job);
}
