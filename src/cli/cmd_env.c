/* SPDX-License-Identifier: Apache-2.0 */
/* `brig env create`, `list`, `show`, `remove`: named sets of packages. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/when.h"
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/rows.h"

struct env_values {
	const char *state, *policy, *preset, *trust;
	struct words python, node, go, warm;
	struct wishes wishes;
	bool json, quiet, no_color;
};

#define AT(member) offsetof(struct env_values, member)

static const struct option_row create_options[] = {
	{ "python", 0, OPTION_LIST, "LIST", AT(python), NULL,
	  "packages of Python: numpy,pandas==2.2.2; may be repeated" },
	{ "node", 0, OPTION_LIST, "LIST", AT(node), NULL, "packages of npm, for JavaScript and TypeScript" },
	{ "go", 0, OPTION_LIST, "LIST", AT(go), NULL, "modules of Go" },
	{ "warm", 0, OPTION_LIST, "LIST", AT(warm), NULL,
	  "modules that cells which are made beforehand load before a program asks for them; each is tried in a cell" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL,
	  "the highest trust that may use it: untrusted, unknown or trusted; at most max_trust of the policy" },
	{ "backend", 0, OPTION_WISH, "NAME", AT(wishes), "backend",
	  "what makes the cells that use it, as far as the policy leaves the choice" },
	{ "allow-degraded", 0, OPTION_WISH, "LIST", AT(wishes), "allow_degraded",
	  "protections that this host may lack; under a policy file only what that allows" },
	{ "set", 's', OPTION_WISH, "KEY=VALUE", AT(wishes), NULL, "any other setting; 'brig policy show' lists them" },
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	ROW_POLICY,
	ROW_STATE,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the whole result as JSON" },
	{ "quiet", 'q', OPTION_FLAG, NULL, AT(quiet), NULL, "no lines of our own on stderr, but why it was not made" },
};
static const struct option_row list_options[] = { ROW_STATE, ROW_POLICY, ROW_JSON, ROW_NO_COLOR };
static const struct option_row one_options[] = { ROW_STATE, ROW_POLICY, ROW_JSON };

/* Exactly one operand, the name. */
static bool take_name(const struct command *self, const struct operands *ops, struct brig_error *err)
{
	size_t n = ops->words.n + ops->rest.n;

	if (n == 1 && ops->words.n == 1)
		return true;
	(void)err_set(err, BRIG_E_USAGE, 0, "'brig %s' takes the name of one environment", self->name);
	return false;
}

static int open_brig(const struct env_values *v, struct brig **ret, int *status)
{
	const struct brig_open_opts opts = {
		.size = sizeof(opts), .policy_file = v->policy, .preset = v->preset, .state_dir = v->state
	};
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = brig_open(&opts, ret, &err);

	if (rc < 0)
		*status = command_open_failed(v->policy, &err);
	return rc;
}

/* ---- create ------------------------------------------------------------------------------------ */

static void on_notice(void *user, const char *text)
{
	live_clear_line(user);
	ui_say("%s", text);
}

/* The age of packages is irrelevant for an environment. */
static void on_install(void *user, const struct brig_install *now)
{
	struct brig_install kept = *now;

	kept.kept_days = 0;
	live_on_install(user, &kept);
}

/* The language of the packages; an environment has one. */
static int choose_language(const struct env_values *v, const struct words **ret_words, const char **ret,
			   struct brig_error *err)
{
	const struct {
		const char *language;
		const struct words *words;
	} rows[] = { { "python", &v->python }, { "javascript", &v->node }, { "go", &v->go } };
	size_t given = 0;

	*ret = "python";
	*ret_words = &v->python;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].words->n > 0) {
			given++;
			*ret = rows[i].language;
			*ret_words = rows[i].words;
		}
	return given > 1 ? err_set(err, BRIG_E_USAGE, 0,
				   "--python, --node and --go exclude each other: an environment is for one language")
			 : 0;
}

static int say_made(const struct env_values *v, const struct brig_environment *what, const struct brig_result *r)
{
	bool ran = strcmp(brig_result_verdict(r), "error") == 0 && strcmp(brig_result_step(r), "run") == 0;

	if (strcmp(brig_result_verdict(r), "ok") != 0) {
		if (v->quiet)
			report_fatal(r, NULL);
		else
			report_remarks(r, NULL);
		if (ran) /* for a user's program that would be no news */
			ui_say("error: %s", brig_result_reason(r));
		/* If importing a module ends the program successfully, the environment was not created. */
		return brig_result_status(r) == EXIT_SUCCESS ? EXIT_FAILED : brig_result_status(r);
	}
	if (!v->quiet)
		ui_say("environment %s is there, with %zu %s and %zu %s in its warm-up list; use it with --env-name %s",
		       what->name, what->n_packages, what->n_packages == 1 ? "package" : "packages", what->n_warm,
		       what->n_warm == 1 ? "module" : "modules", what->name);
	return EXIT_SUCCESS;
}

