/* SPDX-License-Identifier: Apache-2.0 */
/* `brig cache list`, `brig cache prune`, `brig cache verify`: cached compiled programs and packages. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

enum cache_what { CACHE_LIST, CACHE_PRUNE, CACHE_VERIFY };

struct cache_values {
	const char *state, *policy;
	bool all, json, no_color;
	enum cache_what what; /* determined by the command, not an option */
};

#define AT(member) offsetof(struct cache_values, member)

static const struct option_row list_options[] = { ROW_STATE, ROW_POLICY, ROW_JSON, ROW_NO_COLOR };
static const struct option_row prune_options[] = {
	{ "all", 'a', OPTION_FLAG, NULL, AT(all), NULL,
	  "remove everything but what environments have, not only what is too old or too much" },
	ROW_STATE,
	ROW_POLICY,
	ROW_JSON,
};
static const struct option_row verify_options[] = { ROW_STATE, ROW_POLICY, ROW_JSON };

/* ---- text ------------------------------------------------------------------------------------- */

static uint64_t number(const json_t *doc, const char *name)
{
	json_int_t v = json_integer_value(json_object_get(doc, name));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *age_text(char *dst, size_t size, uint64_t ms)
{
	uint64_t minutes = ms / 60000;

	if (minutes < 60)
		(void)snprintf(dst, size, "%llu min", (unsigned long long)minutes);
	else if (minutes < 48 * 60)
		(void)snprintf(dst, size, "%llu h", (unsigned long long)(minutes / 60));
	else
		(void)snprintf(dst, size, "%llu days", (unsigned long long)(minutes / (24 * 60)));
	return dst;
}

static void add_entry(struct ui_table *table, const json_t *row)
{
	char text[128], local[64];
	uint64_t used_ns = 0;

	(void)document_text(row, "key", text, sizeof(text));
	text[12] = '\0'; /* sufficient to distinguish them */
	ui_table_add(table, text, UI_BOLD);
	(void)document_text(row, "kind", text, sizeof(text));
	if (document_true(row, "pinned"))
		(void)strncat(text, ", pinned", sizeof(text) - strlen(text) - 1);
	ui_table_add(table, text, UI_PLAIN);
	ui_table_add(table, str_bytes(text, sizeof(text), number(row, "bytes")), UI_PLAIN);
	ui_table_add(table, age_text(text, sizeof(text), number(row, "age_ms")), UI_PLAIN);
	ui_table_add(table, document_text(row, "hits", text, sizeof(text)), UI_PLAIN);
	(void)document_text(row, "used", text, sizeof(text));
	ui_table_add(table, when_parse(text, 0, &used_ns) ? when_local(local, sizeof(local), used_ns) : text, UI_DIM);
}

static int list_text(const json_t *doc, bool no_color)
{
	static const char *const titles[] = { "ENTRY", "KIND", "SIZE", "AGE", "HITS", "LAST USED" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_entry };
	const json_t *rows = json_object_get(doc, "entries"), *packages = json_object_get(doc, "packages");
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char used[32], ceiling[32];
	size_t n = json_array_size(rows);

	document_table(&table, rows, /* empty_too= */ false, no_color, &text);
	buf_addf(&text, "%s%zu %s, %s of %s", n > 0 ? "\n" : "", n, n == 1 ? "entry" : "entries",
		 str_bytes(used, sizeof(used), number(doc, "bytes")),
		 str_bytes(ceiling, sizeof(ceiling), number(doc, "max_bytes")));
	if (number(packages, "bytes"))
		buf_addf(&text, "; packages %s of %s", str_bytes(used, sizeof(used), number(packages, "bytes")),
			 str_bytes(ceiling, sizeof(ceiling), number(packages, "max_bytes")));
	buf_adds(&text, "\n");
	return ui_finish(&text, EXIT_SUCCESS);
}

static void add_care(struct buf *text, const json_t *doc)
{
	char gone[32], left[32];

	buf_addf(text, "%llu removed (%s), %llu left (%s)\n", (unsigned long long)number(doc, "removed"),
		 str_bytes(gone, sizeof(gone), number(doc, "removed_bytes")),
		 (unsigned long long)number(doc, "entries"), str_bytes(left, sizeof(left), number(doc, "bytes")));
}

static int prune_text(const json_t *doc)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	add_care(&text, doc);
	return ui_finish(&text, EXIT_SUCCESS);
}

