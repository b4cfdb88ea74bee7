/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_files.c - read_file, write_file, list_files.
 *
 * Files of the project are accessed by a program in a cell, not by this process. So files hidden from programs are
 * hidden from the model, links cannot lead out, endless files hit a limit, writes are pending changes as of any run,
 * and every access is recorded. The path is an argument of a fixed program, so nothing in it is executed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"
#include "mcp/tools.h"

#define READ_DEFAULT  (256 * KiB)
#define READ_IMAGE    (4 * MiB)
#define DEPTH_DEFAULT 2
#define ENTRIES_MAX   1000
#define WORDS_MAX     (512 * KiB)

/* The size comes first, on stderr. */
static const char read_program[] =
	"test -e \"$1\" || { echo 'there is no such file' >&2; exit 1; }\n"
	"test -f \"$1\" || { echo 'it is no regular file; list_files shows folders' >&2; exit 1; }\n"
	"wc -c <\"$1\" >&2\n"
	"tail -c \"+$2\" \"$1\" | head -c \"$3\"\n";
/*
 * For files in folders. A file at the top is copied instead, since it may have the name under which this program is
 * stored there.
 */
static const char write_program[] = "mkdir -p \"$(dirname \"$1\")\" && cat >\"$1\"\n";
static const char list_program[] =
	"test -d \"$1\" || { echo 'there is no such folder' >&2; exit 1; }\n"
	"find \"$1\" -mindepth 1 -maxdepth \"$2\" \\( -name .git -o -path \"./${0##*/}\" \\) -prune -o "
	"-printf '%y %s %P\\0' | "
	"sort -z -k 3 | head -z -n \"$3\"\n";

/* Begins a command that runs in a cell of the project, up to the command's arguments. */
static int begin_cell(struct call *call, struct invocation *p, const char *command, bool writes, struct brig_error *err)
{
	invocation_begin(p, call->server->options, command, INVOCATION_RUN);
	p->events = true;
	invocation_add(p, "--events");
	if (writes && call->server->options->apply)
		invocation_add(p, "--apply");
	if (!writes) {
		invocation_add(p, "--workspace-mode=ro");
		invocation_add(p, "--stdin=none");
	}
	return plan_project(call, p, true, err);
}

/* Begins one of the programs above, with the path as its first argument. */
static int begin_program(struct call *call, struct invocation *p, const char *program, struct brig_error *err)
{
	AUTO_BUF path = BUF_INIT(8 * KiB);
	int rc = argument_path(call, "path", &path, err);

	if (rc == 0)
		rc = begin_cell(call, p, "run", false, err);
	invocation_add(p, "--lang=sh");
	invocation_addf(p, "--code=%s", program);
	invocation_add(p, "--");
	invocation_add(p, buf_str(&path));
	return rc;
}

/* ---- reading -------------------------------------------------------------------------------------- */

static bool looks_like_image(const char *path)
{
	static const char *const endings[] = { ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg" };
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	return false;
}

int read_file_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const json_t *offset = json_object_get(call->args, "offset"), *length = json_object_get(call->args, "length");
	json_int_t most = looks_like_image(text_member(call->args, "path")) ? READ_IMAGE : READ_DEFAULT;
	int rc = begin_program(call, p, read_program, err);

	invocation_addf(p, "%lld", (long long)(offset ? json_integer_value(offset) + 1 : 1));
	invocation_addf(p, "%lld", (long long)(length ? json_integer_value(length) : most));
	return rc;
}

/* What was read from a file. */
struct page {
	struct buf text; /* if it is text */
	bool is_text;
	const char *base64; /* otherwise */
	uint64_t bytes;
	bool is_rest; /* the page reaches the end of the file */
};

/* A page of text that ends within a character is shortened; the reader continues where it ends. */
static void read_page(const json_t *doc, uint64_t offset, uint64_t size, struct page *ret)
{
	const json_t *text = json_object_get(doc, "stdout");
	size_t len = json_string_length(text), good;

	ret->is_text = !str_eq(text_member(doc, "stdout_encoding"), "base64");
	ret->base64 = json_string_value(text);
	if (ret->is_text) {
		buf_add(&ret->text, json_string_value(text), len);
		ret->bytes = len;
	} else {
		ret->bytes = text_base64_bytes(ret->base64, len);
	}
	ret->is_rest = offset + ret->bytes >= size;
	if (ret->is_text || ret->is_rest || !text_from_base64(ret->base64, len, &ret->text))
		return;
	good = str_utf8_prefix(ret->text.data, ret->text.len);
	if (good > 0 && str_utf8_is_cut(ret->text.data + good, ret->text.len - good)) {
		ret->is_text = true;
		ret->bytes = ret->text.len = good;
	}
}

