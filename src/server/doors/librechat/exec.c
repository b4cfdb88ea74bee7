/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - runs one program for LibreChat, with its files
 *
 *	fetch the named files from each storage session -> run -> keep new files in a new storage session -> answer
 *
 * A call with a hint belongs to a stateful session, which has files of its own (runtime.c).
 *
 * The client shows the model neither error bodies nor status codes, so whatever the model must know is sent as status
 * 200 with the reason on stderr.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/doors/librechat/librechat.h"

#define FETCH_BYTES (32 * MiB)

static void exec_free(void *p)
{
	struct librechat_exec *e = p;

	json_decref(e->doc);
	json_decref(e->answer);
	json_decref(e->files);
	json_decref(e->fresh);
	buf_release(&e->tar);
	buf_release(&e->kept);
	buf_release(&e->before);
	free(e);
}

static struct librechat_exec *exec_of(struct client *c)
{
	return c->req->call->state;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* ---- output --------------------------------------------------------------------------------------------------- */

static void answer(struct client *c)
{
	struct librechat_exec *e = exec_of(c);

	if (json_array_size(e->files) > 0)
		(void)json_object_set(e->answer, "files", e->files);
	if (e->n_lost > 0) {
		json_int_t came = (json_int_t)json_array_size(e->fresh), lost = (json_int_t)e->n_lost;

		(void)json_object_set_new(e->answer, "artifact_delivery",
					  json_pack("{s:s, s:s, s:I, s:I, s:I}", "code", "artifact_delivery_failed",
						    "status", came ? "partial" : "failed", "attempted", came + lost,
						    "delivered", came, "failed", lost));
	}
	if (e->calls_tools)
		(void)json_object_set_new(e->answer, "status", json_string("completed"));
	if (e->hint) {
		(void)json_object_set_new(e->answer, "runtime_session_id", json_string(e->runtime));
		(void)json_object_set_new(e->answer, "runtime_status", json_string(e->is_reused ? "reused" : "new"));
	}
	door_reply(c, 200, json_incref(e->answer));
}

static void on_put(struct client *c, unsigned status, const struct message *m)
{
	struct librechat_exec *e = exec_of(c);
	json_t *doc = status == 201 ? door_answer_json(m) : NULL, *file;
	json_t *session = json_object_get(doc, "id");
	size_t i;

	json_array_foreach(e->fresh, i, file)
	{
		if (session && json_object_set(file, "storage_session_id", session) == 0)
			(void)json_array_append(e->files, file);
		else
			e->n_lost++;
	}
	if (!session)
		(void)json_array_clear(e->fresh);
	json_decref(doc);
	answer(c);
}

struct librechat_ref *librechat_ref_of(struct librechat_exec *e, const char *name)
{
	for (size_t i = 0; i < e->n_refs; i++)
		if (e->ref[i].is_there && str_eq(e->ref[i].name, name))
			return &e->ref[i];
	return NULL;
}

struct bytes librechat_content(const json_t *artifact, char **raw)
{
	const json_t *content = json_object_get(artifact, "content");
	size_t len = json_string_length(content);
	ssize_t n;

