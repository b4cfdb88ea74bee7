/* SPDX-License-Identifier: Apache-2.0 */
/* `brig session start`, `list`, `show`, `stop`, `pause`, `resume`, `timeout`: sessions as a whole. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/rows.h"
#include "cli/session.h"

#define AT(member) offsetof(struct session_values, member)
static const struct option_row start_options[] = {
	{ "timeout", 0, OPTION_TEXT, "TIME", AT(timeout), NULL,
	  "how long it may last: 600, 30m, 2h; without it as long as the policy lets it" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL, "untrusted, unknown or trusted" },
	{ "env-name", 0, OPTION_TEXT, "NAME", AT(environment), NULL, "an environment of the service's" },
	{ "snapshot", 0, OPTION_TEXT, "SNAPSHOT", AT(snapshot), NULL, "begin with the files of this snapshot" },
	{ "env", 'e', OPTION_LIST, "NAME=VALUE", AT(env), NULL, "a variable of all that runs in it; may be repeated" },
	{ "memory", 'm', OPTION_WISH, "SIZE", AT(wishes), "mem_limit", "memory of all that runs in it: 256m, 1g" },
	{ "cpus", 0, OPTION_WISH, "COUNT", AT(wishes), "cpu_count", "share of cpu time: 0.5 is half of one cpu" },
	{ "pids", 0, OPTION_WISH, "COUNT", AT(wishes), "pids_limit", "processes and threads at once" },
	{ "disk", 0, OPTION_WISH, "SIZE", AT(wishes), "disk_limit", "bytes of its files" },
	{ "set", 's', OPTION_WISH, "KEY=VALUE", AT(wishes), NULL, "any other setting; 'brig policy show' lists them" },
	ROW_JSON,
};
static const struct option_row look_options[] = { ROW_JSON, ROW_NO_COLOR };
static const struct option_row ask_options[] = { ROW_JSON };
static const struct option_row fork_options[] = {
	{ "timeout", 0, OPTION_TEXT, "TIME", AT(timeout), NULL, "how long the new one may last: 600, 30m, 2h" },
	ROW_JSON,
};
static const struct option_row snapshot_options[] = {
	{ "name", 0, OPTION_TEXT, "NAME", AT(name), NULL, "what it is called in lists" },
	ROW_JSON,
};

/* ---- start -------------------------------------------------------------------------------------------------- */

static const char *id_of(const json_t *doc)
{
	const char *id = json_string_value(json_object_get(doc, "id"));

	return id ? id : "";
}

static int start(struct session_work *w, struct brig_error *err)
{
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, ROUTE_session_make, NULL);
	message_put_text(&ask.message, FIELD_trust, w->v.trust);
	message_put_text(&ask.message, FIELD_environment, w->v.environment);
	message_put_text(&ask.message, FIELD_snapshot, w->v.snapshot);
	cli_session_put_env(&ask, &w->v.env);
	rc = service_ask_options(&ask.message, w->v.wishes.item, w->v.wishes.n, err);
	if (rc == 0)
		rc = cli_session_put_time(&ask, w->v.timeout, err);
	if (rc < 0) {
		service_ask_release(&ask);
		return rc;
	}
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	return rc < 0 ? rc : cli_session_tell(w, doc, "%s\n", id_of(doc));
}

/* Creates something from a session and prints its id. */
static int make_copy(struct session_work *w, enum route route, struct brig_error *err)
{
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, route, w->id);
	message_put_text(&ask.message, FIELD_name, w->v.name);
	rc = cli_session_put_time(&ask, w->v.timeout, err);
	if (rc < 0) {
		service_ask_release(&ask);
		return rc;
	}
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	return rc < 0 ? rc : cli_session_tell(w, doc, "%s\n", id_of(doc));
}

static int fork_it(struct session_work *w, struct brig_error *err)
{
	return make_copy(w, ROUTE_session_fork, err);
}

static int snapshot(struct session_work *w, struct brig_error *err)
{
	return make_copy(w, ROUTE_snapshot_make, err);
}

/* ---- list, show ------------------------------------------------------------------------------------------------ */

