/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the inspectors of all languages: the text, the rules, the list of findings, budgets, and the functions that
 * judge.  Inspectors judge references, not calls: any mention of a forbidden builtin, module or member counts, unless a
 * local binding shadows it.
 */
#ifndef INSPECT_JUDGE_H
#define INSPECT_JUDGE_H

#include "inspect/inspect.h"

struct judge {
	const struct rule_set *rules;
	enum rule_language language;
	enum inspection level;
	const char *workspace;
	bool strict_commands;
	const struct setting_list *allowed_commands; /* may be NULL */
	const char *const *asked;                    /* additional allowed modules, in asked_language */
	size_t n_asked;
	enum rule_language asked_language;
	bool has_input; /* the program will read input that is unknown now */
	/* The whole text as passed by the caller; spans refer to it. */
	const char *text;
	size_t len;
	struct findings *out;
	/* Nested strings, for example the code of sh -c in subprocess.run: */
	unsigned depth; /* nesting depth; from JUDGE_DEPTH_MAX on only check "too-deep" is reported */
	bool nested;    /* this text was found inside another: every finding gets `host` as its span */
	bool in_text;   /* as nested, and code of the outer text runs it: a reader does not expect code there */
	struct span host;
	uint64_t steps_left;  /* budget shared by folding and walking */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; parsers stop at it and report judge_unfinished() */
	bool out_of_memory;
};
#define JUDGE_DEPTH_MAX 8

/*
 * Each looks the name up and reports at most one finding; true if a rule applies at this level.
 * judge_module: Python's "a.b" without a rule is also judged as "a", JavaScript's "a/b" likewise; "node:" is removed;
 * a missing entry in an allow-list is reported in addition to a milder rule.
 * judge_member: the most specific of RULE_MEMBER and RULE_MEMBER_ALLOW applies; module rules are not used.
 */
bool judge_module(struct judge *j, const char *name, size_t len, struct span where);
/*
 * True if the module, or a package that contains it, is in judge.asked: then allow-lists do not apply to it.  Rules for
 * it still do.
 */
bool judge_was_asked(const struct judge *j, const char *name, size_t len);
bool judge_builtin(struct judge *j, const char *name, size_t len, struct span where);
bool judge_attribute(struct judge *j, const char *name, size_t len, struct span where);
bool judge_member(struct judge *j, const char *path, size_t len, struct span where);
bool judge_directive(struct judge *j, const char *name, size_t len, struct span where);
/* Reports a RULE_CHECK by its name; detail completes the message: "<message>: <detail>" ("%s", "" for none). */
bool judge_check(struct judge *j, const char *check, struct span where, const char *detail_fmt, ...) PRINTF(4, 5);
/*
 * The check to report if time or steps ran out: "too-large" for a long text, "not-analysable" for a short one, where it
 * is more suspicious.
 */
const char *judge_unfinished(const struct judge *j);
/* Reports a rule that matched by other means (a command pattern, a path glob). */
bool judge_report(struct judge *j, const struct rule *rule, const char *name, struct span where);

/* Strings that the code passes on, judged by the inspector for their kind: */
void judge_path(struct judge *j, const char *text, size_t len, struct span where);    /* paths.c */
void judge_command(struct judge *j, const char *text, size_t len, struct span where); /* text for sh -c */
void judge_argv(struct judge *j, const char *const *words, const bool *literal, size_t n, struct span where);
void judge_code(struct judge *j, enum inspect_kind kind, const char *text, size_t len, struct span where);
/* True if a string literal looks like a path worth judging (absolute, ~, .., or a sensitive name). */
bool judge_looks_like_path(const char *text, size_t len);

/* The inspectors.  Each walks its tree without recursion and stays within the judge's budgets. */
void inspect_python(struct judge *j, const char *text, size_t len);
void inspect_notebook(struct judge *j, const char *text, size_t len);
void inspect_javascript(struct judge *j, enum inspect_kind kind, const char *text, size_t len);
void inspect_go(struct judge *j, const char *text, size_t len);
void inspect_shell(struct judge *j, const char *text, size_t len);

/*
 * The bytes pass, before any parser: judges size, UTF-8, NUL, bidi controls and coding cookies; returns the text to
 * parse, NUL-terminated, with the same length and offsets.  Python and JavaScript: CR becomes LF, CRLF becomes " \n" (a
 * backslash before it stays next to the LF); JavaScript: BOM and hashbang become spaces; Go: CR becomes a space; shell
 * and paths: unchanged, a CR is a character there.  NULL: cannot be analysed, already reported.  The caller frees the
 * text.
 */
char *inspect_bytes(struct judge *j, const char *text, size_t len);

#endif
