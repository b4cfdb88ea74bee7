/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are data: data/rules/<area>.yaml, compiled into the binary at build time (tools/gen-rules) and extended by
 * users' files at run time.  Every rule carries examples that must match and must not match.  They are run through the
 * inspectors when a file is loaded (built-in ones by a test), and a bad rule is refused with its line.
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
 *	  network: true                     # optional: the rule is only about network access
 *
 * A user's file may also add names to an existing rule, optionally with examples:
 *
 *	- extend: py-network
 *	  names: [our_company.http]
 *	  match: ["import our_company.http"]
 *
 * languages may be the word "all".  At a level that severity does not name, it is NONE: the rule is silent.
 * member-allow and command-allow need only id, languages, kind and names; check needs no examples; the other kinds need
 * everything. Except for commands, paths and allow-lists, a name belongs to one rule per language.
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
	RULE_MODULE_ALLOW, /* at levels with a severity, a module that is in no list gets it */
	RULE_BUILTIN,      /* a global name: eval, __import__, require, Function */
	RULE_ATTRIBUTE,    /* an attribute of any object: __globals__, mainModule */
	RULE_MEMBER,       /* a resolved chain: os.system, process.binding, http.Get; "os.*" all members */
	RULE_MEMBER_ALLOW, /* members to which their module's rule does not apply: sys.maxsize, os.path.* */
	RULE_COMMAND,      /* a shell program; names are the base name, with optional argument patterns (see shell.h) */
	RULE_COMMAND_ALLOW, /* the allow-list of strict mode */
	RULE_PATH_DENY,     /* sensitive paths, as globs: "/etc/shadow", "*.pem", everything below "~/.ssh" */
	RULE_DIRECTIVE,     /* comments that the toolchain interprets: go:linkname */
	RULE_CHECK, /* a test written in C; the rule gives it severity and message: parse-error, dynamic-import ... */
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
	bool network; /* reports nothing but network access */
	bool extends; /* only while a file is read: extends the rule with this id and is not a rule itself */
	bool chosen;  /* its severity was set by name (rules_adjusted), and applies at every level */
	/* chosen, by a party that may loosen: no allow-list and no wider rule judges the same thing again */
	bool settled;
	const char *file; /* "python.yaml" */
	unsigned line;
};

struct rule_set;

/* The severity of a rule at a level: at `report` a rule reports what it would block, unless it was set to block. */
enum severity rule_severity(const struct rule *rule, enum inspection level);

/* The built-in rules: no parsing, and almost no allocation. */
int rules_builtin(struct rule_set **ret, struct brig_error *err);
/*
 * Adds a user's file; a rule with a known id replaces that rule.  Runs its examples.  Bad file: -BRIG_E_POLICY and
 * "file:line: why", and the set is unchanged.  Pointers to rules returned earlier become invalid.
 */
int rules_add_file(struct rule_set *set, const char *path, struct brig_error *err);
/*
 * Makes a set in which single rules have the severities of `rules` ("py-network=allow") at every level.  It borrows
 * from `set`. Items from n_policy on are a request's.  If only_tighten, such an item is refused if it is milder than
 * the rule at `level`.
 */
struct rule_choices {
	const struct setting_list *rules;
	size_t n_policy;
	bool only_tighten;
	enum inspection level;
};
int rules_adjusted(const struct rule_set *set, const struct rule_choices *choices, struct rule_set **ret,
		   struct brig_error *err);
void rules_free(struct rule_set *set); /* accepts NULL */
size_t rules_count(const struct rule_set *set);
const struct rule *rules_at(const struct rule_set *set, size_t i);
const struct rule *rules_by_id(const struct rule_set *set, const char *id);
/*
 * The rule for exactly this name.  For RULE_MEMBER, RULE_MEMBER_ALLOW and RULE_MODULE, "a.*" (modules: also "a/" and a
 * star) covers "a.b" and "a.b.c" but not "a".  The most specific one wins.  name has len bytes.  NULL: none.
 */
const struct rule *rules_find(const struct rule_set *set, enum rule_language lang, enum rule_kind kind,
			      const char *name, size_t len);
/* rules_find(), and the number of bytes of the name that the rule covers: more is more specific. */
const struct rule *rules_find_long(const struct rule_set *set, enum rule_language lang, enum rule_kind kind,
				   const char *name, size_t len, size_t *ret_matched);
/* Iterates over the rules of a kind (commands with patterns, path globs): start with *at = 0; NULL at the end. */
const struct rule *rules_next(const struct rule_set *set, enum rule_language lang, enum rule_kind kind, size_t *at);

#endif
