/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c - shows the result of a run to a model. Text comes first and is short: what happened, why, what to do instead;
 * then the output, shortened in the middle. structuredContent holds the same for programs.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"
#include "mcp_shared/rpc.h"
#include "mcp_shared/show.h"

#define OUTPUT_MAX (32 * KiB) /* bytes of each stream */
#define TEXT_MAX   (256 * KiB)
#define FILE_MAX   (64 * KiB) /* bytes of a requested file */
#define ROWS_MAX   20         /* of findings, files and the like in the text */
#define IMAGES_MAX 8

static const struct {
	const char *verdict, *words, *advice;
} verdicts[] = {
	{ "ok", "It ran and ended well", "" },
	{ "error", "It ran and ended with an error", "" },
	{ "crash", "It crashed", "" },
	{ "timeout", "Stopped at the time limit",
	  "Do less at once, or ask for more with timeout, as far as the policy allows." },
	{ "cpu_limit", "Stopped at the limit of cpu time", "Do less at once." },
	{ "memory_limit", "Stopped at the memory limit",
	  "Use less memory, or ask for more with memory, as far as the policy allows." },
	{ "output_limit", "Stopped at the output limit", "Print less; write large output to a file." },
	{ "disk_limit", "Stopped at the disk limit", "Write less." },
	{ "pids_limit", "Stopped at the limit of processes", "Start fewer processes and threads." },
	{ "blocked", "Blocked by the inspection: nothing ran",
	  "Write it another way, as said above; do not hide what it does." },
	{ "refused", "Refused: nothing ran", "" },
	{ "cancelled", "Cancelled", "" },
};

/* ---- words ---------------------------------------------------------------------------------------- */

static void show_head(const json_t *doc, struct buf *out)
{
	const char *verdict = text_member(doc, "verdict"), *reason = text_member(doc, "reason"),
		   *signal = text_member(doc, "signal");
	const json_t *code = json_object_get(doc, "exit_code");
	const char *words = verdict;

	for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
		if (str_eq(verdicts[i].verdict, verdict))
			words = verdicts[i].words;
	buf_adds(out, words);
	if (json_is_integer(code) && json_integer_value(code) != 0)
		buf_addf(out, " (exit code %lld)", (long long)json_integer_value(code));
	if (*signal && str_eq(verdict, "crash"))
		buf_addf(out, " (%s)", signal);
	buf_addf(out, "%s%s\n", *reason ? ": " : ".", reason);
}

static void show_advice(const char *verdict, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
		if (str_eq(verdicts[i].verdict, verdict) && *verdicts[i].advice)
			buf_addf(out, "%s\n", verdicts[i].advice);
}

static void show_stream(const json_t *doc, const char *name, struct buf *out)
{
	const json_t *text = json_object_get(doc, name);
	char encoding[32];
	size_t len = json_string_length(text);

	(void)snprintf(encoding, sizeof(encoding), "%s_encoding", name);
	if (len == 0)
		return;
	buf_addf(out, "\n%s:\n", name);
	if (str_eq(text_member(doc, encoding), "base64"))
		buf_addf(out, "(not text, about %zu bytes: write it to a file instead)", len / 4 * 3);
	else
		(void)text_add_cut(out, json_string_value(text), len, OUTPUT_MAX);
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_adds(out, "\n");
}

/* The length without the part that tells how to permit the operation: that is for people, not for requests. */
static int remedy_len(const char *remedy)
{
	const char *rest = strstr(remedy, "; to permit this");

	return (int)(rest ? (size_t)(rest - remedy) : strlen(remedy));
}

void show_findings(const json_t *findings, struct buf *out)
{
	const json_t *f;
	size_t i, shown = 0;

	json_array_foreach(findings, i, f)
	{
		const char *severity = text_member(f, "severity");
		bool blocks = str_eq(severity, "CRITICAL");

		if ((!blocks && !str_eq(severity, "HIGH")) || shown++ >= ROWS_MAX)
			continue;
		buf_addf(out, "%s at line %lld: %s [%s]\n", blocks ? "Blocking" : "Warning",
			 (long long)json_integer_value(json_object_get(f, "line")), text_member(f, "message"),
			 text_member(f, "rule"));
		if (*text_member(f, "remedy"))
			buf_addf(out, "  do instead: %.*s\n", remedy_len(text_member(f, "remedy")),
				 text_member(f, "remedy"));
	}
}

void show_denied(const json_t *denied, struct buf *out)
{
	const json_t *d;
	size_t i;

	json_array_foreach(denied, i, d)
	{
		if (i < ROWS_MAX)
			buf_addf(out, "Denied: %s %s: %s\n", text_member(d, "kind"), text_member(d, "what"),
				 text_member(d, "why"));
	}
}