	if (!content || !str_eq(text_of(artifact, "content_encoding"), "base64"))
		return (struct bytes){ json_string_value(content), len };
	*raw = malloc(len / 4 * 3 + 1);
	n = *raw ? base64_get(*raw, json_string_value(content), len) : -1;
	return (struct bytes){ n < 0 ? NULL : *raw, n < 0 ? 0 : (size_t)n };
}

bool librechat_add_artifact(struct buf *tar, const char *path, const json_t *artifact, const struct bytes *content)
{
	struct archive_file f = { .may_execute = json_is_true(json_object_get(artifact, "executable")),
				  .data = content->data,
				  .len = content->len };

	return str_copy(f.path, sizeof(f.path), path) && archive_put(tar, &f);
}

/*
 * Caches that programs write to their home, which is the same folder (matplotlib's fonts, compiled Python), are not
 * output files.
 */
static bool is_cache(const char *name)
{
	static const char *const folders[] = { ".cache/", ".config/matplotlib/", ".npm/" };

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (strncmp(name, folders[i], strlen(folders[i])) == 0)
			return true;
	return strncmp(name, "__pycache__/", strlen("__pycache__/")) == 0 || strstr(name, "/__pycache__/");
}

/* Adds a new or changed file to the output. */
static void take_artifact(struct librechat_exec *e, const json_t *artifact)
{
	const char *name = text_of(artifact, "path");
	struct librechat_ref *from = librechat_ref_of(e, name);
	AUTO_FREE char *raw = NULL;
	struct bytes bytes = librechat_content(artifact, &raw);
	char id[LIBRECHAT_ID_LEN + 1], path[ARCHIVE_PATH_MAX + 1];
	json_t *file;

	if (from ? librechat_is_read_only(from->id) : is_cache(name))
		return;
	librechat_new_id(false, id);
	(void)snprintf(path, sizeof(path), "%s/%s", id, name);
	if (!bytes.data || !id[0] || !str_eq(text_of(artifact, "path_encoding"), "utf-8") || !librechat_is_name(name) ||
	    !librechat_add_artifact(&e->tar, path, artifact, &bytes)) {
		e->n_lost++;
		return;
	}
	file = json_pack("{s:s, s:s}", "id", id, "name", name);
	if (from)
		(void)json_object_set_new(file, "modified_from",
					  json_pack("{s:s, s:s}", "id", from->id, "storage_session_id", from->session));
	if (from)
		from->is_there = false; /* reported already */
	(void)json_array_append_new(e->fresh, file);
}

bool librechat_is_deleted(const json_t *result, const char *name)
{
	const json_t *change;
	size_t i;

	json_array_foreach(json_object_get(result, "changes"), i, change)
	{
		const char *path = text_of(change, "path");
		size_t len = strlen(path);

		if (str_eq(text_of(change, "change"), "deleted") && strncmp(path, name, len) == 0 &&
		    (name[len] == '\0' || name[len] == '/'))
			return true;
	}
	return false;
}

/* Adds the input files to the response, as inherited or deleted. */
static void take_inputs(struct librechat_exec *e, const json_t *result)
{
	json_t *gone = json_array();

	for (size_t i = 0; i < e->n_refs; i++) {
		struct librechat_ref *r = &e->ref[i];

		if (!r->is_there)
			continue;
		if (librechat_is_deleted(result, r->name) && !librechat_is_read_only(r->id)) {
			(void)json_array_append_new(gone, json_string(r->name));
			continue;
		}
		(void)json_object_set_new(r->doc, "inherited", json_true());
		(void)json_array_append(e->files, r->doc);
	}
	if (json_array_size(gone) > 0)
		(void)json_object_set(e->answer, "deleted_files", gone);
	json_decref(gone);
}

/* The program's stderr, followed by brig's messages for the model. */
json_t *librechat_errors(const json_t *result)
{
	static const struct {
		const char *verdict, *text;
	} notes[] = {
		{ "timeout", "Time limit exceeded" },    { "cpu_limit", "Time limit exceeded" },
		{ "memory_limit", "Out of memory" },     { "output_limit", "stdout length exceeded" },
		{ "disk_limit", "Disk limit exceeded" }, { "pids_limit", "Process limit exceeded" },
	};
	AUTO_BUF text = BUF_INIT(MESSAGE_MAX);
	json_t *own = door_output(result, "stderr");
	const char *verdict = text_of(result, "verdict");

	buf_add(&text, json_string_value(own), json_string_length(own));
	json_decref(own);
	if (text.len > 0 && text.data[text.len - 1] != '\n' && !str_eq(verdict, "ok") && !str_eq(verdict, "error"))
		buf_adds(&text, "\n");
	for (size_t i = 0; i < ARRAY_LEN(notes); i++)
		if (str_eq(notes[i].verdict, verdict))
			buf_addf(&text, "%s\n", notes[i].text);
	if (str_eq(verdict, "blocked"))
		door_findings_text(result, &text);
	else if (str_eq(verdict, "crash") || str_eq(verdict, "refused"))
		buf_addf(&text, "%s\n", text_of(result, "reason"));
	return json_stringn(buf_str(&text), str_utf8_prefix(buf_str(&text), text.len));
}

/* A refusal that the model gets to read. */
static void say_refused(struct client *c, const char *why)
{
	json_t *doc = json_pack("{s:s, s:s, s:s%}", "session_id", "refused", "stdout", "", "stderr", why,
				str_utf8_prefix(why, strlen(why)));

	if (exec_of(c)->calls_tools) {
		(void)json_object_set_new(doc, "status", json_string("error"));
		(void)json_object_set_new(doc, "error", json_string("Execution failed or timed out"));
	}
	door_reply(c, 200, doc);
}

static void refuse_files(struct client *c, const struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(2 * KiB);

	(void)buf_addf(&text, "%s\n", err->msg);
	if (err->code == BRIG_E_USAGE)
		say_refused(c, buf_str(&text));
	else
		door_error(c, 503, err->msg);
}

static void refuse(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m);

