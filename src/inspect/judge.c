/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judgement: takes a name that an inspector resolved and reports at most one finding.
 *
 * The most specific rule applies.  An exception (member-allow) silences a rule that is not more specific than itself,
 * so "os.path.*" is permitted below "os.*" and "os.path.evil" can still be named.  At levels with an allow-list of
 * modules, a module that is in no list gets the list's severity, or the worse one of a rule for that module.
 */
#include "inspect/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "inspect/dispatch.h"

/* ---- findings ------------------------------------------------------------------------------------------- */

/* Copies text without what must not be shown: control characters, invalid or truncated characters. */
static void copy_shown(char *dst, size_t size, const char *src, size_t len)
{
	size_t n = 0, good;

	for (; n < len && n + 1 < size; n++) {
		unsigned char c = (unsigned char)src[n];

		dst[n] = (c < 0x20 || c == 0x7f) ? ' ' : src[n];
	}
	dst[n] = '\0';
	good = str_utf8_prefix(dst, n);
	if (n == len)
		for (; good < n; good++)
			dst[good] = (unsigned char)dst[good] < 0x80 ? dst[good] : '?';
	dst[good] = '\0';
}

static struct span place(const struct judge *j, struct span where)
{
	uint32_t len = (uint32_t)j->len;

	if (j->nested)
		where = j->host;
	where.end = where.end < len ? where.end : len;
	where.start = where.start < where.end ? where.start : where.end;
	return where;
}

static bool report(struct judge *j, const struct rule *rule, struct finding *f, struct span where)
{
	f->severity = rule_severity(rule, j->level);
	if (f->severity == SEVERITY_NONE)
		return false;
	f->span = place(j, where);
	f->network = rule->network;
	(void)str_copy(f->rule, sizeof(f->rule), rule->id);
	(void)str_copy(f->remedy, sizeof(f->remedy), rule->remedy);
	if (!findings_add(j->out, f))
		j->out_of_memory = true;
	return true;
}

static bool report_name(struct judge *j, const struct rule *rule, const char *name, size_t len, struct span where)
{
	struct finding f = { 0 };

	copy_shown(f.name, sizeof(f.name), name, len);
	(void)snprintf(f.message, sizeof(f.message), "%.72s%s%s", f.name, f.name[0] ? ": " : "", rule->message);
	copy_shown(f.message, sizeof(f.message), f.message, strlen(f.message));
	return report(j, rule, &f, where);
}

bool judge_report(struct judge *j, const struct rule *rule, const char *name, struct span where)
{
	return report_name(j, rule, name, strlen(name), where);
}

bool judge_check(struct judge *j, const char *check, struct span where, const char *detail_fmt, ...)
{
	const struct rule *rule = rules_find(j->rules, j->language, RULE_CHECK, check, strlen(check));
	struct finding f = { 0 };
	char detail[200];
	va_list ap;

	if (!rule)
		return false;
	va_start(ap, detail_fmt);
	(void)vsnprintf(detail, sizeof(detail), detail_fmt, ap);
	va_end(ap);
	(void)snprintf(f.message, sizeof(f.message), "%s%s%s", rule->message, detail[0] ? ": " : "", detail);
	copy_shown(f.message, sizeof(f.message), f.message, strlen(f.message));
	return report(j, rule, &f, where);
}

#define LONG_TEXT (256 * KiB)

const char *judge_unfinished(const struct judge *j)
{
	return j->len > LONG_TEXT ? "too-large" : "not-analysable";
}

/* ---- names ---------------------------------------------------------------------------------------------- */

static bool judge_name(struct judge *j, enum rule_kind kind, const char *name, size_t len, struct span where)
{
	const struct rule *rule = rules_find(j->rules, j->language, kind, name, len);

	return rule && report_name(j, rule, name, len, where);
}

bool judge_builtin(struct judge *j, const char *name, size_t len, struct span where)
{
	return judge_name(j, RULE_BUILTIN, name, len, where);
}

bool judge_attribute(struct judge *j, const char *name, size_t len, struct span where)
{
	return judge_name(j, RULE_ATTRIBUTE, name, len, where);
}

bool judge_directive(struct judge *j, const char *name, size_t len, struct span where)
{
	return judge_name(j, RULE_DIRECTIVE, name, len, where);
}

bool judge_member(struct judge *j, const char *path, size_t len, struct span where)
{
	size_t covered, excepted;
	const struct rule *rule = rules_find_long(j->rules, j->language, RULE_MEMBER, path, len, &covered);

	if (!rule)
		return false;
	if (rules_find_long(j->rules, j->language, RULE_MEMBER_ALLOW, path, len, &excepted) && excepted >= covered)
		return false;
	return report_name(j, rule, path, len, where);
}

