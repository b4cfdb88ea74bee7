/* SPDX-License-Identifier: Apache-2.0 */
/* show_ask.c - shows documents of read-only tools to a model. */
#include <string.h>

#include "base/str.h"
#include "mcp_shared/show.h"
#include "mcp_shared/text.h"

#define WORDS_MAX (64 * KiB)

static long long number(const json_t *object, const char *name)
{
	return (long long)json_integer_value(json_object_get(object, name));
}

static void add_list(struct buf *out, const char *title, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (json_is_string(item))
			buf_addf(out, "%s%s", i > 0 ? ", " : title, json_string_value(item));
	}
	buf_adds(out, i > 0 ? "\n" : "");
}

void show_check(json_t *doc, struct answer *a)
{
	bool is_blocked = json_is_true(json_object_get(doc, "blocked"));
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	if (!json_is_true(json_object_get(doc, "inspected")))
		buf_adds(&words,
			 "Nobody inspects this language, or the inspection is off: the cell alone contains it.\n");
	else
		buf_adds(&words, is_blocked ? "It would be blocked.\n" : "It would run.\n");
	show_findings(json_object_get(doc, "findings"), &words);
	buf_addf(&words, "Findings in all: %zu.\n", json_array_size(json_object_get(doc, "findings")));
	content_add_text(a->content, &words);
	a->structured = json_incref(doc);
}

void show_rule(json_t *doc, struct answer *a)
{
	const json_t *severity = json_object_get(doc, "severity");
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	buf_addf(&words, "%s: %s\n", text_member(doc, "id"), text_member(doc, "message"));
	buf_addf(&words, "Do instead: %s\n", text_member(doc, "remedy"));
	add_list(&words, "Found for example in: ", json_object_get(doc, "match"));
	add_list(&words, "Not in: ", json_object_get(doc, "no_match"));
	buf_addf(&words, "Severity: %s (report), %s (guard), %s (strict); CRITICAL blocks.\n",
		 text_member(severity, "report"), text_member(severity, "guard"), text_member(severity, "strict"));
	content_add_text(a->content, &words);
	a->structured = json_incref(doc);
	(void)json_object_set(a->structured, "rule", json_object_get(doc, "id"));
}

void show_policy(const json_t *args, json_t *doc, struct answer *a)
{
	const char *wanted = text_member(args, "setting");
	json_t *settings = json_array();
	const json_t *row;
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	size_t i;

	json_array_foreach(json_object_get(doc, "settings"), i, row)
	{
		/* "timeout" matches execution_timeout_ms and others */
		if (!strstr(text_member(row, "key"), wanted))
			continue;
		(void)json_array_append(settings, (json_t *)(uintptr_t)row);
		buf_addf(&words, "%s = %s", text_member(row, "key"), text_member(row, "text"));
		buf_addf(&words, *wanted ? " (%s; set by: %s)\n" : "\n", text_member(row, "help"),
			 text_member(row, "layer"));
	}
	if (json_array_size(settings) == 0) {
		(void)err_set(&a->why, BRIG_E_USAGE, 0, "There is no setting '%.60s': without setting all are listed.",
			      wanted);
	} else {
		content_add_text(a->content, &words);
		a->structured = json_pack("{s:O?, s:O?, s:O}", "trust", json_object_get(doc, "trust"), "preset",
					  json_object_get(doc, "preset"), "settings", settings);
	}
	json_decref(settings);
}

void show_languages(json_t *doc, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "languages"), i, row)
		buf_addf(&words, "%s%s\n", text_member(row, "name"),
			 json_is_true(json_object_get(row, "installed")) ? "" : " (not installed)");
	content_add_text(a->content, &words);
	a->structured = json_incref(doc);
}

void show_execution(json_t *doc, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	buf_addf(&words, "%s: %s%s%s\n", text_member(doc, "id"), text_member(doc, "verdict"),
		 *text_member(doc, "reason") ? ": " : "", text_member(doc, "reason"));
	buf_addf(&words, "%s, %s, trust %s, %lld ms\n", text_member(doc, "time"), text_member(doc, "language"),
		 text_member(doc, "trust"), number(json_object_get(doc, "usage"), "wall_ms"));
	show_findings(json_object_get(doc, "findings"), &words);
	show_denied(json_object_get(doc, "denied"), &words);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "code", "stdout", "stderr" };
		const json_t *kept = json_object_get(doc, names[i]);
		const char *text = text_member(kept, "text");

		if (*text && !str_eq(text_member(kept, "encoding"), "base64")) {
			buf_addf(&words, "\n%s:\n", names[i]);
			(void)text_add_cut(&words, text, strlen(text), 8 * KiB);
		}
	}
	content_add_text(a->content, &words);
	a->structured = json_incref(doc);
	(void)json_object_del(a->structured, "samples");
}

void show_receipt(json_t *doc, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	bool holds = json_is_true(json_object_get(doc, "ok"));

	buf_adds(&words, holds ? "The receipt holds.\n" : "The receipt does NOT hold");
	if (!holds)
		buf_addf(&words, ": %s\n", text_member(doc, "problem"));
	add_list(&words, "Proven: ", json_object_get(doc, "proven"));
	add_list(&words, "Not proven: ", json_object_get(doc, "not_proven"));
	content_add_text(a->content, &words);
	a->structured = json_incref(doc);
}
