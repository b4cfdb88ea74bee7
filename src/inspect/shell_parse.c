/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the commands.  No tree is built: the parser keeps a stack of open compounds (only `case` and function bodies
 * need more than a push and a pop), and passes every simple command on as soon as its end is reached.  When in doubt, a
 * text is treated as a command: too many commands only cost a check each.
 */
#include <ctype.h>
#include <string.h>

#include "inspect/shell.h"

enum frame_kind { FRAME_PAREN, FRAME_BRACE, FRAME_IF, FRAME_LOOP, FRAME_CASE };

struct frame {
	enum frame_kind kind;
	size_t start;
	struct sh_stream in, out;
	bool piped_in;
	/* for a function body: state to restore at its end */
	const char *function;
	size_t function_len;
	const char *outer_function;
	uint32_t outer_function_len;
	struct sh_words *outer_parameters;
	bool outer_used;
	/* cd inside has no effect after it: a subshell, or a function that is only defined */
	const char *outer_cwd;
	bool outer_lost;
};

struct parser {
	struct shell *sh;
	struct sh_text *t;
	char term;
	bool done;
	struct frame *frames;
	size_t n, cap;
	struct sh_stream *out;
	struct sh_stream pipe; /* output of the command before | */
	bool piped;
	bool after_condition; /* after && or || */
	const char *function; /* function whose body is the next compound */
	size_t function_len;
};

static char peek(const struct sh_text *t, size_t ahead)
{
	return t->pos + ahead < t->len ? t->s[t->pos + ahead] : '\0';
}

/* True if the word at pos is this reserved word. */
static bool at_word(const struct sh_text *t, const char *word)
{
	size_t n = strlen(word);

	return t->pos + n <= t->len && memcmp(t->s + t->pos, word, n) == 0 &&
	       (t->pos + n == t->len || sh_ends_word(t->s[t->pos + n]));
}

static struct frame *top(struct parser *p)
{
	return p->n ? &p->frames[p->n - 1] : NULL;
}

static struct sh_stream *current_out(struct parser *p)
{
	return p->n ? &top(p)->out : p->out;
}

/* The output of a group is the output of its commands, one after the other. */
static void merge(struct shell *sh, struct sh_stream *into, const struct sh_stream *more)
{
	struct sh_buf text = { 0 };

	if (!(into->flags & STREAM_GIVEN)) {
		*into = *more;
		into->flags |= STREAM_GIVEN;
		return;
	}
	into->flags |= more->flags;
	if (more->text && more->len == 0)
		return;
	if (into->text && into->len == 0) {
		into->text = more->text;
		into->len = more->len;
		into->heredoc = more->heredoc;
		return;
	}
	if (!into->text || !more->text) {
		into->text = NULL;
		return;
	}
	sh_add(sh, &text, into->text, into->len);
	sh_add(sh, &text, more->text, more->len);
	into->text = text.p ? text.p : "";
	into->len = text.len;
}

/* --- simple commands --- */

static bool is_conditional(const struct parser *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->frames[i].kind != FRAME_BRACE || p->frames[i].function)
			return true;
	return p->after_condition;
}

static void connect(struct parser *p, struct sh_command *cmd)
{
	sh_skip_blanks(p->t);
	cmd->piped_in = p->piped || (p->n && top(p)->piped_in);
	cmd->in = p->piped ? p->pipe : p->n ? top(p)->in : (struct sh_stream){ 0 };
	cmd->piped_out = peek(p->t, 0) == '|' && peek(p->t, 1) != '|';
	cmd->background = peek(p->t, 0) == '&' && peek(p->t, 1) != '&' && peek(p->t, 1) != '>';
}

static void deliver(struct parser *p, const struct sh_command *cmd, const struct sh_stream *out)
{
	if (cmd->piped_out)
		p->pipe = *out;
	else
		merge(p->sh, current_out(p), out);
	p->piped = false;
}

