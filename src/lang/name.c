/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source file's name in the workspace.  The caller's name is kept if possible, because programs show it in
 * tracebacks. It becomes a path component and an argument, so it is sanitized.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "lang/lang.h"

#define EXTENSION_MAX 8 /* longest extension in the table, plus one character for a reserved ending */

/* Length of the control character at s, 0: none.  Includes the C1 characters, which terminals also interpret. */
static size_t control_at(const char *s)
{
	unsigned char first = (unsigned char)s[0], second = (unsigned char)s[1];

	if (first < 0x20 || first == 0x7f)
		return 1;
	return first == 0xc2 && second >= 0x80 && second <= 0x9f ? 2 : 0;
}

/* Replaces characters in place that no file name needs; dst has n bytes and a NUL. */
static void sanitize(char *dst, size_t n)
{
	size_t valid;

	for (size_t i = 0; i < n; i++)
		for (size_t bad = control_at(dst + i); bad > 0; bad--)
			dst[i + bad - 1] = '_';
	while ((valid = str_utf8_prefix(dst, n)) < n)
		dst[valid] = '_';
}

/* Copies a stem without leading characters that would make it an option, or a hidden or ignored file. */
static size_t copy_stem(const struct language *lang, const char *stem, size_t len, char *dst, size_t size)
{
	const char *ignored = lang->ignored_leading ? lang->ignored_leading : "";

	while (len > 0 && (strchr("-. ", *stem) || strchr(ignored, *stem))) {
		stem++;
		len--;
	}
	len = min_u64(len, size - 1);
	memcpy(dst, stem, len);
	dst[len] = '\0';
	sanitize(dst, len);
	return len;
}

/* The extension of the row with which name ends, ignoring case, or NULL. */
static const char *own_extension(const struct language *lang, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(lang->extensions) && lang->extensions[i]; i++) {
		size_t n = strlen(lang->extensions[i]);

		if (len > n && strcasecmp(name + len - n, lang->extensions[i]) == 0)
			return lang->extensions[i];
	}
	return NULL;
}

static bool ends_with(const char *s, size_t n, const char *ending)
{
	size_t m = strlen(ending);

	return n >= m && str_eq(s + n - m, ending);
}

const char *lang_source_name(const struct language *lang, const char *file_name, char *dst, size_t size)
{
	const char *slash = file_name ? strrchr(file_name, '/') : NULL;
	const char *base = slash ? slash + 1 : file_name ? file_name : "";
	const char *ext = own_extension(lang, base);
	size_t n = strlen(base) - (ext ? strlen(ext) : 0);

	assert(size > LANG_NAME_MAX);
	n = copy_stem(lang, base, n, dst, LANG_NAME_MAX - EXTENSION_MAX);
	if (n == 0) {
		(void)str_copy(dst, size, lang->source_name);
		return dst;
	}
	if (lang->reserved_ending && ends_with(dst, n, lang->reserved_ending))
		dst[n++] = '_';
	if (!ext && !lang->any_extension)
		ext = lang->extensions[0];
	(void)str_copy(dst + n, size - n, ext ? ext : "");
	return dst;
}
