/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a command with the rules: the pattern language of shell.h. */
#include <stdio.h>
#include <string.h>

#include "inspect/shell.h"

#define WORDS_SEEN 64

/* A command being compared; the classes of its words are computed on first use. */
struct candidate {
	struct shell *sh;
	const struct sh_call *call;
	unsigned classes[WORDS_SEEN];
	bool known[WORDS_SEEN];
	bool any_program; /* the pattern's program is "*" */
};

struct piece {
	const char *s;
	size_t len;
};

/* Programs whose operands are text, not files; and listing programs, which have rules of their own. */
static const char *const text_programs[] = {
	":",       "[",     "[[",      "alias",  "basename", "bc",     "cd",       "command",  "date",
	"declare", "dir",   "dirname", "du",     "echo",     "exit",   "export",   "expr",     "false",
	"file",    "find",  "hash",    "help",   "info",     "let",    "local",    "logger",   "ls",
	"man",     "mkdir", "popd",    "printf", "pushd",    "read",   "readlink", "readonly", "realpath",
	"return",  "seq",   "set",     "shift",  "sleep",    "stat",   "test",     "tr",       "tree",
	"true",    "type",  "typeset", "unset",  "vdir",     "whatis", "which",
};

bool sh_opens_operands(const char *program)
{
	for (size_t i = 0; i < ARRAY_LEN(text_programs); i++)
		if (strcmp(text_programs[i], program) == 0)
			return false;
	return true;
}

/* The first operand that is a file: grep, sed and awk take a pattern or program first. */
static size_t first_file_operand(const struct sh_call *call)
{
	static const char *const names[] = { "grep", "egrep", "fgrep", "rg",   "ag", "ack",
					     "sed",  "awk",   "gawk",  "mawk", "jq", "perl" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], call->program) == 0)
			return sh_has_option(call, "-e", NULL) || sh_has_option(call, "-f", NULL) ||
					       sh_has_option(call, "--file", NULL) ||
					       sh_has_option(call, "--regexp", NULL)
				       ? 0
				       : 1;
	return 0;
}

static bool is_option(const struct sh_word *w)
{
	return w->len > 1 && w->s[0] == '-';
}

const struct sh_word *sh_operand(const struct sh_call *call, size_t i)
{
	bool options = true;

	for (size_t k = 1; k < call->n; k++) {
		if (options && sh_is(&call->words[k], "--")) {
			options = false;
			continue;
		}
		if (options && is_option(&call->words[k]))
			continue;
		if (i-- == 0)
			return &call->words[k];
	}
	return NULL;
}

static bool long_option(const struct sh_word *w, const char *spelling, size_t len, const char **value)
{
	const char *eq = strchr(w->s, '=');
	size_t n = eq ? (size_t)(eq - w->s) : w->len;

	if (n < 4 && n != len)
		return false;
	if (n > len || memcmp(w->s, spelling, n) != 0)
		return false;
	*value = eq ? eq + 1 : NULL;
	return true;
}

/* -x alone or inside -axb; the value is the rest of the word, or NULL: the next word. */
static bool short_option(const struct sh_word *w, char letter, const char *with_value, const char **value)
{
	const char *at;
	size_t rest;

	if (w->s[1] == '-')
		return false;
	at = strchr(w->s + 1, letter);
	/* -Iseconds of date: the rest of the word after such a letter is its value */
	rest = 1 + strcspn(w->s + 1, with_value);
	if (at && (size_t)(at - w->s) > rest)
		return false;
	*value = at && at[1] ? at + 1 : NULL;
	return at != NULL;
}

/* Option letters whose value is the rest of the word, for programs whose clusters would be misread otherwise. */
static const char *letters_with_value(const char *program)
{
	return strcmp(program, "date") == 0 ? "dfIrs" : "";
}

/* Finds the first one from word *from on; *from becomes the index after it. */
static bool find_option(const struct sh_call *call, const char *spelling, size_t len, size_t *from,
			struct sh_word *value)
{
	for (size_t i = *from; i < call->n; i++) {
		const struct sh_word *w = &call->words[i];
		const char *attached = NULL;
		bool hit;

		if (sh_is(w, "--"))
			return false;
		if (!is_option(w))
			continue;
		if (len > 2 && spelling[1] == '-')
			hit = long_option(w, spelling, len, &attached);
		else if (len == 2)
			hit = short_option(w, spelling[1], letters_with_value(call->program), &attached);
		else
			hit = w->len == len && memcmp(w->s, spelling, len) == 0;
		if (!hit)
			continue;
		if (value && attached)
			*value =
				(struct sh_word){ .s = attached, .len = (uint32_t)strlen(attached), .flags = w->flags };
		else if (value)
			*value = i + 1 < call->n ? call->words[i + 1] : (struct sh_word){ .s = "" };
		*from = i + 1;
		return true;
	}
	return false;
}

