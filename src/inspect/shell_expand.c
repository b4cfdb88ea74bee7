/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and expands words as the shell does: quotes, backslashes, $ in all its forms, backticks, process substitution.
 * Every substitution is parsed as commands where it is found.  Recursion is bounded by shell.depth (substitutions) and
 * shell.braces (everything else that nests inside a word).
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "inspect/shell.h"

static bool at_blank_or_operator(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || strchr(";&|()<>", c) != NULL;
}

static char peek(const struct sh_text *t, size_t ahead)
{
	return t->pos + ahead < t->len ? t->s[t->pos + ahead] : '\0';
}

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Adds a literal character of the source; replaces marks, so that they cannot be forged. */
static void add_literal(struct shell *sh, struct sh_buf *out, char c)
{
	unsigned char u = (unsigned char)c;

	sh_addc(sh, out, u < 8 || u == MARK_SPLIT || u == MARK_EMPTY ? 0x7f : c);
}

static bool too_deep(struct shell *sh, const struct sh_text *t, size_t start)
{
	sh_check(sh, t, "too-deep", start, "commands nested in commands");
	sh->stop = true;
	return true;
}

void sh_add_value(struct shell *sh, struct sh_buf *out, const char *s, size_t len, bool quoted, bool array)
{
	struct sh_value ifs = { .s = " \t\n", .len = 3 };

	if (!quoted)
		(void)sh_var_value(sh, "IFS", 3, &ifs);
	if (quoted && !len)
		sh_addc(sh, out, MARK_EMPTY);
	for (size_t i = 0; i < len && sh_step(sh); i++) {
		char c = s[i];

		if (c == MARK_SPLIT)
			c = quoted && !array ? ' ' : MARK_SPLIT;
		else if (!quoted && memchr(ifs.s, c, ifs.len))
			c = MARK_SPLIT;
		else if (!quoted && c == '*')
			c = MARK_STAR;
		else if (!quoted && c == '?')
			c = MARK_QUERY;
		else if (!quoted && c == '[')
			c = MARK_SET;
		sh_addc(sh, out, c);
	}
}

static void add_output(struct shell *sh, struct sh_buf *out, const struct sh_stream *s, bool quoted)
{
	size_t len = s->len;

	sh->origins |= sh_origins(s);
	if (!s->text) {
		sh->origins |= ORIGIN_OUTPUT;
		sh_addc(sh, out, MARK_HOLE);
		return;
	}
	while (len && s->text[len - 1] == '\n')
		len--;
	sh_add_value(sh, out, s->text, len, quoted, false);
}

/* The saved state of the current command, while a command inside it is judged. */
struct saved {
	unsigned pick, pick_max;
	const char *cwd;
	bool lost;
	uint32_t origins;
};

static struct saved enter(struct shell *sh)
{
	struct saved s = { sh->pick, sh->pick_max, sh->cwd, sh->lost, sh->origins };

	sh->depth++;
	sh->pick = 0;
	return s;
}

static void leave(struct shell *sh, struct saved s)
{
	sh->depth--;
	sh->pick = s.pick;
	sh->pick_max = s.pick_max;
	sh->cwd = s.cwd;
	sh->lost = s.lost;
	/* The output of a command that was given a variable is not that variable. */
	sh->origins &= s.origins | ~(uint32_t)(ORIGIN_UNSET | ORIGIN_PARAMETER | ORIGIN_VARIABLE);
	sh->substituted = true;
}

/* Called at the first character inside the parentheses. */
static struct sh_stream substitute(struct shell *sh, struct sh_text *t, char term)
{
	struct sh_stream stream = { 0 };
	struct saved saved;

	if (sh->depth >= SH_DEPTH_MAX && too_deep(sh, t, t->pos))
		return stream;
	saved = enter(sh);
	sh_parse(sh, t, term, &stream);
	leave(sh, saved);
	return stream;
}

/* <(command): a file with the command's output. */
static void process(struct shell *sh, struct sh_text *t, struct sh_buf *out)
{
	struct sh_stream stream;
	char name[sizeof(SH_PROCESS) + 12];
	int n;

	t->pos += 2;
	stream = substitute(sh, t, ')');
	n = snprintf(name, sizeof(name), SH_PROCESS "%u", sh->processes++);
	sh_file_set(sh, sh_copy(sh, name, (size_t)n), &stream);
	sh_add(sh, out, name, (size_t)n);
}

