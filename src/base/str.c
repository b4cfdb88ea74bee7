/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool str_to_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	}
	*ret = v;
	return true;
}

/*
 * A decimal number with an optional fraction, in thousandths; *end is set behind it.
 * Three fraction digits are exact enough for sizes and durations, and integers cannot lose precision.
 */
static bool read_milli(const char *s, uint64_t *ret, const char **end)
{
	uint64_t whole = 0, frac = 0, scale = 100;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return false;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return false;
		for (; isdigit((unsigned char)*s); s++, scale /= 10)
			frac += (uint64_t)(*s - '0') * scale;
	}
	if (__builtin_mul_overflow(whole, (uint64_t)1000, &whole) || __builtin_add_overflow(whole, frac, ret))
		return false;
	*end = s;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static bool apply_unit(uint64_t milli, const char *name, const struct unit *units, size_t n, uint64_t *ret)
{
	uint64_t v;

	while (*name == ' ')
		name++;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(name, units[i].name) != 0)
			continue;
		/* Divide first where that is exact, so that large integers do not overflow on the way. */
		if (milli % 1000 == 0)
			return !__builtin_mul_overflow(milli / 1000, units[i].factor, ret);
		if (__builtin_mul_overflow(milli, units[i].factor, &v))
			return false;
		*ret = v / 1000;
		return true;
	}
	return false;
}

bool str_to_bytes(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1 },      { "b", 1 },          { "k", KiB },         { "kb", KiB },         { "kib", KiB },
		{ "m", MiB },   { "mb", MiB },       { "mib", MiB },       { "g", GiB },          { "gb", GiB },
		{ "gib", GiB }, { "t", 1024 * GiB }, { "tb", 1024 * GiB }, { "tib", 1024 * GiB },
	};
	uint64_t milli;
	const char *end;

	return read_milli(s, &milli, &end) && apply_unit(milli, end, units, ARRAY_LEN(units), ret);
}

bool str_to_millis(const char *s, uint64_t bare_unit_ms, uint64_t *ret)
{
	const struct unit units[] = {
		{ "", bare_unit_ms }, { "ms", 1 },      { "s", 1000 },    { "sec", 1000 },
		{ "m", 60000 },       { "min", 60000 }, { "h", 3600000 },
	};
	uint64_t milli;
	const char *end;

	return read_milli(s, &milli, &end) && apply_unit(milli, end, units, ARRAY_LEN(units), ret);
}

bool str_to_bool(const char *s, bool *ret)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "true", true },   { "yes", true }, { "on", true },   { "1", true },
		{ "false", false }, { "no", false }, { "off", false }, { "0", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(s, words[i].word) == 0) {
			*ret = words[i].value;
			return true;
		}
	return false;
}

bool str_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);
	size_t keep = len < size ? len : size - 1;

	memcpy(dst, src, keep);
	dst[keep] = '\0';
	return keep == len;
}

const char *str_bytes(char *dst, size_t size, uint64_t bytes)
{
	static const char *const names[] = { "B", "KB", "MB", "GB", "TB", "PB", "EB" };
	double v = (double)bytes;
	size_t i = 0;

	while (v >= 1024 && i + 1 < ARRAY_LEN(names)) {
		v /= 1024;
		i++;
	}
	/* Whole values without a fraction: limits are nearly always round. */
	(void)snprintf(dst, size, v == (double)(uint64_t)v ? "%.0f %s" : "%.1f %s", v, names[i]);
	return dst;
}

#define NEAREST_MAX 48 /* longer words are not typos */

static size_t edit_distance(const char *a, const char *b)
{
	size_t row[NEAREST_MAX + 1];
	size_t nb = strlen(b);

	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t cost = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < cost)
				cost = row[j] + 1;
			if (row[j - 1] + 1 < cost)
				cost = row[j - 1] + 1;
			row[j] = cost;
		}
	}
	return row[nb];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t best_distance = strlen(word) / 3 + 1; /* a third of the letters may be wrong, not more */

	if (strlen(word) > NEAREST_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d;

		if (strlen(candidates[i]) > NEAREST_MAX)
			continue;
		d = edit_distance(word, candidates[i]);
		if (d <= best_distance && (!best || d < best_distance)) {
			best = candidates[i];
			best_distance = d;
		}
	}
	return best;
}

/* Length of the valid sequence at s, 0 if there is none: shortest form only, no surrogates, at most U+10FFFF. */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
	static const struct {
		unsigned char lo, hi, size, second_lo, second_hi;
	} forms[] = {
		{ 0x00, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
		{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
		{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (s[0] < forms[i].lo || s[0] > forms[i].hi)
			continue;
		if (forms[i].size > len)
			return 0;
		for (size_t k = 1; k < forms[i].size; k++)
			if (s[k] < (k == 1 ? forms[i].second_lo : 0x80) || s[k] > (k == 1 ? forms[i].second_hi : 0xbf))
				return 0;
		return forms[i].size;
	}
	return 0;
}

size_t str_utf8_prefix(const char *s, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t n = utf8_sequence((const unsigned char *)s + at, len - at);

		if (n == 0)
			break;
		at += n;
	}
	return at;
}

bool str_utf8_is_cut(const char *s, size_t len)
{
	/* One of these fits any lead byte; after the second byte every continuation byte does. */
	static const char second[] = { '\x80', '\x90', '\xa0' };

	if (len == 0 || len > 3)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(second); i++) {
		char whole[4] = { s[0], second[i], '\x80', '\x80' };

		memcpy(whole, s, len);
		for (size_t n = len + 1; n <= sizeof(whole); n++)
			if (str_is_utf8(whole, n))
				return true;
	}
	return false;
}
