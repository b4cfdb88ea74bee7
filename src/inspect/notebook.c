/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notebook.c - Python in notebooks: between its lines are commands (!ls), magics (%time f()) and questions (len?)
 *
 * The kernel of a context translates these lines to calls (data/kernels/notebook.py), and only lines that are not valid
 * Python.  Here they are distinguished from Python by their position: at the beginning of a line, or after the sign of
 * an assignment, outside of strings and brackets.  Commands are judged as commands, code after a magic as code. They
 * are then blanked, byte by byte so that offsets stay the same, and the rest is judged as Python.  Inside strings and
 * brackets, and after a continued line, they are judged but also kept: the kernel may parse that differently.  An
 * unknown magic is kept, and is a parse error.
 *
 * If the first line begins with "%%", the whole text belongs to that magic.
 */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "inspect/judge.h"

#define NAME_MAX_BYTES 32
#define COMMAND_MAX    (64 * KiB)

/* What follows the name of a magic: */
enum use {
	USE_NOTHING, /* nothing that would be executed */
	USE_CODE,    /* Python, optionally after options */
	USE_COMMAND, /* a command */
	USE_NAMED,   /* a command whose name is that of the magic */
	USE_FILE,    /* a Python file and its arguments */
	USE_SHELL,   /* for a cell: a shell script */
	USE_PYTHON,  /* a separate Python program */
	USE_PROGRAM, /* a program, which gets the cell as its input */
	USE_UNKNOWN,
};
struct magic {
	const char *names; /* with a blank before and after each name */
	enum use use;
};
static const struct magic line_magics[] = {
	{ " time timeit prun ", USE_CODE },
	{ " sx system ", USE_COMMAND },
	{ " ls ll cat cp mv rm mkdir rmdir pip conda mamba ", USE_NAMED },
	{ " run ", USE_FILE },
	{ " cd pwd env set_env who whos who_ls reset reset_selective lsmagic matplotlib config load_ext reload_ext "
	  "unload_ext autoreload precision xmode pdb colors autosave alias automagic pprint gui logstop page "
	  "doctest_mode ",
	  USE_NOTHING },
};
static const struct magic cell_magics[] = {
	{ " time capture prun timeit ", USE_CODE },
	{ " bash sh ", USE_SHELL },
	{ " python python3 ", USE_PYTHON },
	{ " script ", USE_PROGRAM },
	{ " writefile file html HTML markdown latex svg SVG javascript js perl ruby ", USE_NOTHING },
};

struct notebook {
	struct judge *j;
	char *text; /* allocated: the text that is left for Python */
	size_t len;
	/* State at the beginning of a line: */
	unsigned depth; /* number of open brackets */
	char quote;     /* quote of a string that continues on this line; 0: none */
	bool goes_on;   /* the previous line ends with a backslash */
};

/* ---- names ------------------------------------------------------------------------------------------- */

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Looks up the magic named at this position; *ret is the end of the name. */
static enum use find_magic(const struct magic *rows, size_t n, const char *text, size_t at, size_t end, size_t *ret)
{
	char name[NAME_MAX_BYTES + 3] = " ";
	size_t len = 0;

	while (at + len < end && is_name_byte(text[at + len]))
		len++;
	*ret = at + len;
	/* one of these after the name: an expression with a variable of the program */
	if (len == 0 || len > NAME_MAX_BYTES || (*ret < end && strchr("([.=", text[*ret])))
		return USE_UNKNOWN;
	memcpy(name + 1, text + at, len);
	name[len + 1] = ' ';
	for (size_t i = 0; i < n; i++)
		if (strstr(rows[i].names, name))
			return rows[i].use;
	return USE_UNKNOWN;
}

static size_t skip_blanks(const char *text, size_t at, size_t end)
{
	while (at < end && (text[at] == ' ' || text[at] == '\t'))
		at++;
	return at;
}

/* Skips options of timeit and their numbers: -n 10 -r3 -q */
static size_t skip_options(const char *text, size_t at, size_t end)
{
	for (at = skip_blanks(text, at, end);
	     at + 1 < end && text[at] == '-' && isalpha((unsigned char)text[at + 1]);) {
		at += 2;
		while (at < end && isalpha((unsigned char)text[at]))
			at++;
		at = skip_blanks(text, at, end);
		while (at < end && isdigit((unsigned char)text[at]))
			at++;
		at = skip_blanks(text, at, end);
	}
	return at;
}

/* ---- one line ---------------------------------------------------------------------------------------- */

/* The position of the sign of a command or magic; end: there is none.  is_value: it follows an assignment. */
static size_t find_sign(const char *text, size_t at, size_t end, bool *is_value)
{
	*is_value = false;
	at = skip_blanks(text, at, end);
	if (at < end && (text[at] == '!' || text[at] == '%'))
		return at + 1 < end && text[at + 1] == '=' ? end : at;
	if (at == end || !is_name_byte(text[at]) || isdigit((unsigned char)text[at]))
		return end;
	while (at < end && (is_name_byte(text[at]) || strchr(".[]'\", ", text[at])))
		at++;
	if (at == end || text[at] != '=')
		return end;
	at = skip_blanks(text, at + 1, end);
	*is_value = true;
	return at < end && (text[at] == '!' || text[at] == '%') && (at + 1 == end || text[at + 1] != '=') ? at : end;
}

