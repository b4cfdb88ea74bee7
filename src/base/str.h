/* SPDX-License-Identifier: Apache-2.0 */
/* Strict text-to-value conversions: the whole string must be the value, nothing is guessed. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/util.h"

/* Decimal digits only: no sign, no space, no overflow. Async-signal-safe. */
bool str_to_u64(const char *s, uint64_t *ret);
/* "1g", "512M", "64kb", "100 MiB", "1.5g", "4096": bytes, powers of 1024. */
bool str_to_bytes(const char *s, uint64_t *ret);
/* "250ms", "5s", "2m", "1h", "1.5s"; a bare number is multiplied by bare_unit_ms. */
bool str_to_millis(const char *s, uint64_t bare_unit_ms, uint64_t *ret);
/* "true/false/yes/no/on/off/1/0", any case. */
bool str_to_bool(const char *s, bool *ret);
/* Copies with truncation; always terminates. Returns false if it was cut. */
bool str_copy(char *dst, size_t size, const char *src);
/* 512 MiB -> "512 MB", 1536 -> "1.5 KB"; into dst, returned. */
const char *str_bytes(char *dst, size_t size, uint64_t bytes);
/* The candidate nearest to word by edit distance, or NULL if none is near. */
const char *str_nearest(const char *word, const char *const *candidates, size_t n);
/* Length of the longest valid UTF-8 prefix. */
size_t str_utf8_prefix(const char *s, size_t len);
/* Whether these bytes, which are not UTF-8, could be completed to it: a truncated character. */
bool str_utf8_is_cut(const char *s, size_t len);
static inline bool str_is_utf8(const char *s, size_t len)
{
	return str_utf8_prefix(s, len) == len;
}
static inline bool str_eq(const char *a, const char *b)
{
	return __builtin_strcmp(a, b) == 0;
}

#endif
