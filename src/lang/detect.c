/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects the language of a program.  The caller's choice decides, then the file's extension, then the shebang.
 *
 * One refinement: where a row has variants (bash is one of shell), the general name or extension leaves the choice to
 * the file, so "build.sh" that starts with #!/bin/bash runs with bash, as it would anywhere. An alias is exact: --lang
 * sh means sh.  A file that does not choose runs with the preferred variant if that is installed (lang_is_open): most
 * are written for bash.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"
#include "lang/lang.h"

#define SHEBANG_MAX 256 /* bytes of the first line that the kernel reads */
#define QUOTE_MAX   48  /* bytes of a caller's word repeated in a message */

/* A caller's word sanitized for a one-line message: no control characters, truncated. */
struct quoted {
	char text[QUOTE_MAX + 4];
};

static struct quoted quote(const char *word)
{
	struct quoted q = { "" };
	size_t n = 0;

	for (; n < QUOTE_MAX && word[n]; n++)
		q.text[n] = (unsigned char)word[n] < 0x20 || word[n] == 0x7f ? '?' : word[n];
	n = str_utf8_prefix(q.text, n);
	(void)str_copy(q.text + n, sizeof(q.text) - n, word[n] ? "..." : "");
	return q;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The extension with its dot, or NULL.  A leading dot makes a hidden file, not an extension. */
static const char *extension_of(const char *file_name)
{
	const char *base = base_name(file_name);
	const char *dot = strrchr(base, '.');

	return dot && dot != base && dot[1] ? dot : NULL;
}

static const struct language *by_extension(const char *file_name)
{
	const char *ext = extension_of(file_name);

	for (size_t i = 0; ext && i < language_count; i++)
		for (size_t j = 0; j < ARRAY_LEN(languages[i].extensions) && languages[i].extensions[j]; j++)
			if (strcasecmp(languages[i].extensions[j], ext) == 0)
				return &languages[i];
	return NULL;
}

/* Skips words between "env" and the interpreter: options, their values, assignments. */
static char *after_env(char **rest)
{
	char *word;

	while ((word = strtok_r(NULL, " \t", rest))) {
		if (str_eq(word, "-u") || str_eq(word, "--unset") || str_eq(word, "-C") || str_eq(word, "--chdir"))
			(void)strtok_r(NULL, " \t", rest);
		else if (strncmp(word, "-S", 2) == 0 && word[2])
			return word + 2;
		else if (strncmp(word, "--split-string=", 15) == 0 && word[15])
			return word + 15;
		else if (word[0] != '-' && !strchr(word, '='))
			return word;
	}
	return NULL;
}

/* The interpreter named in the first line, without its directory; NULL if there is none. */
static const char *shebang_of(const char *code, size_t len, char *line, size_t size)
{
	static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark, which some editors insert */
	char *rest = NULL, *word;
	size_t n = 0;

	if (len >= 3 && memcmp(code, mark, 3) == 0) {
		code += 3;
		len -= 3;
	}
	if (len < 2 || code[0] != '#' || code[1] != '!')
		return NULL;
	for (code += 2, len -= 2; n < len && n + 1 < size && !strchr("\r\n", code[n]); n++)
		line[n] = code[n];
	line[n] = '\0';
	word = strtok_r(line, " \t", &rest);
	if (word && str_eq(base_name(word), "env"))
		word = after_env(&rest);
	return word && *base_name(word) ? base_name(word) : NULL;
}

/* True if word is the interpreter itself or a minor version of it: "python3" or "python3.11". */
static bool names_interpreter(const char *word, const char *interpreter)
{
	size_t n = strlen(interpreter);

	if (strncmp(word, interpreter, n) != 0)
		return false;
	word += n;
	return !*word || (*word == '.' && word[1] && strspn(word, ".0123456789") == strlen(word));
}

static const struct language *by_interpreter(const char *word)
{
	for (size_t i = 0; word && i < language_count; i++)
		for (size_t j = 0; j < ARRAY_LEN(languages[i].interpreters) && languages[i].interpreters[j]; j++)
			if (names_interpreter(word, languages[i].interpreters[j]))
				return &languages[i];
	return NULL;
}

const struct language *lang_by_program(const char *program)
{
	static const struct {
		const char *program, *language;
	} more[] = {
		{ "pytest", "python" },  { "pip", "python" }, { "pip3", "python" }, { "npm", "javascript" },
		{ "npx", "javascript" }, { "gofmt", "go" },   { "cc", "c" },        { "make", "c" },
		{ "c++", "cpp" },        { "cargo", "rust" }, { "java", "java" },   { "javac", "java" },
	};
	const char *name = base_name(program);
	const struct language *lang = by_interpreter(name);

	for (size_t i = 0; !lang && i < ARRAY_LEN(more); i++)
		if (str_eq(more[i].program, name))
			lang = lang_by_name(more[i].language);
	for (size_t i = 0; !lang && i < language_count; i++)
		if (languages[i].compiles && str_eq(languages[i].compile.program, name))
			lang = &languages[i];
	return lang;
}

static bool is_variant_of(const struct language *variant, const struct language *general)
{
	return variant && variant->variant_of && str_eq(variant->variant_of, general->name);
}

static void list_known(struct buf *b)
{
	for (size_t i = 0; i < language_count; i++)
		(void)buf_addf(b, "%s%s", i ? ", " : "", languages[i].name);
}

#define CANDIDATES_MAX 64

static const char *nearest_name(const char *word)
{
	const char *all[CANDIDATES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < language_count; i++) {
		if (n < CANDIDATES_MAX)
			all[n++] = languages[i].name;
		for (size_t j = 0; j < ARRAY_LEN(languages[i].aliases) && languages[i].aliases[j]; j++)
			if (n < CANDIDATES_MAX)
				all[n++] = languages[i].aliases[j];
	}
	return str_nearest(word, all, n);
}

static int unknown_name(const char *name, struct brig_error *err)
{
	AUTO_BUF known = BUF_INIT(256);
	const char *near = nearest_name(name);

	list_known(&known);
	if (near)
		return err_set(err, BRIG_E_USAGE, 0, "unknown language '%s'; did you mean '%s'? known: %s",
			       quote(name).text, near, buf_str(&known));
	return err_set(err, BRIG_E_USAGE, 0, "unknown language '%s'; known: %s", quote(name).text, buf_str(&known));
}

static int undetected(const char *file_name, const char *interpreter, struct brig_error *err)
{
	AUTO_BUF known = BUF_INIT(256);
	const char *ext = *file_name ? extension_of(file_name) : NULL;

	list_known(&known);
	if (interpreter)
		return err_set(err, BRIG_E_USAGE, 0,
			       "the first line asks for '%s', which is not a language of brig; "
			       "say --lang NAME to choose one of: %s",
			       quote(interpreter).text, buf_str(&known));
	if (ext)
		return err_set(
			err, BRIG_E_USAGE, 0,
			"cannot tell the language of '%s': no language has the extension '%s' and the code has no "
			"#! line; say --lang NAME with one of: %s",
			quote(base_name(file_name)).text, quote(ext).text, buf_str(&known));
	return err_set(
		err, BRIG_E_USAGE, 0,
		"cannot tell the language%s%s%s: there is no file extension and no #! line; say --lang NAME with "
		"one of: %s",
		*file_name ? " of '" : "", quote(base_name(file_name)).text, *file_name ? "'" : "", buf_str(&known));
}

int lang_detect(const char *name, const char *file_name, const char *code, size_t len, const struct language **ret,
		struct brig_error *err)
{
	char line[SHEBANG_MAX];
	const char *file = file_name ? file_name : "";
	const char *interpreter = shebang_of(code, len, line, sizeof(line));
	const struct language *ext = by_extension(file), *bang = by_interpreter(interpreter);
	const struct language *lang = NULL;

	if (name && *name) {
		lang = lang_by_name(name);
		if (!lang)
			return unknown_name(name, err);
		if (strcasecmp(lang->name, name) == 0 && is_variant_of(ext, lang))
			lang = ext;
	} else {
		lang = ext ? ext : bang;
		name = lang ? lang->name : "";
	}
	if (!lang)
		return undetected(file, interpreter, err);
	if (strcasecmp(lang->name, name) == 0 && is_variant_of(bang, lang))
		lang = bang;
	*ret = lang;
	return 0;
}

bool lang_is_open(const struct language *lang, const char *name, const char *code, size_t len)
{
	char line[SHEBANG_MAX];

	return lang->preferred_variant && (!name || !*name || strcasecmp(lang->name, name) == 0) &&
	       !shebang_of(code, len, line, sizeof(line));
}
