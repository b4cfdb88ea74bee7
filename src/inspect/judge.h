/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the inspectors of all languages share: the text, the rules, the list of findings, budgets, and the functions
 * that judge.  Inspectors judge references, not calls: any mention of a forbidden builtin, module or member counts,
 * unless a local binding shadows it.
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
	const struct setting_list *allowed_commands; /* or NULL */
	const char *const *asked;                    /* further modules of the allow-list, of asked_language */
	size_t n_asked;
	enum rule_language asked_language;
	bool has_input; /* the program will read bytes that are not known now */
	/* The whole text as the caller handed it in; spans refer to it. */
	const char *text;
	size_t len;
	struct findings *out;
	/* Strings inside strings: code in sh -c in subprocess.run ... */
	unsigned depth; /* of nesting; JUDGE_DEPTH_MAX ends it with check "too-deep" */
	bool nested;    /* a text found inside another: every finding gets `host` as its span */
	bool in_text;   /* ... by code that runs it: what is written there is not where a reader looks */
	struct span host;
	uint64_t steps_left;  /* shared budget of folding and walking */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; parsers stop there with check "not-analysable" */
	bool out_of_memory;
};
#define JUDGE_DEPTH_MAX 8

/*
 * Each looks the name up and reports at most one finding; true if a rule applies at this level.
 * judge_module: "a.b" of Python is judged as "a" too if it has no rule, "a/b" of JavaScript likewise; "node:" is cut off.
 * judge_member: the most specific of RULE_MEMBER and RULE_MEMBER_ALLOW wins; modules are not asked.
 */
bool judge_module(struct judge *j, const char *name, size_t len,
		  struct span where); /* also the allow-list, beside a milder rule */
/* Whether the module is one of judge.asked, or in one: then no allow-list misses it.  Rules for it still apply. */
bool judge_was_asked(const struct judge *j, const char *name, size_t len);
bool judge_builtin(struct judge *j, const char *name, size_t len, struct span where);
bool judge_attribute(struct judge *j, const char *name, size_t len, struct span where);
bool judge_member(struct judge *j, const char *path, size_t len, struct span where);
bool judge_directive(struct judge *j, const char *name, size_t len, struct span where);
/* A RULE_CHECK by its name; detail completes the message: "<message>: <detail>" ("%s", "" for none). */
bool judge_check(struct judge *j, const char *check, struct span where, const char *detail_fmt, ...) PRINTF(4, 5);
/* The check for an inspection that ran out of time or steps: of a long text that says little, of a short one much. */
const char *judge_unfinished(const struct judge *j);
/* Reports a rule that was found by other means (a command pattern, a path glob). */
bool judge_report(struct judge *j, const struct rule *rule, const char *name, struct span where);

/* Strings that the code hands to something: judged by the inspector of what they are. */
void judge_path(struct judge *j, const char *text, size_t len, struct span where);    /* paths.c */
void judge_command(struct judge *j, const char *text, size_t len, struct span where); /* shell: text for sh -c */
void judge_argv(struct judge *j, const char *const *words, const bool *literal, size_t n, struct span where);
void judge_code(struct judge *j, enum inspect_kind kind, const char *text, size_t len, struct span where);
/* Whether a string literal looks like a path worth judging (absolute, ~, .., or a sensitive name). */
bool judge_looks_like_path(const char *text, size_t len);

/* The inspectors.  Each walks without recursion over the tree and stays within the judge's budgets. */
void inspect_python(struct judge *j, const char *text, size_t len);
void inspect_notebook(struct judge *j, const char *text, size_t len);
void inspect_javascript(struct judge *j, enum inspect_kind kind, const char *text, size_t len);
void inspect_go(struct judge *j, const char *text, size_t len);
void inspect_shell(struct judge *j, const char *text, size_t len);

/*
 * The bytes pass, before any parser: size, UTF-8, NUL, bidi controls, coding cookies are judged; the result is the text
 * to parse, NUL-terminated, with the same length and offsets.  Python and JavaScript: CR becomes LF, CRLF becomes " \n"
 * (a backslash before it stays next to the LF); JavaScript: BOM and hashbang become spaces; Go: CR becomes a space;
 * shell and paths: untouched, a CR is a character there.  NULL: cannot be analysed, already reported.  Heap.
 */
char *inspect_bytes(struct judge *j, const char *text, size_t len);

#endif
