/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_history.c - `brig history`: what was run, the youngest first. */
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
#define NOTE_SHOWN    60 /* columns of a reason in the table; `brig show` has all of it */

struct history_values {
	const char *verdict, *since, *until, *lang, *trust, *limit, *policy, *state;
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

/* What the program was called, or why it did not end well. */
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

static int history_table(const char *json, bool no_color)
{
	static const char *const titles[] = { "ID", "TIME", "VERDICT", "LANGUAGE", "TRUST", "WALL", "MEMORY", "NOTE" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	json_t *doc = document_read(json);
	const json_t *rows = json_object_get(doc, "executions"), *row;
	json_int_t total = json_integer_value(json_object_get(doc, "total"));
	size_t i, n = json_array_size(rows);

	if (!doc)
		return EXIT_FAILED;
	for (i = 0; n > 0 && i < ARRAY_LEN(titles); i++)
		ui_table_add(&table, titles[i], UI_BOLD);
	json_array_foreach(rows, i, row) add_execution(&table, row);
	ui_table_show(&table, ui_has_color(STDOUT_FILENO, no_color), &text);
	ui_table_release(&table);
	history_say_warnings(doc);
	json_decref(doc);
	if (n == 0)
		ui_say("no such executions are recorded");
	i = (size_t)ui_finish(&text, EXIT_SUCCESS);
	if ((json_int_t)n < total)
		ui_say("these are %zu of %lld; --limit shows more", n, (long long)total);
	return (int)i;
}

static int show_history(const struct command *self, const struct history_values *v)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy, .state_dir = v->state };
	struct brig_history what = BRIG_HISTORY_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	uint64_t limit = LIMIT_DEFAULT;
	int rc;

	if (v->limit && (!str_to_u64(v->limit, &limit) || limit > UINT32_MAX)) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "--limit takes a number, not '%.40s'", v->limit);
		return ui_usage(self->name, &err);
	}
	what.verdict = v->verdict;
	what.language = v->lang;
	what.trust = v->trust;
	what.since = v->since;
	what.until = v->until;
	what.limit = (uint32_t)limit;
	rc = brig_open(&opts, &b, &err);
	if (rc < 0)
		return command_open_failed(v->policy, &err);
	rc = brig_history_json(b, &what, &json, &err);
	brig_close(b);
	if (rc < 0)
		return ui_fail(&err);
	return v->json ? document_print(json, EXIT_SUCCESS) : history_table(json, v->no_color);
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
