/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rules.c - `brig rules` lists the rules of the inspection, `brig explain` shows one with its examples. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

#define NAMES_SHOWN 60 /* columns for names in the table; `brig explain` shows them all */

struct rules_values {
	const char *lang, *rules, *policy;
	bool json, no_color;
};

#define AT(member) offsetof(struct rules_values, member)
static const struct option_row rules_options[] = {
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", AT(lang), NULL,
	  "only rules for this one: python, javascript, typescript, go, shell or path" },
	{ "rules", 'r', OPTION_TEXT, "FILE", AT(rules), NULL, "rules of your own, over the built-in ones" },
	ROW_POLICY,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	ROW_NO_COLOR,
};

static enum ui_color severity_color(const char *severity)
{
	return str_eq(severity, "CRITICAL") ? UI_RED : str_eq(severity, "HIGH") ? UI_YELLOW : UI_PLAIN;
}

static bool has_word(const json_t *array, const char *word)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item) if (str_eq(json_string_value(item), word)) return true;
	return false;
}

/* The document of rules, or NULL with *ret_status set. */
static json_t *load_rules(const struct rules_values *v, int *ret_status)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy, .rules_file = v->rules };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc = brig_open(&opts, &b, &err);
	json_t *doc;

	if (rc < 0) {
		*ret_status = command_open_failed(v->policy, &err);
		return NULL;
	}
	rc = brig_rules_json(b, &json, &err);
	brig_close(b);
	if (rc < 0) {
		*ret_status = ui_fail(&err);
		return NULL;
	}
	*ret_status = EXIT_FAILED;
	doc = document_read(json);
	return doc;
}

/* ---- the list ------------------------------------------------------------------------------------ */

static void keep_language(json_t *doc, const char *lang)
{
	json_t *rules = json_object_get(doc, "rules");

	for (size_t i = json_array_size(rules); i-- > 0;)
		if (!has_word(json_object_get(json_array_get(rules, i), "languages"), lang))
			(void)json_array_remove(rules, i);
}

static const char *const levels[] = { "strict", "guard", "report" };

static void add_effect(struct ui_table *table, const json_t *rule, const char *kind, const char *level)
{
	char severity[32];
	const char *effect = document_text(json_object_get(rule, "severity"), level, severity, sizeof(severity));

	if (str_eq(kind, "member-allow") || str_eq(kind, "command-allow"))
		ui_table_add(table, "allowed", UI_GREEN);
	else
		ui_table_add(table, str_eq(effect, "NONE") ? "-" : effect, severity_color(effect));
}

static void add_rule(struct ui_table *table, const json_t *rule)
{
	char id[64], languages[128], kind[32], names[4096], message[512];

	ui_table_add(table, document_text(rule, "id", id, sizeof(id)), UI_BOLD);
	ui_table_add(table, document_text(rule, "languages", languages, sizeof(languages)), UI_PLAIN);
	(void)document_text(rule, "kind", kind, sizeof(kind));
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		add_effect(table, rule, kind, levels[i]);
	ui_table_add(table, document_text(rule, "message", message, sizeof(message)), UI_PLAIN);
	(void)document_text(rule, "names", names, sizeof(names));
	if (strlen(names) > NAMES_SHOWN)
		(void)str_copy(names + NAMES_SHOWN - 3, 4, "...");
	ui_table_add(table, names, UI_DIM);
}

static int show_table(const json_t *doc, bool no_color)
{
	static const char *const titles[] = { "RULE", "FOR", "STRICT", "GUARD", "REPORT", "WHY", "NAMES" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_rule };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	document_table(&table, json_object_get(doc, "rules"), /* empty_too= */ true, no_color, &text);
	return ui_finish(&text, EXIT_SUCCESS);
}

static int show_json(const json_t *doc)
{
	AUTO_FREE char *text = json_dumps(doc, JSON_COMPACT);

	return text ? document_print(text, EXIT_SUCCESS) : EXIT_FAILED;
}

static int list_rules(const struct rules_values *v)
{
	static const char *const languages[] = { "python", "javascript", "typescript", "go", "shell", "path" };
	bool known = !v->lang;
	int status;
	json_t *doc;

	for (size_t i = 0; v->lang && i < ARRAY_LEN(languages); i++)
		known |= str_eq(v->lang, languages[i]);
	if (!known) {
		ui_say("there are no rules for '%.40s'; there are some for python, javascript, typescript, go, shell "
		       "and path",
		       v->lang);
		return EXIT_USAGE;
	}
	doc = load_rules(v, &status);
	if (!doc)
		return status;
	if (v->lang)
		keep_language(doc, v->lang);
	status = v->json ? show_json(doc) : show_table(doc, v->no_color);
	json_decref(doc);
	return status;
}