static void show_tests(const json_t *tests, struct buf *out)
{
	const json_t *failures = json_object_get(tests, "failures"), *f;
	size_t i;

	if (!json_is_object(tests))
		return;
	buf_addf(out, "Tests (%s): %lld passed, %lld failed, %lld skipped%s\n", text_member(tests, "framework"),
		 (long long)json_integer_value(json_object_get(tests, "passed")),
		 (long long)json_integer_value(json_object_get(tests, "failed")),
		 (long long)json_integer_value(json_object_get(tests, "skipped")),
		 json_is_true(json_object_get(tests, "complete")) ? "" : "; the report is not complete");
	json_array_foreach(failures, i, f)
	{
		if (i < ROWS_MAX)
			buf_addf(out, "FAILED %s (%s:%lld): %.500s\n", text_member(f, "name"), text_member(f, "file"),
				 (long long)json_integer_value(json_object_get(f, "line")), text_member(f, "message"));
	}
}

static void show_files(const json_t *files, struct buf *out)
{
	const json_t *f;
	size_t i;

	json_array_foreach(files, i, f)
	{
		if (i < ROWS_MAX)
			buf_addf(out, "%s%s (%lld bytes)", i > 0 ? ", " : "Files: ", text_member(f, "path"),
				 (long long)json_integer_value(json_object_get(f, "size")));
	}
	buf_adds(out, i > ROWS_MAX ? " and more\n" : i > 0 ? "\n" : "");
}

static void show_changes(const json_t *doc, struct buf *out)
{
	const json_t *work = json_object_get(doc, "workspace");
	const char *state = text_member(work, "state");

	if (str_eq(state, "kept") || str_eq(state, "applied"))
		buf_addf(out, "Changes of the project: %lld added, %lld modified, %lld deleted",
			 (long long)json_integer_value(json_object_get(work, "added")),
			 (long long)json_integer_value(json_object_get(work, "modified")),
			 (long long)json_integer_value(json_object_get(work, "deleted")));
	if (str_eq(state, "kept"))
		buf_addf(out, "; they wait for apply_changes with execution_id %s\n", text_member(doc, "id"));
	else if (str_eq(state, "applied"))
		buf_adds(out, ", applied\n");
	else if (str_eq(state, "incomplete"))
		buf_adds(out, "It changed too much of the project: no change was kept.\n");
}

/*
 * Every call requests file contents so that images can be shown, so the warning "no files" is dropped unless the caller
 * asked for artifacts.
 */
static bool is_news(const json_t *args, const json_t *warning)
{
	return json_object_get(args, "artifacts") || !str_eq(json_string_value(warning), "the program left no files");
}

/* files: as in structuredContent. */
static void show_words(const json_t *args, const json_t *doc, const json_t *files, struct buf *out)
{
	const json_t *warning;
	size_t i;

	show_head(doc, out);
	show_findings(json_object_get(doc, "findings"), out);
	show_denied(json_object_get(doc, "denied"), out);
	show_tests(json_object_get(doc, "tests"), out);
	show_stream(doc, "stdout", out);
	show_stream(doc, "stderr", out);
	show_files(files, out);
	show_changes(doc, out);
	show_advice(text_member(doc, "verdict"), out);
	if (*text_member(doc, "hint"))
		buf_addf(out, "Hint: %s%s\n", text_member(doc, "hint"),
			 strstr(text_member(doc, "hint"), "--packages") ? " (here: the argument packages)" : "");
	json_array_foreach(json_object_get(doc, "warnings"), i, warning)
	{
		if (i < ROWS_MAX && is_news(args, warning))
			buf_addf(out, "Note: %s\n", json_string_value(warning));
	}
}

/* ---- data ------------------------------------------------------------------------------------------ */

/* Copies members; missing ones become null. */
static void copy_members(json_t *to, const json_t *from, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *value = json_object_get(from, names[i]);

		(void)json_object_set(to, names[i], value ? value : json_null());
	}
}

static bool put_stream(json_t *to, const json_t *doc, const char *name)
{
	const json_t *text = json_object_get(doc, name);
	bool is_text = !json_string_length(text);
	AUTO_BUF cut = BUF_INIT(2 * OUTPUT_MAX);
	char member[32];
	size_t len = json_string_length(text);
	bool was_cut;

	(void)snprintf(member, sizeof(member), "%s_encoding", name);
	is_text |= !str_eq(text_member(doc, member), "base64");
	(void)json_object_set_new(to, member, json_string(is_text ? "utf-8" : "base64"));
	if (is_text)
		was_cut = text_add_cut(&cut, len ? json_string_value(text) : "", len, OUTPUT_MAX);
	else {
		was_cut = len > OUTPUT_MAX; /* a multiple of four */
		buf_add(&cut, json_string_value(text), was_cut ? OUTPUT_MAX : len);
	}
	(void)json_object_set_new(to, name, text_json(buf_str(&cut), cut.len));
	(void)snprintf(member, sizeof(member), "%s_truncated", name);
	return was_cut || json_is_true(json_object_get(doc, member));
}

/* A file that the program left, with its content if that was requested and is not too long. */
static json_t *one_file(const json_t *artifact, bool with_content)
{
	json_t *file = json_pack("{s:O?, s:O?}", "path", json_object_get(artifact, "path"), "size",
				 json_object_get(artifact, "size"));
	json_t *content = json_object_get(artifact, "content");

	if (with_content && content && json_string_length(content) <= FILE_MAX) {
		(void)json_object_set(file, "content", content);
		(void)json_object_set(file, "encoding", json_object_get(artifact, "content_encoding"));
	}
	return file;
}

