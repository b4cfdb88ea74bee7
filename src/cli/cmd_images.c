/* SPDX-License-Identifier: Apache-2.0 */
/* `brig images build`, `list` and `check`: the images for docker cells. */
#include <string.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/document.h"

#define REQUIREMENTS_MAX   64
#define REQUIREMENTS_BYTES (64 * 1024)

struct images_values {
	const char *policy, *preset, *from, *requirements;
	bool json, no_color, rebuild, pull, no_cache, quiet;
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
	{ "pull", 0, OPTION_FLAG, NULL, AT(pull), NULL,
	  "have the engine fetch the base anew; from a registry, or not at all" },
	{ "no-cache", 0, OPTION_FLAG, NULL, AT(no_cache), NULL, "build everything anew, without what the engine kept" },
	{ "requirements", 0, OPTION_TEXT, "FILE", AT(requirements), NULL,
	  "packages of Python, one in a line, in place of the policy's docker_requirements" },
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

struct images_question {
	enum images_verb verb;
	struct brig_images opts;
	bool no_color;
};

static int show_images(const json_t *doc, const void *values, int status)
{
	const struct images_question *q = values;
	struct ui_table table = { .n_columns = 6 };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool has_color = ui_has_color(STDOUT_FILENO, q->no_color);
	const json_t *row, *rows = json_object_get(doc, "images");
	char name[256], complaint[512];
	size_t i;

	json_array_foreach(rows, i, row) add_row(&table, row);
	ui_table_show(&table, has_color, &text);
	ui_table_release(&table);
	json_array_foreach(rows, i, row)
	{
		if (*document_text(row, "complaint", complaint, sizeof(complaint)))
			buf_addf(&text, "\n%s: %s\n", document_text(row, "name", name, sizeof(name)), complaint);
	}
	return ui_finish(&text, status);
}

static void say_line(void *user, const char *line)
{
	(void)user;
	ui_say("%s", line);
}

static int ask_images(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	const struct images_question *q = values;
	int rc;

	if (q->verb == IMAGES_BUILD)
		rc = brig_images_build(b, &q->opts, ret, err);
	else if (q->verb == IMAGES_CHECK)
		rc = brig_images_check(b, &q->opts, ret, err);
	else
		rc = brig_images_list(b, ret, err);
	return rc > 0 ? EXIT_FAILURE : rc;
}

/* Lines of a requirements file, without blanks and comments; the library validates them. */
struct requirements {
	char *text;
	const char *item[REQUIREMENTS_MAX + 1];
	size_t n;
};

static void requirements_release(struct requirements *r)
{
	free(r->text);
}

static int requirements_read(const char *path, struct requirements *ret, struct brig_error *err)
{
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	char *save = NULL;
	ssize_t n;

	ret->text = calloc(1, REQUIREMENTS_BYTES + 1);
	if (!ret->text)
		return err_nomem(err);
	n = fd < 0 ? fd : fd_read_all(fd, ret->text, REQUIREMENTS_BYTES + 1);
	if (n < 0)
		return err_set(err, BRIG_E_USAGE, (int)-n, "the requirements in %s cannot be read", path);
	if (n > REQUIREMENTS_BYTES || strlen(ret->text) < (size_t)n)
		return err_set(err, BRIG_E_USAGE, 0, "%s is too large, or no text", path);
	for (char *line = strtok_r(ret->text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
		size_t len;

		line += strspn(line, " \t");
		if (strstr(line, " #"))
			*strstr(line, " #") = '\0';
		for (len = strlen(line); len > 0 && strchr(" \t", line[len - 1]); len--)
			line[len - 1] = '\0';
		if (!*line || *line == '#')
			continue;
		if (ret->n == REQUIREMENTS_MAX)
			return err_set(err, BRIG_E_USAGE, 0, "%s has more than %d packages", path, REQUIREMENTS_MAX);
		ret->item[ret->n++] = line;
	}
	return 0;
}

static int run_verb(enum images_verb verb, const struct images_values *v, const char *image)
{
	struct images_question q = { .verb = verb, .opts = BRIG_IMAGES_INIT, .no_color = v->no_color };
	struct brig_error err = BRIG_ERROR_INIT;
	CLEANUP(requirements_release)
	struct requirements wanted = { 0 };

	if (v->requirements && requirements_read(v->requirements, &wanted, &err) < 0)
		return ui_fail(&err);
	q.opts.image = image;
	q.opts.from = v->from;
	q.opts.rebuild = v->rebuild;
	q.opts.pull = v->pull;
	q.opts.no_cache = v->no_cache;
	q.opts.requirements = v->requirements ? wanted.item : NULL;
	q.opts.n_requirements = wanted.n;
	q.opts.on_progress = v->quiet ? NULL : say_line;
	return document_view(&(struct document_view){
		.opts = { .size = sizeof(struct brig_open_opts), .policy_file = v->policy, .preset = v->preset },
		.ask = ask_images,
		.show = show_images,
		.values = &q,
		.json = v->json });
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