static int verify_text(const json_t *doc, int status)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	const json_t *row;
	char why[512];
	size_t i;

	json_array_foreach(json_object_get(doc, "bad"), i, row)
		buf_addf(&text, "damaged: %s\n", document_text(row, "why", why, sizeof(why)));
	if (number(doc, "stray"))
		buf_addf(&text, "%llu files that belong to no entry were removed\n",
			 (unsigned long long)number(doc, "stray"));
	if (status == EXIT_SUCCESS)
		buf_addf(&text, "%llu %s, each what was kept\n", (unsigned long long)number(doc, "entries"),
			 number(doc, "entries") == 1 ? "entry" : "entries");
	else
		buf_addf(&text, "%llu left; what was dropped is made again when it is needed\n",
			 (unsigned long long)number(doc, "entries"));
	return ui_finish(&text, status);
}

/* ---- commands --------------------------------------------------------------------------------- */

static int show(const json_t *doc, const void *values, int status)
{
	const struct cache_values *v = values;

	if (v->what == CACHE_LIST)
		return list_text(doc, v->no_color);
	return v->what == CACHE_PRUNE ? prune_text(doc) : verify_text(doc, status);
}

static int ask(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	const struct cache_values *v = values;
	int rc;

	if (v->what == CACHE_LIST)
		rc = brig_cache_list_json(b, ret, err);
	else if (v->what == CACHE_PRUNE)
		rc = brig_cache_prune_json(b, v->all ? BRIG_PRUNE_ALL : 0, ret, err);
	else
		rc = brig_cache_verify_json(b, ret, err);
	return rc > 0 ? EXIT_FAILURE : rc;
}

static int cache_main(const struct command *self, int argc, char **argv, enum cache_what what)
{
	struct cache_values v = { .what = what };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){ .opts = { .size = sizeof(struct brig_open_opts),
									  .policy_file = v.policy,
									  .state_dir = v.state },
								.ask = ask,
								.show = show,
								.values = &v,
								.json = v.json });
	options_release(self, &v, &ops);
	return status;
}

static int list_main(const struct command *self, int argc, char **argv)
{
	return cache_main(self, argc, argv, CACHE_LIST);
}

static int prune_main(const struct command *self, int argc, char **argv)
{
	return cache_main(self, argc, argv, CACHE_PRUNE);
}

static int verify_main(const struct command *self, int argc, char **argv)
{
	return cache_main(self, argc, argv, CACHE_VERIFY);
}

const struct command command_cache_list = {
	.name = "cache list",
	.synopsis = "[OPTIONS]",
	.summary = "list the compiled programs and packages that are kept",
	.examples = "  brig cache list\n",
	.options = list_options,
	.n_options = ARRAY_LEN(list_options),
	.run = list_main,
};

const struct command command_cache_prune = {
	.name = "cache prune",
	.synopsis = "[OPTIONS]",
	.summary = "remove compiled programs and packages that are too old or too many",
	.examples = "  brig cache prune\n",
	.options = prune_options,
	.n_options = ARRAY_LEN(prune_options),
	.run = prune_main,
};

const struct command command_cache_verify = {
	.name = "cache verify",
	.synopsis = "[OPTIONS]",
	.summary = "check that compiled programs and packages are what was kept; drop the others",
	.examples = "  brig cache verify\n",
	.details = "Exit status: 0 if all were, 1 if some were not.\n",
	.options = verify_options,
	.n_options = ARRAY_LEN(verify_options),
	.run = verify_main,
};