bool sh_has_option(const struct sh_call *call, const char *spelling, struct sh_word *value)
{
	return find_option(call, spelling, strlen(spelling), &(size_t){ 1 }, value);
}

static unsigned classes_at(struct candidate *c, const struct sh_word *w)
{
	size_t i = (size_t)(w - c->call->words);

	if (i >= c->call->n || i >= WORDS_SEEN)
		return sh_path_classes(c->sh, w);
	if (!c->known[i]) {
		c->classes[i] = sh_path_classes(c->sh, w);
		c->known[i] = true;
	}
	return c->classes[i];
}

static bool value_matches(struct candidate *c, struct piece want, const struct sh_word *w, bool in_call)
{
	if (want.len && want.s[0] == '@') {
		unsigned class = sh_path_class_by_name(want.s + 1, want.len - 1);

		return ((in_call ? classes_at(c, w) : sh_path_classes(c->sh, w)) & class) != 0;
	}
	/* of=@device: a glob before a class */
	if (want.len > 2 && memmem(want.s, want.len, "=@", 2)) {
		const char *at = memmem(want.s, want.len, "=@", 2), *equals = strchr(w->s, '=');
		size_t head = (size_t)(at - want.s);
		struct sh_word rest;

		if (!equals || !sh_glob(want.s, head, w->s, (size_t)(equals - w->s)))
			return false;
		rest = (struct sh_word){ .s = equals + 1, .len = (uint32_t)strlen(equals + 1), .flags = w->flags };
		return value_matches(c, (struct piece){ at + 1, want.len - head - 1 }, &rest, false);
	}
	return sh_glob(want.s, want.len, w->s, w->len);
}

static bool redirect_matches(struct candidate *c, struct piece want, bool write)
{
	const struct sh_command *cmd = c->call->cmd;

	for (size_t i = 0; i < cmd->n_redirect; i++) {
		enum redirect_kind k = cmd->redirect[i].kind;

		if (k == REDIRECT_BOTH || k == (write ? REDIRECT_WRITE : REDIRECT_READ))
			if (value_matches(c, want, &cmd->redirect[i].target, false))
				return true;
	}
	return false;
}

static bool operand_matches(struct candidate *c, struct piece want)
{
	size_t first = 0, i;
	const struct sh_word *w, *last = NULL;

	if (c->any_program && !sh_opens_operands(c->call->program))
		return false;
	if (c->any_program)
		first = first_file_operand(c->call);
	if (want.s[0] == '^') {
		w = sh_operand(c->call, 0);
		return w && value_matches(c, (struct piece){ want.s + 1, want.len - 1 }, w, true);
	}
	for (i = 0; (w = sh_operand(c->call, i)) != NULL; i++) {
		last = w;
		if (i >= first && want.s[0] != '$' && value_matches(c, want, w, true))
			return true;
		if (i > 2 * WORDS_SEEN)
			break;
	}
	return want.s[0] == '$' && last && i > 1 &&
	       value_matches(c, (struct piece){ want.s + 1, want.len - 1 }, last, true);
}

static bool alternative_matches(struct candidate *c, struct piece alt)
{
	if (alt.s[0] == '>' || alt.s[0] == '<')
		return redirect_matches(c, (struct piece){ alt.s + 1, alt.len - 1 }, alt.s[0] == '>');
	if (alt.s[0] == '-' && alt.len > 1) {
		const char *eq = memchr(alt.s, '=', alt.len);
		struct sh_word value = { .s = "" };
		size_t from = 1;

		if (!eq)
			return find_option(c->call, alt.s, alt.len, &from, NULL);
		while (find_option(c->call, alt.s, (size_t)(eq - alt.s), &from, &value))
			if (value_matches(c, (struct piece){ eq + 1, alt.len - (size_t)(eq - alt.s) - 1 }, &value,
					  false))
				return true;
		return false;
	}
	return operand_matches(c, alt);
}

/* Cuts off the next part; false at the end. */
static bool next_piece(struct piece *rest, char separator, struct piece *ret)
{
	const char *end;

	while (rest->len && rest->s[0] == separator) {
		rest->s++;
		rest->len--;
	}
	if (!rest->len)
		return false;
	end = memchr(rest->s, separator, rest->len);
	*ret = (struct piece){ rest->s, end ? (size_t)(end - rest->s) : rest->len };
	rest->s += ret->len;
	rest->len -= ret->len;
	return true;
}

