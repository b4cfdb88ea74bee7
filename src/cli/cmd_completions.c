/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig completions`: scripts with which shells complete our command lines, generated from the tables that parse these.
 *
 * Commands of one word and of two are completed alike: the first word decides, or the first two.  For values the shell
 * completes file names, unless the value's name in the help has a list here.
 */
#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/ui.h"

struct completions_values {
	char none; /* there are no options */
};

/* Values with few choices, by option or by the name of the value in the help. */
static const struct {
	const char *option; /* NULL: any */
	const char *value, *choices;
} choices[] = {
	{ "inspect", "LEVEL", "off report guard strict" },
	{ "trust", "LEVEL", "untrusted unknown trusted" },
	{ "max-trust", "LEVEL", "untrusted unknown trusted" },
	{ NULL, "BACKEND", "native docker direct" },
	{ "backend", "NAME", "auto native docker direct" },
	{ "preset", "NAME", "standard strict" },
	{ "kind", "KIND", "code command path" },
	{ "from", "WHAT", "registry host" },
	{ NULL, "MODE", "ro cow rw" },
	{ NULL, "LANGUAGE", "python javascript typescript go shell bash c cpp rust java perl ruby lua php r" },
};

static const char *choices_of(const struct option_row *o)
{
	for (size_t i = 0; o->value && o->kind != OPTION_FIXED_WISH && i < ARRAY_LEN(choices); i++)
		if (str_eq(o->value, choices[i].value) && (!choices[i].option || str_eq(o->name, choices[i].option)))
			return choices[i].choices;
	return NULL;
}

static bool takes_value(const struct option_row *o)
{
	return o->kind != OPTION_FLAG && o->kind != OPTION_FIXED_WISH;
}

/* Adds text for single quotes.  special: additional characters to be escaped. */
static void add_quoted(struct buf *out, const char *text, const char *special)
{
	for (; *text; text++)
		if (*text == '\'')
			buf_adds(out, "'\\''");
		else
			buf_addf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
}

static size_t first_word_len(const struct command *cmd)
{
	return strcspn(cmd->name, " ");
}

/* Whether an earlier command begins with the same word. */
static bool is_repeated(size_t c)
{
	size_t len = first_word_len(commands[c]);

	for (size_t i = 0; i < c; i++)
		if (first_word_len(commands[i]) == len && memcmp(commands[i]->name, commands[c]->name, len) == 0)
			return true;
	return false;
}

/* Adds the second words of the commands that begin with the first word of this one. */
static void add_second_words(struct buf *out, const struct command *cmd)
{
	size_t len = first_word_len(cmd);

	for (size_t i = 0; i < command_count; i++)
		if (first_word_len(commands[i]) == len && memcmp(commands[i]->name, cmd->name, len) == 0)
			buf_addf(out, "%s ", commands[i]->name + len + 1);
}

static bool is_group(const struct command *cmd)
{
	return cmd->name[first_word_len(cmd)] == ' ';
}

static void add_first_words(struct buf *out)
{
	for (size_t c = 0; c < command_count; c++)
		if (!is_repeated(c))
			buf_addf(out, "%.*s ", (int)first_word_len(commands[c]), commands[c]->name);
}

/* ---- bash ------------------------------------------------------------------------------------------ */

static void add_bash_values(struct buf *out, const struct command *cmd)
{
	for (size_t i = 0; i < cmd->n_options; i++) {
		const struct option_row *o = &cmd->options[i];
		const char *list = choices_of(o);

		if (list)
			buf_addf(out, "\t\tcase $prev in --%s) words='%s';; esac\n", o->name, list);
	}
}

static void add_bash_command(struct buf *out, const struct command *cmd)
{
	buf_addf(out, "\t'%s')\n\t\twords='", cmd->name);
	for (size_t i = 0; i < cmd->n_options; i++)
		buf_addf(out, "--%s ", cmd->options[i].name);
	buf_adds(out, "--help'\n");
	add_bash_values(out, cmd);
	buf_adds(out, "\t\t;;\n");
}

static void add_bash(struct buf *out)
{
	buf_adds(out, "# bash completion of brig; load it with: source <(brig completions bash)\n"
		      "_brig() {\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= "
		      "command=${COMP_WORDS[1]}\n"
		      "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '");
	add_first_words(out);
	buf_adds(out, "' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $command in\n");
	for (size_t c = 0; c < command_count; c++)
		if (is_group(commands[c]) && !is_repeated(c)) {
			buf_addf(out, "\t%.*s)\n\t\tif ((COMP_CWORD == 2)); then\n\t\t\tCOMPREPLY=($(compgen -W '",
				 (int)first_word_len(commands[c]), commands[c]->name);
			add_second_words(out, commands[c]);
			buf_adds(out,
				 "' -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n\t\tcommand+=\" ${COMP_WORDS[2]}\"\n\t\t;;\n");
		}
	buf_adds(out, "\tesac\n\tcase $command in\n");
	for (size_t c = 0; c < command_count; c++)
		add_bash_command(out, commands[c]);
	buf_adds(out, "\tesac\n"
		      "\tif [[ $cur == -* || $words != --* ]]; then\n"
		      "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		      "\tfi\n}\n"
		      "complete -o default -F _brig brig\n");
}

/* ---- zsh ------------------------------------------------------------------------------------------- */

static void add_zsh_option(struct buf *out, const struct option_row *o, const char *dashes, const char *name)
{
	const char *list = choices_of(o);

	buf_addf(out, " \\\n\t\t\t'*%s%s[", dashes, name);
	add_quoted(out, o->help, "[]:\\");
	buf_adds(out, "]");
	if (takes_value(o) && list)
		buf_addf(out, ":%s:(%s)", o->value, list);
	else if (takes_value(o))
		buf_addf(out, ":%s:_files", o->value);
	buf_adds(out, "'");
}

static void add_zsh_command(struct buf *out, const struct command *cmd)
{
	buf_addf(out, "\t'%s')\n\t\t_arguments", cmd->name);
	for (size_t i = 0; i < cmd->n_options; i++) {
		const struct option_row *o = &cmd->options[i];
		const char letter[2] = { o->letter, '\0' };

		add_zsh_option(out, o, "--", o->name);
		if (o->letter)
			add_zsh_option(out, o, "-", letter);
	}
	buf_adds(out, " \\\n\t\t\t'--help[show this page]' '*:file:_files'\n\t\t;;\n");
}

static void add_zsh(struct buf *out)
{
	buf_adds(out, "#compdef brig\n"
		      "# zsh completion of brig; write it to _brig in a folder of $fpath\n"
		      "_brig() {\n\tlocal command=${words[2]}\n\tif ((CURRENT == 2)); then\n\t\tcompadd -- ");
	add_first_words(out);
	buf_adds(out, "\n\t\treturn\n\tfi\n\tcase $command in\n");
	for (size_t c = 0; c < command_count; c++)
		if (is_group(commands[c]) && !is_repeated(c)) {
			buf_addf(out, "\t%.*s)\n\t\tif ((CURRENT == 3)); then\n\t\t\tcompadd -- ",
				 (int)first_word_len(commands[c]), commands[c]->name);
			add_second_words(out, commands[c]);
			buf_adds(out, "\n\t\t\treturn\n\t\tfi\n\t\tcommand+=\" ${words[3]}\"\n\t\tshift words\n"
				      "\t\t((CURRENT--))\n\t\t;;\n");
		}
	buf_adds(out, "\tesac\n\tshift words\n\t((CURRENT--))\n\tcase $command in\n");
	for (size_t c = 0; c < command_count; c++)
		add_zsh_command(out, commands[c]);
	buf_adds(out, "\tesac\n}\n_brig \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------------ */

/* The condition under which a command's options apply. */
static void add_fish_condition(struct buf *out, const struct command *cmd)
{
	size_t len = first_word_len(cmd);

	buf_addf(out, "complete -c brig -n '__fish_seen_subcommand_from %.*s", (int)len, cmd->name);
	if (is_group(cmd))
		buf_addf(out, "; and __fish_seen_subcommand_from %s", cmd->name + len + 1);
	buf_adds(out, "'");
}

static void add_fish_option(struct buf *out, const struct command *cmd, const struct option_row *o)
{
	const char *list = choices_of(o);

	add_fish_condition(out, cmd);
	buf_addf(out, " -l %s", o->name);
	if (o->letter)
		buf_addf(out, " -s %c", o->letter);
	if (list)
		buf_addf(out, " -x -a '%s'", list);
	else if (takes_value(o))
		buf_adds(out, " -r");
	buf_adds(out, " -d '");
	for (const char *c = o->help; *c; c++) /* fish has two escapes inside single quotes */
		buf_addf(out, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
	buf_adds(out, "'\n");
}

static void add_fish(struct buf *out)
{
	buf_adds(out, "# fish completion of brig; load it with: brig completions fish | source\n"
		      "complete -c brig -n __fish_use_subcommand -f -a '");
	add_first_words(out);
	buf_adds(out, "'\n");
	for (size_t c = 0; c < command_count; c++) {
		if (is_group(commands[c]) && !is_repeated(c)) {
			size_t len = first_word_len(commands[c]);

			buf_addf(out, "complete -c brig -n '__fish_seen_subcommand_from %.*s' -a '", (int)len,
				 commands[c]->name);
			add_second_words(out, commands[c]);
			buf_adds(out, "'\n");
		}
		for (size_t i = 0; i < commands[c]->n_options; i++)
			add_fish_option(out, commands[c], &commands[c]->options[i]);
	}
}

/* ---- the command ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*add)(struct buf *out);
} shells[] = { { "bash", add_bash }, { "zsh", add_zsh }, { "fish", add_fish } };

static int print_for(const struct command *self, const struct operands *ops)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	for (size_t i = 0; ops->words.n == 1 && ops->rest.n == 0 && i < ARRAY_LEN(shells); i++)
		if (str_eq(shells[i].name, ops->words.item[0])) {
			shells[i].add(&text);
			return ui_finish(&text, EXIT_SUCCESS);
		}
	(void)err_set(&err, BRIG_E_USAGE, 0, "name one shell: bash, zsh or fish");
	return ui_usage(self->name, &err);
}

static int completions_main(const struct command *self, int argc, char **argv)
{
	struct completions_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = print_for(self, &ops);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_completions = {
	.name = "completions",
	.synopsis = "bash | zsh | fish",
	.summary = "print what this shell needs to complete brig's commands and options",
	.examples = "  source <(brig completions bash)\n"
		    "  brig completions zsh > ~/.zfunc/_brig\n"
		    "  brig completions fish | source\n",
	.run = completions_main,
};