static int rules_main(const struct command *self, int argc, char **argv)
{
	struct rules_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = list_rules(&v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_rules = {
	.name = "rules",
	.synopsis = "[OPTIONS]",
	.summary = "list the rules of the inspection",
	.examples = "  brig rules\n",
	.options = rules_options,
	.n_options = ARRAY_LEN(rules_options),
	.run = rules_main,
};

/* ---- one rule ------------------------------------------------------------------------------------ */

static void add_line(struct buf *out, const char *label, const char *text)
{
	if (*text)
		buf_addf(out, "  %-10s%s\n", label, text);
}

static void add_member(struct buf *out, const json_t *rule, const char *label, const char *name)
{
	char text[16384];

	add_line(out, label, document_text(rule, name, text, sizeof(text)));
}

static void add_severity(struct buf *out, const json_t *rule)
{
	const json_t *severity = json_object_get(rule, "severity");
	AUTO_BUF text = BUF_INIT(256);
	char word[32];

	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		(void)document_text(severity, levels[i], word, sizeof(word));
		buf_addf(&text, "%s%s: %s", i > 0 ? ", " : "", levels[i], str_eq(word, "NONE") ? "nothing" : word);
	}
	add_line(out, "severity", buf_str(&text));
}

/* Each example on lines of its own, indented. */
static void add_examples(struct buf *out, const json_t *examples, const char *title)
{
	const json_t *example;
	size_t i;

	if (json_array_size(examples) > 0)
		buf_addf(out, "\n%s\n", title);
	json_array_foreach(examples, i, example)
	{
		const char *at = json_string_value(example);

		do {
			size_t len = strcspn(at, "\n");

			buf_addf(out, "  %.*s\n", (int)len, at);
			at += len + (at[len] == '\n');
		} while (*at);
		if (i + 1 < json_array_size(examples) && strchr(json_string_value(example), '\n'))
			buf_adds(out, "\n");
	}
}

static int show_rule(const json_t *rule)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char id[64], place[256], line[32];

	buf_addf(&text, "%s\n", document_text(rule, "id", id, sizeof(id)));
	add_member(&text, rule, "why", "message");
	add_member(&text, rule, "help", "remedy");
	add_member(&text, rule, "for", "languages");
	add_member(&text, rule, "kind", "kind");
	add_member(&text, rule, "names", "names");
	add_severity(&text, rule);
	(void)document_text(rule, "line", line, sizeof(line));
	(void)document_text(rule, "file", place, sizeof(place));
	buf_addf(&text, "  %-10s%s:%s\n", "from", place, line);
	add_examples(&text, json_object_get(rule, "match"), "A finding:");
	add_examples(&text, json_object_get(rule, "no_match"), "No finding of this rule:");
	return ui_finish(&text, EXIT_SUCCESS);
}

static int unknown_rule(const json_t *doc, const char *id)
{
	const json_t *rules = json_object_get(doc, "rules"), *rule;
	AUTO_FREE const char **names = calloc(json_array_size(rules) + 1, sizeof(*names));
	const char *near = NULL;
	size_t i;

	json_array_foreach(rules, i, rule) if (names) names[i] = json_string_value(json_object_get(rule, "id"));
	if (names)
		near = str_nearest(id, names, json_array_size(rules));
	ui_say("there is no rule '%.60s'%s%s%s; 'brig rules' lists them", id, near ? "; did you mean '" : "",
	       near ? near : "", near ? "'?" : "");
	return EXIT_USAGE;
}

static int explain(const struct rules_values *v, const char *id)
{
	const json_t *rule;
	int status;
	json_t *doc = load_rules(v, &status);
	size_t i;

	if (!doc)
		return status;
	status = -1;
	json_array_foreach(json_object_get(doc, "rules"), i,
			   rule) if (str_eq(json_string_value(json_object_get(rule, "id")), id)) status =
		v->json ? show_json(rule) : show_rule(rule);
	if (status < 0)
		status = unknown_rule(doc, id);
	json_decref(doc);
	return status;
}

static int explain_main(const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rules_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (!command_begin(self, argc, argv, &v, &ops, &status)) {
		/* reported by command_begin() */
	} else if (ops.words.n != 1 || ops.rest.n > 0) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "give one rule by its name; 'brig rules' lists them");
		status = ui_usage(self->name, &err);
	} else {
		status = explain(&v, ops.words.item[0]);
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_explain = {
	.name = "explain",
	.synopsis = "[OPTIONS] RULE",
	.summary = "show one rule of the inspection, with examples",
	.examples = "  brig explain py-os-process\n",
	.options = rules_options + 1, /* without --lang */
	.n_options = ARRAY_LEN(rules_options) - 1,
	.run = explain_main,
};
