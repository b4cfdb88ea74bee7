/* SPDX-License-Identifier: Apache-2.0 */
/* tool_ask.c - tools that only ask: check_code, explain_finding, explain_policy, list_languages, get_execution, verify_receipt. */
#include <string.h>

#include "base/str.h"
#include "mcp/text.h"
#include "mcp/tools.h"

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

/* ---- inspection ----------------------------------------------------------------------------------- */

int check_code_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *kind = text_member(call->args, "kind"), *language = text_member(call->args, "language");
	const json_t *code = json_object_get(call->args, "code");
	bool is_code = !*kind || str_eq(kind, "code");

	if (is_code && !*language)
		return err_set(err, BRIG_E_USAGE, 0, "Say the language of the code; list_languages names them.");
	invocation_begin(p, call->server->options, "check", INVOCATION_POLICY | INVOCATION_TRUST);
	invocation_add(p, "--json");
	if (is_code)
		invocation_addf(p, "--lang=%s", language);
	else
		invocation_addf(p, "--kind=%s", kind);
	invocation_input(p, json_string_value(code), json_string_length(code));
	invocation_add(p, "-");
	return 0;
}

enum job_next check_code_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	bool is_blocked = json_is_true(json_object_get(o->doc, "blocked"));
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	if (answer_complaint(o, a))
		return JOB_DONE;
	if (!json_is_true(json_object_get(o->doc, "inspected")))
		buf_adds(&words,
			 "Nobody inspects this language, or the inspection is off: the cell alone contains it.\n");
	else
		buf_adds(&words, is_blocked ? "It would be blocked.\n" : "It would run.\n");
	show_findings(json_object_get(o->doc, "findings"), &words);
	buf_addf(&words, "Findings in all: %zu.\n", json_array_size(json_object_get(o->doc, "findings")));
	content_add_text(a->content, &words);
	a->structured = json_incref(o->doc);
	return JOB_DONE;
}

int explain_finding_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *rule;
	int rc = argument_word(call, "rule", &rule, err);

	invocation_begin(p, call->server->options, "explain", INVOCATION_POLICY);
	invocation_add(p, "--json");
	invocation_add(p, rule);
	return rc;
}

enum job_next explain_finding_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	const json_t *severity = json_object_get(o->doc, "severity");
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	if (answer_complaint(o, a))
		return JOB_DONE;
	buf_addf(&words, "%s: %s\n", text_member(o->doc, "id"), text_member(o->doc, "message"));
	buf_addf(&words, "Do instead: %s\n", text_member(o->doc, "remedy"));
	add_list(&words, "Found for example in: ", json_object_get(o->doc, "match"));
	add_list(&words, "Not in: ", json_object_get(o->doc, "no_match"));
	buf_addf(&words, "Severity: %s (report), %s (guard), %s (strict); CRITICAL blocks.\n",
		 text_member(severity, "report"), text_member(severity, "guard"), text_member(severity, "strict"));
	content_add_text(a->content, &words);
	a->structured = json_incref(o->doc);
	(void)json_object_set(a->structured, "rule", json_object_get(o->doc, "id"));
	return JOB_DONE;
}

/* ---- policy and languages ------------------------------------------------------------------------- */

int explain_policy_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	invocation_begin(p, call->server->options, "policy show",
			 INVOCATION_POLICY | INVOCATION_TRUST | INVOCATION_PRESET);
	invocation_add(p, "--json");
	return 0;
}

enum job_next explain_policy_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	const char *wanted = text_member(call->args, "setting");
	json_t *settings = json_array();
	const json_t *row;
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	size_t i;

	json_array_foreach(json_object_get(o->doc, "settings"), i, row)
	{
		if (!strstr(text_member(row, "key"), wanted)) /* timeout is execution_timeout_ms and some more */
			continue;
		(void)json_array_append(settings, (json_t *)(uintptr_t)row);
		buf_addf(&words, "%s = %s", text_member(row, "key"), text_member(row, "text"));
		buf_addf(&words, *wanted ? " (%s; set by: %s)\n" : "\n", text_member(row, "help"),
			 text_member(row, "layer"));
	}
	if (answer_complaint(o, a)) {
		/* said */
	} else if (json_array_size(settings) == 0) {
		(void)err_set(&a->why, BRIG_E_USAGE, 0, "There is no setting '%.60s': without setting all are listed.",
			      wanted);
	} else {
		content_add_text(a->content, &words);
		a->structured = json_pack("{s:O?, s:O?, s:O}", "trust", json_object_get(o->doc, "trust"), "preset",
					  json_object_get(o->doc, "preset"), "settings", settings);
	}
	json_decref(settings);
	return JOB_DONE;
}