static void add_page(const char *path, const struct page *page, bool is_whole, struct answer *a)
{
	const char *type =
		is_whole && looks_like_image(path) ? text_image_type(path, page->is_text ? "" : page->base64) : NULL;
	AUTO_BUF words = BUF_INIT(8 * KiB);

	if (type && page->is_text)
		content_add_picture(a->content, buf_str(&page->text), page->text.len, type);
	else if (type)
		content_add_image(a->content, page->base64, type);
	else if (page->is_text)
		content_add_text(a->content, &page->text);
	else {
		buf_addf(&words, "'%s' is not text: its bytes are in structuredContent, as base64.", path);
		content_add_text(a->content, &words);
	}
	(void)json_object_set_new(a->structured, "mime_type", type ? json_string(type) : json_null());
	if (type && !page->is_text)
		return; /* the image is in the answer already */
	(void)json_object_set_new(a->structured, "content",
				  page->is_text ? text_json(buf_str(&page->text), page->text.len)
						: json_string(page->base64));
	(void)json_object_set_new(a->structured, "encoding", json_string(page->is_text ? "utf-8" : "base64"));
}

enum job_next read_file_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	const char *path = text_member(call->args, "path");
	uint64_t offset = (uint64_t)json_integer_value(json_object_get(call->args, "offset"));
	uint64_t size = strtoull(text_member(o->doc, "stderr"), NULL, 10);
	struct page page = { .text = BUF_INIT(CHILD_TEXT_MAX) };
	AUTO_BUF note = BUF_INIT(256);

	if (show_helper_failed(o->doc, "The file was not read", a))
		return JOB_DONE;
	read_page(o->doc, offset, size, &page);
	a->structured = json_pack("{s:s, s:I, s:I, s:b}", "path", path, "size", (json_int_t)size, "offset",
				  (json_int_t)offset, "truncated", !page.is_rest);
	add_page(path, &page, page.is_rest && offset == 0, a);
	if (!page.is_rest) {
		uint64_t next = offset + page.bytes;

		buf_addf(&note, "There is more: the file has %llu bytes; go on with offset %llu.",
			 (unsigned long long)size, (unsigned long long)next);
		content_add_text(a->content, &note);
	}
	buf_release(&page.text);
	return JOB_DONE;
}

/* ---- writing -------------------------------------------------------------------------------------- */

/* True for files of Git, which executes what they contain on the host. */
static bool is_of_git(const char *path)
{
	for (const char *part = path; *part; part += strspn(part, "/")) {
		size_t len = strcspn(part, "/");

		if (len == 4 && strncasecmp(part, ".git", 4) == 0)
			return true;
		part += len;
	}
	return false;
}

static int give_content(const struct call *call, struct invocation *p, struct brig_error *err)
{
	const json_t *content = json_object_get(call->args, "content");
	AUTO_BUF bytes = BUF_INIT(READ_IMAGE + KiB);

	if (!str_eq(text_member(call->args, "encoding"), "base64")) {
		invocation_input(p, json_string_value(content), json_string_length(content));
		return 0;
	}
	if (!text_from_base64(json_string_value(content), json_string_length(content), &bytes))
		return err_set(err, BRIG_E_USAGE, 0, "content is no base64, or holds more than 4 MiB.");
	invocation_input(p, buf_str(&bytes), bytes.len);
	return 0;
}

int write_file_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	AUTO_BUF path = BUF_INIT(8 * KiB);
	int rc = argument_path(call, "path", &path, err);
	bool at_top = !strchr(buf_str(&path) + strlen("./"), '/');

	if (rc == 0 && is_of_git(buf_str(&path)))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "Files of git's own are not written: nothing that runs here changes .git.");
	if (rc == 0 && path.len == strlen("./"))
		return err_set(err, BRIG_E_USAGE, 0, "That is the project's folder: name a file in it.");
	if (rc == 0)
		rc = give_content(call, p, err);
	if (rc == 0)
		rc = begin_cell(call, p, at_top ? "exec" : "run", true, err);
	if (!at_top) {
		invocation_add(p, "--lang=sh");
		invocation_addf(p, "--code=%s", write_program);
	}
	invocation_add(p, "--");
	if (at_top) {
		invocation_add(p, "cp");
		invocation_add(p, "-T"); /* do not copy into a folder of that name */
		invocation_add(p, "/dev/stdin");
	}
	invocation_add(p, buf_str(&path));
	return rc;
}