	if (status == 422 || status == 403)
		say_refused(c, door_answer_message(doc));
	else if (status == 429 || status == 503)
		door_reply(c, 429,
			   json_pack("{s:s, s:I}", "error", "rate_limited", "retry_after_seconds",
				     (json_int_t)message_number(m, FIELD_retry_after, 1)));
	else
		door_error(c, status, door_answer_message(doc));
	json_decref(doc);
}

static void put_fresh(struct client *c)
{
	struct librechat_exec *e = exec_of(c);
	AUTO_FD files = FD_NONE;

	if (json_array_size(e->fresh) == 0) {
		answer(c);
		return;
	}
	files = ustar_to_file(&e->tar);
	(void)door_fields(c);
	door_ask(c, ROUTE_workspace_put, files < 0 ? FD_NONE : files, FD_NONE, on_put);
}

void librechat_take_result(struct client *c, const json_t *result)
{
	struct librechat_exec *e = exec_of(c);
	json_t *artifact;
	size_t i;

	e->before = e->tar;
	e->tar = (struct buf)BUF_INIT(ARCHIVE_BYTES_MAX);
	e->files = json_array();
	e->fresh = json_array();
	e->answer = json_pack("{s:s, s:o, s:o}", "session_id", text_of(result, "id"), "stdout",
			      door_output(result, "stdout"), "stderr", librechat_errors(result));
	e->n_lost = (size_t)json_integer_value(json_object_get(result, "artifacts_lost"));
	json_array_foreach(json_object_get(result, "artifacts"), i, artifact) take_artifact(e, artifact);
	take_inputs(e, result);
	if (e->hint)
		librechat_keep_runtime(c, result, put_fresh);
	else
		put_fresh(c);
}

static void on_result(struct client *c, unsigned status, const struct message *m)
{
	json_t *result = status == 200 ? door_answer_json(m) : NULL;
	const char *verdict = text_of(result, "verdict");
	const struct librechat_exec *e = exec_of(c);

	if (!result)
		refuse(c, status, m);
	else if (e->calls_tools && librechat_take_calls(c, result))
		;
	else if (str_eq(verdict, "failed") || str_eq(verdict, "violated") || str_eq(verdict, "cancelled"))
		door_error(c, 500, text_of(result, "reason"));
	else
		librechat_take_result(c, result);
	json_decref(result);
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static const char *language_of(const char *lang)
{
	static const char *const rows[][2] = {
		{ "py", "python" }, { "js", "javascript" }, { "ts", "typescript" }, { "c", "c" },   { "cpp", "cpp" },
		{ "java", "java" }, { "php", "php" },       { "rs", "rust" },       { "go", "go" }, { "d", "" },
		{ "f90", "" },      { "r", "r" },           { "bash", "bash" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i][0], lang))
			return rows[i][1];
	return NULL;
}

/* The program is stored among the input files, so it must not take the name of one. */
static void put_name(const struct librechat_exec *e, struct buf *fields)
{
	char name[32];

	for (size_t i = 0; i < e->n_refs; i++) {
		int len = (int)strcspn(e->ref[i].name, "/"); /* a directory must not have it either */

		if (strncmp(e->ref[i].name, "main.", 5) == 0 && len > 5 && len < 16) {
			(void)snprintf(name, sizeof(name), "_program.%.*s", len - 5, e->ref[i].name + 5);
			message_put_text(fields, FIELD_file_name, name);
			return;
		}
	}
}

