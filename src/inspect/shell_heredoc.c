/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Here-documents.  The operator is in the middle of a command line, the text begins after the line.  Until then the
 * document is in the text's list, together with its consumer (a shell, a file).
 */
#include <string.h>

#include "inspect/shell.h"

static char peek(const struct sh_text *t, size_t ahead)
{
	return t->pos + ahead < t->len ? t->s[t->pos + ahead] : '\0';
}

/* The delimiter is not expanded; any quoting in it makes the body literal. */
static void read_delimiter(struct shell *sh, struct sh_text *t, struct sh_heredoc *h)
{
	struct sh_buf d = { 0 };
	char quote = '\0';

	sh_skip_blanks(t);
	for (; t->pos < t->len; t->pos++) {
		char c = t->s[t->pos];

		if (quote ? c == quote : (c == '\'' || c == '"')) {
			quote = quote ? '\0' : c;
			h->quoted = true;
		} else if (!quote && c == '\\') {
			h->quoted = true;
			t->pos++;
			if (t->pos < t->len)
				sh_addc(sh, &d, t->s[t->pos]);
		} else if (!quote && sh_ends_word(c)) {
			break;
		} else if (!(c == '$' && (peek(t, 1) == '\'' || peek(t, 1) == '"'))) {
			sh_addc(sh, &d, c);
		}
	}
	h->delimiter = d.p ? d.p : "";
	h->delimiter_len = d.len;
}

int sh_add_heredoc(struct shell *sh, struct sh_text *t, bool dash, size_t start)
{
	struct sh_heredoc *h;
	int number = (int)sh->n_heredocs;

	if (sh->n_heredocs == sh->cap_heredocs) {
		size_t cap = sh->cap_heredocs ? sh->cap_heredocs * 2 : 4;
		struct sh_heredoc *row = sh_alloc(sh, cap * sizeof(*row));

		if (!row)
			return -1;
		if (sh->n_heredocs)
			memcpy(row, sh->heredocs, sh->n_heredocs * sizeof(*row));
		sh->heredocs = row;
		sh->cap_heredocs = cap;
	}
	h = &sh->heredocs[sh->n_heredocs++];
	*h = (struct sh_heredoc){ .dash = dash, .next = -1 };
	read_delimiter(sh, t, h);
	h->where = sh_span(sh, t, start, t->pos);
	if (t->here_last >= 0)
		sh->heredocs[t->here_last].next = number;
	else
		t->here_first = number;
	t->here_last = number;
	return number;
}

/* Compares one line with the delimiter as the shell does: without tabs for <<-, continued lines joined. */
static bool is_delimiter(const struct sh_text *t, const struct sh_heredoc *h, size_t pos, size_t *next)
{
	size_t matched = 0;
	bool equal = true, start = true;

	for (; pos < t->len && t->s[pos] != '\n'; pos++) {
		if (!h->quoted && t->s[pos] == '\\' && pos + 1 < t->len && t->s[pos + 1] == '\n') {
			pos++;
			continue;
		}
		if (!h->quoted && t->s[pos] == '\\' && pos + 1 < t->len) {
			equal = false;
			pos++;
			continue;
		}
		if (start && h->dash && t->s[pos] == '\t')
			continue;
		start = false;
		equal = equal && matched < h->delimiter_len && h->delimiter[matched] == t->s[pos];
		matched += equal;
	}
	*next = pos < t->len ? pos + 1 : t->len;
	return equal && matched == h->delimiter_len;
}

static const char *expand_body(struct shell *sh, struct sh_text *t, const struct sh_heredoc *h, size_t end, size_t *len)
{
	struct sh_buf out = { 0 };
	size_t whole = t->len;

	if (h->quoted) {
		*len = end - t->pos;
		return sh_copy(sh, t->s + t->pos, *len);
	}
	t->len = end;
	(void)sh_expand(sh, t, EXPAND_HERE, true, &out);
	t->len = whole;
	*len = out.len;
	return out.p ? out.p : "";
}

static void use_body(struct shell *sh, const struct sh_heredoc *h, const char *body, size_t len)
{
	struct sh_command cmd = { .span = h->where };
	struct sh_stream s = { .text = body, .len = len, .flags = h->through };

	if (h->file)
		sh_file_set(sh, h->file, &s);
	if (h->through & (STREAM_DECODED | STREAM_UNKNOWN))
		s.text = NULL;
	if (h->use != HERE_DATA)
		sh_run_stream(sh, &cmd, &s, h->use, "here-document");
}

void sh_read_heredocs(struct shell *sh, struct sh_text *t)
{
	int number = t->here_first;

	t->here_first = t->here_last = -1;
	while (number >= 0 && sh_step(sh)) {
		struct sh_heredoc h = sh->heredocs[number];
		size_t pos = t->pos, next = pos, body_len = 0;
		const char *body;

		while (pos < t->len && !is_delimiter(t, &h, pos, &next))
			pos = next;
		body = expand_body(sh, t, &h, pos, &body_len);
		t->pos = pos < t->len ? next : t->len;
		use_body(sh, &h, body, body_len);
		number = h.next;
	}
}