/*
 * A command that uses variables with several possible values is judged once for each value.  One that contains a
 * substitution or a here-document is judged only once, because the number of rounds would multiply.
 */
static void simple(struct parser *p)
{
	struct shell *sh = p->sh;
	struct sh_command first = { 0 };
	struct sh_stream flow = { 0 };
	size_t start = p->t->pos, heredocs = sh->n_heredocs;
	unsigned rounds = 1;

	sh->pick_max = 0;
	sh->substituted = false;
	for (unsigned round = 0; round < rounds && !sh->stop; round++) {
		struct sh_command cmd = { 0 };
		struct sh_stream out = { 0 };

		p->t->pos = start;
		sh->pick = round;
		sh_read_simple(p->sh, p->t, &cmd);
		connect(p, &cmd);
		if (round == 0 && !sh->substituted && sh->n_heredocs == heredocs && sh->pick_max > 1)
			rounds = sh->pick_max;
		sh->conditional = round || is_conditional(p);
		sh_command(sh, &cmd, &out);
		if (round == 0) {
			first = cmd;
			flow = out;
		}
	}
	sh->pick = 0;
	deliver(p, &first, &flow);
}

/* --- compounds ------------------------------------------------------------------------------------------------- */

static struct frame *push(struct parser *p, enum frame_kind kind)
{
	struct frame *f;

	if (p->n == SH_FRAMES_MAX) {
		sh_check(p->sh, p->t, "too-deep", p->t->pos, "too many commands inside each other");
		p->sh->stop = true;
		return NULL;
	}
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 4;
		struct frame *row = sh_alloc(p->sh, cap * sizeof(*row));

		if (!row)
			return NULL;
		if (p->n)
			memcpy(row, p->frames, p->n * sizeof(*row));
		p->frames = row;
		p->cap = cap;
	}
	f = &p->frames[p->n];
	*f = (struct frame){ .kind = kind, .start = p->t->pos, .outer_cwd = p->sh->cwd, .outer_lost = p->sh->lost };
	f->piped_in = p->piped || (p->n && p->frames[p->n - 1].piped_in);
	f->in = p->piped ? p->pipe : p->n ? p->frames[p->n - 1].in : (struct sh_stream){ 0 };
	p->sh->wants_input = p->n && p->sh->wants_input;
	p->n++;
	p->piped = false;
	p->after_condition = false;
	if (p->function) {
		f->function = p->function;
		f->function_len = p->function_len;
		f->outer_function = p->sh->function_name;
		f->outer_function_len = p->sh->function_len;
		f->outer_parameters = p->sh->parameters;
		f->outer_used = p->sh->used_parameter;
		p->sh->function_name = p->function;
		p->sh->function_len = (uint32_t)p->function_len;
		p->sh->parameters = NULL;
		p->sh->used_parameter = false;
		p->function = NULL;
	}
	return f;
}

static void define_function(struct parser *p, const struct frame *f)
{
	struct shell *sh = p->sh;
	struct sh_function *fn = sh_function_find(sh, f->function, f->function_len);

	if (!fn) {
		fn = sh_alloc(sh, sizeof(*fn));
		if (!fn)
			return;
		fn->name = f->function;
		fn->len = (uint32_t)f->function_len;
		sh_function_add(sh, fn);
	}
	fn->body = p->t->s + f->start;
	fn->body_len = (uint32_t)(p->t->pos - f->start);
	fn->offset = (uint32_t)(p->t->offset + f->start);
	fn->mapped = p->t->mapped;
	fn->uses_parameters = sh->used_parameter;
	fn->alias = false;
	fn->firm = p->n <= 1;
	sh->function_name = f->outer_function;
	sh->function_len = f->outer_function_len;
	sh->parameters = f->outer_parameters;
	sh->used_parameter = f->outer_used;
}

