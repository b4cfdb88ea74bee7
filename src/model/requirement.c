/* SPDX-License-Identifier: Apache-2.0 */
#include "model/requirement.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char *const ops[] = { "===", "==", "!=", ">=", "<=", "~=", ">", "<" };

void requirement_name(const char *name, size_t len, char dst[REQUIREMENT_NAME_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < REQUIREMENT_NAME_MAX; i++) {
		bool separates = name[i] && strchr("-_.", name[i]);

		if (!separates)
			dst[n++] = (char)tolower((unsigned char)name[i]);
		else if (n == 0 || dst[n - 1] != '-')
			dst[n++] = '-';
	}
	dst[n] = '\0';
}

const char *requirement_parse(const char *text, struct requirement *ret)
{
	size_t len = strspn(text, LETTERS_AND_DIGITS "-_.");

	memset(ret, 0, sizeof(*ret));
	if (len == 0 || len > REQUIREMENT_NAME_MAX || !isalnum((unsigned char)text[0]) ||
	    !isalnum((unsigned char)text[len - 1]))
		return "a package has a name of letters, digits, '.', '-' and '_'";
	requirement_name(text, len, ret->name);
	text += len;
	if (*text == '[') {
		len = strspn(text + 1, LETTERS_AND_DIGITS "-_.,");
		if (len == 0 || text[len + 1] != ']')
			return "what stands in [] are names of extras";
		ret->has_extras = true;
		text += len + 2;
	}
	for (size_t i = 0; i < ARRAY_LEN(ops) && !ret->op[0]; i++)
		if (strncmp(text, ops[i], strlen(ops[i])) == 0)
			(void)str_copy(ret->op, sizeof(ret->op), ops[i]);
	text += strlen(ret->op);
	if (!ret->op[0])
		return *text ? "behind the name comes one of == != >= <= ~= > < and a version, without blanks" : NULL;
	len = strspn(text, LETTERS_AND_DIGITS ".+!-_");
	if (len == 0 || len > REQUIREMENT_VERSION_MAX || text[len])
		return "there is one condition at most, with a version of letters, digits and dots";
	(void)str_copy(ret->version, sizeof(ret->version), text);
	return NULL;
}

/* The next number of a version, 0 behind its end: "2.1" is "2.1.0". */
static uint64_t next_number(const char **at)
{
	uint64_t n = 0;

	while (isdigit((unsigned char)**at) && n < UINT64_MAX / 100)
		n = n * 10 + (uint64_t)(*(*at)++ - '0');
	if (**at == '.')
		(*at)++;
	return n;
}

static bool is_plain(const char *version)
{
	return isdigit((unsigned char)version[0]) && version[strspn(version, "0123456789.")] == '\0';
}

static int compare(const char *a, const char *b)
{
	while (*a || *b) {
		uint64_t x = next_number(&a), y = next_number(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* ~=2.1.3: the same up to the last number but one. */
static bool is_compatible(const char *have, const char *want)
{
	char series[REQUIREMENT_VERSION_MAX + 1];
	char *dot;
	size_t len;

	(void)str_copy(series, sizeof(series), want);
	dot = strrchr(series, '.');
	if (!dot || compare(have, want) < 0)
		return false;
	*dot = '\0';
	len = strlen(series);
	return strncmp(have, series, len) == 0 && (have[len] == '.' || have[len] == '\0');
}

bool requirement_allows(const struct requirement *r, const char *version)
{
	char have[REQUIREMENT_VERSION_MAX + 1];
	int order;

	if (!r->op[0])
		return true;
	(void)snprintf(have, sizeof(have), "%.*s", (int)strcspn(version, "+"), version); /* what a distribution adds */
	if (!is_plain(have) || !is_plain(r->version) || str_eq(r->op, "==="))
		return (str_eq(r->op, "==") || str_eq(r->op, "===")) && str_eq(version, r->version);
	if (str_eq(r->op, "~="))
		return is_compatible(have, r->version);
	order = compare(have, r->version);
	switch (r->op[0]) {
	case '=':
		return order == 0;
	case '!':
		return order != 0;
	case '>':
		return order > 0 || (order == 0 && r->op[1]);
	default:
		return order < 0 || (order == 0 && r->op[1]);
	}
}
