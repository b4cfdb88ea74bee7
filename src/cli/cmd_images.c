/* SPDX-License-Identifier: Apache-2.0 */
/* `brig images build`, `list` and `check`: what docker cells are made from. */
#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/document.h"

struct images_values {
	const char *policy, *preset, *from;
	bool json, no_color, rebuild, quiet;
};

#define AT(member) offsetof(struct images_values, member)
#define COMMON_OPTIONS                                                                                          \
	{ "policy", 'p', OPTION_TEXT, "FILE", AT(policy), NULL, "the policy, which says where the engine is" }, \
		{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },                   \
		{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },    \
	{                                                                                                       \
		"no-color", 0, OPTION_FLAG, NULL, AT(no_color), NULL, "no colours"                              \
	}
static const struct option_row images_options[] = { COMMON_OPTIONS };
static const struct option_row build_options[] = {
	COMMON_OPTIONS,
	{ "from", 0, OPTION_TEXT, "WHAT", AT(from), NULL,
	  "registry, or host: this host's own programs (default: a registry if the engine reaches one)" },
	{ "rebuild", 0, OPTION_FLAG, NULL, AT(rebuild), NULL, "build again what is there already" },
	{ "quiet", 'q', OPTION_FLAG, NULL, AT(quiet), NULL, "no progress on standard error" },
};

enum images_verb { IMAGES_BUILD, IMAGES_LIST, IMAGES_CHECK };

static enum ui_color state_color(const char *state)
{
	return str_eq(state, "good") ? UI_GREEN : str_eq(state, "wrong") ? UI_RED : UI_YELLOW;
}

static void add_row(struct ui_table *table, const json_t *row)
{
	char text[512], size[32];
	json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));

	ui_table_add(table, document_text(row, "name", text, sizeof(text)), UI_BOLD);
	document_text(row, "state", text, sizeof(text));
	ui_table_add(table, text, state_color(text));
	ui_table_add(table, bytes > 0 ? str_bytes(size, sizeof(size), (uint64_t)bytes) : "", UI_PLAIN);
	ui_table_add(table, document_text(row, "how", text, sizeof(text)), UI_PLAIN);
	document_text(row, "id", text, sizeof(text));
	text[strnlen(text, 19)] = '\0';
	ui_table_add(table, text, UI_DIM);
	ui_table_add(table, document_text(row, "reference", text, sizeof(text)), UI_PLAIN);
}

static int show_table(const char *json, bool no_color, int status)
{
	struct ui_table table = { .n_columns = 6 };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool has_color = ui_has_color(STDOUT_FILENO, no_color);
	json_t *doc = document_read(json);
	const json_t *row, *rows = json_object_get(doc, "images");
	char name[256], complaint[512];
	size_t i;

	if (!doc)
		return EXIT_FAILED;
	json_array_foreach(rows, i, row) add_row(&table, row);
	ui_table_show(&table, has_color, &text);
	ui_table_release(&table);
	json_array_foreach(rows, i, row)
	{
		if (*document_text(row, "complaint", complaint, sizeof(complaint)))
			buf_addf(&text, "\n%s: %s\n", document_text(row, "name", name, sizeof(name)), complaint);
	}
	json_decref(doc);
	return ui_finish(&text, status);
}

static void say_line(void *user, const char *line)
{
	(void)user;
	ui_say("%s", line);
}

static int ask(enum images_verb verb, struct brig *b, const struct brig_images *opts, char **ret,
	       struct brig_error *err)
{
	switch (verb) {
	case IMAGES_BUILD:
		return brig_images_build(b, opts, ret, err);
	case IMAGES_CHECK:
		return brig_images_check(b, opts, ret, err);
	case IMAGES_LIST:
		break;
	}
	return brig_images_list(b, ret, err);
}

static int run_verb(enum images_verb verb, const struct images_values *v, const char *image)
{
	const struct brig_open_opts open_opts = { .size = sizeof(open_opts),
						  .policy_file = v->policy,
						  .preset = v->preset };
	struct brig_images opts = BRIG_IMAGES_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc, status;

	if (brig_open(&open_opts, &b, &err) < 0)
		return command_open_failed(v->policy, &err);
	opts.image = image;
	opts.from = v->from;
	opts.rebuild = v->rebuild;
	opts.on_progress = v->quiet ? NULL : say_line;
	rc = ask(verb, b, &opts, &json, &err);
	brig_close(b);
	if (rc < 0)
		return ui_fail(&err);
	status = rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	return v->json ? document_print(json, status) : show_table(json, v->no_color, status);
}

static int images_main(enum images_verb verb, const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct images_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status)) {
		if (ops.words.n + ops.rest.n > (verb == IMAGES_LIST ? 0 : 1)) {
			(void)err_set(&err, BRIG_E_USAGE, 0, "'brig %s' takes %s", self->name,
				      verb == IMAGES_LIST ? "no further words" : "one image at most");
			status = ui_usage(self->name, &err);
		} else {
			status = run_verb(verb, &v,
					  ops.words.n  ? ops.words.item[0]
					  : ops.rest.n ? ops.rest.item[0]
						       : NULL);
		}
	}
	options_release(self, &v, &ops);
	return status;
}

static int build_main(const struct command *self, int argc, char **argv)
{
	return images_main(IMAGES_BUILD, self, argc, argv);
}

static int list_main(const struct command *self, int argc, char **argv)
{
	return images_main(IMAGES_LIST, self, argc, argv);
}

static int check_main(const struct command *self, int argc, char **argv)
{
	return images_main(IMAGES_CHECK, self, argc, argv);
}

const struct command command_images_build = {
	.name = "images build",
	.synopsis = "[OPTIONS] [IMAGE|LANGUAGE]",
	.summary = "make the images of docker cells that are missing",
	.examples = "  brig images build python\n",
	.details = "Without a name, all of them.  The base comes from a registry if the engine reaches one;\n"
		   "else the image is made of this host's own interpreters and compilers.\n",
	.options = build_options,
	.n_options = ARRAY_LEN(build_options),
	.run = build_main,
};

const struct command command_images_list = {
	.name = "images list",
	.synopsis = "[OPTIONS]",
	.summary = "show the images of docker cells and whether the engine has them",
	.examples = "  brig images list\n",
	.options = images_options,
	.n_options = ARRAY_LEN(images_options),
	.run = list_main,
};

const struct command command_images_check = {
	.name = "images check",
	.synopsis = "[OPTIONS] [IMAGE|LANGUAGE|REFERENCE]",
	.summary = "check that images are what they should be, and say what to do where they are not",
	.examples = "  brig images check python\n",
	.details = "A reference is any image of the engine, to be used as docker_image.\n"
		   "Exit status: 0 if everything is good, 1 if not.\n",
	.options = images_options,
	.n_options = ARRAY_LEN(images_options),
	.run = check_main,
};