static json_t *files_of(const json_t *doc, bool with_content)
{
	json_t *files = json_array();
	const json_t *artifact;
	size_t i;

	json_array_foreach(json_object_get(doc, "artifacts"), i, artifact)(void)
		json_array_append_new(files, one_file(artifact, with_content));
	return files;
}

static void add_images(json_t *content, const json_t *doc)
{
	const json_t *artifact;
	size_t i, n = 0;

	json_array_foreach(json_object_get(doc, "artifacts"), i, artifact)
	{
		const char *data = text_member(artifact, "content"), *path = text_member(artifact, "path"), *type;
		bool is_base64 = str_eq(text_member(artifact, "content_encoding"), "base64");

		type = *data ? text_image_type(path, is_base64 ? data : "") : NULL;
		if (!type || n++ >= IMAGES_MAX)
			continue;
		if (is_base64)
			content_add_image(content, data, type);
		else
			content_add_picture(content, data, strlen(data), type);
	}
}

static json_t *run_data(const json_t *doc, json_t *files, bool in_project)
{
	static const char *const names[] = { "verdict", "reason",   "exit_code", "signal",   "findings", "denied",
					     "tests",   "warnings", "hint",      "language", "backend" };
	json_t *data = json_object(), *work = json_object_get(doc, "workspace");
	json_t *wall = json_object_get(json_object_get(doc, "usage"), "wall_ms");
	bool cut;

	copy_members(data, doc, names, ARRAY_LEN(names));
	cut = put_stream(data, doc, "stdout");
	cut |= put_stream(data, doc, "stderr");
	(void)json_object_set_new(data, "truncated", json_boolean(cut));
	(void)json_object_set(data, "files", files);
	(void)json_object_set(data, "changes", json_is_object(work) && in_project ? work : json_null());
	(void)json_object_set(data, "execution_id", json_object_get(doc, "id"));
	(void)json_object_set_new(data, "wall_ms", wall ? json_incref(wall) : json_integer(0));
	return data;
}

/* ---- answers --------------------------------------------------------------------------------------- */

json_t *answer_result(struct answer *a)
{
	json_t *result = json_pack("{s:O}", "content", a->content);
	AUTO_BUF text = BUF_INIT(sizeof(a->why.msg));

	if (a->why.code) {
		a->is_error = true;
		buf_adds(&text, a->why.msg);
		content_add_text(a->content, &text);
	}
	if (a->structured)
		(void)json_object_set(result, "structuredContent", a->structured);
	if (a->is_error)
		(void)json_object_set_new(result, "isError", json_true());
	return result;
}

void answer_release(struct answer *a)
{
	json_decref(a->content);
	json_decref(a->structured);
}

/* True if the service failed, which is a protocol error. */
static bool is_our_fault(const json_t *doc, struct answer *a)
{
	const char *verdict = text_member(doc, "verdict");

	if (!str_eq(verdict, "failed") && !str_eq(verdict, "violated"))
		return false;
	a->code = RPC_INTERNAL;
	(void)err_set(&a->why, BRIG_E_INTERNAL, 0, "%s: %.400s", verdict, text_member(doc, "reason"));
	return true;
}

void show_run(const json_t *args, bool in_project, const json_t *doc, struct answer *a)
{
	json_t *files = files_of(doc, json_object_get(args, "artifacts") != NULL);
	AUTO_BUF text = BUF_INIT(TEXT_MAX);

	if (!is_our_fault(doc, a)) {
		show_words(args, doc, files, &text);
		content_add_text(a->content, &text);
		add_images(a->content, doc);
		a->structured = run_data(doc, files, in_project);
		a->is_error = !str_eq(text_member(doc, "verdict"), "ok");
	}
	json_decref(files);
}

bool show_helper_failed(const json_t *doc, const char *what, struct answer *a)
{
	const json_t *denied = json_array_get(json_object_get(doc, "denied"), 0);
	const char *verdict = text_member(doc, "verdict"), *reason = text_member(doc, "reason");
	const char *complaint = text_member(doc, "stderr");

	if (is_our_fault(doc, a))
		return true;
	if (denied && str_eq(text_member(denied, "kind"), "file"))
		(void)err_set(&a->why, BRIG_E_REFUSED, 0,
			      "%s: '%.200s' is hidden by the policy, because such files hold secrets. Do without it; "
			      "if a value "
			      "from it is needed, ask the user for that.",
			      what, text_member(denied, "what"));
	else if (str_eq(verdict, "error"))
		(void)err_set(&a->why, BRIG_E_REFUSED, 0, "%s: %.*s", what, (int)min_u64(strcspn(complaint, "\n"), 400),
			      complaint);
	else if (!str_eq(verdict, "ok"))
		(void)err_set(&a->why, BRIG_E_REFUSED, 0, "%s: %s: %.400s", what, verdict, reason);
	else
		return false;
	return true;
}
