/* SPDX-License-Identifier: Apache-2.0 */
/* `brig workspace list|show|diff|apply|discard`: changes that runs made in their workspaces. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/pick.h"
#include "cli/rows.h"

struct workspace_values {
	const char *state, *policy;
	bool json, no_color, all, git;
};

#define AT(member) offsetof(struct workspace_values, member)

static const struct option_row table_options[] = {
	ROW_STATE,
	ROW_POLICY,
	ROW_JSON,
	ROW_NO_COLOR,
};
static const struct option_row apply_options[] = {
	{ "git", 0, OPTION_FLAG, NULL, AT(git), NULL,
	  "also commits, branches and tags that the run made in .git; never hooks or configuration" },
	ROW_STATE,
	ROW_POLICY,
};
static const struct option_row discard_options[] = {
	{ "all", 0, OPTION_FLAG, NULL, AT(all), NULL, "forget the changes of every run" },
	ROW_STATE,
	ROW_POLICY,
};
static const struct option_row diff_options[] = {
	ROW_STATE,
	ROW_POLICY,
	ROW_NO_COLOR,
};

static uint64_t number(const json_t *doc, const char *name)
{
	json_int_t v = json_integer_value(json_object_get(doc, name));

	return v > 0 ? (uint64_t)v : 0;
}

/* ---- list and show ----------------------------------------------------------------------------- */

static void add_counts(struct ui_table *table, const json_t *row)
{
	char text[96], size[32];

	(void)snprintf(text, sizeof(text), "+%llu ~%llu -%llu", (unsigned long long)number(row, "added"),
		       (unsigned long long)number(row, "modified"), (unsigned long long)number(row, "deleted"));
	ui_table_add(table, text, UI_PLAIN);
	ui_table_add(table, str_bytes(size, sizeof(size), number(row, "bytes")), UI_PLAIN);
}

static void add_changeset(struct ui_table *table, const json_t *row)
{
	char text[4096], local[64];
	uint64_t ns = 0;

	ui_table_add(table, document_text(row, "id", text, sizeof(text)), UI_BOLD);
	(void)document_text(row, "created", text, sizeof(text));
	ui_table_add(table, when_parse(text, 0, &ns) ? when_local(local, sizeof(local), ns) : text, UI_DIM);
	add_counts(table, row);
	ui_table_add(table, document_text(row, "project", text, sizeof(text)), UI_PLAIN);
}

static int list_text(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "RUN", "WHEN", "CHANGES", "SIZE", "PROJECT" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_changeset };
	const struct workspace_values *v = values;
	const json_t *rows = json_object_get(doc, "workspaces");
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	document_table(&table, rows, /* empty_too= */ false, v->no_color, &text);
	if (json_array_size(rows) == 0)
		buf_adds(&text, "no changes wait to be applied\n");
	return ui_finish(&text, status);
}

static const struct {
	const char *change, *sign;
	enum ui_color color;
} signs[] = { { "added", "+", UI_GREEN }, { "modified", "~", UI_YELLOW }, { "deleted", "-", UI_RED } };

/* "0644", or "0644 > 0755" if the run changed it; "" for entries without permissions of their own. */
static const char *mode_text(const json_t *row, char dst[32])
{
	const json_t *mode = json_object_get(row, "mode"), *before = json_object_get(row, "mode_before");
	char type[32];

	(void)document_text(row, "type", type, sizeof(type));
	*dst = '\0';
	if (!str_eq(type, "file") && !str_eq(type, "directory"))
		return dst;
	if (json_is_integer(before) && json_integer_value(before) != json_integer_value(mode))
		(void)snprintf(dst, 32, "%04o > %04o", (unsigned)json_integer_value(before) & 0777,
			       (unsigned)json_integer_value(mode) & 0777);
	else
		(void)snprintf(dst, 32, "%04o", (unsigned)json_integer_value(mode) & 0777);
	return dst;
}