/* Inside backticks, a backslash protects backtick, backslash and dollar (and the quote, inside double quotes). */
static void backtick(struct shell *sh, struct sh_text *t, bool quoted, struct sh_buf *out)
{
	struct sh_stream stream = { 0 };
	struct sh_buf code = { 0 };
	size_t start = t->pos++;
	struct saved saved;

	while (t->pos < t->len && t->s[t->pos] != '`') {
		char c = t->s[t->pos], next = peek(t, 1);

		if (c == '\\' && next && (strchr("`\\$", next) || (quoted && next == '"')))
			t->pos++;
		sh_addc(sh, &code, t->s[t->pos++]);
	}
	if (t->pos >= t->len)
		sh_check(sh, t, "shell-syntax", start, "a backtick is never closed");
	t->pos++;
	if (sh->depth >= SH_DEPTH_MAX && too_deep(sh, t, start))
		return;
	saved = enter(sh);
	if (code.len >= SH_WORD_MAX)
		sh_check(sh, t, "not-analysable", start, "too long a text in backticks");
	sh_parse_text(sh, code.p ? code.p : "", code.len, sh_span(sh, t, start, t->pos < t->len ? t->pos : t->len),
		      &stream);
	leave(sh, saved);
	add_output(sh, out, &stream, quoted);
}

bool sh_is_arithmetic(const struct sh_text *t, size_t open, size_t *close)
{
	size_t depth = 1, i = open + 2;

	for (; i < t->len && depth; i++) {
		char c = t->s[i];

		if (c == '\\')
			i++;
		else if (c == '(')
			depth++;
		else if (c == ')')
			depth--;
		else if (c == '\'' || c == '"') {
			const char *end = memchr(t->s + i + 1, c, t->len - i - 1);

			/* an apostrophe without a partner has no meaning in arithmetic */
			if (end)
				i = (size_t)(end - t->s);
		}
	}
	*close = i - 1;
	return !depth && i < t->len && t->s[i] == ')';
}

/* Expands t up to `end` in the given mode, as a separate text. */
static void expand_part(struct shell *sh, struct sh_text *t, size_t end, enum expand_mode mode, struct sh_buf *out)
{
	size_t len = t->len;

	if (sh->braces >= SH_BRACES_MAX && too_deep(sh, t, t->pos))
		return;
	sh->braces++;
	t->len = end;
	(void)sh_expand(sh, t, mode, true, out);
	t->len = len;
	sh->braces--;
}

/* A plain number, also with white space, is its own value.  Anything else is unknown before run time. */
static void add_arithmetic(struct shell *sh, const struct sh_buf *expr, struct sh_buf *out)
{
	size_t i = 0, end = expr->len;

	while (i < end && isspace((unsigned char)expr->p[i]))
		i++;
	while (end > i && isspace((unsigned char)expr->p[end - 1]))
		end--;
	for (size_t k = i; k < end; k++)
		if (!isdigit((unsigned char)expr->p[k])) {
			sh_addc(sh, out, MARK_HOLE);
			return;
		}
	sh_add(sh, out, expr->p ? expr->p + i : "", end - i);
}

static void arithmetic(struct shell *sh, struct sh_text *t, size_t close, size_t skip, struct sh_buf *out)
{
	struct sh_buf expr = { 0 };

	expand_part(sh, t, close, EXPAND_ARITHMETIC, &expr);
	t->pos = close + skip;
	add_arithmetic(sh, &expr, out);
}

static void old_arithmetic(struct shell *sh, struct sh_text *t, struct sh_buf *out)
{
	size_t depth = 1, i = t->pos + 2;

	for (; i < t->len && depth; i++)
		if (t->s[i] == '[')
			depth++;
		else if (t->s[i] == ']')
			depth--;
	t->pos += 2;
	arithmetic(sh, t, depth ? t->len : i - 1, depth ? 0 : 1, out);
}

static unsigned number(const char *s, size_t *i, size_t max, unsigned base)
{
	unsigned v = 0;

	for (size_t n = 0; n < max; n++, (*i)++) {
		unsigned char c = (unsigned char)s[*i];
		unsigned d = isdigit(c) ? c - (unsigned)'0' : isxdigit(c) ? (unsigned)tolower(c) - 'a' + 10 : 99;

		if (d >= base)
			break;
		v = v * base + d;
	}
	return v;
}