/* After a closed compound: its redirections and its place in a pipeline. */
static void after_group(struct parser *p, struct sh_stream out, size_t start)
{
	struct sh_command cmd = { 0 };
	size_t prefix;

	sh_skip_blanks(p->t);
	while (p->t->pos < p->t->len && sh_at_redirect(p->t, &prefix) && sh_step(p->sh)) {
		sh_read_redirect(p->sh, p->t, &cmd, prefix);
		sh_skip_blanks(p->t);
	}
	connect(p, &cmd);
	cmd.span = sh_span(p->sh, p->t, start, p->t->pos);
	if (cmd.n_redirect)
		sh_command(p->sh, &cmd, &out);
	deliver(p, &cmd, &out);
}

static void pop(struct parser *p)
{
	struct frame f = *top(p);
	struct sh_stream out = f.out;

	if (f.function) {
		define_function(p, &f);
		out = (struct sh_stream){ .text = "" };
	}
	if (f.function || f.kind == FRAME_PAREN) {
		p->sh->cwd = f.outer_cwd;
		p->sh->lost = f.outer_lost;
	}
	p->n--;
	p->piped = f.piped_in;
	after_group(p, out, f.start);
}

/* Closes the innermost compound of this kind; compounds inside it were never closed. */
static void close_frame(struct parser *p, enum frame_kind kind)
{
	size_t i = p->n;

	while (i && p->frames[i - 1].kind != kind)
		i--;
	if (i != p->n)
		sh_check(p->sh, p->t, "shell-syntax", p->t->pos ? p->t->pos - 1 : 0,
			 "a compound is not closed in order");
	if (!i)
		return;
	p->n = i;
	pop(p);
}

static void skip_lines(struct parser *p)
{
	for (;;) {
		sh_skip_blanks(p->t);
		if (peek(p->t, 0) != '\n')
			return;
		p->t->pos++;
		sh_read_heredocs(p->sh, p->t);
	}
}

/* ((...)): false if it is not arithmetic. */
static bool arithmetic(struct parser *p)
{
	size_t close, whole = p->t->len;
	struct sh_buf out = { 0 };

	if (peek(p->t, 0) != '(' || peek(p->t, 1) != '(' || !sh_is_arithmetic(p->t, p->t->pos, &close))
		return false;
	p->t->pos += 2;
	p->t->len = close;
	(void)sh_expand(p->sh, p->t, EXPAND_ARITHMETIC, true, &out);
	p->t->len = whole;
	p->t->pos = close + 2;
	return true;
}

/* for NAME [in words]; the values become alternatives of the variable. */
static void loop_head(struct parser *p)
{
	const char *name;
	size_t n = 0, assign, set = 0;
	struct sh_words list = { 0 };
	uint32_t origins;

	sh_skip_blanks(p->t);
	if (arithmetic(p))
		return;
	name = p->t->s + p->t->pos;
	while (isalnum((unsigned char)peek(p->t, n)) || peek(p->t, n) == '_')
		n++;
	p->t->pos += n;
	skip_lines(p);
	if (!at_word(p->t, "in")) {
		sh_var_set(p->sh, name, n,
			   (struct sh_value){ .s = "\001", .len = 1, .origins = ORIGIN_PARAMETER | ORIGIN_VARIABLE },
			   true);
		return;
	}
	p->t->pos += 2;
	p->sh->origins = 0;
	for (sh_skip_blanks(p->t); p->t->pos < p->t->len && !sh_ends_word(peek(p->t, 0)); sh_skip_blanks(p->t)) {
		struct sh_buf word = { 0 };

		sh_read_word(p->sh, p->t, &word, &assign);
		if (word.p)
			sh_fields(p->sh, &word, &list);
		if (!sh_step(p->sh))
			return;
	}
	origins = p->sh->origins;
	/* A variable keeps only the last few values, so words that name something special are assigned last. */
	for (int special = 0; special < 2; special++)
		for (size_t i = 0; i < list.n; i++) {
			const struct sh_word *w = &list.row[i];

			if ((sh_path_classes(p->sh, w) != 0) == special)
				sh_var_set(p->sh, name, n,
					   (struct sh_value){ .s = w->s, .len = w->len, .origins = origins },
					   set++ == 0);
		}
	if (!list.n)
		sh_var_set(p->sh, name, n, (struct sh_value){ .s = "\001", .len = 1 }, true);
}

