/* SPDX-License-Identifier: Apache-2.0 */
/* Parses one simple command: its assignments, words and redirections, up to an operator or the end of the line. */
#include <ctype.h>
#include <string.h>

#include "inspect/shell.h"

static char peek(const struct sh_text *t, size_t ahead)
{
	return t->pos + ahead < t->len ? t->s[t->pos + ahead] : '\0';
}

bool sh_ends_word(char c)
{
	return c == '\0' || c == ' ' || c == '\t' || c == '\n' || strchr(";&|()<>", c);
}

/* Skips blanks, continued lines, and a comment at the start of a token. */
void sh_skip_blanks(struct sh_text *t)
{
	for (;;) {
		char c = peek(t, 0);

		if (c == ' ' || c == '\t' || (c == '\0' && t->pos < t->len))
			t->pos++;
		else if (c == '\\' && peek(t, 1) == '\n')
			t->pos += 2;
		else if (c == '#')
			while (t->pos < t->len && t->s[t->pos] != '\n')
				t->pos++;
		else
			return;
	}
}

/* [n]< [n]> {name}> &>: *prefix is the length of the part before the operator; false: not a redirection. */
bool sh_at_redirect(const struct sh_text *t, size_t *prefix)
{
	size_t i = 0;

	*prefix = 0;
	if (peek(t, 0) == '&')
		return peek(t, 1) == '>';
	while (isdigit((unsigned char)peek(t, i)))
		i++;
	if (peek(t, 0) == '{') {
		for (i = 1; isalnum((unsigned char)peek(t, i)) || peek(t, i) == '_'; i++)
			;
		if (i == 1 || peek(t, i++) != '}')
			return false;
	}
	*prefix = i;
	if (peek(t, i) != '<' && peek(t, i) != '>')
		return false;
	return i > 0 || peek(t, 1) != '(';
}

static bool is_descriptor(const struct sh_word *w)
{
	size_t i = 0;

	while (isdigit((unsigned char)w->s[i]))
		i++;
	return w->len && (i == w->len || (i + 1 == w->len && w->s[i] == '-'));
}

static enum redirect_kind redirect_operator(struct sh_text *t, bool *dash)
{
	static const struct {
		const char *op;
		enum redirect_kind kind;
	} operators[] = {
		{ "<<<", REDIRECT_STRING }, { "<<-", REDIRECT_HERE }, { "<<", REDIRECT_HERE },
		{ "<>", REDIRECT_BOTH },    { "<&", REDIRECT_FD },    { "<", REDIRECT_READ },
		{ "&>>", REDIRECT_WRITE },  { "&>", REDIRECT_WRITE }, { ">>", REDIRECT_WRITE },
		{ ">|", REDIRECT_WRITE },   { ">&", REDIRECT_FD },    { ">", REDIRECT_WRITE },
	};

	for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
		size_t n = strlen(operators[i].op);

		if (t->pos + n <= t->len && memcmp(t->s + t->pos, operators[i].op, n) == 0) {
			t->pos += n;
			*dash = operators[i].op[n - 1] == '-';
			return operators[i].kind;
		}
	}
	t->pos++;
	return REDIRECT_READ;
}

void sh_read_redirect(struct shell *sh, struct sh_text *t, struct sh_command *cmd, size_t prefix)
{
	struct sh_redirect r = { .heredoc = -1 };
	struct sh_buf word = { 0 };
	size_t start = t->pos, assign;
	uint32_t outer;
	bool dash = false, out;

	r.fd = prefix && isdigit((unsigned char)peek(t, 0)) ? peek(t, 0) - '0' : prefix ? 9 : -1;
	t->pos += prefix;
	out = peek(t, 0) == '>';
	r.kind = redirect_operator(t, &dash);
	if (r.kind == REDIRECT_HERE) {
		r.heredoc = sh_add_heredoc(sh, t, dash, start);
	} else {
		sh_skip_blanks(t);
		outer = sh->origins;
		sh->origins = 0;
		sh_read_word(sh, t, &word, &assign);
		r.target = sh_single(sh, word.p ? word.p : "", word.len);
		r.target.flags |= sh->origins & ORIGIN_ENCODED;
		sh->origins |= outer;
		/* >& file is a file */
		if (r.kind == REDIRECT_FD && out && !is_descriptor(&r.target) && !sh_is(&r.target, "-"))
			r.kind = REDIRECT_WRITE;
	}
	if (cmd->n_redirect < SH_REDIRECTS_MAX)
		cmd->redirect[cmd->n_redirect++] = r;
	else
		sh_check(sh, t, "shell-syntax", start, "too many redirections");
}