static void add_utf8(struct shell *sh, struct sh_buf *out, unsigned v)
{
	if (v < 0x80) {
		if (v)
			add_literal(sh, out, (char)v);
		return;
	}
	if (v >= 0x10000)
		sh_addc(sh, out, (char)(0xf0 | (v >> 18 & 7)));
	if (v >= 0x800)
		sh_addc(sh, out, (char)((v >= 0x10000 ? 0x80 : 0xe0) | (v >> 12 & (v >= 0x10000 ? 0x3f : 0xf))));
	sh_addc(sh, out, (char)((v >= 0x800 ? 0x80 : 0xc0) | (v >> 6 & (v >= 0x800 ? 0x3f : 0x1f))));
	sh_addc(sh, out, (char)(0x80 | (v & 0x3f)));
}

void sh_add_escape(struct shell *sh, struct sh_buf *out, const char *s, size_t *i)
{
	static const char from[] = "abeEfnrtv", to[] = "\a\b\033\033\f\n\r\t\v";
	char c = s[(*i)++];
	const char *simple = c ? strchr(from, c) : NULL;
	size_t mark = *i;

	if (simple)
		sh_addc(sh, out, to[simple - from]);
	else if (c >= '0' && c <= '7') {
		*i = mark - 1;
		/*
		 * printf and echo allow \0ooo, $'..' only \ooo: accepting the longer form misses nothing that matters
		 */
		add_utf8(sh, out, number(s, i, c == '0' ? 4 : 3, 8) & 0xff);
	} else if (c == 'x' || c == 'u' || c == 'U')
		add_utf8(sh, out, number(s, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16) & 0x1fffff);
	else if (c == 'c' && s[*i])
		add_literal(sh, out, (char)(s[(*i)++] & 0x1f));
	else if (c)
		add_literal(sh, out, c);
}

/* $'...' */
static void ansi_quote(struct shell *sh, struct sh_text *t, struct sh_buf *out)
{
	size_t start = t->pos, i = t->pos + 2;

	sh_addc(sh, out, MARK_EMPTY);
	while (i < t->len && t->s[i] != '\'') {
		if (t->s[i] == '\\' && i + 1 < t->len) {
			i++;
			sh_add_escape(sh, out, t->s, &i);
		} else {
			add_literal(sh, out, t->s[i++]);
		}
	}
	t->pos = i + 1;
	if (i >= t->len)
		sh_check(sh, t, "shell-syntax", start, "a quote is never closed");
}

static void single_quote(struct shell *sh, struct sh_text *t, struct sh_buf *out)
{
	const char *from = t->s + t->pos + 1;
	const char *end = memchr(from, '\'', t->len - t->pos - 1);
	size_t start = t->pos;

	sh_addc(sh, out, MARK_EMPTY);
	if (!end) {
		t->pos = t->len;
		sh_check(sh, t, "shell-syntax", start, "a quote is never closed");
		return;
	}
	for (; from < end; from++)
		add_literal(sh, out, *from);
	t->pos = (size_t)(end - t->s) + 1;
}

static void double_quote(struct shell *sh, struct sh_text *t, struct sh_buf *out)
{
	size_t start = t->pos++;

	if (sh->braces >= SH_BRACES_MAX && too_deep(sh, t, start))
		return;
	sh->braces++;
	sh_addc(sh, out, MARK_EMPTY);
	if (!sh_expand(sh, t, EXPAND_DOUBLE, true, out))
		sh_check(sh, t, "shell-syntax", start, "a quote is never closed");
	sh->braces--;
}

static void dollar_brace(struct shell *sh, struct sh_text *t, bool quoted, struct sh_buf *out)
{
	struct sh_stream stream;
	size_t start = t->pos;

	t->pos += 2;
	if (sh->braces >= SH_BRACES_MAX && too_deep(sh, t, start))
		return;
	sh->braces++;
	/* ${ command; } and ${| command; } run commands in newer shells. */
	if (peek(t, 0) == ' ' || peek(t, 0) == '\n' || peek(t, 0) == '\t' || peek(t, 0) == '|') {
		t->pos++;
		stream = substitute(sh, t, '}');
		add_output(sh, out, &stream, quoted);
	} else {
		sh_parameter(sh, t, quoted, out);
	}
	sh->braces--;
}

