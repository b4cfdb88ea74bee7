/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig policy show`: every effective value and the layer that set it.  `brig policy check`: reports all errors at
 * once.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/document.h"
#include "cli/rows.h"

#include "base/str.h"

struct policy_values {
	const char *policy, *preset, *trust;
	bool json, no_color;
};

#define AT(member) offsetof(struct policy_values, member)

/* ---- show ------------------------------------------------------------------------------------- */

static const struct option_row show_options[] = {
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL,
	  "untrusted, unknown or trusted; without it the default" },
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	ROW_POLICY,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	ROW_NO_COLOR,
};

static void add_setting(struct ui_table *table, const json_t *row)
{
	char key[128], text[4096], layer[64], place[256];
	/* Built-in values are dimmed, so that the others stand out. */
	bool builtin = str_eq(document_text(row, "layer", layer, sizeof(layer)), "built-in");

	document_text(row, "place", place, sizeof(place));
	ui_table_add(table, document_text(row, "key", key, sizeof(key)), UI_PLAIN);
	ui_table_add(table, document_text(row, "text", text, sizeof(text)), builtin ? UI_PLAIN : UI_BOLD);
	ui_table_add(table, layer, builtin ? UI_DIM : UI_PLAIN);
	ui_table_add(table, str_eq(place, layer) ? "" : place, UI_PLAIN);
}

/* The user of a row, and the row as it is in the file. */
static void add_user(struct ui_table *table, const json_t *row)
{
	AUTO_BUF text = BUF_INIT(4 * KiB);
	char place[256], whom[128], name[80];
	bool is_group = json_object_get(row, "group");
	const json_t *value;
	const char *key;

	(void)snprintf(whom, sizeof(whom), "%s %s", is_group ? "group" : "user",
		       document_text(row, is_group ? "group" : "user", name, sizeof(name)));
	json_object_foreach((json_t *)(uintptr_t)row, key, value)
	{
		AUTO_FREE char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		if (!str_eq(key, "place") && !str_eq(key, "user") && !str_eq(key, "group") && shown)
			buf_addf(&text, "%s%s %s", text.len ? ", " : "", key,
				 json_is_string(value) ? json_string_value(value) : shown);
	}
	ui_table_add(table, whom, UI_PLAIN);
	ui_table_add(table, text.len ? buf_str(&text) : "max_trust unknown", UI_BOLD);
	ui_table_add(table, document_text(row, "place", place, sizeof(place)), UI_PLAIN);
}

static int show_policy(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "SETTING", "VALUE", "SET BY", "WHERE" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_setting };
	static const char *const user_titles[] = { "AT A SERVICE", "MAY", "WHERE" };
	static const struct document_table users = { user_titles, ARRAY_LEN(user_titles), add_user };
	const struct policy_values *v = values;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char trust[64], preset[128];

	buf_addf(&text, "trust %s, preset %s\n\n", document_text(doc, "trust", trust, sizeof(trust)),
		 document_text(doc, "preset", preset, sizeof(preset)));
	document_table(&table, json_object_get(doc, "settings"), /* empty_too= */ true, v->no_color, &text);
	if (json_array_size(json_object_get(doc, "users")) > 0) {
		buf_adds(&text, "\n");
		document_table(&users, json_object_get(doc, "users"), /* empty_too= */ false, v->no_color, &text);
	}
	return ui_finish(&text, status);
}

static int ask_policy(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	const struct policy_values *v = values;
	AUTO_TEXT settings = NULL;
	AUTO_TEXT users = NULL;
	int rc = brig_policy_json(b, v->trust, &settings, err);
	json_t *doc, *more;

	if (rc == 0)
		rc = brig_policy_users_json(b, &users, err);
	if (rc < 0)
		return rc;
	doc = document_read(settings);
	more = document_read(users);
	if (doc && more && json_object_update(doc, more) == 0)
		*ret = json_dumps(doc, JSON_INDENT(2));
	json_decref(doc);
	json_decref(more);
	return *ret ? 0 : err_nomem(err);
}

static int show_main(const struct command *self, int argc, char **argv)
{
	struct policy_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .policy_file = v.policy, .preset = v.preset },
			.ask = ask_policy,
			.show = show_policy,
			.values = &v,
			.json = v.json });
	options_release(self, &v, &ops);
	return status;
}

const struct command command_policy_show = {
	.name = "policy show",
	.synopsis = "[OPTIONS]",
	.summary = "show every setting in force and which layer set it",
	.examples = "  brig policy show --trust untrusted\n",
	.options = show_options,
	.n_options = ARRAY_LEN(show_options),
	.run = show_main,
};

/* ---- check ------------------------------------------------------------------------------------ */

static const struct option_row check_options[] = {
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of lines" },
};

/* One line for each error. */
static void add_complaints(const json_t *doc, const char *path, struct buf *out)
{
	char place[512], message[1024];
	const json_t *row;
	json_int_t dropped = json_integer_value(json_object_get(doc, "dropped"));
	size_t i;

	json_array_foreach(json_object_get(doc, "errors"), i, row)
		buf_addf(out, "%s: %s\n", document_text(row, "place", place, sizeof(place)),
			 document_text(row, "message", message, sizeof(message)));
	if (dropped > 0)
		buf_addf(out, "%s: %lld more\n", path, (long long)dropped);
}

static int check_lines(const char *path, const char *json, bool good)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	json_t *doc = document_read(json);

	if (!doc)
		return EXIT_FAILED;
	add_complaints(doc, path, &text);
	if (good)
		buf_addf(&text, "%s: ok\n", path);
	json_decref(doc);
	return ui_finish(&text, good ? EXIT_SUCCESS : EXIT_FAILURE);
}

int command_open_failed(const char *path, const struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	AUTO_TEXT json = NULL;
	json_t *doc;

	if (!path)
		path = getenv("BRIG_POLICY");
	if (err->code != BRIG_E_POLICY || !path || !*path || brig_policy_check(path, &json, NULL) != 1)
		return ui_fail(err);
	doc = document_read(json);
	if (!doc)
		return EXIT_FAILED;
	add_complaints(doc, path, &text);
	json_decref(doc);
	for (const char *line = buf_str(&text); *line; line += strcspn(line, "\n") + 1)
		ui_say("%.*s", (int)strcspn(line, "\n"), line);
	return EXIT_REFUSED;
}

static int check_file(const char *path, bool as_json)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_TEXT json = NULL;
	int rc = brig_policy_check(path, &json, &err);

	if (rc < 0)
		return ui_fail(&err);
	if (as_json)
		return document_print(json, rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	return check_lines(path, json, rc == 0);
}

static int check_main(const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status)) {
		if (ops.words.n == 1 && ops.rest.n == 0) {
			status = check_file(ops.words.item[0], v.json);
		} else {
			(void)err_set(&err, BRIG_E_USAGE, 0, "'brig policy check' takes one file");
			status = ui_usage(self->name, &err);
		}
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_policy_check = {
	.name = "policy check",
	.synopsis = "[OPTIONS] FILE",
	.summary = "check a policy file: every complaint as file:line:column",
	.examples = "  brig policy check sandbox.yaml\n",
	.details = "Exit status: 0 if the file is good, 1 if it is not.\n",
	.options = check_options,
	.n_options = ARRAY_LEN(check_options),
	.run = check_main,
};