static void add_change(struct ui_table *table, const json_t *row)
{
	char text[8192], word[32];

	(void)document_text(row, "change", word, sizeof(word));
	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (str_eq(signs[i].change, word))
			ui_table_add(table, signs[i].sign, signs[i].color);
	ui_table_add(table, document_text(row, "type", word, sizeof(word)), UI_DIM);
	ui_table_add(table, mode_text(row, word), UI_DIM);
	ui_table_add(table, str_bytes(word, sizeof(word), number(row, "size")), UI_PLAIN);
	ui_table_add(table, document_text(row, "path", text, sizeof(text)), UI_PLAIN);
	(void)document_text(row, "not_applied", text, sizeof(text));
	ui_table_add(table, text, UI_YELLOW);
}

static int show_text(const json_t *doc, const void *values, int status)
{
	const struct workspace_values *v = values;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	struct ui_table table = { .n_columns = 6 };
	char line[4096];
	const json_t *row;
	size_t i;

	buf_addf(&text, "project  %s\n", document_text(doc, "project", line, sizeof(line)));
	buf_addf(&text, "made     %s\n\n", document_text(doc, "created", line, sizeof(line)));
	json_array_foreach(json_object_get(doc, "changes"), i, row) add_change(&table, row);
	ui_table_show(&table, ui_has_color(STDOUT_FILENO, v->no_color), &text);
	ui_table_release(&table);
	return ui_finish(&text, status);
}

static int show_document(const struct workspace_values *v, const char *json,
			 int (*show)(const json_t *doc, const void *values, int status))
{
	return document_show(&(struct document_view){ .show = show, .values = v, .json = v->json }, json, EXIT_SUCCESS);
}

/* ---- diff -------------------------------------------------------------------------------------- */

static enum ui_color line_color(const char *line)
{
	if (strncmp(line, "diff ", 5) == 0 || strncmp(line, "--- ", 4) == 0 || strncmp(line, "+++ ", 4) == 0)
		return UI_BOLD;
	switch (*line) {
	case '+':
		return UI_GREEN;
	case '-':
		return UI_RED;
	case '@':
		return UI_DIM;
	case '#':
		return UI_YELLOW;
	default:
		return UI_PLAIN;
	}
}

/* On a terminal made safe and coloured; otherwise unchanged, for patch and git apply. */
static int show_diff(const struct workspace_values *v, const char *diff)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX), safe = BUF_INIT(UI_TEXT_MAX), out = BUF_INIT(UI_TEXT_MAX);
	bool has_color = ui_has_color(STDOUT_FILENO, v->no_color);

	buf_adds(&text, diff);
	if (!isatty(STDOUT_FILENO))
		return ui_written(ui_put_bytes(STDOUT_FILENO, &text, false), EXIT_SUCCESS);
	ui_lines(diff, strlen(diff), &safe);
	for (char *line = safe.data; line && *line;) {
		char *end = strchrnul(line, '\n');
		bool more = *end == '\n';

		*end = '\0';
		ui_paint(&out, has_color, line_color(line), line);
		buf_adds(&out, "\n");
		line = end + more;
	}
	return ui_finish(&out, EXIT_SUCCESS);
}

/* ---- commands ---------------------------------------------------------------------------------- */

/* A run with changes that the command applies to. */
struct chosen {
	const char *id, *project;
	uint64_t changes;
	bool git; /* the changes include .git */
};

static int do_list(struct brig *b, const struct workspace_values *v, const struct chosen *c UNUSED,
		   struct brig_error *err)
{
	AUTO_TEXT json = NULL;

	return brig_workspace_list_json(b, &json, err) < 0 ? -1 : show_document(v, json, list_text);
}

static int do_show(struct brig *b, const struct workspace_values *v, const struct chosen *c, struct brig_error *err)
{
	AUTO_TEXT json = NULL;

	return brig_workspace_show_json(b, c->id, &json, err) < 0 ? -1 : show_document(v, json, show_text);
}