static void run(struct client *c)
{
	struct librechat_exec *e = exec_of(c);
	const json_t *code = json_object_get(e->doc, "code"), *time = json_object_get(e->doc, "timeout"), *arg;
	bool has_room = librechat_add_kept(e);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD files = FD_NONE;
	AUTO_FREE char *wrapped = e->calls_tools ? librechat_wrap(e->doc) : NULL;
	struct buf *fields = door_fields(c);
	size_t i;

	if (!has_room) {
		say_refused(c, "the files of the session and those of the call are too long together\n");
		return;
	}
	if (door_files(&e->tar, &files, &err) < 0) {
		refuse_files(c, &err);
		return;
	}
	if (e->calls_tools && (!wrapped || strlen(wrapped) > message_max_bytes(FIELD_code))) {
		say_refused(c, "the program and the results of its tools are too long\n");
		return;
	}
	message_put_number(fields, FIELD_kind, BRIG_KIND_CODE);
	message_put_text(fields, FIELD_language, language_of(text_of(e->doc, "lang")));
	if (wrapped)
		message_put_bytes(fields, FIELD_code, wrapped, strlen(wrapped));
	else
		message_put_bytes(fields, FIELD_code, json_string_value(code), json_string_length(code));
	put_name(e, fields);
	json_array_foreach(json_object_get(e->doc, "args"), i, arg)
		message_put_text(fields, FIELD_arg, json_string_value(arg));
	if (json_is_number(time) && json_number_value(time) >= 10 && json_number_value(time) < 1e9)
		door_put_option(fields, "execution_timeout_ms", (uint64_t)json_number_value(time));
	message_put_text(fields, FIELD_option, "workspace_alias=/mnt/data");
	message_put_text(fields, FIELD_artifact, "**");
	message_put_number(fields, FIELD_inline_artifacts, FETCH_BYTES);
	door_ask(c, ROUTE_execute, files, FD_NONE, on_result);
}

/* ---- input ----------------------------------------------------------------------------------------------------- */

static void fetch_next(struct client *c);

/* Of several references with one name, the last one whose file exists is passed. */
static void add_input(struct librechat_exec *e, size_t i, const struct archive_file *f)
{
	const struct librechat_ref *other = librechat_ref_of(e, e->ref[i].name);
	struct archive_file own = { .may_execute = f->may_execute, .data = f->data, .len = f->len };

	if (other && other > &e->ref[i])
		return;
	if (!str_copy(own.path, sizeof(own.path), e->ref[i].name) || !archive_put(&e->tar, &own))
		return;
	for (size_t k = 0; k < i; k++)
		if (str_eq(e->ref[k].name, e->ref[i].name))
			e->ref[k].is_there = false;
	e->ref[i].is_there = true;
}

static void on_archive(struct client *c, unsigned status, const struct message *m)
{
	struct librechat_exec *e = exec_of(c);
	size_t len = 0;
	const char *bytes = status == 200 ? message_bytes(m, FIELD_body, &len) : NULL;
	struct archive a = { .bytes = bytes, .len = len };
	struct archive_file f;

	if (status == 401 || status == 503) {
		refuse(c, status, m);
		return;
	}
	while (bytes && archive_next(&a, &f, NULL) > 0)
		for (size_t i = 0; i < e->n_refs; i++) {
			struct librechat_ref *r = &e->ref[i];

			if (r->is_asked && !r->is_there && librechat_name_of(&f, r->id))
				add_input(e, i, &f);
		}
	fetch_next(c);
}

/* Fetches all named files of the next storage session. Missing files are ignored here; the program reports them. */
static void fetch_next(struct client *c)
{
	struct librechat_exec *e = exec_of(c);
	size_t first = 0;

	while (first < e->n_refs && e->ref[first].is_asked)
		first++;
	if (first == e->n_refs) {
		run(c);
		return;
	}
	for (size_t i = first; i < e->n_refs; i++)
		if (str_eq(e->ref[i].session, e->ref[first].session))
			e->ref[i].is_asked = true;
	message_put_text(door_fields(c), FIELD_id, e->ref[first].session);
	door_ask(c, ROUTE_workspace_archive, FD_NONE, FD_NONE, on_archive);
}

/* NULL: the file list is valid. */
static const char *read_refs(struct librechat_exec *e)
{
	json_t *list = json_object_get(e->doc, "files"), *ref;
	size_t i;

	if (list && !json_is_null(list) && !json_is_array(list))
		return "files must be an array";
	if (json_array_size(list) > LIBRECHAT_REFS_MAX)
		return "there are too many files";
	json_array_foreach(list, i, ref)
	{
		struct librechat_ref *r = &e->ref[e->n_refs];

		*r = (struct librechat_ref){ .doc = ref,
					     .id = text_of(ref, "id"),
					     .session = text_of(ref, "storage_session_id"),
					     .name = text_of(ref, "name") };
		if (!librechat_is_name(r->name))
			return "a file needs a name that stays in its folder";
		if (librechat_is_file(r->id) && librechat_is_session(r->session))
			e->n_refs++; /* other ids cannot be ours, so those files are missing */
	}
	return NULL;
}

