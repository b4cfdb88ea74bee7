/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan uses the cell's paths: the workspace and, for tools that are not below /usr, the place where a file is
 * mounted.  Without a cell these must be paths of the host, so they are replaced wherever a path in a word begins with
 * them.  The caller's words are treated the same: /workspace in them means the same directory.
 *
 * A cell has its own /tmp, while the host's is shared: files that other users created there could be read as the
 * program's settings (HOME), and files that the program creates would stay.  So a variable whose value begins with /tmp
 * refers to a directory in the scratch directory; arguments, which may be any text, are not changed.
 */
#include <string.h>

#include "backend/direct/direct.h"
#include "base/buf.h"
#include "base/str.h"

#define WORDS_MAX (8 * MiB)
#define PLAN_TEMP "/tmp"

static bool begins_path(const char *word, const char *at)
{
	return at == word || strchr("=:'\" ,", at[-1]) != NULL;
}

static bool ends_name(char c)
{
	return c == '\0' || strchr("/:'\" ,;", c) != NULL;
}

static void add_word(struct buf *b, const char *word, const char *work)
{
	const size_t len = strlen(PLAN_WORKSPACE);
	const char *from = word, *at;

	for (const char *p = word; (at = strstr(p, PLAN_WORKSPACE)); p = at + len) {
		if (!begins_path(word, at) || !ends_name(at[len]))
			continue;
		buf_add(b, from, (size_t)(at - from));
		buf_adds(b, work);
		from = at + len;
	}
	buf_adds(b, from);
	buf_add(b, "", 1);
}

static const char *shown_tool(const struct plan *plan, const char *word)
{
	for (size_t i = 0; i < plan->n_binds; i++)
		if (str_eq(plan->binds[i].target, word))
			return plan->binds[i].source;
	return NULL;
}

/* The pointers first, then the strings that they point to. */
static char **lay_out(const struct buf *text, size_t n)
{
	char **ret = malloc((n + 1) * sizeof(*ret) + text->len);
	char *at;

	if (!ret)
		return NULL;
	at = (char *)(ret + n + 1);
	memcpy(at, text->data, text->len);
	for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
		ret[i] = at;
	ret[n] = NULL;
	return ret;
}

/* For a variable whose value is below /tmp, the part after that; NULL: any other. */
static const char *below_temp(const char *variable)
{
	const char *value = strchr(variable, '=');
	size_t len = strlen(PLAN_TEMP);

	if (!value || strncmp(++value, PLAN_TEMP, len) != 0 || (value[len] != '\0' && value[len] != '/'))
		return NULL;
	return strchr(value, ':') ? NULL : value + len;
}

static void add_variable(struct buf *b, const char *variable, const struct scratch *s)
{
	const char *rest = below_temp(variable);

	if (!rest) {
		add_word(b, variable, s->work);
		return;
	}
	buf_add(b, variable, strcspn(variable, "=") + 1);
	buf_adds(b, s->temp);
	buf_add(b, rest, strlen(rest) + 1);
}

char **words_on_host(const struct plan *plan, const struct scratch *s, const char *const *words)
{
	AUTO_BUF text = BUF_INIT(WORDS_MAX);
	size_t n = 0;

	for (; words[n]; n++) {
		const char *tool = words == plan->argv && n == 0 ? shown_tool(plan, words[0]) : NULL;

		if (tool)
			buf_add(&text, tool, strlen(tool) + 1);
		else if (words == plan->envp)
			add_variable(&text, words[n], s);
		else
			add_word(&text, words[n], s->work);
	}
	return text.no_memory || text.full || !text.data ? NULL : lay_out(&text, n);
}
