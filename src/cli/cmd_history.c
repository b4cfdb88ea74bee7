/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_history.c - `brig history`: lists executions, newest first. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/history_text.h"
#include "cli/report.h"
#include "cli/rows.h"

#define LIMIT_DEFAULT 20
#define NOTE_SHOWN    60 /* columns of a reason in the table; `brig show` prints all of it */

struct history_values {
	const char *verdict, *since, *until, *lang, *trust, *door, *limit, *policy, *state;
	bool json, no_color;
};

#define AT(member) offsetof(struct history_values, member)
static const struct option_row history_options[] = {
	{ "verdict", 'v', OPTION_TEXT, "VERDICT", AT(verdict), NULL,
	  "only executions that ended so: ok, timeout, blocked ..." },
	{ "since", 0, OPTION_TEXT, "TIME", AT(since), NULL,
	  "only these and younger ones: 2h, 7d, 2026-11-16, 2026-11-16T08:30" },
	{ "until", 0, OPTION_TEXT, "TIME", AT(until), NULL, "only older ones" },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", AT(lang), NULL, "only programs in this language" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL, "only at this trust level" },
	{ "door", 0, OPTION_TEXT, "DOOR", AT(door), NULL,
	  "only what came through this door of the service; none: what came through none" },
	{ "limit", 'n', OPTION_TEXT, "COUNT", AT(limit), NULL, "so many at most (20; 0: all)" },
	{ "state", 0, OPTION_TEXT, "DIR", AT(state), NULL,
	  "folder of the history; without it $BRIG_STATE, then the usual place" },
	ROW_POLICY,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	ROW_NO_COLOR,
};

static void add_number(struct ui_table *table, const json_t *row, const char *name,
		       const char *(*text)(char *dst, size_t size, uint64_t v))
{
	const json_t *value = json_object_get(row, name);
	char dst[32];

	ui_table_add(table, json_is_integer(value) ? text(dst, sizeof(dst), (uint64_t)json_integer_value(value)) : "-",
		     UI_PLAIN);
}

/* The program's name, or why it did not end well. */
static void add_note(struct ui_table *table, const json_t *row, const char *verdict)
{
	char text[1024];

	if (str_eq(verdict, "ok") || str_eq(verdict, "error"))
		(void)document_text(row, "file_name", text, sizeof(text));
	else
		(void)document_text(row, "reason", text, sizeof(text));
	if (strlen(text) > NOTE_SHOWN) {
		size_t keep = str_utf8_prefix(text, NOTE_SHOWN - 3);

		(void)str_copy(text + keep, 4, "...");
	}
	ui_table_add(table, text, UI_DIM);
}

static void add_execution(struct ui_table *table, const json_t *row)
{
	char id[64], time[64], local[64], verdict[32], language[32], trust[32];
	uint64_t at_ns = 0;

	(void)document_text(row, "time", time, sizeof(time));
	(void)document_text(row, "verdict", verdict, sizeof(verdict));
	ui_table_add(table, document_text(row, "id", id, sizeof(id)), UI_BOLD);
	ui_table_add(table, when_parse(time, 0, &at_ns) ? when_local(local, sizeof(local), at_ns) : time, UI_PLAIN);
	ui_table_add(table, verdict, report_verdict_color(verdict));
	ui_table_add(table, document_text(row, "language", language, sizeof(language)), UI_PLAIN);
	ui_table_add(table, document_text(row, "trust", trust, sizeof(trust)), UI_PLAIN);
	add_number(table, row, "wall_ms", ui_millis);
	add_number(table, row, "memory_peak_bytes", str_bytes);
	add_note(table, row, verdict);
}

void history_say_warnings(const json_t *doc)
{
	const json_t *text;
	size_t i;

	json_array_foreach(json_object_get(doc, "history_warnings"), i, text)
		ui_say("warning: %s", json_string_value(text));
}

struct history_question {
	struct brig_history what;
	bool no_color;
};

static int history_table(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "ID", "TIME", "VERDICT", "LANGUAGE", "TRUST", "WALL", "MEMORY", "NOTE" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_execution };
	const struct history_question *q = values;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	const json_t *rows = json_object_get(doc, "executions");
	json_int_t total = json_integer_value(json_object_get(doc, "total"));
	size_t n = json_array_size(rows);

	document_table(&table, rows, /* empty_too= */ false, q->no_color, &text);
	history_say_warnings(doc);
	if (n == 0)
		ui_say("no such executions are recorded");
	status = ui_finish(&text, status);
	if ((json_int_t)n < total)
		ui_say("these are %zu of %lld; --limit shows more", n, (long long)total);
	return status;
}

static int ask_history(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	const struct history_question *q = values;

	return brig_history_json(b, &q->what, ret, err);
}

static int show_history(const struct command *self, const struct history_values *v)
{
	struct history_question q = { .what = BRIG_HISTORY_INIT, .no_color = v->no_color };
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t limit = LIMIT_DEFAULT;

	if (v->limit && (!str_to_u64(v->limit, &limit) || limit > UINT32_MAX)) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "--limit takes a number, not '%.40s'", v->limit);
		return ui_usage(self->name, &err);
	}
	q.what.verdict = v->verdict;
	q.what.language = v->lang;
	q.what.trust = v->trust;
	q.what.since = v->since;
	q.what.until = v->until;
	q.what.door = v->door;
	q.what.limit = (uint32_t)limit;
	return document_view(&(struct document_view){
		.opts = { .size = sizeof(struct brig_open_opts), .policy_file = v->policy, .state_dir = v->state },
		.ask = ask_history,
		.show = history_table,
		.values = &q,
		.json = v->json });
}

static int history_main(const struct command *self, int argc, char **argv)
{
	struct history_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = show_history(self, &v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_history = {
	.name = "history",
	.synopsis = "[OPTIONS]",
	.summary = "list what was run",
	.examples = "  brig history --limit 5\n",
	.details = "'brig show ID' tells everything about one of them.\n",
	.options = history_options,
	.n_options = ARRAY_LEN(history_options),
	.run = history_main,
};