/* NULL: the other members are valid. */
static const char *wrong_with(const json_t *doc)
{
	const json_t *code = json_object_get(doc, "code"), *args = json_object_get(doc, "args"), *arg;
	size_t i;

	if (!json_is_object(doc) || !json_is_string(json_object_get(doc, "lang")) || !language_of(text_of(doc, "lang")))
		return "lang is required: one of py js ts c cpp java php rs go d f90 r bash";
	if (!json_is_string(code) || json_string_length(code) > message_max_bytes(FIELD_code))
		return "code is required as a string";
	if (args && !json_is_null(args) && !json_is_array(args))
		return "args must be an array";
	json_array_foreach(args, i, arg) if (!json_is_string(arg) ||
					     strlen(json_string_value(arg)) != json_string_length(arg) ||
					     json_string_length(arg) > message_max_bytes(FIELD_arg) ||
					     i >= 1024) return "args must be strings";
	return NULL;
}

struct librechat_exec *librechat_new(struct client *c)
{
	struct librechat_exec *e = calloc(1, sizeof(*e));

	if (!e) {
		door_error(c, 503, "there is no memory");
		return NULL;
	}
	e->tar = (struct buf)BUF_INIT(JSON_FILES_MAX);
	e->kept = e->before = (struct buf)BUF_INIT(ARCHIVE_BYTES_MAX + MiB);
	c->req->call->state = e;
	c->req->call->release = exec_free;
	return e;
}

/* NULL: there is no usable hint. */
static const char *hint_of(const json_t *doc)
{
	const json_t *hint = json_object_get(doc, "runtime_session_hint");
	const char *text = json_string_value(hint);

	return text && *text && strlen(text) == json_string_length(hint) && strlen(text) <= LIBRECHAT_HINT_MAX ? text
													       : NULL;
}

void librechat_start(struct client *c)
{
	struct librechat_exec *e = exec_of(c);
	const char *why = wrong_with(e->doc), *language = language_of(text_of(e->doc, "lang"));

	if (!why)
		why = read_refs(e);
	if (!why)
		e->hint = hint_of(e->doc);
	if (why || !language)
		door_error(c, 400, why ? why : "lang is required");
	else if (!*language)
		say_refused(c, "this language is not one that the sandbox has\n");
	else if (e->hint)
		librechat_with_runtime(c, fetch_next);
	else
		fetch_next(c);
}

/* ---- requests for another deployment --------------------------------------------------------------------------- */

static bool is_other_profile(const char *profile)
{
	return !str_eq(profile, "default") && !str_eq(profile, "stateful");
}

static bool is_any(const char *id UNUSED)
{
	return true;
}

/* Headers that ask for what only another deployment has. The client shows errors of these names as "do not retry here". */
static const struct misfit {
	const char *line, *error, *message;
	bool (*is_it)(const char *value);
} misfits[] = {
	{ "X-CodeAPI-Expected-Profile", "execution_profile_mismatch",
	  "the profiles of this service are 'default' and 'stateful'", is_other_profile },
	{ "X-LibreChat-Code-Workspace-ID", "capability_mismatch",
	  "this service has no attached workspaces: choose an environment without one", is_any },
	{ "X-LibreChat-Code-Worker-ID", "bridge_worker_mismatch",
	  "this service has no attached workers: choose an environment without one", is_any },
};

static const struct misfit *misfit_of(const struct client *c)
{
	for (size_t i = 0; i < ARRAY_LEN(misfits); i++) {
		const char *value = door_line(c, misfits[i].line);

		if (value && *value && misfits[i].is_it(value))
			return &misfits[i];
	}
	return NULL;
}

static void say_misfit(struct client *c)
{
	const struct misfit *found = misfit_of(c);

	if (found)
		door_reply(c, 409, json_pack("{s:s, s:s}", "error", found->error, "message", found->message));
	else
		door_error(c, 409, "the request is for another service");
}

bool librechat_is_elsewhere(struct client *c)
{
	if (!misfit_of(c))
		return false;
	door_when_let_in(c, say_misfit);
	return true;
}

void librechat_exec(struct client *c)
{
	struct librechat_exec *e = librechat_is_elsewhere(c) ? NULL : librechat_new(c);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!e)
		return;
	e->doc = door_json(c, &err);
	if (!e->doc)
		door_error(c, 400, err.msg);
	else
		librechat_start(c);
}