static int do_diff(struct brig *b, const struct workspace_values *v, const struct chosen *c, struct brig_error *err)
{
	AUTO_TEXT diff = NULL;

	return brig_workspace_diff(b, c->id, &diff, err) < 0 ? -1 : show_diff(v, diff);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "change" : "changes";
}

static int do_apply(struct brig *b, const struct workspace_values *v, const struct chosen *c, struct brig_error *err)
{
	AUTO_BUF said = BUF_INIT(UI_TEXT_MAX);
	AUTO_TEXT skipped = NULL;
	uint64_t n = c->changes;

	if (brig_workspace_apply_with(b, c->id, v->git ? BRIG_APPLY_GIT : 0, &skipped, err) < 0)
		return -1;
	for (const char *line = skipped; *line; line += strcspn(line, "\n") + 1) {
		ui_say("not applied: %.*s", (int)strcspn(line, "\n"), line);
		n -= n > 0;
	}
	if (c->git && !v->git)
		ui_say("not applied: commits, branches or tags of .git; they come with --git only");
	buf_addf(&said, "applied %llu %s%s of run %s to ", (unsigned long long)n, plural(n),
		 c->git && v->git ? " and what .git has of new commits, branches and tags" : "", c->id);
	ui_line(c->project, &said);
	buf_adds(&said, "\n");
	return ui_finish(&said, EXIT_SUCCESS);
}

static int do_discard(struct brig *b, const struct workspace_values *v UNUSED, const struct chosen *c,
		      struct brig_error *err)
{
	AUTO_BUF said = BUF_INIT(UI_TEXT_MAX);

	if (brig_workspace_discard(b, c->id, err) < 0)
		return -1;
	buf_addf(&said, "discarded %llu %s of run %s\n", (unsigned long long)c->changes, plural(c->changes), c->id);
	return ui_finish(&said, EXIT_SUCCESS);
}

static const struct {
	const struct command *command;
	bool takes_id;
	/* Returns the exit status, or negative with *err. */
	int (*act)(struct brig *b, const struct workspace_values *v, const struct chosen *c, struct brig_error *err);
} actions[] = {
	{ &command_workspace_list, false, do_list },      { &command_workspace_show, true, do_show },
	{ &command_workspace_diff, true, do_diff },       { &command_workspace_apply, true, do_apply },
	{ &command_workspace_discard, true, do_discard },
};

static int act_on(struct brig *b, size_t i, const struct workspace_values *v, const json_t *row, struct brig_error *err)
{
	const struct chosen c = { .id = json_string_value(json_object_get(row, "id")),
				  .project = json_string_value(json_object_get(row, "project")),
				  .changes = number(row, "added") + number(row, "modified") + number(row, "deleted"),
				  .git = json_is_true(json_object_get(row, "git")) };

	return actions[i].act(b, v, &c, err);
}

/* For all runs in the list; returns the exit status, or negative with *err. */
static int act_on_all(struct brig *b, size_t i, const struct workspace_values *v, const json_t *rows,
		      struct brig_error *err)
{
	int status = EXIT_SUCCESS;
	const json_t *row;
	size_t k;

	json_array_foreach(rows, k, row) if (status == EXIT_SUCCESS) status = act_on(b, i, v, row, err);
	return status;
}

/* word: an id, the beginning of one, or "latest"; NULL: all of them. */
static int act_on_word(struct brig *b, size_t i, const struct workspace_values *v, const char *word,
		       struct brig_error *err)
{
	AUTO_TEXT json = NULL;
	const json_t *rows, *row;
	json_t *doc;
	int status;