static enum ui_color state_color(const char *state)
{
	return str_eq(state, "ready") ? UI_GREEN : str_eq(state, "ended") ? UI_DIM : UI_YELLOW;
}

/* "python 1, shell 4" */
static void add_contexts(const json_t *row, struct buf *out)
{
	const json_t *c;
	char language[64];
	size_t i;

	json_array_foreach(json_object_get(row, "contexts"), i, c)
		buf_addf(out, "%s%s %lld", i ? ", " : "", document_text(c, "language", language, sizeof(language)),
			 (long long)json_integer_value(json_object_get(c, "id")));
}

static void add_row(struct ui_table *table, const json_t *row)
{
	static const char *const texts[] = { "id", "state", "token", "trust", "created" };
	AUTO_BUF contexts = BUF_INIT(KiB);
	char text[128];

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		(void)document_text(row, texts[i], text, sizeof(text));
		ui_table_add(table, text, i == 0 ? UI_BOLD : i == 1 ? state_color(text) : UI_PLAIN);
	}
	add_contexts(row, &contexts);
	ui_table_add(table, buf_str(&contexts), UI_PLAIN);
}

static int list(struct session_work *w, struct brig_error *err)
{
	static const char *const titles[] = { "SESSION", "STATE", "OF", "TRUST", "SINCE", "CONTEXTS" };
	const struct document_table how = { titles, ARRAY_LEN(titles), add_row };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, ROUTE_sessions, NULL);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	if (rc < 0)
		return rc;
	if (w->v.json)
		return cli_session_tell(w, doc, "%s", "");
	document_table(&how, json_object_get(doc, "sessions"), true, w->v.no_color, &text);
	json_decref(doc);
	return ui_finish(&text, EXIT_SUCCESS);
}

static void add_processes(const json_t *doc, struct buf *out)
{
	const json_t *p;
	char state[32], command[256];
	size_t i;

	json_array_foreach(json_object_get(doc, "processes"), i, p) buf_addf(
		out, "process    %lld %s: %s\n", (long long)json_integer_value(json_object_get(p, "process")),
		document_text(p, "state", state, sizeof(state)), document_text(p, "command", command, sizeof(command)));
}

static int print_session(const struct session_work *w, const json_t *doc, const json_t *processes)
{
	static const char *const names[] = { "id", "state", "token", "trust", "created", "ended", "verdict", "reason" };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX), contexts = BUF_INIT(KiB);
	bool has_color = ui_has_color(STDOUT_FILENO, w->v.no_color);
	char value[512];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!*document_text(doc, names[i], value, sizeof(value)))
			continue;
		buf_addf(&text, "%-11s", names[i]);
		ui_paint(&text, has_color, str_eq(names[i], "state") ? state_color(value) : UI_PLAIN, value);
		buf_adds(&text, "\n");
	}
	add_contexts(doc, &contexts);
	if (contexts.len > 0)
		buf_addf(&text, "%-11s%s\n", "contexts", buf_str(&contexts));
	add_processes(processes, &text);
	return ui_finish(&text, EXIT_SUCCESS);
}

/* Shows a session and what runs in it; nothing runs in one that has ended. */
static int show(struct session_work *w, struct brig_error *err)
{
	struct brig_error none = BRIG_ERROR_INIT;
	json_t *doc = NULL, *processes = NULL;
	struct service_ask ask;
	int status, rc;

	cli_session_ask_begin(&ask, ROUTE_session, w->id);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	if (rc < 0)
		return rc;
	cli_session_ask_begin(&ask, ROUTE_processes, w->id);
	(void)cli_session_ask(w, &ask, &processes, NULL, &none);
	if (w->v.json) {
		if (processes)
			(void)json_object_set(doc, "processes", json_object_get(processes, "processes"));
		status = cli_session_tell(w, doc, "%s", "");
	} else {
		status = print_session(w, doc, processes);
		json_decref(doc);
	}
	json_decref(processes);
	return status;
}

/* ---- operations on one session --------------------------------------------------------------- */

/* A request without further fields. */
static int ask_plainly(struct session_work *w, enum route route, const char *done, struct brig_error *err)
{
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, route, w->id);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	return rc < 0 ? rc : cli_session_tell(w, doc, "session %s %s\n", w->id, done);
}

