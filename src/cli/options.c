/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define HELP_COLUMN 28 /* column of the options' explanations */
#define HELP_WIDTH  100
#define NAMES_MAX   64

/* A command line being parsed. */
struct parse {
	const struct command *cmd;
	int argc;
	char **argv;
	int at; /* index of the next word */
	void *values;
	struct operands *ops;
	struct brig_error *err;
};

static void *member(void *values, const struct option_row *row)
{
	return (char *)values + row->offset;
}

/* Lists never hold more than argc items: one allocation each. */
static int words_add(struct parse *p, struct words *list, const char *word)
{
	if (!list->item)
		list->item = calloc((size_t)p->argc + 1, sizeof(*list->item));
	if (!list->item)
		return err_nomem(p->err);
	list->item[list->n++] = word;
	return 0;
}

static int wish_store(struct parse *p, struct wishes *list, const char *key, const char *value)
{
	if (!list->item)
		list->item = calloc((size_t)p->argc + 1, sizeof(*list->item));
	if (!list->item)
		return err_nomem(p->err);
	list->item[list->n++] = (struct brig_option){ key, value };
	return 0;
}

static int wishes_add(struct parse *p, struct wishes *list, const struct option_row *row, char *value)
{
	const char *key = row->key;

	if (!key) {
		char *equals = strchr(value, '=');

		if (!equals || equals == value)
			return err_set(p->err, BRIG_E_USAGE, 0, "--%s takes KEY=VALUE, not '%.80s'", row->name, value);
		*equals = '\0'; /* argv may be modified */
		key = value;
		value = equals + 1;
	}
	return wish_store(p, list, key, value);
}

static int store(struct parse *p, const struct option_row *row, char *value)
{
	void *to = member(p->values, row);

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)to = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)to = value;
		return 0;
	case OPTION_LIST:
		return words_add(p, to, value);
	case OPTION_WISH:
		return wishes_add(p, to, row, value);
	case OPTION_FIXED_WISH:
		return wish_store(p, to, row->key, row->value);
	}
	return err_set(p->err, BRIG_E_INTERNAL, 0, "option --%s has no kind", row->name);
}

static int unknown_option(struct parse *p, const char *word)
{
	const char *names[NAMES_MAX] = { "help" };
	size_t n = 1, len = strcspn(word, "=");
	char name[NAMES_MAX];
	const char *near;

	for (size_t i = 0; i < p->cmd->n_options && n < NAMES_MAX; i++)
		names[n++] = p->cmd->options[i].name;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name) - 1), word);
	near = str_nearest(name + strspn(name, "-"), names, n);
	if (near)
		return err_set(p->err, BRIG_E_USAGE, 0, "unknown option '%s'; did you mean '--%s'?", name, near);
	return err_set(p->err, BRIG_E_USAGE, 0, "unknown option '%s'", name);
}

static const struct option_row *find_long(const struct command *cmd, const char *name, size_t len)
{
	for (size_t i = 0; i < cmd->n_options; i++)
		if (strlen(cmd->options[i].name) == len && memcmp(cmd->options[i].name, name, len) == 0)
			return &cmd->options[i];
	return NULL;
}

static const struct option_row *find_short(const struct command *cmd, char letter)
{
	for (size_t i = 0; i < cmd->n_options; i++)
		if (cmd->options[i].letter == letter)
			return &cmd->options[i];
	return NULL;
}

/* attached: the value that came in the same word, or NULL. */
static int take_option(struct parse *p, const struct option_row *row, char *attached)
{
	if (row->kind == OPTION_FLAG || row->kind == OPTION_FIXED_WISH) {
		if (attached)
			return err_set(p->err, BRIG_E_USAGE, 0, "--%s takes no value", row->name);
		return store(p, row, NULL);
	}
	if (!attached) {
		if (p->at == p->argc)
			return err_set(p->err, BRIG_E_USAGE, 0, "--%s needs a value: --%s %s", row->name, row->name,
				       row->value);
		attached = p->argv[p->at++];
	}
	return store(p, row, attached);
}

