/* SPDX-License-Identifier: Apache-2.0 */
#include "server/doors/piston/job.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/piston/semver.h"

#define FILES_MAX      256
#define MEMORY_MIN     (8 * MiB)
#define TIME_MIN_MS    10
#define RUN_LIMIT_MS   3000
#define COMPILE_MAX_MS 10000

/* ---- validation without the languages ------------------------------------------------------------------------ */

static bool is_text(const json_t *value)
{
	return json_is_string(value) && json_string_length(value) > 0;
}

int piston_read(struct piston_job *job, json_t *doc, struct brig_error *err)
{
	json_t *files = json_object_get(doc, "files"), *file;
	size_t i;

	job->doc = doc;
	if (!is_text(json_object_get(doc, "language")))
		return err_set(err, BRIG_E_USAGE, 0, "language is required as a string");
	if (!is_text(json_object_get(doc, "version")))
		return err_set(err, BRIG_E_USAGE, 0, "version is required as a string");
	if (!json_is_array(files))
		return err_set(err, BRIG_E_USAGE, 0, "files is required as an array");
	json_array_foreach(files, i, file) if (!json_is_string(json_object_get(file, "content"))) return err_set(
		err, BRIG_E_USAGE, 0, "files[%zu].content is required as a string", i);
	if (json_array_size(files) > FILES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "files has more than %d items", FILES_MAX);
	return 0;
}

/* ---- validation with the languages ---------------------------------------------------------------------------- */

static int check_limit(const json_t *doc, const char *name, double most, struct brig_error *err)
{
	const json_t *value = json_object_get(doc, name);

	if (!value || json_is_null(value) || json_is_false(value) ||
	    (json_is_string(value) && json_string_length(value) == 0) ||
	    (json_is_number(value) && json_number_value(value) == 0))
		return 0;
	if (!json_is_number(value))
		return err_set(err, BRIG_E_USAGE, 0, "If specified, %s must be a number", name);
	if (most <= 0)
		return 0;
	if (json_number_value(value) > most)
		return err_set(err, BRIG_E_USAGE, 0, "%s cannot exceed the configured limit of %.0f", name, most);
	return json_number_value(value) < 0 ? err_set(err, BRIG_E_USAGE, 0, "%s must be non-negative", name) : 0;
}