static int stop(struct session_work *w, struct brig_error *err)
{
	return ask_plainly(w, ROUTE_session_delete, "ends", err);
}

static int pause_it(struct session_work *w, struct brig_error *err)
{
	return ask_plainly(w, ROUTE_session_pause, "is paused", err);
}

static int resume(struct session_work *w, struct brig_error *err)
{
	return ask_plainly(w, ROUTE_session_resume, "goes on", err);
}

static int set_timeout(struct session_work *w, struct brig_error *err)
{
	const char *time = w->ops.words.item[1];
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	cli_session_ask_begin(&ask, ROUTE_session_timeout, w->id);
	rc = cli_session_put_time(&ask, time, err);
	if (rc < 0) {
		service_ask_release(&ask);
		return rc;
	}
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	return rc < 0 ? rc : cli_session_tell(w, doc, "session %s lasts %s from now on\n", w->id, time);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct session_shape shape_none = { 0, 0, SESSION_NO_ID, false, "this takes no argument" };
static const struct session_shape shape_id = { 1, 1, 0, false, "name one session; 'brig session list' shows them" };
static const struct session_shape shape_time = { 2, 2, 0, false,
						 "name a session and a time: brig session timeout SESSION 10m" };

const struct command command_session_start = {
	.name = "session start",
	.synopsis = "[OPTIONS]",
	.summary = "begin a session, a cell that stays, and print its id",
	.examples = "  S=$(brig session start --timeout 30m --memory 512m)\n"
		    "  brig session run $S -c 'x = 20'\n"
		    "  brig session run $S -c 'x * 2 + 2'     # 42: the interpreter is still there\n"
		    "  brig session stop $S\n",
	.details = "Sessions are a service's: of 'brig serve' at $BRIG_HOST (unix:PATH), else at the usual place of\n"
		   "your own or root's.  SESSION of the other commands is the id, or its beginning.\n\n"
		   "Exit status: 0; 125 refused; 121 there is no service, or it failed.\n",
	SESSION_COMMAND(start_options, shape_none, start),
};

const struct command command_session_list = {
	.name = "session list",
	.synopsis = "[OPTIONS]",
	.summary = "list sessions",
	.examples = "  brig session list\n",
	SESSION_COMMAND(look_options, shape_none, list),
};

const struct command command_session_show = {
	.name = "session show",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "show one: its state, contexts and processes",
	.examples = "  brig session show k7xq\n",
	SESSION_COMMAND(look_options, shape_id, show),
};

const struct command command_session_fork = {
	.name = "session fork",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "begin a new one with a copy of its files, and print its id",
	.examples = "  T=$(brig session fork k7xq)\n",
	SESSION_COMMAND(fork_options, shape_id, fork_it),
};

const struct command command_session_snapshot = {
	.name = "session snapshot",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "keep its files for sessions to come, and print the snapshot's id",
	.examples = "  brig session start --snapshot $(brig session snapshot k7xq)\n",
	SESSION_COMMAND(snapshot_options, shape_id, snapshot),
};

const struct command command_session_stop = {
	.name = "session stop",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "end one, and all that runs in it",
	.examples = "  brig session stop k7xq\n",
	SESSION_COMMAND(ask_options, shape_id, stop),
};

const struct command command_session_pause = {
	.name = "session pause",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "stop its processes until it is resumed",
	.examples = "  brig session pause k7xq\n",
	SESSION_COMMAND(ask_options, shape_id, pause_it),
};

const struct command command_session_resume = {
	.name = "session resume",
	.synopsis = "[OPTIONS] SESSION",
	.summary = "let its processes go on",
	.examples = "  brig session resume k7xq\n",
	SESSION_COMMAND(ask_options, shape_id, resume),
};

const struct command command_session_timeout = {
	.name = "session timeout",
	.synopsis = "[OPTIONS] SESSION TIME",
	.summary = "say how long it lasts from now on",
	.examples = "  brig session timeout k7xq 10m\n",
	SESSION_COMMAND(ask_options, shape_time, set_timeout),
};
