/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one value from pip's, npm's and go's configuration files.  All three have lines of "name = value"; the
 * differences are in the callers.  Other lines, unknown names and values that cannot be a URL are skipped: complaining
 * about its files is up to the installer.
 */
#include <string.h>

#include "packages/packages.h"

struct line {
	const char *name, *value; /* not terminated */
	size_t name_len, value_len;
	bool is_section; /* [name] */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **s, size_t *len)
{
	while (*len > 0 && is_space(**s)) {
		(*s)++;
		(*len)--;
	}
	while (*len > 0 && is_space((*s)[*len - 1]))
		(*len)--;
}

/* The next line that says something; false at the end.  marks: what may stand between name and value. */
static bool next_line(const char **text, size_t *len, const char *marks, struct line *ret)
{
	while (*len > 0) {
		const char *s = *text, *end = memchr(s, '\n', *len);
		size_t n = end ? (size_t)(end - s) : *len, at = 0;
		size_t used = n + (end != NULL);

		*text += used;
		*len -= used;
		trim(&s, &n);
		if (n == 0 || *s == '#' || *s == ';')
			continue;
		*ret = (struct line){ .is_section = n > 2 && *s == '[' && s[n - 1] == ']' };
		if (ret->is_section) {
			ret->name = s + 1;
			ret->name_len = n - 2;
			return true;
		}
		while (at < n && !strchr(marks, s[at]))
			at++;
		if (at == n)
			continue;
		ret->name = s;
		ret->name_len = at;
		ret->value = s + at + 1;
		ret->value_len = n - at - 1;
		trim(&ret->name, &ret->name_len);
		trim(&ret->value, &ret->value_len);
		return true;
	}
	return false;
}

/* pip takes "index-url" and "index_url" for the same. */
static bool is_named(const struct line *l, const char *name)
{
	if (strlen(name) != l->name_len)
		return false;
	for (size_t i = 0; i < l->name_len; i++)
		if (l->name[i] != name[i] && !(l->name[i] == '_' && name[i] == '-'))
			return false;
	return true;
}

/* Quotes around it go; false if it does not fit or has bytes that no address has. */
static bool take_value(const struct line *l, char *dst, size_t size)
{
	const char *s = l->value;
	size_t len = l->value_len;

	if (len >= 2 && (*s == '"' || *s == '\'') && s[len - 1] == *s) {
		s++;
		len -= 2;
	}
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	memcpy(dst, s, len);
	dst[len] = '\0';
	return true;
}

bool pip_conf_index(const char *text, size_t len, char *dst, size_t size)
{
	enum { OTHER, GLOBAL, INSTALL } section = OTHER, from = OTHER;
	struct line l;

	while (next_line(&text, &len, "=:", &l)) {
		if (l.is_section)
			section = is_named(&l, "global") ? GLOBAL : is_named(&l, "install") ? INSTALL : OTHER;
		else if (section != OTHER && section >= from && is_named(&l, "index-url") && take_value(&l, dst, size))
			from = section; /* the command's own section goes before the one for all */
	}
	return from != OTHER;
}

bool npmrc_registry(const char *text, size_t len, char *dst, size_t size)
{
	bool found = false, in_section = false;
	struct line l;

	while (next_line(&text, &len, "=", &l)) {
		if (l.is_section)
			in_section = true; /* what follows is called section.name */
		else if (!in_section && is_named(&l, "registry") && !memmem(l.value, l.value_len, "${", 2))
			found |= take_value(&l, dst, size);
	}
	return found;
}

bool go_env_proxy(const char *text, size_t len, char *dst, size_t size)
{
	bool found = false;
	struct line l;

	while (next_line(&text, &len, "=", &l))
		if (!l.is_section && is_named(&l, "GOPROXY"))
			found |= take_value(&l, dst, size);
	return found;
}
