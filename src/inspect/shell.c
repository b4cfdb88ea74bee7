/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the shell inspector: a script, a command line for sh -c, and the words of an exec call. */
#include <string.h>

#include "inspect/shell.h"

/* Reports a function that starts itself, directly or through one other, in the background or into its own pipe. */
static void find_bombs(struct shell *sh)
{
	for (size_t i = 0; i < sh->n_spawns; i++)
		for (size_t k = 0; k < sh->n_spawns; k++)
			if (strcmp(sh->spawn[i].to, sh->spawn[k].from) == 0 &&
			    strcmp(sh->spawn[k].to, sh->spawn[i].from) == 0) {
				judge_check(sh->j, "fork-bomb", sh->spawn[i].where, "%.40s", sh->spawn[i].to);
				return;
			}
}

/* The judge's state before the inspection, which leave() restores. */
struct entry {
	enum rule_language language;
	bool nested;
	struct span host;
};

static struct entry enter(struct judge *j, struct shell *sh)
{
	struct entry e = { j->language, j->nested, j->host };

	*sh = (struct shell){ .j = j, .depth = j->depth };
	j->language = RULE_SHELL;
	return e;
}

static void leave(struct judge *j, struct shell *sh, struct entry e)
{
	find_bombs(sh);
	sh_release(sh);
	j->language = e.language;
	j->nested = e.nested;
	j->host = e.host;
}

static void inspect_at(struct judge *j, const char *text, size_t len, size_t offset)
{
	struct sh_text t = { .s = text, .len = len, .offset = offset, .here_first = -1, .here_last = -1 };
	struct sh_stream out;
	struct shell sh;
	struct entry e = enter(j, &sh);

	sh_parse(&sh, &t, '\0', &out);
	leave(j, &sh, e);
}

void inspect_shell(struct judge *j, const char *text, size_t len)
{
	inspect_at(j, text, len, 0);
}

static bool is_whole_text(const struct judge *j, size_t len, struct span where)
{
	return !j->nested && j->depth == 0 && j->language == RULE_SHELL && where.start == 0 && where.end == len &&
	       len == j->len;
}

void judge_command(struct judge *j, const char *text, size_t len, struct span where)
{
	struct entry outer = { j->language, j->nested, j->host };

	if (is_whole_text(j, len, where)) {
		inspect_at(j, text, len, 0);
		return;
	}
	if (j->depth + 1 >= JUDGE_DEPTH_MAX) {
		(void)judge_check(j, "too-deep", where, "%d levels", JUDGE_DEPTH_MAX);
		return;
	}
	if (!j->nested) {
		j->nested = true;
		j->host = where;
	}
	j->depth++;
	inspect_at(j, text, len, 0);
	j->depth--;
	j->nested = outer.nested;
	j->host = outer.host;
}

void judge_argv(struct judge *j, const char *const *words, const bool *literal, size_t n, struct span where)
{
	struct sh_command cmd = { .span = where };
	struct sh_stream out;
	struct shell sh;
	struct entry e = enter(j, &sh);

	if (!j->nested) {
		j->nested = true;
		j->host = where;
	}
	for (size_t i = 0; i < n; i++)
		if (literal[i] && words[i])
			sh_push(&sh, &cmd.words, words[i], strlen(words[i]), 0);
		else
			sh_push(&sh, &cmd.words, "\001", 1, WORD_DYNAMIC);
	sh_command(&sh, &cmd, &out);
	leave(j, &sh, e);
}
