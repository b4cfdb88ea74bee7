/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are data: data/rules/<area>.yaml, compiled into the binary at build time (tools/gen-rules) and extended
 * by files of the user's at run time.  Every rule carries examples that must match and must not match; they are
 * run through the inspectors when a file loads (built-in ones by a test), and a bad rule is refused with its line.
 *
 *	- id: py-process                    # unique, lower case, dashes
 *	  languages: [python]               # python javascript typescript go shell path; typescript implies nothing
 *	  kind: module                      # see enum rule_kind
 *	  names: [subprocess, pty]
 *	  severity: {strict: CRITICAL, guard: LOW, report: LOW}   # or one word for all
 *	  message: starts other programs    # completed by the name: "subprocess: starts other programs"
 *	  remedy: compute the result in Python instead
 *	  match: ["import subprocess"]
 *	  no_match: ["subprocess = 1"]
 *	  network: true                     # optional: it is about talking to the network, and about nothing else
 *
 * A user's file may also give more names to a rule that is there, with examples of its own if it likes:
 *
 *	- extend: py-network
 *	  names: [our_company.http]
 *	  match: ["import our_company.http"]
 *
 * languages may be the word "all".  A level that severity does not name is NONE: the rule is silent there.
 * The kinds *-allow need id, languages, kind and names (module-allow: everything); check needs no examples.
 * Except for commands, paths and allow-lists a name belongs to one rule per language.
 */
#ifndef INSPECT_RULES_H
#define INSPECT_RULES_H

#include "base/err.h"
#include "model/finding.h"
#include "model/settings.h"

enum rule_language {
	RULE_PYTHON,
	RULE_JAVASCRIPT,
	RULE_TYPESCRIPT,
	RULE_GO,
	RULE_SHELL,
	RULE_PATH,
	RULE_LANGUAGE_COUNT
};
extern const char *const rule_language_name[RULE_LANGUAGE_COUNT];

enum rule_kind {
	RULE_MODULE,       /* an imported module or package: "os", "node:fs" is written "fs", "os/exec" */
	RULE_MODULE_ALLOW, /* at levels where a severity is given, modules in no such list get it */
	RULE_BUILTIN,      /* a global name: eval, __import__, require, Function */
	RULE_ATTRIBUTE,    /* an attribute of anything: __globals__, mainModule */
	RULE_MEMBER,       /* a resolved chain: os.system, process.binding, http.Get; "os.*" all members */
	RULE_MEMBER_ALLOW, /* members of a module that its module rule does not concern: sys.maxsize, os.path.* */
	RULE_COMMAND, /* a program of the shell; names are the base name, with optional argument patterns (see shell.h) */
	RULE_COMMAND_ALLOW, /* the white-list of strict mode */
	RULE_PATH_DENY,     /* sensitive paths, as globs: "/etc/shadow", "*.pem", everything below "~/.ssh" */
	RULE_DIRECTIVE,     /* comments that the toolchain obeys: go:linkname */
	RULE_CHECK, /* a test written in C; the rule gives it severity and words: parse-error, dynamic-import ... */
	RULE_KIND_COUNT
};
extern const char *const rule_kind_name[RULE_KIND_COUNT];

struct rule {
	const char *id;
	uint32_t languages; /* bits of enum rule_language */
	enum rule_kind kind;
	const char *const *names;
	size_t n_names;
	enum severity severity[INSPECTION_COUNT];
	const char *message;
	const char *remedy;
	const char *const *match;
	size_t n_match;
	const char *const *no_match;
	size_t n_no_match;
	bool network;     /* says no more than that the code talks to the network */
	bool extends;     /* in a file only: adds to the rule of this id, and is none of its own */
	bool chosen;      /* its severity was chosen by name (rules_adjusted), and holds at every level */
	bool settled;     /* ... by a party that may loosen: no list and no wider rule judges the same thing again */
	const char *file; /* "python.yaml" */
	unsigned line;
};

struct rule_set;

/* What a rule does at a level: at report it tells what it would block, unless it was chosen to block. */
enum severity rule_severity(const struct rule *rule, enum inspection level);

/* The built-in rules: no allocation worth mentioning, no parsing. */
int rules_builtin(struct rule_set **ret, struct brig_error *err);
/* Adds a user's file; a rule with a known id replaces that rule.  Its examples are run.  Bad file: -BRIG_E_POLICY and
 * "file:line: why", and the set is as before.  Pointers to rules handed out earlier are no longer good. */
int rules_add_file(struct rule_set *set, const char *path, struct brig_error *err);
/*
 * A set in which single rules do what `rules` says ("py-network=allow"), at every level.  It borrows from the other one.
 * Items from n_policy on are a request's: if only_tighten, one that would be milder than the rule is at `level` is refused.
 */
struct rule_choices {
	const struct setting_list *rules;
	size_t n_policy;
	bool only_tighten;
	enum inspection level;
};
int rules_adjusted(const struct rule_set *set, const struct rule_choices *choices, struct rule_set **ret,
		   struct brig_error *err);
void rules_free(struct rule_set *set); /* NULL is fine */
size_t rules_count(const struct rule_set *set);
const struct rule *rules_at(const struct rule_set *set, size_t i);
const struct rule *rules_by_id(const struct rule_set *set, const char *id);
/* The rule for a name, exactly; for RULE_MEMBER, RULE_MEMBER_ALLOW and RULE_MODULE "a.*" (modules: also "a/" and a star) covers
 * "a.b" and "a.b.c" but not "a".  The most specific one wins.  len bytes of name.  NULL: none. */
const struct rule *rules_find(const struct rule_set *set, enum rule_language lang, enum rule_kind kind,
			      const char *name, size_t len);
/* The same, and how many bytes of the name the rule covers: more is more specific. */
const struct rule *rules_find_long(const struct rule_set *set, enum rule_language lang, enum rule_kind kind,
				   const char *name, size_t len, size_t *ret_matched);
/* Iterates over the rules of a kind (commands with patterns, path globs): start with *at = 0; NULL at the end. */
const struct rule *rules_next(const struct rule_set *set, enum rule_language lang, enum rule_kind kind, size_t *at);

#endif