static bool term_matches(struct candidate *c, struct piece term)
{
	bool negate = term.s[0] == '!' && term.len > 1;
	struct piece alt;

	term.s += negate;
	term.len -= negate;
	while (next_piece(&term, '|', &alt))
		if (alternative_matches(c, alt))
			return !negate;
	return negate;
}

static void index_name(struct shell *sh, const struct rule *rule, const char *name)
{
	struct piece rest = { name, strlen(name) }, programs, one;
	const char *equals;

	if (!next_piece(&rest, ' ', &programs))
		return;
	equals = memchr(programs.s, '=', programs.len);
	while (next_piece(&programs, equals ? '\0' : '|', &one)) {
		struct sh_entry *e = sh_alloc(sh, sizeof(*e));
		struct sh_entry **head = &sh->entries[strchr("*?", one.s[0]) ? 0 : (unsigned char)one.s[0]];

		if (!e)
			return;
		if (equals)
			head = &sh->assigns;
		*e = (struct sh_entry){
			.next = *head, .rule = rule, .program = one.s, .len = (uint32_t)one.len, .terms = rest.s
		};
		if (equals) {
			e->len = (uint32_t)(equals - one.s);
			e->terms = equals + 1;
		}
		*head = e;
	}
}

static void index_rules(struct shell *sh)
{
	const struct rule *rule;
	size_t at = 0;

	if (sh->indexed)
		return;
	sh->indexed = true;
	while ((rule = rules_next(sh->j->rules, RULE_SHELL, RULE_COMMAND, &at)) != NULL)
		for (size_t i = 0;
		     i < rule->n_names && (rule->settled || rule->severity[sh->j->level] != SEVERITY_NONE); i++)
			index_name(sh, rule, rule->names[i]);
}

static bool entry_matches(struct candidate *c, const struct sh_entry *e)
{
	struct piece rest = { e->terms, strlen(e->terms) }, term;

	c->any_program = e->len == 1 && e->program[0] == '*';
	if (!c->any_program && !sh_glob(e->program, e->len, c->call->program, strlen(c->call->program)))
		return false;
	while (next_piece(&rest, ' ', &term))
		if (!term_matches(c, term))
			return false;
	return true;
}

/* The command after normalisation, for the report. */
static void describe(const struct sh_call *call, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < call->n && n + 1 < size; i++) {
		const char *s = i ? call->words[i].s : call->program;
		int k = snprintf(ret + n, size - n, "%s%s", i ? " " : "", s);

		if (k < 0)
			return;
		n += (size_t)k;
	}
	for (char *p = ret; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = *p == MARK_HOLE ? '?' : ' ';
	if (!ret[0])
		snprintf(ret, size, "redirection");
}

/* True if the policy set a rule for reading files by name: the rules for paths then do not judge the files again. */
static bool settles_files(const struct sh_entry *e)
{
	static const char *const read[] = { "@secret", "@own-secret", "@private" };

	for (size_t i = 0; e->rule->settled && i < ARRAY_LEN(read); i++)
		if (strstr(e->terms, read[i]))
			return true;
	return false;
}

enum severity sh_match_rules(struct shell *sh, const struct sh_call *call)
{
	struct candidate c = { .sh = sh, .call = call };
	enum severity worst = SEVERITY_NONE;
	char name[96] = "";

	index_rules(sh);
	for (int every = 0; every < 2; every++) {
		const struct sh_entry *e = sh->entries[every ? 0 : (unsigned char)call->program[0]];

		for (; e && !(every == 0 && !call->program[0]); e = e->next) {
			if (!entry_matches(&c, e))
				continue;
			if (!name[0])
				describe(call, name, sizeof(name));
			judge_report(sh->j, e->rule, name, call->cmd->span);
			if (settles_files(e))
				worst = SEVERITY_CRITICAL;
			if (e->rule->severity[sh->j->level] > worst)
				worst = e->rule->severity[sh->j->level];
		}
	}
	return worst;
}

void sh_match_assign(struct shell *sh, const char *name, const struct sh_word *value, struct span where)
{
	size_t len = strlen(name);

	index_rules(sh);
	for (const struct sh_entry *e = sh->assigns; e; e = e->next)
		if (sh_glob(e->program, e->len, name, len) && sh_glob(e->terms, strlen(e->terms), value->s, value->len))
			judge_report(sh->j, e->rule, name, where);
}
