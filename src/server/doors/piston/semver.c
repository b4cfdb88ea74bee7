/* SPDX-License-Identifier: Apache-2.0 */
#include "server/doors/piston/semver.h"

#include <string.h>

#define NUMBERS  3
#define TEXT_MAX 256

/* n: how many numbers are given, from the left: "3.x" has one. */
struct version {
	unsigned long number[NUMBERS];
	size_t n;
};

/* Parses "3.11.2", "v3", "3.x" or "*"; skips a pre-release or build suffix. Returns its end, or NULL. */
static const char *read_version(const char *at, struct version *ret)
{
	*ret = (struct version){ 0 };
	at += *at == 'v';
	for (size_t i = 0; i < NUMBERS; i++) {
		size_t digits = strspn(at, "0123456789");

		if (digits > 9)
			return NULL;
		if (digits == 0) {
			if (*at != '*' && *at != 'x' && *at != 'X')
				return NULL;
			at++;
		} else {
			for (size_t k = 0; k < digits; k++)
				ret->number[i] = 10 * ret->number[i] + (unsigned long)(at[k] - '0');
			ret->n += ret->n == i;
			at += digits;
		}
		if (*at != '.')
			break;
		at++;
	}
	if (*at == '-' || *at == '+')
		at += strcspn(at, " |");
	return *at == '\0' || *at == ' ' || *at == '|' ? at : NULL;
}

/* Compares the first n numbers. */
static int compare(const struct version *a, const struct version *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a->number[i] != b->number[i])
			return a->number[i] < b->number[i] ? -1 : 1;
	return 0;
}

/* How many numbers "^" keeps fixed: up to the first that is not 0, or all given ones in "^0.0". */
static size_t caret_numbers(const struct version *v)
{
	size_t n = 1;

	while (n < v->n && v->number[n - 1] == 0)
		n++;
	return v->n == 0 ? 0 : n;
}

static bool fits_one(const struct version *have, const char *op, size_t op_len, const struct version *want)
{
	int all = compare(have, want, NUMBERS), given = compare(have, want, want->n);

	if (op_len == 0 || (op_len == 1 && *op == '='))
		return given == 0;
	if (op_len == 1 && *op == '^')
		return all >= 0 && compare(have, want, caret_numbers(want)) == 0;
	if (*op == '~') /* "~>" is the same */
		return all >= 0 && compare(have, want, want->n < 2 ? want->n : 2) == 0;
	if (op_len == 1)
		return *op == '>' ? given > 0 : all < 0;
	return *op == '>' ? all >= 0 : given <= 0;
}

static bool is_operator(const char *op, size_t len)
{
	return len < 2 || (len == 2 && ((op[1] == '=' && (*op == '<' || *op == '>')) || (*op == '~' && op[1] == '>')));
}

/* Comparators separated by blanks, which must all hold; ends at "||". */
static bool fits_all(const struct version *have, const char **at, bool *ret_is_good)
{
	bool fits = true;

	*ret_is_good = true;
	for (;;) {
		size_t op_len = strspn(*at += strspn(*at, " "), "<>=^~");
		const char *op = *at, *end;
		struct version want;

		if (**at == '\0' || **at == '|')
			return fits;
		end = read_version(*at + op_len + strspn(*at + op_len, " "), &want);
		if (!end || !is_operator(op, op_len)) {
			*ret_is_good = false;
			return false;
		}
		if (op_len == 0 && strncmp(end, " - ", 3) == 0) { /* a range */
			fits &= fits_one(have, ">=", 2, &want);
			end = read_version(end + 3, &want);
			fits = fits && end && fits_one(have, "<=", 2, &want);
			*ret_is_good = end != NULL;
			if (!end)
				return false;
		} else {
			fits &= fits_one(have, op, op_len, &want);
		}
		*at = end;
	}
}

bool semver_fits(const char *version, const char *selector)
{
	bool fits = false, is_good = true;
	struct version have;

	if (!read_version(version, &have) || strlen(selector) > TEXT_MAX)
		return false;
	for (const char *at = selector; is_good;) {
		fits |= fits_all(&have, &at, &is_good);
		if (strncmp(at, "||", 2) != 0)
			return fits && is_good && *at == '\0';
		at += 2;
	}
	return false;
}