static int take_word(struct parse *p, char *word)
{
	const struct option_row *row;
	char *value;

	if (str_eq(word, "--help") || str_eq(word, "-h"))
		return OPTIONS_HELP;
	if (word[0] != '-' || word[1] == '\0')
		return words_add(p, &p->ops->words, word);
	if (word[1] == '-') {
		size_t len = strcspn(word + 2, "=");

		row = find_long(p->cmd, word + 2, len);
		value = word[2 + len] == '=' ? word + 2 + len + 1 : NULL;
	} else {
		row = find_short(p->cmd, word[1]);
		value = word[2] ? word + 2 : NULL;
	}
	return row ? take_option(p, row, value) : unknown_option(p, word);
}

int options_parse(const struct command *cmd, int argc, char **argv, void *values, struct operands *ops,
		  struct brig_error *err)
{
	struct parse p = { .cmd = cmd, .argc = argc, .argv = argv, .values = values, .ops = ops, .err = err };
	int rc = 0;

	while (rc == 0 && p.at < argc && !str_eq(argv[p.at], "--"))
		rc = take_word(&p, argv[p.at++]);
	for (p.at++; rc == 0 && p.at < argc; p.at++)
		rc = words_add(&p, &ops->rest, argv[p.at]);
	return rc;
}

void options_release(const struct command *cmd, void *values, struct operands *ops)
{
	free(ops->words.item);
	free(ops->rest.item);
	*ops = (struct operands){ 0 };
	for (size_t i = 0; i < cmd->n_options; i++) {
		void *at = member(values, &cmd->options[i]);

		/* Several rows may refer to one list of wishes: clear it, so that it is freed once. */
		if (cmd->options[i].kind == OPTION_LIST) {
			free(((struct words *)at)->item);
			*(struct words *)at = (struct words){ 0 };
		} else if (cmd->options[i].kind == OPTION_WISH || cmd->options[i].kind == OPTION_FIXED_WISH) {
			free(((struct wishes *)at)->item);
			*(struct wishes *)at = (struct wishes){ 0 };
		}
	}
}

/* ---- help ------------------------------------------------------------------------------------ */

/* Adds text from the current column on, broken at spaces, each further line indented to HELP_COLUMN. */
static void add_wrapped(struct buf *out, const char *text)
{
	size_t column = HELP_COLUMN;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > HELP_COLUMN && column + 1 + len > HELP_WIDTH) {
			buf_addf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			buf_adds(out, " ");
			column++;
		}
		buf_add(out, text, len);
		column += len;
		text += len + strspn(text + len, " ");
	}
	buf_adds(out, "\n");
}

static void add_option(struct buf *out, const struct option_row *row)
{
	size_t start = out->len, width;

	if (row->letter)
		buf_addf(out, "  -%c, --%s", row->letter, row->name);
	else
		buf_addf(out, "      --%s", row->name);
	if (row->value && row->kind != OPTION_FIXED_WISH)
		buf_addf(out, " %s", row->value);
	width = out->len - start;
	if (width + 2 > HELP_COLUMN)
		buf_addf(out, "\n%*s", HELP_COLUMN, "");
	else
		buf_addf(out, "%*s", (int)(HELP_COLUMN - width), "");
	add_wrapped(out, row->help);
}

void options_help(const struct command *cmd, struct buf *out)
{
	static const struct option_row help_row = { "help", 'h', OPTION_FLAG, NULL, 0, NULL, "show this page" };

	buf_addf(out, "Usage: brig %s%s%s\n\n%s\n", cmd->name, *cmd->synopsis ? " " : "", cmd->synopsis, cmd->summary);
	buf_adds(out, "\nOptions:\n");
	for (size_t i = 0; i < cmd->n_options; i++)
		add_option(out, &cmd->options[i]);
	add_option(out, &help_row);
	if (cmd->details)
		buf_addf(out, "\n%s", cmd->details);
	if (cmd->examples)
		buf_addf(out, "\nExamples:\n%s", cmd->examples);
}
