/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code from standard input.  A command whose input is a pipe or a file of the script is judged by the data in it.  One
 * that reads the caller's input runs uninspected code, which is a separate finding.
 *
 * stdin_programs.def lists which programs run their input, and when; shell_inline.c calls this for shells and
 * interpreters without a script.
 */
#include <string.h>

#include "inspect/shell.h"

bool sh_names_stdin(const struct sh_word *w)
{
	static const char *const names[] = { "-",
					     "/dev/stdin",
					     "/dev/fd/0",
					     "/proc/self/fd/0",
					     "/dev/tty",
					     "/proc/self/task/*/fd/0",
					     "/proc/*/fd/0",
					     "/dev/./stdin",
					     "/dev/console" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sh_glob(names[i], strlen(names[i]), w->s, w->len))
			return true;
	return false;
}

bool sh_reads_caller(const struct sh_command *cmd)
{
	return !cmd->piped_in && !cmd->in.flags && !cmd->in.text;
}

void sh_run_input(struct shell *sh, const struct sh_command *cmd, enum here_use use, const char *who)
{
	if (sh_reads_caller(cmd)) {
		sh->wants_input = true;
		if (sh->j->has_input)
			judge_check(sh->j, "stdin-code", cmd->span, "%s", who);
		return;
	}
	/* reading a file of the workspace with < is like running the file */
	if ((cmd->in.flags & STREAM_UNKNOWN) && (cmd->in.flags & STREAM_GIVEN) &&
	    !(cmd->in.flags & (STREAM_NETWORK | STREAM_DECODED)))
		return;
	sh_run_stream(sh, cmd, &cmd->in, use, who);
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

static bool is_program(const char *glob, const char *program)
{
	return sh_glob(glob, strlen(glob), program, strlen(program));
}

/* True if option is in a list that is separated by spaces. */
static bool list_has(const char *list, const char *option, size_t len)
{
	for (; *list; list += strspn(list, " ")) {
		size_t n = strcspn(list, " ");

		if (n == len && strncmp(list, option, n) == 0)
			return true;
		list += n;
	}
	return false;
}

/* The value of an option in word i: attached, or the next word.  False: word i is not that option. */
static bool option_in(const struct sh_call *call, size_t i, const char *option, struct sh_word *value)
{
	const struct sh_word *w = &call->words[i];
	const struct sh_word none = { .s = "" };
	size_t len = strlen(option);
	const char *rest = NULL;

	if (len == 1) /* "-": an operand */
		rest = sh_is(w, "-") ? "" : NULL;
	else if (w->s[0] != '-' || w->len < 2)
		return false;
	else if (len == 2 && w->s[1] != '-')
		rest = strchr(w->s + 1, option[1]) ? strchr(w->s + 1, option[1]) + 1 : NULL;
	else if (strncmp(w->s, option, len) == 0 && (w->s[len] == '=' || !w->s[len]))
		rest = w->s + len + (w->s[len] == '=');
	if (!rest)
		return false;
	*value = *rest             ? (struct sh_word){ .s = rest, .len = (uint32_t)strlen(rest) }
		 : i + 1 < call->n ? call->words[i + 1]
				   : none;
	return true;
}

static const struct script_row {
	const char *program, *values, *ends;
} scripts[] = {
#define STDIN_PROGRAM(program, operands, options)
#define STDIN_OPTION(program, option, value)
#define STDIN_SCRIPT(program, values, ends) { program, values, ends },
#include "inspect/stdin_programs.def"
#undef STDIN_PROGRAM
#undef STDIN_OPTION
#undef STDIN_SCRIPT
};

static const struct script_row *script_row(const char *program)
{
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
		if (is_program(scripts[i].program, program))
			return &scripts[i];
	return NULL;
}

/*
 * The index where the options of an interpreter end: at its script, at "--" or "-", or after an option that ends them.
 */
static size_t options_end(const struct script_row *row, const struct sh_call *call)
{
	size_t i = 1;

	for (; i < call->n; i++) {
		const struct sh_word *w = &call->words[i];
		size_t len = strcspn(w->s, "=");

		if (w->s[0] != '-' || w->len < 2 || sh_is(w, "--"))
			break;
		if (w->s[1] == '-') {
			i += !w->s[len] && list_has(row->values, w->s, len);
			continue;
		}
		for (size_t k = 1; w->s[k]; k++) {
			const char letter[] = { '-', w->s[k], '\0' };

			if (list_has(row->ends, letter, 2))
				return i + 1;
			if (list_has(row->values, letter, 2)) {
				i += !w->s[k + 1];
				break;
			}
		}
	}
	return i < call->n ? i : call->n;
}

const struct sh_word *sh_script(const struct sh_call *call)
{
	const struct script_row *row = script_row(call->program);
	size_t i;

	if (!row)
		return sh_operand(call, 0);
	i = options_end(row, call);
	i += i < call->n && sh_is(&call->words[i], "--");
	return i < call->n ? &call->words[i] : NULL;
}

/*
 * A switch of an interpreter, before its script: also one letter of a cluster, but not inside the value of another
 * option.
 */
static bool has_switch(const struct sh_call *call, const char *option, const char *wanted)
{
	const struct script_row *row = script_row(call->program);
	size_t end = row ? options_end(row, call) : call->n;
	struct sh_word value;

	for (size_t i = 1; i < end; i++) {
		const struct sh_word *w = &call->words[i];
		bool hit = option_in(call, i, option, &value);

		for (size_t k = 1; hit && row && strlen(option) == 2 && w->s[k] && w->s[k] != option[1]; k++)
			hit = !list_has(row->values, (const char[]){ '-', w->s[k], '\0' }, 2);
		if (hit && (!*wanted || (sh_is(&value, wanted) && !sh_is(&value, "-")) ||
			    (*wanted == '-' && sh_names_stdin(&value))))
			return true;
	}
	return false;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const struct {
	const char *program, *option, *value;
} options[] = {
#define STDIN_PROGRAM(program, operands, options)
#define STDIN_OPTION(program, option, value) { program, option, value },
#define STDIN_SCRIPT(program, values, ends)
#include "inspect/stdin_programs.def"
#undef STDIN_PROGRAM
#undef STDIN_OPTION
#undef STDIN_SCRIPT
};

static const struct {
	const char *program;
	size_t operands;
	const char *options;
} programs[] = {
#define STDIN_PROGRAM(program, operands, options) { program, operands, options },
#define STDIN_OPTION(program, option, value)
#define STDIN_SCRIPT(program, values, ends)
#include "inspect/stdin_programs.def"
#undef STDIN_PROGRAM
#undef STDIN_OPTION
#undef STDIN_SCRIPT
};

static bool has_any(const struct sh_call *call, const char *list)
{
	struct sh_word value;

	for (; *list; list += strspn(list, " ")) {
		char option[32];
		size_t n = strcspn(list, " ");

		memcpy(option, list, n < sizeof(option) ? n : sizeof(option) - 1);
		option[n < sizeof(option) ? n : sizeof(option) - 1] = '\0';
		for (size_t i = 1; i < call->n; i++)
			if (option_in(call, i, option, &value) && !sh_names_stdin(&value))
				return true;
		list += n;
	}
	return false;
}

/*
 * With one of these as the only argument, a program reads no input; node's --test, which may be anywhere, looks for
 * files.
 */
static const struct {
	const char *program, *option;
	bool anywhere;
} tells[] = {
	{ "*", "--version", false }, { "*", "--help", false }, { "python*", "-V", false },
	{ "python*", "-h", false },  { "node*", "-v", false }, { "node*", "-h", false },
	{ "node*", "--test", true }, { "perl*", "-v", false }, { "perl*", "-V", false },
	{ "ruby*", "-v", false },    { "php*", "-v", false },  { "php*", "-m", false },
	{ "php*", "-i", false },     { "lua*", "-v", false },  { "sqlite3", "-version", false },
};

bool sh_only_tells(const struct sh_call *call)
{
	for (size_t i = 0; i < ARRAY_LEN(tells); i++) {
		if (!is_program(tells[i].program, call->program))
			continue;
		for (size_t k = 1; k < call->n && (tells[i].anywhere || call->n == 2); k++)
			if (sh_is(&call->words[k], tells[i].option))
				return true;
	}
	return false;
}

void sh_stdin(struct shell *sh, const struct sh_command *cmd, const struct sh_call *call)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].program[0] == call->program[0] && is_program(options[i].program, call->program) &&
		    has_switch(call, options[i].option, options[i].value)) {
			sh_run_input(sh, cmd, HERE_OTHER, call->program);
			return;
		}
	/* Most of these programs usually read data that the script supplies; only the caller's input is uninspected. */
	if (!sh->j->has_input || !sh_reads_caller(cmd))
		return;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (programs[i].program[0] == call->program[0] && is_program(programs[i].program, call->program)) {
			const struct sh_word *last =
				programs[i].operands < 99 ? sh_operand(call, programs[i].operands - 1) : NULL;

			if ((!last || sh_names_stdin(last)) && !has_any(call, programs[i].options))
				sh_run_input(sh, cmd, HERE_OTHER, call->program);
			return;
		}
}