/* Reads up to the ) after the patterns of a case, or up to esac. */
static void case_patterns(struct parser *p)
{
	size_t assign;

	skip_lines(p);
	if (at_word(p->t, "esac")) {
		p->t->pos += 4;
		close_frame(p, FRAME_CASE);
		return;
	}
	if (peek(p->t, 0) == '(')
		p->t->pos++;
	while (p->t->pos < p->t->len && sh_step(p->sh)) {
		struct sh_buf word = { 0 };
		size_t before;

		skip_lines(p);
		before = p->t->pos;
		if (peek(p->t, 0) == ')') {
			p->t->pos++;
			return;
		}
		if (peek(p->t, 0) == '|')
			p->t->pos++;
		else
			sh_read_word(p->sh, p->t, &word, &assign);
		if (p->t->pos == before)
			p->t->pos++;
	}
}

static void case_head(struct parser *p)
{
	struct sh_buf word = { 0 };
	size_t assign;

	skip_lines(p);
	sh_read_word(p->sh, p->t, &word, &assign);
	skip_lines(p);
	if (at_word(p->t, "in"))
		p->t->pos += 2;
	else
		sh_check(p->sh, p->t, "shell-syntax", p->t->pos, "case without in");
	case_patterns(p);
}

/* [[ ... ]]: only its substitutions matter, and words that are evaluated again as arithmetic. */
static void condition(struct parser *p)
{
	size_t start = p->t->pos, assign;

	p->t->pos += 2;
	while (p->t->pos < p->t->len && sh_step(p->sh)) {
		struct sh_buf word = { 0 };
		size_t before;

		while (isspace((unsigned char)peek(p->t, 0)))
			p->t->pos++;
		before = p->t->pos;
		if (at_word(p->t, "]]")) {
			p->t->pos += 2;
			after_group(p, (struct sh_stream){ .text = "" }, start);
			return;
		}
		if (peek(p->t, 1) == '(' || !peek(p->t, 0) || !strchr("()<>|&;", peek(p->t, 0)))
			sh_read_word(p->sh, p->t, &word, &assign);
		if (p->t->pos == before)
			p->t->pos++;
		if (word.len && memchr(word.p, '[', word.len)) {
			struct sh_word w = sh_single(p->sh, word.p, word.len);

			sh_expand_again(p->sh, w.s, w.len, sh_span(p->sh, p->t, before, p->t->pos));
		}
	}
	sh_check(p->sh, p->t, "shell-syntax", start, "[[ is never closed");
}

/* name () or function name: keeps the name for the body that follows. */
static bool function_head(struct parser *p)
{
	struct sh_text *t = p->t;
	size_t i = 0, end;
	bool keyword = at_word(t, "function");

	if (keyword) {
		t->pos += 8;
		sh_skip_blanks(t);
	}
	while (t->pos + i < t->len && !sh_ends_word(peek(t, i)) && !strchr("'\"\\$`", peek(t, i)))
		i++;
	end = i;
	while (peek(t, end) == ' ' || peek(t, end) == '\t')
		end++;
	if (peek(t, end) == '(') {
		size_t close = end + 1;

		while (peek(t, close) == ' ' || peek(t, close) == '\t')
			close++;
		if (peek(t, close) == ')')
			end = close + 1;
		else if (!keyword)
			return false;
	} else if (!keyword) {
		return false;
	}
	if (!i)
		return keyword;
	p->function = sh_copy(p->sh, t->s + t->pos, i);
	p->function_len = i;
	t->pos += end;
	skip_lines(p);
	return true;
}