	if (brig_workspace_list_json(b, &json, err) < 0)
		return -1;
	doc = document_read(json);
	if (!doc)
		return EXIT_FAILED;
	rows = json_object_get(doc, "workspaces");
	if (!word) {
		status = act_on_all(b, i, v, rows, err);
	} else {
		/* The list is sorted, newest first. */
		bool latest = str_eq(word, "latest") && json_array_size(rows) > 0;

		row = latest ? json_array_get(rows, 0)
			     : pick_row(rows, word, "run with changes that wait", "brig workspace list", err);
		/* If it is not listed, the library reports why it cannot be read. */
		status = row                  ? act_on(b, i, v, row, err)
			 : err->sys == ENOENT ? actions[i].act(b, v, &(struct chosen){ word, "", 0, false }, err)
					      : -1;
	}
	json_decref(doc);
	return status;
}

static int act(size_t i, const struct workspace_values *v, const char *word)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy, .state_dir = v->state };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	int status;

	if (brig_open(&opts, &b, &err) < 0)
		return command_open_failed(v->policy, &err);
	status = actions[i].takes_id ? act_on_word(b, i, v, word, &err) : actions[i].act(b, v, NULL, &err);
	brig_close(b);
	return status < 0 ? ui_fail(&err) : status;
}

static int check_operands(const struct command *self, bool takes_id, bool all, const struct operands *ops)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!takes_id || all)
		return command_no_operands(self, ops) ? 0 : EXIT_USAGE;
	if (ops->words.n == 1 && ops->rest.n == 0)
		return 0;
	(void)err_set(&err, BRIG_E_USAGE, 0,
		      "give the id of one run, the beginning of it, or 'latest'; 'brig workspace list' shows them");
	return ui_usage(self->name, &err);
}

static int workspace_main(const struct command *self, int argc, char **argv)
{
	struct workspace_values v = { 0 };
	struct operands ops = { 0 };
	size_t i = 0;
	int status;

	while (actions[i].command != self)
		i++;
	if (command_begin(self, argc, argv, &v, &ops, &status)) {
		status = check_operands(self, actions[i].takes_id, v.all, &ops);
		if (status == 0)
			status = act(i, &v, ops.words.n ? ops.words.item[0] : NULL);
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_workspace_list = {
	.name = "workspace list",
	.synopsis = "[OPTIONS]",
	.summary = "list runs whose changes wait to be applied",
	.examples = "  brig workspace list\n",
	.options = table_options,
	.n_options = ARRAY_LEN(table_options),
	.run = workspace_main,
};

const struct command command_workspace_show = {
	.name = "workspace show",
	.synopsis = "[OPTIONS] RUN",
	.summary = "list what a run changed in its workspace",
	.examples = "  brig workspace show latest\n",
	.options = table_options,
	.n_options = ARRAY_LEN(table_options),
	.run = workspace_main,
};

const struct command command_workspace_diff = {
	.name = "workspace diff",
	.synopsis = "[OPTIONS] RUN",
	.summary = "show these changes, line by line, against the project as it is now",
	.examples = "  brig workspace diff latest\n"
		    "  brig workspace diff rmyx     # the beginning of an id is enough\n",
	.options = diff_options,
	.n_options = ARRAY_LEN(diff_options),
	.run = workspace_main,
};

const struct command command_workspace_apply = {
	.name = "workspace apply",
	.synopsis = "[OPTIONS] RUN",
	.summary = "move these changes over to the project: all or, if it has moved on, none",
	.examples = "  brig workspace apply latest\n"
		    "  brig workspace apply --git latest     # with the commits that it made\n",
	.options = apply_options,
	.n_options = ARRAY_LEN(apply_options),
	.run = workspace_main,
};

const struct command command_workspace_discard = {
	.name = "workspace discard",
	.synopsis = "[OPTIONS] RUN | --all",
	.summary = "forget these changes, or with --all those of every run",
	.examples = "  brig workspace discard latest\n"
		    "  brig workspace discard --all\n",
	.options = discard_options,
	.n_options = ARRAY_LEN(discard_options),
	.run = workspace_main,
};