/* len?, ?len, len?? */
static bool is_question(const char *text, size_t at, size_t end)
{
	size_t names = 0, signs = 0;

	at = skip_blanks(text, at, end);
	while (end > at && isspace((unsigned char)text[end - 1]))
		end--;
	for (; at < end; at++) {
		names += is_name_byte(text[at]) || text[at] == '.' || text[at] == '%';
		signs += text[at] == '?';
		if (!is_name_byte(text[at]) && !strchr(".%? ", text[at]))
			return false;
	}
	return names > 0 && signs > 0 && signs <= 2 && text[end - 1] != ' ';
}

static void blank(struct notebook *n, size_t at, size_t end)
{
	for (; at < end; at++)
		if (n->text[at] != '\n')
			n->text[at] = ' ';
}

/* Replaces the text by a value, so that the surrounding code stays valid. */
static void blank_value(struct notebook *n, size_t at, size_t end)
{
	blank(n, at, end);
	n->text[at] = '0';
}

static void judge_run(struct notebook *n, size_t at, size_t end, struct span where)
{
	AUTO_BUF command = BUF_INIT(COMMAND_MAX);

	(void)buf_add(&command, "python3 ", strlen("python3 "));
	(void)buf_add(&command, n->text + at, end - at);
	judge_command(n->j, buf_str(&command), command.len, where);
}

/* Blanks the magic and keeps the code after it. */
static void blank_head(struct notebook *n, size_t sign, size_t code, size_t end, bool is_value)
{
	blank(n, sign, code);
	if (!is_value || code == end)
		n->text[sign] = '0';
	if (!is_value && code > sign + 1)
		n->text[sign + 1] = ';';
}

/* sign: position of the '%'.  False: not a known magic, or kept because it is inside a string or brackets. */
static bool take_magic(struct notebook *n, size_t sign, size_t end, bool is_value, bool is_inside)
{
	const struct span where = { (uint32_t)sign, (uint32_t)end };
	size_t at, rest;
	enum use use = find_magic(line_magics, ARRAY_LEN(line_magics), n->text, sign + 1, end, &at);

	rest = skip_blanks(n->text, at, end);
	switch (use) {
	case USE_CODE:
		rest = skip_options(n->text, rest, end);
		if (is_inside)
			judge_code(n->j, INSPECT_PYTHON, n->text + rest, end - rest, where);
		else
			blank_head(n, sign, rest, end, is_value);
		return !is_inside;
	case USE_COMMAND:
		judge_command(n->j, n->text + rest, end - rest, where);
		break;
	case USE_NAMED:
		judge_command(n->j, n->text + sign + 1, end - sign - 1, where);
		break;
	case USE_FILE:
		judge_run(n, rest, end, where);
		break;
	case USE_NOTHING:
		break;
	default:
		return false;
	}
	if (!is_inside)
		blank_value(n, sign, end);
	return !is_inside;
}

static void take_command(struct notebook *n, size_t sign, size_t end)
{
	size_t at = sign + 1 + (sign + 1 < end && n->text[sign + 1] == '!');

	judge_command(n->j, n->text + at, end - at, (struct span){ (uint32_t)sign, (uint32_t)end });
}

/* True: it was a command, magic or question, and is blanked except for the code after a magic. */
static bool take_line(struct notebook *n, size_t at, size_t end)
{
	bool is_value, is_inside = n->depth > 0 || n->quote || n->goes_on;
	size_t sign = find_sign(n->text, at, end, &is_value);

	if (sign < end && n->text[sign] == '!') {
		take_command(n, sign, end);
		if (!is_inside)
			blank_value(n, sign, end);
		return !is_inside;
	}
	if (sign < end)
		return take_magic(n, sign, end, is_value, is_inside);
	if (is_inside || !is_question(n->text, at, end))
		return false;
	blank_value(n, skip_blanks(n->text, at, end), end);
	return true;
}

/* ---- strings and brackets ---------------------------------------------------------------------------- */

static bool is_triple(const char *text, size_t at, size_t end)
{
	return at + 2 < end && text[at + 1] == text[at] && text[at + 2] == text[at];
}

/* Returns the end of the string that begins with the quotes at this position; with three quotes it may span lines. */
static size_t skip_string(struct notebook *n, size_t at, size_t end, char quote, bool triple)
{
	for (; at < end; at++) {
		if (n->text[at] == '\\') {
			at++;
		} else if (n->text[at] == quote && (!triple || is_triple(n->text, at, end))) {
			n->quote = 0;
			return at + (triple ? 3 : 1);
		}
	}
	n->quote = triple ? quote : 0;
	return end;
}