static void dollar(struct shell *sh, struct sh_text *t, bool quoted, bool strings, struct sh_buf *out)
{
	struct sh_stream stream;
	char c = peek(t, 1);
	size_t close, end;

	if (c == '(') {
		if (peek(t, 2) == '(' && sh_is_arithmetic(t, t->pos + 1, &close)) {
			t->pos += 3;
			arithmetic(sh, t, close, 2, out);
			return;
		}
		t->pos += 2;
		stream = substitute(sh, t, ')');
		add_output(sh, out, &stream, quoted);
	} else if (c == '[') {
		old_arithmetic(sh, t, out);
	} else if (c == '{') {
		dollar_brace(sh, t, quoted, out);
	} else if (c == '\'' && strings) {
		ansi_quote(sh, t, out);
	} else if (c == '"' && strings) {
		t->pos++;
		double_quote(sh, t, out);
	} else if (is_name_start(c) || (c && strchr("@*#?-$!0123456789", c))) {
		end = t->pos + 2;
		while (is_name_start(c) && end < t->len && is_name(t->s[end]))
			end++;
		sh_parameter_plain(sh, t->s + t->pos + 1, end - t->pos - 1, quoted, out);
		t->pos = end;
	} else {
		sh_addc(sh, out, '$');
		t->pos++;
	}
}

/* A backslash; soft: inside double quotes and the like, where it escapes only a few characters. */
static void backslash(struct shell *sh, struct sh_text *t, enum expand_mode mode, bool soft, struct sh_buf *out)
{
	char next = peek(t, 1);

	if (t->pos + 1 >= t->len) {
		sh_addc(sh, out, '\\');
		t->pos++;
		return;
	}
	t->pos += 2;
	if (next == '\n')
		return;
	if (soft && !strchr("$`\\", next) && !(next == '"' && mode != EXPAND_HERE) &&
	    !(next == '}' && mode == EXPAND_BRACE))
		sh_addc(sh, out, '\\');
	add_literal(sh, out, next);
}

static void add_active(struct shell *sh, struct sh_buf *out, char c, enum expand_mode mode)
{
	switch (c) {
	case '*':
		c = MARK_STAR;
		break;
	case '?':
		c = MARK_QUERY;
		break;
	case '[':
		c = MARK_SET;
		break;
	case '{':
		c = mode == EXPAND_WORD ? MARK_OPEN : '{';
		break;
	case '}':
		c = MARK_CLOSE;
		break;
	case ',':
		c = mode == EXPAND_WORD ? MARK_COMMA : ',';
		break;
	default:
		add_literal(sh, out, c);
		return;
	}
	sh_addc(sh, out, c);
}

/* True for @(a|b) and the like, whose parentheses belong to the word. */
static bool extended_glob(const struct sh_text *t)
{
	return peek(t, 0) && strchr("?*+@!", peek(t, 0)) && peek(t, 1) == '(';
}

static bool ends(struct sh_text *t, enum expand_mode mode, size_t parens)
{
	char c = t->s[t->pos];

	switch (mode) {
	case EXPAND_WORD:
		return !parens && at_blank_or_operator(c) && !((c == '<' || c == '>') && peek(t, 1) == '(');
	case EXPAND_DOUBLE:
		return c == '"';
	case EXPAND_BRACE:
		return c == '}';
	default:
		return false;
	}
}

bool sh_expand(struct shell *sh, struct sh_text *t, enum expand_mode mode, bool quoted, struct sh_buf *out)
{
	bool soft = quoted || mode == EXPAND_DOUBLE || mode == EXPAND_HERE || mode == EXPAND_ARITHMETIC;
	size_t parens = 0;

	while (t->pos < t->len && sh_step(sh)) {
		char c = t->s[t->pos];

		if (ends(t, mode, parens)) {
			if (mode == EXPAND_DOUBLE || mode == EXPAND_BRACE)
				t->pos++;
			return true;
		}
		if (c == '\\') {
			backslash(sh, t, mode, soft, out);
		} else if (c == '\'' && !soft) {
			single_quote(sh, t, out);
		} else if (c == '"' && (mode == EXPAND_WORD || mode == EXPAND_BRACE)) {
			double_quote(sh, t, out);
		} else if (c == '$') {
			dollar(sh, t, soft, !soft, out);
		} else if (c == '`') {
			backtick(sh, t, soft, out);
		} else if ((c == '<' || c == '>') && peek(t, 1) == '(' && !soft) {
			process(sh, t, out);
		} else if (!soft && (parens || mode == EXPAND_WORD) && extended_glob(t)) {
			parens++;
			sh_addc(sh, out, MARK_STAR);
			t->pos += 2;
		} else {
			parens += c == '(' && parens;
			parens -= c == ')' && parens;
			if (soft)
				add_literal(sh, out, c);
			else
				add_active(sh, out, c, mode);
			t->pos++;
		}
	}
	return mode == EXPAND_WORD || mode == EXPAND_HERE || mode == EXPAND_ARITHMETIC;
}