/* ---- modules -------------------------------------------------------------------------------------------- */

/*
 * Separator in module names.  Python: importing a.b also imports a.  JavaScript: a/b is part of the package a.  In Go
 * a/b is a separate package, so there is no separator.
 */
static char joint_of(enum rule_language lang)
{
	switch (lang) {
	case RULE_PYTHON:
		return '.';
	case RULE_JAVASCRIPT:
	case RULE_TYPESCRIPT:
		return '/';
	default:
		return '\0';
	}
}

/* The length of the package that contains name[0..len), 0 if there is none. */
static size_t parent(const char *name, size_t len, char joint)
{
	while (joint && len > 1)
		if (name[--len] == joint)
			return len;
	return 0;
}

static const struct rule *module_rule(const struct judge *j, const char *name, size_t len)
{
	const struct rule *rule = NULL;

	for (; len > 0 && !rule; len = parent(name, len, joint_of(j->language)))
		rule = rules_find(j->rules, j->language, RULE_MODULE, name, len);
	return rule;
}

static bool list_has(const struct rule *list, const char *name, size_t len)
{
	for (size_t i = 0; i < list->n_names; i++)
		if (strncmp(list->names[i], name, len) == 0 && list->names[i][len] == '\0')
			return true;
	return false;
}

/* JavaScript and TypeScript import the same modules. */
static bool same_modules(enum rule_language a, enum rule_language b)
{
	return a == b || (joint_of(a) == '/' && joint_of(b) == '/');
}

bool judge_was_asked(const struct judge *j, const char *name, size_t len)
{
	char joint = j->language == RULE_PYTHON ? '.' : '/';

	if (!same_modules(j->language, j->asked_language))
		return false;
	for (size_t i = 0; i < j->n_asked; i++) {
		size_t n = strlen(j->asked[i]);

		/* Python package names are case-insensitive. */
		if (n <= len && (n == len || name[n] == joint) &&
		    (joint == '.' ? strncasecmp(j->asked[i], name, n) : strncmp(j->asked[i], name, n)) == 0)
			return true;
	}
	return false;
}

/* The strictest allow-list without the module; NULL: this level has no allow-list, or the module is in one. */
static const struct rule *missing_from(const struct judge *j, const char *name, size_t len)
{
	const struct rule *strictest = NULL, *list;
	size_t at = 0;

	if (judge_was_asked(j, name, len))
		return NULL;
	while ((list = rules_next(j->rules, j->language, RULE_MODULE_ALLOW, &at))) {
		if (list->severity[j->level] == SEVERITY_NONE)
			continue;
		for (size_t n = len; n > 0; n = parent(name, n, joint_of(j->language)))
			if (list_has(list, name, n))
				return NULL;
		if (!strictest || list->severity[j->level] > strictest->severity[j->level])
			strictest = list;
	}
	return strictest;
}

bool judge_module(struct judge *j, const char *name, size_t len, struct span where)
{
	const struct rule *rule, *list;
	bool missing;

	if (joint_of(j->language) == '/' && len > 5 && memcmp(name, "node:", 5) == 0) {
		name += 5;
		len -= 5;
	}
	rule = module_rule(j, name, len);
	list = missing_from(j, name, len);
	if (rules_find(j->rules, j->language, RULE_MEMBER_ALLOW, name, len))
		rule = NULL;
	/*
	 * A milder rule for a module does not excuse that it is in no allow-list, unless the rule is settled: both are
	 * reported.
	 */
	missing = list && (!rule || (!rule->settled && rule->severity[j->level] < list->severity[j->level])) &&
		  report_name(j, list, name, len, where);
	return (rule && report_name(j, rule, name, len, where)) || missing;
}

/* ---- nested code ---------------------------------------------------------------------------------------- */

void judge_code(struct judge *j, enum inspect_kind kind, const char *text, size_t len, struct span where)
{
	struct judge inner = *j;

	if (j->depth + 1 >= JUDGE_DEPTH_MAX) {
		(void)judge_check(j, "too-deep", where, "%d levels", JUDGE_DEPTH_MAX);
		return;
	}
	inner.depth++;
	inner.host = j->nested ? j->host : where;
	inner.nested = true;
	inspect_dispatch(&inner, kind, text, len);
	j->steps_left = inner.steps_left;
	j->out_of_memory |= inner.out_of_memory;
}
