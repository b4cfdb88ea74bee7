/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/dotenv.h"

#include <string.h>

static int peek(const struct dotenv *d)
{
	return d->at < d->end ? (unsigned char)*d->at : -1;
}

static int take(struct dotenv *d)
{
	int c = peek(d);

	if (c < 0)
		return c;
	d->line += c == '\n';
	d->at++;
	return c;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct dotenv *d)
{
	while (is_blank(peek(d)))
		(void)take(d);
}

static void skip_line(struct dotenv *d)
{
	while (peek(d) >= 0 && take(d) != '\n')
		;
}

static bool is_name_byte(int c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static const char *read_name(struct dotenv *d, struct dotenv_entry *e)
{
	size_t n = 0;

	while (is_name_byte(peek(d), n == 0)) {
		if (n + 1 == sizeof(e->name))
			return "the name is too long";
		e->name[n++] = (char)take(d);
	}
	e->name[n] = '\0';
	return n ? NULL : "a line is NAME=VALUE, with a name of letters, digits and _";
}

static void add(struct dotenv_entry *e, size_t *n, int c)
{
	if (*n + 1 == sizeof(e->value))
		e->cut = true;
	else
		e->value[(*n)++] = (char)c;
	e->value[*n] = '\0';
}

/* Behind the backslash of a text in double quotes. */
static void add_escaped(struct dotenv_entry *e, size_t *n, int c)
{
	static const char from[] = "nrt\"\\$", to[] = "\n\r\t\"\\$";
	const char *known = strchr(from, c);

	if (known)
		add(e, n, to[known - from]);
	else {
		add(e, n, '\\');
		add(e, n, c);
	}
}

/* A NUL is no part of a text; every other byte may be, and who takes the value judges it. */
static const char *read_quoted(struct dotenv *d, struct dotenv_entry *e)
{
	int quote = take(d), c;
	size_t n = 0;

	while ((c = take(d)) != quote) {
		if (c < 0)
			return "the quotes of the value are not closed";
		if (c == '\0')
			return "there is a NUL in the value";
		if (c == '\\' && quote == '"' && peek(d) > 0) {
			add_escaped(e, &n, take(d));
			continue;
		}
		e->expands |= c == '$' && quote == '"';
		add(e, &n, c);
	}
	skip_blanks(d);
	return peek(d) < 0 || peek(d) == '\n' || peek(d) == '#' ? NULL : "something follows the closing quote";
}

static const char *read_plain(struct dotenv *d, struct dotenv_entry *e)
{
	size_t n = 0, used = 0; /* without the blanks at the end */

	while (peek(d) >= 0 && peek(d) != '\n') {
		int c = take(d);

		if (c == '\0')
			return "there is a NUL in the value";
		if (c == '#' && n > used)
			break;
		add(e, &n, c);
		if (!is_blank(c))
			used = n;
		e->expands |= c == '$';
	}
	e->value[used] = '\0';
	return NULL;
}

static const char *read_value(struct dotenv *d, struct dotenv_entry *e)
{
	if (peek(d) != '=')
		return "there is no = behind the name";
	(void)take(d);
	if (is_blank(peek(d))) {
		skip_blanks(d);
		if (peek(d) == '#') /* NAME= # a comment */
			return NULL;
	}
	return peek(d) == '"' || peek(d) == '\'' ? read_quoted(d, e) : read_plain(d, e);
}

static const char *read_entry(struct dotenv *d, struct dotenv_entry *e)
{
	const char *why = read_name(d, e);

	if (!why && strcmp(e->name, "export") == 0 && is_blank(peek(d))) {
		skip_blanks(d);
		if (peek(d) != '=')
			why = read_name(d, e);
	}
	skip_blanks(d);
	return why ? why : read_value(d, e);
}

bool dotenv_next(struct dotenv *d, struct dotenv_entry *ret)
{
	for (;;) {
		skip_blanks(d);
		if (peek(d) != '#' && peek(d) != '\n')
			break;
		skip_line(d);
	}
	if (peek(d) < 0)
		return false;
	ret->line = d->line;
	ret->name[0] = ret->value[0] = '\0';
	ret->expands = ret->cut = false;
	ret->why = read_entry(d, ret);
	skip_line(d);
	return true;
}