int list_languages_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	invocation_begin(p, call->server->options, "languages", 0);
	invocation_add(p, "--json");
	return 0;
}

enum job_next list_languages_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	const json_t *row;
	size_t i;

	if (answer_complaint(o, a))
		return JOB_DONE;
	json_array_foreach(json_object_get(o->doc, "languages"), i, row)
		buf_addf(&words, "%s%s\n", text_member(row, "name"),
			 json_is_true(json_object_get(row, "installed")) ? "" : " (not installed)");
	content_add_text(a->content, &words);
	a->structured = json_incref(o->doc);
	return JOB_DONE;
}

/* ---- the record ------------------------------------------------------------------------------------ */

int get_execution_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *id;
	int rc = argument_word(call, "execution_id", &id, err);

	if (rc < 0)
		return rc;
	if (!server_owns(call->server, id))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.64s' is no execution of this server. Give an execution_id that a run here had; with "
			       "--history the "
			       "server shows those of others, too.",
			       id);
	invocation_begin(p, call->server->options, "show", INVOCATION_RECORD);
	invocation_add(p, "--json");
	invocation_add(p, id);
	return 0;
}

enum job_next get_execution_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	if (answer_complaint(o, a))
		return JOB_DONE;
	buf_addf(&words, "%s: %s%s%s\n", text_member(o->doc, "id"), text_member(o->doc, "verdict"),
		 *text_member(o->doc, "reason") ? ": " : "", text_member(o->doc, "reason"));
	buf_addf(&words, "%s, %s, trust %s, %lld ms\n", text_member(o->doc, "time"), text_member(o->doc, "language"),
		 text_member(o->doc, "trust"), number(json_object_get(o->doc, "usage"), "wall_ms"));
	show_findings(json_object_get(o->doc, "findings"), &words);
	show_denied(json_object_get(o->doc, "denied"), &words);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "code", "stdout", "stderr" };
		const json_t *kept = json_object_get(o->doc, names[i]);
		const char *text = text_member(kept, "text");

		if (*text && !str_eq(text_member(kept, "encoding"), "base64")) {
			buf_addf(&words, "\n%s:\n", names[i]);
			(void)text_add_cut(&words, text, strlen(text), 8 * KiB);
		}
	}
	content_add_text(a->content, &words);
	a->structured = json_incref(o->doc);
	(void)json_object_del(a->structured, "samples");
	return JOB_DONE;
}

int verify_receipt_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	const json_t *receipt = json_object_get(call->args, "receipt");
	const char *key = text_member(call->args, "public_key");

	invocation_begin(p, call->server->options, "receipt verify", 0);
	invocation_add(p, "--json");
	if (*key)
		invocation_addf(p, "--key=%s", key);
	invocation_input(p, json_string_value(receipt), json_string_length(receipt));
	invocation_add(p, "/dev/stdin");
	return 0;
}

enum job_next verify_receipt_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	bool holds = json_is_true(json_object_get(o->doc, "ok"));

	if (answer_complaint(o, a))
		return JOB_DONE;
	buf_adds(&words, holds ? "The receipt holds.\n" : "The receipt does NOT hold");
	if (!holds)
		buf_addf(&words, ": %s\n", text_member(o->doc, "problem"));
	add_list(&words, "Proven: ", json_object_get(o->doc, "proven"));
	add_list(&words, "Not proven: ", json_object_get(o->doc, "not_proven"));
	content_add_text(a->content, &words);
	a->structured = json_incref(o->doc);
	return JOB_DONE;
}