static void scan_line(struct notebook *n, size_t at, size_t end)
{
	if (n->quote)
		at = skip_string(n, at, end, n->quote, true);
	while (at < end) {
		char c = n->text[at];
		bool triple = is_triple(n->text, at, end);

		if (c == '#')
			return;
		if (c == '\'' || c == '"') {
			at = skip_string(n, at + (triple ? 3 : 1), end, c, triple);
			continue;
		}
		if (strchr("([{", c))
			n->depth++;
		else if (strchr(")]}", c) && n->depth > 0)
			n->depth--;
		at++;
	}
}

/*
 * ---- cells --------------------------------------------------------------------------------------------------------
 */

static size_t line_end(const struct notebook *n, size_t at)
{
	const char *end = memchr(n->text + at, '\n', n->len - at);

	return end ? (size_t)(end - n->text) : n->len;
}

static void take_lines(struct notebook *n, size_t at)
{
	while (at < n->len) {
		size_t end = line_end(n, at), whole = end;

		/* a backslash continues a command; Python is scanned line by line */
		while (whole > at && whole < n->len && n->text[whole - 1] == '\\')
			whole = line_end(n, whole + 1);
		if (take_line(n, at, whole)) {
			n->goes_on = false;
			at = whole + 1;
			continue;
		}
		scan_line(n, at, end);
		n->goes_on = end > at && n->text[end - 1] == '\\';
		at = end + 1;
	}
	inspect_python(n->j, n->text, n->len);
}

/* The head is %%NAME ...; the body begins on the next line. */
static void take_cell(struct notebook *n, size_t at, size_t end)
{
	const size_t body = end < n->len ? end + 1 : n->len;
	const struct span where = { (uint32_t)body, (uint32_t)n->len };
	const char *text = n->text + body;
	size_t rest;
	enum use use = find_magic(cell_magics, ARRAY_LEN(cell_magics), n->text, at + 2, end, &rest);

	rest = skip_blanks(n->text, rest, end);
	switch (use) {
	case USE_SHELL:
		judge_code(n->j, INSPECT_SHELL, text, n->len - body, where);
		break;
	case USE_PYTHON:
		judge_code(n->j, INSPECT_PYTHON, text, n->len - body, where);
		break;
	case USE_PROGRAM: /* any program, usually a shell */
		judge_command(n->j, n->text + rest, end - rest, (struct span){ (uint32_t)at, (uint32_t)end });
		judge_code(n->j, INSPECT_SHELL, text, n->len - body, where);
		break;
	case USE_NOTHING:
		break;
	case USE_CODE: /* for timeit, the rest of the line is code, too */
		rest = skip_options(n->text, rest, end);
		if (strncmp(n->text + at, "%%timeit", strlen("%%timeit")) == 0)
			judge_code(n->j, INSPECT_PYTHON, n->text + rest, end - rest,
				   (struct span){ (uint32_t)at, (uint32_t)end });
		blank_value(n, at, end);
		take_lines(n, body);
		break;
	default:
		take_lines(n, 0);
	}
}

/* The first line that is neither empty nor a comment. */
static size_t first_line(const struct notebook *n)
{
	size_t at = 0;

	while (at < n->len) {
		size_t begin = skip_blanks(n->text, at, n->len);

		if (begin < n->len && n->text[begin] != '\n' && n->text[begin] != '#')
			return at;
		at = line_end(n, begin) + 1;
	}
	return 0;
}

/* The kernel removes the common indentation of a text: so does this. */
static bool take_indented(const struct notebook *n, size_t first)
{
	size_t indent = skip_blanks(n->text, first, n->len) - first, at = 0;
	AUTO_BUF text = BUF_INIT(n->len + 1);

	if (indent == 0)
		return false;
	while (at < n->len) {
		size_t end = line_end(n, at), skip = 0;

		if (end - at >= indent && memcmp(n->text + at, n->text + first, indent) == 0)
			skip = indent;
		(void)buf_add(&text, n->text + at + skip, end - at - skip + (end < n->len));
		at = end + 1;
	}
	n->j->out_of_memory |= text.no_memory;
	judge_code(n->j, INSPECT_NOTEBOOK, buf_str(&text), text.len, (struct span){ 0, (uint32_t)n->len });
	return true;
}

void inspect_notebook(struct judge *j, const char *text, size_t len)
{
	AUTO_FREE char *copy = calloc(1, len + 1);
	struct notebook n = { .j = j, .text = copy, .len = len };
	size_t first;

	if (!copy) {
		j->out_of_memory = true;
		return;
	}
	if (!memchr(text, '!', len) && !memchr(text, '%', len) && !memchr(text, '?', len) &&
	    !isspace((unsigned char)*text)) {
		inspect_python(j, text, len);
		return;
	}
	memcpy(copy, text, len);
	first = first_line(&n);
	if (take_indented(&n, first))
		return;
	if (strncmp(n.text + first, "%%", 2) == 0)
		take_cell(&n, first, line_end(&n, first));
	else
		take_lines(&n, 0);
}