static int make(const struct env_values *v, struct brig_environment *what)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *result = NULL;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	struct live live;
	int status = EXIT_FAILED, rc;

	what->cancel_fd = cancel_open();
	if (what->cancel_fd < 0) {
		(void)err_set(&err, BRIG_E_SYSTEM, -what->cancel_fd, "cannot prepare for signals");
		return ui_fail(&err);
	}
	if (open_brig(v, &b, &status) < 0)
		return status;
	live_init(&live, what->cancel_fd, false, false);
	what->user = &live;
	what->on_notice = v->quiet || v->json ? NULL : on_notice;
	what->on_install = v->quiet || v->json ? NULL : on_install;
	rc = brig_environment_create(b, what, &result, &err);
	live_finish(&live);
	if (rc == 0 && v->json)
		rc = brig_result_json(result, &json, &err);
	if (rc < 0)
		status = ui_fail(&err);
	else
		status = v->json ? document_print(json, brig_result_status(result)) : say_made(v, what, result);
	brig_result_free(result);
	brig_close(b);
	return status;
}

static int create(const struct command *self, const struct env_values *v, const struct operands *ops)
{
	struct brig_environment what = BRIG_ENVIRONMENT_INIT;
	AUTO_FREE char *package_text = NULL, *warm_text = NULL;
	AUTO_FREE const char **packages = NULL, **warm = NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	const struct words *words;

	if (!take_name(self, ops, &err) || choose_language(v, &words, &what.language, &err) < 0)
		return ui_usage(self->name, &err);
	if (!request_split(words, &package_text, &packages, &what.n_packages) ||
	    !request_split(&v->warm, &warm_text, &warm, &what.n_warm)) {
		(void)err_nomem(&err);
		return ui_fail(&err);
	}
	what.name = ops->words.item[0];
	what.packages = packages;
	what.warm = warm;
	what.trust = v->trust;
	what.options = v->wishes.item;
	what.n_options = v->wishes.n;
	return make(v, &what);
}

/* ---- list, show, remove ------------------------------------------------------------------------ */

static uint64_t number(const json_t *doc, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(doc, name));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *moment(const json_t *doc, char *dst, size_t size)
{
	char text[64];
	uint64_t ns;

	(void)document_text(doc, "created", text, sizeof(text));
	if (when_parse(text, 0, &ns))
		return when_local(dst, size, ns);
	(void)snprintf(dst, size, "%s", text);
	return dst;
}

/* "there", or its problem. */
static const char *state_of(const json_t *doc)
{
	const json_t *set = json_object_get(doc, "set");

	if (json_object_get(doc, "problem"))
		return "cannot be read";
	return json_is_string(set) && strcmp(json_string_value(set), "missing") == 0 ? "packages are missing" : "";
}

static void add_row(struct ui_table *table, const json_t *row)
{
	char text[256];

	ui_table_add(table, document_text(row, "name", text, sizeof(text)), UI_BOLD);
	ui_table_add(table, document_text(row, "ecosystem", text, sizeof(text)), UI_PLAIN);
	ui_table_add(table, str_bytes(text, sizeof(text), number(row, "bytes")), UI_PLAIN);
	ui_table_add(table, moment(row, text, sizeof(text)), UI_DIM);
	ui_table_add(table, document_text(row, "packages", text, 60), UI_PLAIN);
	ui_table_add(table, document_text(row, "warm", text, 40), UI_PLAIN);
	ui_table_add(table, state_of(row), UI_YELLOW);
}

static int list_text(const json_t *doc, bool no_color)
{
	static const char *const titles[] = { "NAME", "KIND", "SIZE", "MADE", "PACKAGES", "WARM", "" };
	const json_t *rows = json_object_get(doc, "environments"), *row;
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	size_t i;

	for (i = 0; json_array_size(rows) > 0 && i < ARRAY_LEN(titles); i++)
		ui_table_add(&table, titles[i], UI_BOLD);
	json_array_foreach(rows, i, row) add_row(&table, row);
	ui_table_show(&table, ui_has_color(STDOUT_FILENO, no_color), &text);
	ui_table_release(&table);
	if (json_array_size(rows) == 0)
		buf_adds(&text, "no environments: brig env create makes one\n");
	return ui_finish(&text, EXIT_SUCCESS);
}

static void add_line(struct buf *out, const char *title, const char *value)
{
	if (*value)
		buf_addf(out, "%-10s %s\n", title, value);
}