/* coproc [NAME] compound, or coproc simple command. */
static void coprocess(struct parser *p)
{
	size_t n = 0, after;

	sh_skip_blanks(p->t);
	while (isalnum((unsigned char)peek(p->t, n)) || peek(p->t, n) == '_')
		n++;
	for (after = n; peek(p->t, after) == ' '; after++)
		;
	if (n && after > n && (peek(p->t, after) == '{' || peek(p->t, after) == '('))
		p->t->pos += after;
}

static void open_paren(struct parser *p)
{
	size_t start = p->t->pos;

	if (arithmetic(p)) {
		after_group(p, (struct sh_stream){ .text = "" }, start);
		p->function = NULL;
	} else if (push(p, FRAME_PAREN)) {
		p->t->pos++;
	}
}

enum reserved_action {
	OPEN_IF,
	OPEN_LOOP,
	OPEN_FOR,
	OPEN_CASE,
	OPEN_BRACE,
	CLOSE_IF,
	CLOSE_LOOP,
	CLOSE_CASE,
	CLOSE_BRACE,
	GO_ON,
	CONDITION,
	TIME,
	COPROC
};

static const struct reserved {
	const char *word;
	enum reserved_action action;
} reserved[] = {
	{ "if", OPEN_IF },      { "then", GO_ON },      { "elif", GO_ON },      { "else", GO_ON },
	{ "fi", CLOSE_IF },     { "while", OPEN_LOOP }, { "until", OPEN_LOOP }, { "for", OPEN_FOR },
	{ "select", OPEN_FOR }, { "do", GO_ON },        { "done", CLOSE_LOOP }, { "case", OPEN_CASE },
	{ "esac", CLOSE_CASE }, { "{", OPEN_BRACE },    { "}", CLOSE_BRACE },   { "!", GO_ON },
	{ "[[", CONDITION },    { "time", TIME },       { "coproc", COPROC },
};

static void act(struct parser *p, const struct reserved *r)
{
	size_t n = strlen(r->word);

	if (r->action == CONDITION) {
		condition(p);
		p->function = NULL;
		return;
	}
	if (r->action == OPEN_IF || r->action == OPEN_BRACE || r->action == OPEN_CASE || r->action == OPEN_LOOP ||
	    r->action == OPEN_FOR) {
		enum frame_kind kind = r->action == OPEN_IF      ? FRAME_IF
				       : r->action == OPEN_BRACE ? FRAME_BRACE
				       : r->action == OPEN_CASE  ? FRAME_CASE
								 : FRAME_LOOP;

		if (!push(p, kind))
			return;
	}
	p->t->pos += n;
	switch (r->action) {
	case OPEN_FOR:
		loop_head(p);
		break;
	case OPEN_CASE:
		case_head(p);
		break;
	case CLOSE_IF:
		close_frame(p, FRAME_IF);
		break;
	case CLOSE_LOOP:
		close_frame(p, FRAME_LOOP);
		break;
	case CLOSE_CASE:
		close_frame(p, FRAME_CASE);
		break;
	case CLOSE_BRACE:
		if (!p->n && p->term == '}')
			p->done = true;
		else
			close_frame(p, FRAME_BRACE);
		break;
	case TIME:
		sh_skip_blanks(p->t);
		if (at_word(p->t, "-p"))
			p->t->pos += 2;
		break;
	case COPROC:
		coprocess(p);
		break;
	default:
		break;
	}
}

