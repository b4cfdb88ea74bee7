/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes report a missing module in a fixed wording, followed by its name; the last such line counts. Each pattern
 * has a strict syntax for names, and other text gives no hint, because the program wrote it.
 */
#include "executor/hint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define NAME_LEN_MAX 100

static const struct {
	const char *module, *package, *debian;
} packages[] = {
#define PACKAGE(module, package, debian) { module, package, debian },
#include "executor/hints.def"
};

/* ---- names --------------------------------------------------------------------------------------- */

/* Not isalnum(), which depends on the caller's locale. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t span(const char *s, size_t len, const char *also)
{
	size_t n = 0;

	while (n < len && s[n] && (is_letter(s[n]) || is_digit(s[n]) || strchr(also, s[n])))
		n++;
	return n;
}

/* The package of "package.module". */
static size_t python_name(const char *s, size_t len)
{
	size_t n = len > 0 && !is_digit(*s) ? span(s, len, "_") : 0;

	return n < len && (s[n] == '\'' || s[n] == '.') ? n : 0;
}

/* "name" or "@scope/name", possibly followed by "/file"; no path, and none of Node's "node:" modules. */
static size_t node_name(const char *s, size_t len)
{
	size_t scope = len > 0 && *s == '@' ? 1 + span(s + 1, len - 1, "-_.") : 0, n;

	if (scope > 0 && (scope == 1 || scope == len || s[scope++] != '/'))
		return 0;
	if (scope == len || s[scope] == '.' || s[scope] == '-')
		return 0;
	n = span(s + scope, len - scope, "-_.");
	return n > 0 && (scope + n == len || s[scope + n] == '\'' || s[scope + n] == '/') ? scope + n : 0;
}

/* A module's path begins with a host. */
static size_t go_name(const char *s, size_t len)
{
	size_t n = span(s, len, "-_.~/"), host = 0;

	while (n > 0 && strchr(".:/", s[n - 1]))
		n--;
	while (host < n && s[host] != '/')
		host++;
	return n > 0 && *s != '/' && *s != '-' && memchr(s, '.', host) ? n : 0;
}

/* ---- sentences ----------------------------------------------------------------------------------- */

static void python_hint(const char *name, enum hint_place where, char *dst, size_t size)
{
	const char *package = name, *debian = NULL;
	char usual[NAME_LEN_MAX + 16];

	(void)snprintf(usual, sizeof(usual), "python3-%s", name);
	for (char *c = usual; *c; c++)
		*c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
	for (size_t i = 0; i < ARRAY_LEN(packages); i++)
		if (str_eq(packages[i].module, name)) {
			package = packages[i].package;
			debian = packages[i].debian;
		}
	if (where == HINT_IMAGE && package)
		(void)snprintf(dst, size,
			       "module '%s' is missing in the image: docker_requirements: [%s] in the policy puts it "
			       "there, or "
			       "use --packages %s with backend native",
			       name, package, package);
	else if (where == HINT_IMAGE)
		(void)snprintf(dst, size, "module '%s' is missing in the image: use a docker_image that has it", name);
	else if (!package)
		(void)snprintf(dst, size, "module '%s' is missing: install the Debian package %s on the host", name,
			       debian);
	else
		(void)snprintf(dst, size,
			       "module '%s' is missing: --packages %s installs it, or install the Debian package %s on "
			       "the host",
			       name, package, debian ? debian : usual);
}

static void plain_hint(const char *name, enum hint_place where, char *dst, size_t size)
{
	if (where == HINT_IMAGE)
		(void)snprintf(dst, size,
			       "package '%s' is missing in the image: use --packages %s with backend native, or a "
			       "docker_image that has it",
			       name, name);
	else
		(void)snprintf(dst, size, "package '%s' is missing: --packages %s installs it", name, name);
}

/* ---- forms of words ------------------------------------------------------------------------------ */

static const struct form {
	const char *words;
	size_t (*name)(const char *s, size_t len); /* its length; 0: no valid name */
	void (*hint)(const char *name, enum hint_place where, char *dst, size_t size);
} forms[] = {
	{ "ModuleNotFoundError: No module named '", python_name, python_hint },
	{ "Cannot find module '", node_name, plain_hint },
	{ "Cannot find package '", node_name, plain_hint },
	{ "no required module provides package ", go_name, plain_hint },
	{ "cannot find module providing package ", go_name, plain_hint },
};

/* Where the last occurrence of words ends; NULL: there is none. */
static const char *last_behind(const char *text, size_t len, const char *words)
{
	size_t n = strlen(words);
	const char *found = NULL, *at = text;

	while ((at = memmem(at, len - (size_t)(at - text), words, n)))
		found = at += n;
	return found;
}

void hint_find(const char *tail, size_t len, enum hint_place where, char *dst, size_t size)
{
	const char *last = NULL;

	*dst = '\0';
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		const char *at = last_behind(tail, len, forms[i].words);
		size_t n = at ? forms[i].name(at, len - (size_t)(at - tail)) : 0;
		char name[NAME_LEN_MAX + 1];

		if (n == 0 || n > NAME_LEN_MAX || (last && at < last))
			continue;
		last = at;
		memcpy(name, at, n);
		name[n] = '\0';
		forms[i].hint(name, where, dst, size);
	}
}