static int check_limits(const json_t *doc, struct brig_error *err)
{
	static const struct {
		const char *name;
		double most;
	} rows[] = {
		{ "compile_memory_limit", -1 },         { "run_memory_limit", -1 },
		{ "compile_timeout", COMPILE_MAX_MS },  { "run_timeout", RUN_LIMIT_MS },
		{ "compile_cpu_time", COMPILE_MAX_MS }, { "run_cpu_time", RUN_LIMIT_MS },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (check_limit(doc, rows[i].name, rows[i].most, err) < 0)
			return -err->code;
	return 0;
}

int piston_choose(struct piston_job *job, json_t *languages, struct brig_error *err)
{
	const char *name = json_string_value(json_object_get(job->doc, "language"));
	const char *selector = json_string_value(json_object_get(job->doc, "version"));
	json_t *language = piston_find(languages, name), *files = json_object_get(job->doc, "files"), *file;

	if (!language || !semver_fits(piston_version(language), selector))
		return err_set(err, BRIG_E_USAGE, 0, "%.100s-%.100s runtime is unknown", name, selector);
	(void)str_copy(job->language, sizeof(job->language), piston_name(language));
	(void)str_copy(job->version, sizeof(job->version), piston_version(language));
	job->compiles = json_is_true(json_object_get(language, "compiles"));
	json_array_foreach(files, job->entry, file) if (piston_encoding_of(file) == PISTON_UTF8) break;
	if (job->entry == json_array_size(files))
		return err_set(err, BRIG_E_USAGE, 0, "files must include at least one utf8 encoded file");
	job->row = language;
	job->file_name = piston_usable_name(language, json_array_get(files, job->entry));
	return check_limits(job->doc, err);
}

/* ---- fields --------------------------------------------------------------------------------------------------- */

static void put_limit(const struct piston_job *job, struct buf *fields, const char *name, const char *key,
		      uint64_t usual, uint64_t least)
{
	const json_t *value = json_object_get(job->doc, name);
	double wished = json_is_number(value) ? json_number_value(value) : 0;
	uint64_t n = wished >= 1 && wished < 1e15 ? (uint64_t)wished : usual;

	if (n > 0)
		door_put_option(fields, key, max_u64(n, least));
}

/* The default is the policy's: some compilers need longer for their first program. */
static void put_compiler_time(const struct piston_job *job, struct buf *fields)
{
	double ms = json_number_value(json_object_get(job->doc, "compile_timeout"));

	if (ms >= 1 && ms < COMPILE_MAX_MS)
		door_put_option(fields, "compile_timeout_ms", max_u64((uint64_t)ms, TIME_MIN_MS));
}

static int put_args(const json_t *args, struct buf *fields, struct brig_error *err)
{
	const json_t *arg;
	size_t i;

	if (args && !json_is_null(args) && !json_is_array(args))
		return err_set(err, BRIG_E_USAGE, 0, "args must be an array");
	json_array_foreach(args, i, arg)
	{
		AUTO_FREE char *number = json_is_number(arg) ? json_dumps(arg, JSON_ENCODE_ANY) : NULL;
		const char *text = number ? number : json_string_value(arg);

		if (!text || (!number && strlen(text) != json_string_length(arg)) ||
		    strlen(text) > message_max_bytes(FIELD_arg) || i >= message_max_count(FIELD_arg))
			return err_set(err, BRIG_E_USAGE, 0, "args[%zu] must be a string", i);
		message_put_text(fields, FIELD_arg, text);
	}
	return 0;
}

static int put_input(const json_t *input, struct buf *fields, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(BRIG_CODE_MAX);
	size_t len = json_string_length(input);

	if (input && !json_is_null(input) && !json_is_string(input))
		return err_set(err, BRIG_E_USAGE, 0, "stdin must be a string");
	if (len > 0)
		buf_add(&text, json_string_value(input), len);
	/* also if stdin is empty, as the original does */
	if (len == 0 || json_string_value(input)[len - 1] != '\n')
		buf_adds(&text, "\n");
	if (text.full || text.no_memory)
		return err_set(err, BRIG_E_USAGE, 0, "stdin is too long");
	message_put_bytes(fields, FIELD_input, text.data, text.len);
	return 0;
}

int piston_put(const struct piston_job *job, struct buf *fields, int *ret_files, struct brig_error *err)
{
	const json_t *code = json_object_get(json_array_get(json_object_get(job->doc, "files"), job->entry), "content");

	*ret_files = FD_NONE;
	if (json_string_length(code) > BRIG_CODE_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "files[%zu].content is too long", job->entry);
	message_put_number(fields, FIELD_kind, BRIG_KIND_CODE);
	message_put_text(fields, FIELD_language, job->language);
	message_put_bytes(fields, FIELD_code, json_string_value(code), json_string_length(code));
	put_limit(job, fields, "run_timeout", "execution_timeout_ms", RUN_LIMIT_MS, TIME_MIN_MS);
	put_limit(job, fields, "run_cpu_time", "cpu_time_ms", RUN_LIMIT_MS, TIME_MIN_MS);
	put_limit(job, fields, "run_memory_limit", "mem_limit", 0, MEMORY_MIN);
	if (job->compiles)
		put_compiler_time(job, fields);
	if (put_args(json_object_get(job->doc, "args"), fields, err) < 0 ||
	    put_input(json_object_get(job->doc, "stdin"), fields, err) < 0)
		return -err->code;
	return piston_put_files(job, fields, ret_files, err);
}

void piston_job_free(void *job)
{
	if (job)
		json_decref(((struct piston_job *)job)->doc);
	free(job);
}

/* ---- results --------------------------------------------------------------------------------------------------- */

struct ending {
	const char *verdict, *status, *signal, *message; /* signal NULL: the signal of the program's result */
	int code;                                        /* -1: the exit code of the program's result; -2: null */
};

static const struct ending *ending_of(const json_t *result)
{
	static const struct ending rows[] = {
		{ "ok", NULL, NULL, NULL, -1 },
		{ "error", "RE", NULL, NULL, -1 },
		{ "crash", "SG", NULL, NULL, -2 },
		{ "timeout", "TO", "SIGKILL", "Time limit exceeded (wall clock)", -2 },
		{ "cpu_limit", "TO", "SIGKILL", "Time limit exceeded", -2 },
		{ "memory_limit", "SG", "SIGKILL", "Memory limit exceeded", -2 },
		{ "output_limit", "OL", "SIGKILL", "stdout length exceeded", -2 },
		{ "disk_limit", "RE", NULL, "Disk limit exceeded", -1 },
		{ "pids_limit", "RE", NULL, "Process limit exceeded", -1 },
		{ "blocked", "RE", NULL, "blocked by inspection", 126 },
		{ "cancelled", "SG", "SIGKILL", NULL, -2 },
		{ "failed", "XX", NULL, NULL, -2 },
	};
	static const struct ending too_much = { "output_limit", "EL", "SIGKILL", "stderr length exceeded", -2 };
	const char *verdict = json_string_value(json_object_get(result, "verdict"));
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(rows) && (!verdict || !str_eq(rows[i].verdict, verdict)))
		i++;
	if (str_eq(rows[i].verdict, "output_limit") && json_string_length(json_object_get(result, "stderr")) >
							       json_string_length(json_object_get(result, "stdout")))
		return &too_much;
	return &rows[i];
}