enum job_next write_file_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	const char *path = text_member(call->args, "path"), *id = text_member(o->doc, "id");
	const char *state = text_member(json_object_get(o->doc, "workspace"), "state");
	const json_t *content = json_object_get(call->args, "content");
	size_t given = json_string_length(content);
	AUTO_BUF words = BUF_INIT(8 * KiB);

	server_own(call->server, id);
	if (str_eq(text_member(o->doc, "verdict"), "error"))
		(void)err_set(&a->why, BRIG_E_REFUSED, 0,
			      "'%.200s' was not written: it is hidden by the policy because such files hold secrets, "
			      "or there is a "
			      "folder or a link in its place.",
			      path);
	if (a->why.code || show_helper_failed(o->doc, "The file was not written", a))
		return JOB_DONE;
	if (str_eq(text_member(call->args, "encoding"), "base64"))
		given = text_base64_bytes(json_string_value(content), given);
	a->structured = json_pack("{s:s, s:I, s:s, s:s}", "path", path, "bytes", (json_int_t)given, "state", state,
				  "execution_id", id);
	if (str_eq(state, "kept"))
		buf_addf(&words,
			 "'%s' is written and waits: apply_changes with execution_id %s moves it to the project. Until "
			 "then "
			 "other runs do not see it.",
			 path, id);
	else if (str_eq(state, "applied"))
		buf_addf(&words, "'%s' is written.", path);
	else
		buf_addf(&words,
			 "Nothing changed: '%s' has this content already, or it is one that runs do not change (files "
			 "with "
			 "secrets, caches of tools).",
			 path);
	content_add_text(a->content, &words);
	return JOB_DONE;
}

/* ---- listing -------------------------------------------------------------------------------------- */

int list_files_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const json_t *depth = json_object_get(call->args, "depth");
	int rc = begin_program(call, p, list_program, err);

	invocation_addf(p, "%lld", depth ? (long long)json_integer_value(depth) : DEPTH_DEFAULT);
	invocation_addf(p, "%d", ENTRIES_MAX + 1);
	return rc;
}

static const char *type_name(char letter)
{
	return letter == 'f' ? "file" : letter == 'd' ? "directory" : letter == 'l' ? "link" : "other";
}

/* Parses entries such as "f 12 path", each terminated by NUL. */
static void add_entries(const struct buf *list, json_t *entries, struct buf *words)
{
	for (size_t at = 0; at < list->len && json_array_size(entries) < ENTRIES_MAX;) {
		const char *row = list->data + at;
		size_t len = strnlen(row, list->len - at);
		char *path = NULL;
		long long size = len > 2 ? strtoll(row + 2, &path, 10) : 0;

		at += len + 1;
		if (!path || *path != ' ')
			continue;
		path++;
		(void)json_array_append_new(entries, json_pack("{s:o, s:s, s:I}", "path", text_json(path, strlen(path)),
							       "type", type_name(*row), "size", (json_int_t)size));
		buf_addf(words, "%s%s%s\n", path, *row == 'd' ? "/" : "", *row == 'l' ? " (link)" : "");
	}
}

enum job_next list_files_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	const json_t *text = json_object_get(o->doc, "stdout");
	AUTO_BUF list = BUF_INIT(CHILD_TEXT_MAX), words = BUF_INIT(WORDS_MAX);
	json_t *entries = json_array();
	size_t rows = 0;

	if (!show_helper_failed(o->doc, "The folder was not listed", a)) {
		if (str_eq(text_member(o->doc, "stdout_encoding"), "base64"))
			(void)text_from_base64(json_string_value(text), json_string_length(text), &list);
		else
			buf_add(&list, json_string_value(text), json_string_length(text));
		for (size_t i = 0; i < list.len; i++)
			rows += list.data[i] == '\0';
		add_entries(&list, entries, &words);
		if (rows > ENTRIES_MAX)
			buf_addf(&words, "... and more: list a folder in it, or go down fewer levels.\n");
		content_add_text(a->content, &words);
		a->structured = json_pack("{s:s, s:O, s:b}", "path", text_member(call->args, "path"), "entries",
					  entries, "truncated", rows > ENTRIES_MAX);
	}
	json_decref(entries);
	return JOB_DONE;
}