static void command_start(struct parser *p)
{
	/* Without extglob, !(x) is a negated subshell.  Parsing it as commands in any case can only find more. */
	if (peek(p->t, 0) == '!' && peek(p->t, 1) == '(') {
		p->t->pos++;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (at_word(p->t, reserved[i].word)) {
			act(p, &reserved[i]);
			return;
		}
	if (function_head(p))
		return;
	p->function = NULL;
	simple(p);
}

/* ; & | and their combinations. */
static void separator(struct parser *p, char c)
{
	struct sh_text *t = p->t;

	p->after_condition = false;
	if (c == ';') {
		bool next_case = peek(t, 1) == ';' || peek(t, 1) == '&';

		t->pos += next_case && peek(t, 1) == ';' && peek(t, 2) == '&' ? 3 : next_case ? 2 : 1;
		if (next_case && p->n && top(p)->kind == FRAME_CASE)
			case_patterns(p);
	} else if (c == '&') {
		p->after_condition = peek(t, 1) == '&';
		t->pos += p->after_condition ? 2 : 1;
	} else {
		p->after_condition = peek(t, 1) == '|';
		p->piped = !p->after_condition;
		t->pos += peek(t, 1) == '|' || peek(t, 1) == '&' ? 2 : 1;
		return;
	}
	p->piped = false;
}

static void close_paren(struct parser *p)
{
	size_t i = p->n;

	while (i && p->frames[i - 1].kind != FRAME_PAREN)
		i--;
	p->t->pos++;
	if (i) {
		close_frame(p, FRAME_PAREN);
	} else if (p->term == ')') {
		if (p->n)
			sh_check(p->sh, p->t, "shell-syntax", p->t->pos - 1, "a compound is never closed");
		p->done = true;
	} else {
		sh_check(p->sh, p->t, "shell-syntax", p->t->pos - 1, "an unexpected parenthesis");
	}
}

static void one_token(struct parser *p)
{
	size_t prefix;
	char c;

	sh_skip_blanks(p->t);
	c = peek(p->t, 0);
	if (p->t->pos >= p->t->len)
		return;
	if (c == '\n') {
		p->t->pos++;
		sh_read_heredocs(p->sh, p->t);
		p->after_condition = false;
	} else if (c == '&' && sh_at_redirect(p->t, &prefix)) {
		simple(p);
	} else if (strchr(";&|", c)) {
		separator(p, c);
	} else if (c == '(') {
		open_paren(p);
	} else if (c == ')') {
		close_paren(p);
	} else {
		command_start(p);
	}
}

void sh_parse(struct shell *sh, struct sh_text *t, char term, struct sh_stream *out)
{
	struct parser p = { .sh = sh, .t = t, .term = term, .out = out };

	*out = (struct sh_stream){ .text = "" };
	while (!p.done && t->pos < t->len && sh_step(sh))
		one_token(&p);
	if (sh->stop)
		return;
	if (t->here_first >= 0 && !term)
		sh_read_heredocs(sh, t);
	if ((term && !p.done) || p.n) {
		/* A body without an end still defines its function, and restores the saved state. */
		for (; p.n; p.n--)
			if (top(&p)->function)
				define_function(&p, top(&p));
		sh_check(sh, t, "shell-syntax", t->pos ? t->pos - 1 : 0, "the text ends inside a command");
	}
}

void sh_parse_text(struct shell *sh, const char *s, size_t len, struct span where, struct sh_stream *out)
{
	struct sh_text t = { .mapped = true, .host = where, .here_first = -1, .here_last = -1 };
	struct sh_buf code = { 0 };

	*out = (struct sh_stream){ .text = "" };
	if (sh->depth >= SH_DEPTH_MAX) {
		sh_check(sh, &t, "too-deep", 0, "commands nested in commands");
		sh->stop = true;
		return;
	}
	/* A part that is unknown before run time becomes an unset variable. */
	for (size_t i = 0; i < len; i++)
		if (s[i] == MARK_HOLE)
			sh_add(sh, &code, "${_}", 4);
		else
			sh_addc(sh, &code, s[i]);
	t.s = code.p ? code.p : "";
	t.len = code.len;
	sh->depth++;
	sh_parse(sh, &t, '\0', out);
	sh->depth--;
}