static int show_text(const json_t *doc)
{
	static const char *const members[] = { "name",     "packages", "warm", "ecosystem", "backend", "trust",
					       "degraded", "brig",     "key",  "content",   "problem" };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char value[8192], size[32];

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		add_line(&text, members[i], document_text(doc, members[i], value, sizeof(value)));
	if (!json_object_get(doc, "problem")) {
		add_line(&text, "made", moment(doc, value, sizeof(value)));
		(void)snprintf(value, sizeof(value), "%s in %llu files",
			       str_bytes(size, sizeof(size), number(doc, "bytes")),
			       (unsigned long long)number(doc, "files"));
		add_line(&text, "size", number(doc, "files") ? value : "");
		add_line(&text, "problem", state_of(doc));
	}
	return ui_finish(&text, EXIT_SUCCESS);
}

static int remove_text(const json_t *doc)
{
	const char *packages = json_string_value(json_object_get(doc, "packages"));
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char name[128];

	buf_addf(&text, "environment %s is removed", document_text(doc, "name", name, sizeof(name)));
	if (packages)
		buf_adds(&text, strcmp(packages, "gone") == 0
					? "; nobody else has its packages, and they are gone\n"
					: "; its packages stay in the cache, until they are too old or too much\n");
	else
		buf_adds(&text, "\n");
	return ui_finish(&text, EXIT_SUCCESS);
}

enum env_what { ENV_LIST, ENV_SHOW, ENV_REMOVE };

static int print(const struct env_values *v, enum env_what what, const char *json)
{
	json_t *doc;
	int status;

	if (v->json)
		return document_print(json, EXIT_SUCCESS);
	doc = document_read(json);
	if (!doc)
		return EXIT_FAILED;
	if (what == ENV_LIST)
		status = list_text(doc, v->no_color);
	else
		status = what == ENV_SHOW ? show_text(doc) : remove_text(doc);
	json_decref(doc);
	return status;
}

static int call(const struct env_values *v, enum env_what what, const char *name)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc, status = EXIT_FAILED;

	if (open_brig(v, &b, &status) < 0)
		return status;
	if (what == ENV_LIST)
		rc = brig_environments_json(b, &json, &err);
	else if (what == ENV_SHOW)
		rc = brig_environment_json(b, name, &json, &err);
	else
		rc = brig_environment_remove(b, name, &json, &err);
	brig_close(b);
	return rc < 0 ? ui_fail(&err) : print(v, what, json);
}

/* ---- commands ---------------------------------------------------------------------------------- */

static int create_main(const struct command *self, int argc, char **argv)
{
	struct env_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = create(self, &v, &ops);
	options_release(self, &v, &ops);
	return status;
}

static int list_main(const struct command *self, int argc, char **argv)
{
	struct env_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = call(&v, ENV_LIST, NULL);
	options_release(self, &v, &ops);
	return status;
}

static int one_main(const struct command *self, int argc, char **argv, enum env_what what)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct env_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = take_name(self, &ops, &err) ? call(&v, what, ops.words.item[0]) : ui_usage(self->name, &err);
	options_release(self, &v, &ops);
	return status;
}

static int show_main(const struct command *self, int argc, char **argv)
{
	return one_main(self, argc, argv, ENV_SHOW);
}

static int remove_main(const struct command *self, int argc, char **argv)
{
	return one_main(self, argc, argv, ENV_REMOVE);
}

const struct command command_env_create = {
	.name = "env create",
	.synopsis = "[OPTIONS] NAME",
	.summary = "install packages once and give the set a name",
	.examples = "  brig env create data --python numpy,pandas --warm numpy,pandas\n"
		    "  brig run --env-name data plot.py\n",
	.details = "The packages are installed in a cell that reaches the registries and nothing else.  What runs get\n"
		   "by the name is that very set, until the environment is removed.  Exit status: as of brig run.\n",
	.options = create_options,
	.n_options = ARRAY_LEN(create_options),
	.run = create_main,
};

const struct command command_env_list = {
	.name = "env list",
	.synopsis = "[OPTIONS]",
	.summary = "list the environments",
	.examples = "  brig env list\n",
	.options = list_options,
	.n_options = ARRAY_LEN(list_options),
	.run = list_main,
};

const struct command command_env_show = {
	.name = "env show",
	.synopsis = "[OPTIONS] NAME",
	.summary = "show what an environment has",
	.examples = "  brig env show data\n",
	.options = one_options,
	.n_options = ARRAY_LEN(one_options),
	.run = show_main,
};

const struct command command_env_remove = {
	.name = "env remove",
	.synopsis = "[OPTIONS] NAME",
	.summary = "remove an environment, and its packages if nobody else has them",
	.examples = "  brig env remove data\n",
	.options = one_options,
	.n_options = ARRAY_LEN(one_options),
	.run = remove_main,
};