static json_t *maybe(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *joined(const json_t *a, const json_t *b)
{
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);

	buf_add(&text, json_string_value(a), json_string_length(a));
	buf_add(&text, json_string_value(b), json_string_length(b));
	return json_stringn(buf_str(&text), text.len);
}

static json_t *stage_errors(const json_t *result, const struct ending *end)
{
	AUTO_BUF text = BUF_INIT(256 * KiB);

	if (end->code != 126 && !str_eq(end->verdict, "failed"))
		return door_output(result, "stderr");
	door_findings_text(result, &text);
	return json_stringn(buf_str(&text), str_utf8_prefix(buf_str(&text), text.len));
}

/* 0: no signal, or a real-time signal, which has no name. */
static int signal_number(const char *name)
{
	for (int n = 1; name && strncmp(name, "SIG", 3) == 0 && n < SIGRTMIN; n++)
		if (sigabbrev_np(n) && str_eq(sigabbrev_np(n), name + 3))
			return n;
	return 0;
}

/* The message in the format of Piston's isolate for a program that ended by itself; clients show it. */
static json_t *own_message(const json_t *result, const struct ending *end)
{
	const json_t *code = json_object_get(result, "exit_code");
	int number = signal_number(json_string_value(json_object_get(result, "signal")));

	if (str_eq(end->verdict, "error") && json_is_integer(code))
		return json_sprintf("Exited with error status %d", (int)json_integer_value(code));
	if (str_eq(end->verdict, "crash") && number > 0)
		return json_sprintf("Caught fatal signal %d", number);
	return maybe(end->status ? json_string_value(json_object_get(result, "reason")) : NULL);
}

json_t *piston_stage(const json_t *result)
{
	const struct ending *end = ending_of(result);
	const json_t *usage = json_object_get(result, "usage"), *code = json_object_get(result, "exit_code");
	const char *signal = json_string_value(json_object_get(result, "signal"));
	json_t *out = door_output(result, "stdout"), *errors = stage_errors(result, end);
	json_t *exit_code = end->code >= 0                             ? json_integer(end->code)
			    : end->code == -1 && json_is_integer(code) ? json_integer(json_integer_value(code))
								       : json_null();

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "output", joined(out, errors), "stdout",
			 out, "stderr", errors, "code", exit_code, "signal", maybe(end->signal ? end->signal : signal),
			 "message", end->message ? json_string(end->message) : own_message(result, end), "status",
			 maybe(end->status), "memory", json_integer_value(json_object_get(usage, "memory_peak_bytes")),
			 "cpu_time", json_integer_value(json_object_get(usage, "cpu_ms")), "wall_time",
			 json_integer_value(json_object_get(usage, "wall_ms")));
}
