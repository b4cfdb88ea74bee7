/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_changes.c - show_changes and apply_changes. The changes of all projects are kept in one place, but a client may
 * see and apply only those of its own project. So the first step looks up the project of an id, and the second passes
 * the full id.
 */
#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"
#include "mcp/tools.h"

#define WORDS_MAX (256 * KiB)
#define DIFF_MAX  (64 * KiB)

static int begin(struct call *call, struct invocation *p, const char *command, bool as_json, const char *id)
{
	invocation_begin(p, call->server->options, command, INVOCATION_RECORD);
	if (as_json)
		invocation_add(p, "--json");
	if (id)
		invocation_add(p, id);
	return 0;
}

static int no_project(const struct call *call, struct brig_error *err)
{
	return *call->server->root ? 0
				   : err_set(err, BRIG_E_REFUSED, 0,
					     "There is no project: start the server with --workspace DIR, or let the "
					     "client name a root.");
}

/* True if the requested changes belong to this project; otherwise sets the answer to an error. */
static bool is_of_project(const struct call *call, const struct outcome *o, struct answer *a)
{
	if (answer_complaint(o, a))
		return false;
	if (str_eq(text_member(o->doc, "project"), call->server->root))
		return true;
	(void)err_set(&a->why, BRIG_E_REFUSED, 0,
		      "The changes of '%.64s' are not of this project. show_changes without execution_id lists those "
		      "that are.",
		      text_member(call->args, "execution_id"));
	return false;
}

/* First step of both tools: identifies the changes. JOB_AGAIN keeps their document for the second step. */
static enum job_next identify(struct call *call, const struct outcome *o, struct answer *a)
{
	if (!is_of_project(call, o, a))
		return JOB_DONE;
	call->kept = json_incref(o->doc);
	return JOB_AGAIN;
}

/* ---- show_changes ---------------------------------------------------------------------------------- */

int show_changes_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *id;

	if (no_project(call, err) < 0)
		return -err->code;
	if (!json_object_get(call->args, "execution_id"))
		return begin(call, p, "workspace list", true, NULL);
	if (argument_word(call, "execution_id", &id, err) < 0)
		return -err->code;
	return call->step == 0 ? begin(call, p, "workspace show", true, id)
			       : begin(call, p, "workspace diff", false, text_member(call->kept, "id"));
}

static void show_waiting(const struct call *call, const struct outcome *o, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	json_t *waiting = json_array();
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(o->doc, "workspaces"), i, row)
	{
		if (!str_eq(text_member(row, "project"), call->server->root))
			continue;
		(void)json_array_append(waiting, row);
		buf_addf(&words, "%s: %lld added, %lld modified, %lld deleted (%s)\n", text_member(row, "id"),
			 (long long)json_integer_value(json_object_get(row, "added")),
			 (long long)json_integer_value(json_object_get(row, "modified")),
			 (long long)json_integer_value(json_object_get(row, "deleted")), text_member(row, "created"));
	}
	buf_adds(&words, words.len == 0 ? "No changes wait.\n" : "");
	content_add_text(a->content, &words);
	a->structured = json_pack("{s:o}", "waiting", waiting);
}

static void show_diff(const struct call *call, const struct outcome *o, struct answer *a)
{
	AUTO_BUF diff = BUF_INIT(2 * DIFF_MAX);
	bool was_cut = text_add_cut(&diff, o->text, o->len, DIFF_MAX);

	if (o->status != 0) {
		(void)err_set(&a->why, BRIG_E_REFUSED, 0, "%.400s", o->complaint);
		return;
	}
	content_add_text(a->content, &diff);
	a->structured = json_pack("{s:O?, s:O?, s:o, s:b}", "execution_id", json_object_get(call->kept, "id"),
				  "changes", json_object_get(call->kept, "changes"), "diff",
				  text_json(buf_str(&diff), diff.len), "truncated", was_cut);
}

enum job_next show_changes_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	if (*text_member(call->args, "execution_id") && call->step == 0)
		return identify(call, o, a);
	if (call->step > 0)
		show_diff(call, o, a);
	else if (!answer_complaint(o, a))
		show_waiting(call, o, a);
	return JOB_DONE;
}

/* ---- apply_changes --------------------------------------------------------------------------------- */

int apply_changes_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *id;

	if (no_project(call, err) < 0 || argument_word(call, "execution_id", &id, err) < 0)
		return -err->code;
	return call->step == 0 ? begin(call, p, "workspace show", true, id)
			       : begin(call, p, "workspace apply", false, text_member(call->kept, "id"));
}

enum job_next apply_changes_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	json_t *was = call->kept;

	if (call->step == 0)
		return identify(call, o, a);
	if (o->status != 0) {
		(void)err_set(&a->why, BRIG_E_REFUSED, 0, "Nothing was applied: %.400s", o->complaint);
		return JOB_DONE;
	}
	buf_add(&words, o->text, o->len);
	if (words.len == 0)
		buf_adds(&words, *o->complaint ? o->complaint : "The changes are applied.");
	content_add_text(a->content, &words);
	a->structured =
		json_pack("{s:O?, s:b, s:O?, s:O?, s:O?, s:o}", "execution_id", json_object_get(was, "id"), "applied",
			  1, "added", json_object_get(was, "added"), "modified", json_object_get(was, "modified"),
			  "deleted", json_object_get(was, "deleted"), "message", text_json(buf_str(&words), words.len));
	return JOB_DONE;
}
