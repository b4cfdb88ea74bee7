/* SPDX-License-Identifier: Apache-2.0 */
/* `brig session contexts`, `interrupt`, `restart`: interpreters of a session. */
#include <stdio.h>

#include "base/str.h"
#include "cli/rows.h"
#include "cli/session.h"

#define AT(member) offsetof(struct session_values, member)
static const struct option_row contexts_options[] = {
	{ "add", 0, OPTION_TEXT, "LANGUAGE", AT(add), NULL, "make one more" },
	{ "cwd", 0, OPTION_TEXT, "DIR", AT(cwd), NULL, "the folder where that one begins" },
	{ "remove", 0, OPTION_TEXT, "CONTEXT", AT(remove), NULL, "end this one" },
	ROW_JSON,
	ROW_NO_COLOR,
};
static const struct option_row context_options[] = {
	{ "context", 0, OPTION_TEXT, "CONTEXT", AT(context), NULL,
	  "its number; without it the only one that the session has" },
	ROW_JSON,
};

static void add_row(struct ui_table *table, const json_t *row)
{
	char text[128];

	ui_table_add(table, document_text(row, "id", text, sizeof(text)), UI_BOLD);
	ui_table_add(table, document_text(row, "language", text, sizeof(text)), UI_PLAIN);
}

static int list(struct session_work *w, struct brig_error *err)
{
	static const char *const titles[] = { "CONTEXT", "LANGUAGE" };
	const struct document_table how = { titles, ARRAY_LEN(titles), add_row };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	struct service_ask ask;
	json_t *doc = NULL, *rows;
	int rc;

	cli_session_ask_begin(&ask, ROUTE_session, w->id);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	if (rc < 0)
		return rc;
	rows = json_object_get(doc, "contexts");
	if (w->v.json) {
		rows = json_pack("{s:O}", "contexts", rows);
		json_decref(doc);
		return cli_session_tell(w, rows, "%s", "");
	}
	document_table(&how, rows, true, w->v.no_color, &text);
	json_decref(doc);
	return ui_finish(&text, EXIT_SUCCESS);
}

static int add(struct session_work *w, struct brig_error *err)
{
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, ROUTE_context_make, w->id);
	message_put_text(&ask.message, FIELD_language, w->v.add);
	message_put_text(&ask.message, FIELD_cwd, w->v.cwd);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	return rc < 0 ? rc
		      : cli_session_tell(w, doc, "%lld\n", (long long)json_integer_value(json_object_get(doc, "id")));
}

static int ask_context(struct session_work *w, enum route route, uint64_t context, const char *done,
		       struct brig_error *err)
{
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, route, w->id);
	message_put_number(&ask.message, FIELD_item, context);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	return rc < 0 ? rc : cli_session_tell(w, doc, "context %llu %s\n", (unsigned long long)context, done);
}

static int contexts(struct session_work *w, struct brig_error *err)
{
	uint64_t n;

	if (w->v.add && w->v.remove)
		return err_set(err, BRIG_E_USAGE, 0, "--add and --remove exclude each other");
	if (cli_session_number(w->v.remove, "--remove", &n, err) < 0)
		return -err->code;
	if (n)
		return ask_context(w, ROUTE_context_delete, n, "has ended", err);
	return w->v.add ? add(w, err) : list(w, err);
}

/* The context named by --context, or the only one. */
static int choose(struct session_work *w, uint64_t *ret, struct brig_error *err)
{
	struct service_ask ask;
	const json_t *rows;
	json_t *doc = NULL;
	int rc = cli_session_number(w->v.context, "--context", ret, err);

	if (rc < 0 || *ret)
		return rc;
	cli_session_ask_begin(&ask, ROUTE_session, w->id);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	if (rc < 0)
		return rc;
	rows = json_object_get(doc, "contexts");
	if (json_array_size(rows) == 1)
		*ret = (uint64_t)json_integer_value(json_object_get(json_array_get(rows, 0), "id"));
	else
		rc = err_set(err, BRIG_E_USAGE, 0,
			     "the session has %zu contexts: name one with --context; 'brig session contexts %s' shows "
			     "them",
			     json_array_size(rows), w->id);
	json_decref(doc);
	return rc;
}

static int interrupt(struct session_work *w, struct brig_error *err)
{
	uint64_t context;
	int rc = choose(w, &context, err);

	return rc < 0 ? rc : ask_context(w, ROUTE_context_interrupt, context, "is interrupted", err);
}

static int restart(struct session_work *w, struct brig_error *err)
{
	uint64_t context;
	int rc = choose(w, &context, err);

	return rc < 0 ? rc : ask_context(w, ROUTE_context_restart, context, "has begun anew", err);
}

static const struct session_shape shape = { 1, 1, 0, false, "name one session; 'brig session list' shows them" };

const struct command command_session_contexts = {
	.name = "session contexts",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "list its interpreters, make one more, end one",
	.examples = "  brig session contexts k7xq\n"
		    "  brig session contexts --add javascript k7xq\n",
	SESSION_COMMAND(contexts_options, shape, contexts),
};

const struct command command_session_interrupt = {
	.name = "session interrupt",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "interrupt what runs in an interpreter, as Ctrl-C would",
	.examples = "  brig session interrupt k7xq\n",
	SESSION_COMMAND(context_options, shape, interrupt),
};

const struct command command_session_restart = {
	.name = "session restart",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "begin an interpreter anew, without what it knew",
	.examples = "  brig session restart k7xq\n",
	SESSION_COMMAND(context_options, shape, restart),
};