void sh_expand_again(struct shell *sh, const char *s, size_t len, struct span where)
{
	struct sh_text t = { .s = s, .len = len, .mapped = true, .host = where, .here_first = -1, .here_last = -1 };
	struct sh_buf out = { 0 };

	if (!memchr(s, '$', len) && !memchr(s, '`', len))
		return;
	if (sh->depth >= SH_DEPTH_MAX && too_deep(sh, &t, 0))
		return;
	sh->depth++;
	(void)sh_expand(sh, &t, EXPAND_HERE, true, &out);
	sh->depth--;
}

/* The position of the bracket that closes the one at `open`; skips quotes and nested brackets. */
static size_t closing_bracket(const struct sh_text *t, size_t open)
{
	size_t depth = 0;

	for (size_t i = open; i < t->len && i < open + 4096; i++) {
		char c = t->s[i];

		if (c == '\\') {
			i++;
		} else if (c == '\'' || c == '"') {
			const char *end = memchr(t->s + i + 1, c, t->len - i - 1);

			if (!end)
				return 0;
			i = (size_t)(end - t->s);
		} else if (c == '[') {
			depth++;
		} else if (c == ']' && --depth == 0) {
			return i;
		} else if (c == '\n' && depth == 0) {
			return 0;
		}
	}
	return 0;
}

/* (a b c) after name= */
static void array_value(struct shell *sh, struct sh_text *t, struct sh_buf *out)
{
	size_t start = t->pos++;

	while (t->pos < t->len && sh_step(sh)) {
		char c = t->s[t->pos];
		struct sh_buf word = { 0 };
		struct sh_words fields = { 0 };
		size_t before = t->pos;

		if (c == ')') {
			t->pos++;
			return;
		}
		if (c == ' ' || c == '\t' || c == '\n') {
			t->pos++;
			continue;
		}
		if (c == '#') {
			while (t->pos < t->len && t->s[t->pos] != '\n')
				t->pos++;
			continue;
		}
		(void)sh_expand(sh, t, EXPAND_WORD, false, &word);
		if (t->pos == before)
			t->pos++; /* an operator is a syntax error here; bash refuses it */
		sh_fields(sh, &word, &fields);
		for (size_t i = 0; i < fields.n; i++) {
			const char *v = fields.row[i].s, *eq = v[0] == '[' ? strstr(v, "]=") : NULL;

			sh_add(sh, out, eq ? eq + 2 : v, strlen(eq ? eq + 2 : v));
			sh_addc(sh, out, MARK_SPLIT);
		}
	}
	sh_check(sh, t, "shell-syntax", start, "an array is never closed");
}

/* The length of name=, name+= or name[subscript]= in the source, 0 if the word is none of these. */
static size_t assignment_head(const struct sh_text *t, size_t *bracket)
{
	size_t i = t->pos;

	*bracket = 0;
	if (i >= t->len || !is_name_start(t->s[i]))
		return 0;
	while (i < t->len && is_name(t->s[i]))
		i++;
	if (i < t->len && t->s[i] == '[') {
		size_t close = closing_bracket(t, i);

		if (!close)
			return 0;
		*bracket = i;
		i = close + 1;
	}
	if (i + 1 < t->len && t->s[i] == '+' && t->s[i + 1] == '=')
		i++;
	return i < t->len && t->s[i] == '=' ? i + 1 - t->pos : 0;
}

void sh_read_word(struct shell *sh, struct sh_text *t, struct sh_buf *out, size_t *assign)
{
	size_t bracket;
	size_t head = assignment_head(t, &bracket);
	size_t end = t->pos + head;

	*assign = 0;
	if (head) {
		struct sh_buf subscript = { 0 };
		bool append = t->s[end - 2] == '+';

		sh_add(sh, out, t->s + t->pos, bracket ? bracket - t->pos : head - 1 - append);
		if (bracket) {
			t->pos = bracket + 1;
			expand_part(sh, t, end - 2 - append, EXPAND_ARITHMETIC, &subscript);
			sh_add(sh, out, "[]", 2);
		}
		sh_add(sh, out, "+=", append ? 2 : 0);
		if (!append)
			sh_addc(sh, out, '=');
		t->pos = end;
		*assign = out->len;
		if (peek(t, 0) == '(') {
			array_value(sh, t, out);
			return;
		}
	}
	(void)sh_expand(sh, t, EXPAND_WORD, false, out);
}