static void add_assign(struct shell *sh, struct sh_text *t, struct sh_command *cmd, const struct sh_buf *word,
		       size_t head, size_t start)
{
	struct sh_assign a = { 0 };
	const char *bracket = memchr(word->p, '[', head);
	size_t name = head - 1;

	a.append = name && word->p[name - 1] == '+';
	name -= a.append;
	if (bracket)
		name = (size_t)(bracket - word->p);
	a.subscript = bracket != NULL;
	a.array = memchr(word->p + head, MARK_SPLIT, word->len - head) && t->pos && t->s[t->pos - 1] == ')';
	a.name = (struct sh_word){ .s = sh_copy(sh, word->p, name), .len = (uint32_t)name };
	if (a.array)
		a.value = (struct sh_word){ .s = sh_copy(sh, word->p + head, word->len - head),
					    .len = (uint32_t)(word->len - head) };
	else
		a.value = sh_single(sh, word->p + head, word->len - head);
	if (cmd->n_assign < SH_ASSIGNS_MAX)
		cmd->assign[cmd->n_assign++] = a;
	else
		sh_check(sh, t, "shell-syntax", start, "too many assignments in one command");
}

static bool is_declaration(const struct sh_words *words)
{
	static const char *const names[] = { "declare", "typeset", "local", "export", "readonly", "alias" };

	if (!words->n)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sh_is(&words->row[0], names[i]))
			return true;
	return false;
}

static void read_argument(struct shell *sh, struct sh_text *t, struct sh_command *cmd)
{
	struct sh_buf word = { 0 };
	size_t assign, start = t->pos, first = cmd->words.n, declared = cmd->n_assign;
	uint32_t outer = sh->origins, origins;

	sh->origins = 0;
	sh_read_word(sh, t, &word, &assign);
	origins = sh->origins;
	sh->origins |= outer;
	if (!word.p)
		return;
	if (assign && !cmd->words.n) {
		add_assign(sh, t, cmd, &word, assign, start);
	} else if (assign && is_declaration(&cmd->words)) {
		struct sh_word w = sh_single(sh, word.p, word.len);

		add_assign(sh, t, cmd, &word, assign, start);
		sh_push(sh, &cmd->words, w.s, w.len, w.flags);
	} else {
		sh_fields(sh, &word, &cmd->words);
	}
	for (size_t i = first; i < cmd->words.n; i++)
		cmd->words.row[i].flags |= origins;
	for (size_t i = declared; i < cmd->n_assign; i++)
		cmd->assign[i].value.flags |= origins;
}

/* Reads words, assignments and redirections up to an operator or the end of the line. */
void sh_read_simple(struct shell *sh, struct sh_text *t, struct sh_command *cmd)
{
	size_t start = t->pos;

	while (sh_step(sh)) {
		size_t before, prefix, rest;
		char c;

		cmd->span = sh_span(sh, t, start, t->pos);
		sh_skip_blanks(t);
		c = peek(t, 0);
		rest = t->len - t->pos;
		before = t->pos;
		if (rest && sh_at_redirect(t, &prefix))
			sh_read_redirect(sh, t, cmd, prefix);
		else if (!rest || c == '\n' || strchr(";&|)", c))
			return;
		else if (c == '(') {
			sh_check(sh, t, "shell-syntax", start, "an unexpected parenthesis");
			return;
		} else
			read_argument(sh, t, cmd);
		if (t->pos == before)
			t->pos++;
	}
}
