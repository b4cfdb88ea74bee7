/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.c - extraction of the code from a model's answer
 *
 * Follows the original: of all fenced blocks, the first in the wanted language, else the first one; without closed
 * blocks, everything after an unclosed fence; without any fence, lines of Python that look like functions and classes,
 * or all lines of Bash.
 */
#include <string.h>

#include "base/str.h"
#include "server/doors/fusion/fusion.h"

#define FENCE    "```"
#define TEXT_MAX (16 * MiB)

/* True if the word after a fence names the language. */
static bool is_named(const char *word, size_t len, const char *language)
{
	static const struct {
		const char *language, *words; /* separated by blanks, with a blank at both ends */
	} rows[] = {
		{ "python", " python Python py Python3 python3 PY " },
		{ "cpp", " cpp c++ C++ Cpp CPP " },
		{ "nodejs", " javascript Javascript JavaScript JS js " },
		{ "go", " go Go " },
		{ "java", " java Java " },
		{ "php", " php PHP " },
		{ "csharp", " csharp c# C# " },
		{ "bash", " bash Bash BASH sh shell " },
		{ "typescript", " typescript " },
		{ "rust", " rust Rust rs " },
		{ "sql", " sql SQL Sql " },
		{ "julia", " julia Julia jl " },
		{ "lua", " lua Lua " },
		{ "perl", " perl Perl PERL " },
		{ "R", " R r " },
		{ "ruby", " ruby Ruby " },
		{ "scala", " scala Scala " },
		{ "c", " c C " },
		{ "verilog", " verilog Verilog VERILOG " },
		{ "racket", " racket " },
		{ "swift", " swift " },
	};
	char wanted[32];

	while (len > 0 && strchr(" \t\r", word[len - 1]))
		len--;
	while (len > 0 && strchr(" \t", *word))
		word++, len--;
	if (len == 0 || len > sizeof(wanted) - 3 || memchr(word, ' ', len))
		return false;
	wanted[0] = ' ';
	memcpy(wanted + 1, word, len);
	memcpy(wanted + 1 + len, " ", 2);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].language, language))
			return strstr(rows[i].words, wanted) != NULL;
	return false;
}

struct block {
	const char *word, *code; /* word: after the fence; code: between the fences */
	size_t word_len, len;
};

/* Finds the next opening fence; false: there is none. */
static bool find_open(const char *at, struct block *ret)
{
	const char *fence = strstr(at, FENCE), *end = fence ? strchr(fence, '\n') : NULL;

	if (!end)
		return false;
	*ret = (struct block){ .word = fence + strlen(FENCE),
			       .word_len = (size_t)(end - fence) - strlen(FENCE),
			       .code = end + 1 };
	return true;
}

/*
 * Finds the closing fence: a line feed, white space, and the fence. Returns where it ends; NULL: the block is not
 * closed.
 */
static const char *find_close(struct block *b)
{
	for (const char *at = b->code; (at = strchr(at, '\n')); at++) {
		const char *fence = at + strspn(at, " \t\r\n\v\f");

		if (strncmp(fence, FENCE, strlen(FENCE)) == 0) {
			b->len = (size_t)(at - b->code);
			return fence + strlen(FENCE);
		}
	}
	return NULL;
}

static bool find_fenced(const char *text, const char *language, struct block *ret)
{
	struct block b;
	bool is_found = false;

	for (const char *at = text, *end; find_open(at, &b); at = end) {
		end = find_close(&b);
		if (!end)
			break; /* a later block cannot be closed either */
		if (is_named(b.word, b.word_len, language)) {
			*ret = b;
			return true;
		}
		if (!is_found)
			*ret = b;
		is_found = true;
	}
	return is_found;
}

/* ---- without fences ------------------------------------------------------------------------------------------- */

static size_t line_len(const char *line)
{
	size_t len = strcspn(line, "\n");

	return len + (line[len] == '\n');
}

static bool is_blank(const char *line, size_t len)
{
	return strspn(line, " \t\r\n\v\f") >= len;
}

static bool begins(const char *line, const char *const words[])
{
	for (size_t i = 0; words[i]; i++)
		if (strncmp(line, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* Adds the first function or class with its indented body, and the imports and comments right above it. */
static void add_python(const char *text, struct buf *out)
{
	static const char *const heads[] = { "def ", "class ", NULL }, *const above[] = { "import", "from", "#", NULL };
	bool has_head = false, has_body = false;

	for (size_t len; *text; text += len) {
		len = line_len(text);
		if (is_blank(text, len))
			continue;
		if (has_head && (*text == ' ' || *text == '\t')) {
			has_body = true;
		} else if (has_body) {
			return;
		} else if (begins(text, heads)) {
			out->len = has_head ? 0 : out->len;
			has_head = true;
		} else {
			has_head = false;
			if (!begins(text, above)) {
				out->len = 0;
				continue;
			}
		}
		(void)buf_add(out, text, len);
	}
	if (!has_body)
		out->len = 0;
	else if (out->data[out->len - 1] != '\n')
		(void)buf_adds(out, "\n");
}

static void add_lines(const char *text, struct buf *out)
{
	for (size_t len; *text; text += len) {
		len = line_len(text);
		if (!is_blank(text, len))
			(void)buf_add(out, text, len);
	}
	if (out->len == 0 || out->data[out->len - 1] != '\n')
		(void)buf_adds(out, "\n");
}

char *fusion_extract(const char *completion, const char *language)
{
	AUTO_BUF out = BUF_INIT(TEXT_MAX);
	struct block b;

	if (find_fenced(completion, language, &b))
		(void)buf_add(&out, b.code, b.len);
	else if (find_open(completion, &b))
		(void)buf_adds(&out, b.code);
	else if (str_eq(language, "python"))
		add_python(completion, &out);
	else if (str_eq(language, "bash"))
		add_lines(completion, &out);
	return out.full || out.no_memory ? NULL : out.len > 0 ? buf_take(&out) : strdup("");
}
