/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies rules to paths.  The longest part of a path that a rule or an exception names decides: os.path.join is
 * excepted by "os.path.*", os.environ.get is covered by "os.environ", os.nice by the module os.  A module with
 * exceptions is judged by the members used; any other module at its import.
 */
#include "inspect/python.h"

#include <stdio.h>

/* The length of the path without its last part, 0 if there is only one part. */
static size_t cut_last(const char *path, size_t len)
{
	if (len > 2 && path[len - 1] == ')')
		return len - 2;
	while (len > 0)
		if (path[--len] == '.')
			return len;
	return 0;
}

const struct rule *py_module_rule(const struct py *p, const char *path, size_t len, size_t *matched)
{
	if (len > 9 && memcmp(path, "builtins.", 9) == 0) /* the path of any unbound name */
		return NULL;
	for (; len > 0; len = cut_last(path, len)) {
		const struct rule *r = rules_find(p->j->rules, RULE_PYTHON, RULE_MODULE, path, len);

		*matched = len;
		if (r)
			return r;
	}
	return NULL;
}

bool py_is_allowed(const struct py *p, const char *path, size_t len)
{
	return rules_find(p->j->rules, RULE_PYTHON, RULE_MEMBER_ALLOW, path, len) != NULL;
}

bool py_by_attribute(const struct py *p, const char *module, size_t len)
{
	const struct rule *r;
	size_t at = 0;

	while ((r = rules_next(p->j->rules, RULE_PYTHON, RULE_MEMBER_ALLOW, &at)))
		for (size_t i = 0; i < r->n_names; i++)
			if (strncmp(r->names[i], module, len) == 0 && r->names[i][len] == '.')
				return true;
	return false;
}

static bool report(struct py *p, const struct rule *rule, const char *path, size_t len, struct span where)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "%.*s", (int)len, path);
	return judge_report(p->j, rule, name, where);
}

static bool list_has(const struct rule *list, const char *name, size_t len)
{
	for (size_t i = 0; i < list->n_names; i++)
		if (strncmp(list->names[i], name, len) == 0 && list->names[i][len] == '\0')
			return true;
	return false;
}

static bool list_covers(const struct rule *list, const char *path, size_t len)
{
	for (; len > 0; len = cut_last(path, len))
		if (list_has(list, path, len))
			return true;
	return false;
}

/* An allow-list of this level that lacks the module; NULL: there is none, or the module is in one. */
static const struct rule *missing_from(const struct py *p, const char *path, size_t len)
{
	const struct rule *r, *missing = NULL;
	size_t at = 0;

	if (judge_was_asked(p->j, path, len))
		return NULL;
	while ((r = rules_next(p->j->rules, RULE_PYTHON, RULE_MODULE_ALLOW, &at))) {
		if (r->severity[p->j->level] == SEVERITY_NONE)
			continue;
		if (list_covers(r, path, len))
			return NULL;
		missing = r;
	}
	return missing;
}

bool py_judge_import(struct py *p, const char *path, size_t len, struct span where)
{
	size_t matched = 0;
	const struct rule *rule = py_module_rule(p, path, len, &matched), *list = missing_from(p, path, len);
	bool by_use = rule && (py_is_allowed(p, path, len) || (matched == len && py_by_attribute(p, path, len)));

	if (list &&
	    (!rule || (!rule->settled && (by_use || rule->severity[p->j->level] < list->severity[p->j->level]))))
		report(p, list, path, len, where);
	if (!rule || by_use) {
		if (!rule && len > 1 && path[0] == '_' && path[1] != '_')
			judge_check(p->j, "private-module", where, "%.*s", (int)len, path);
		return false;
	}
	if (p->n_imported < ARRAY_LEN(p->imported))
		p->imported[p->n_imported++] = rule;
	return report(p, rule, path, len, where);
}

static bool was_imported(const struct py *p, const struct rule *rule)
{
	for (unsigned i = 0; i < p->n_imported; i++)
		if (p->imported[i] == rule)
			return true;
	return false;
}

/*
 * random._inst: a private member of a module.  Attributes of objects ("x()._y") do not count: they may be the
 * program's.
 */
static bool is_private(const char *path, size_t len)
{
	const char *dot = memrchr(path, '.', len);

	return dot && dot + 1 < path + len && dot[1] == '_' && dot + 2 < path + len && dot[2] != '_' &&
	       !memchr(path, '(', len);
}

static bool judge_builtin_path(struct py *p, const char *path, size_t len, struct span where)
{
	const char *name = path + 9, *end;

	if (len <= 9)
		return judge_builtin(p->j, "__builtins__", 12, where);
	end = memchr(name, '.', len - 9);
	return judge_builtin(p->j, name, end ? (size_t)(end - name) : len - 9, where);
}

/* A program that only connects to its own server needs no network. */
static bool judge_member_path(struct py *p, const struct rule *rule, const char *path, size_t len, struct span where)
{
	if (rule->network && rule->severity[p->j->level] == SEVERITY_HIGH && py_is_own_peer(p))
		return judge_check(p->j, "network-local", where, "%.*s", (int)len, path);
	return judge_member(p->j, path, len, where);
}

bool py_judge_path(struct py *p, const char *path, size_t len, struct span where)
{
	size_t matched;
	const struct rule *rule;

	if ((len == 8 || (len > 8 && path[8] == '.')) && memcmp(path, "builtins", 8) == 0)
		return judge_builtin_path(p, path, len, where);
	for (size_t n = len; n > 0 && !(n < len && path[n] == '('); n = cut_last(path, n)) {
		rule = rules_find(p->j->rules, RULE_PYTHON, RULE_MEMBER, path, n);
		if (rule)
			return py_is_allowed(p, path, n) ? false : judge_member_path(p, rule, path, n, where);
		if (py_is_allowed(p, path, n))
			return false;
	}
	if (memchr(path, '(', len)) /* the result of a call: the function was judged where it was named */
		return false;
	rule = py_module_rule(p, path, len, &matched);
	if (rule && !was_imported(p, rule))
		return report(p, rule, path, len, where);
	return !rule && is_private(path, len) && judge_check(p->j, "private-member", where, "%.*s", (int)len, path);
}

bool py_judge_escape(struct py *p, const char *path, size_t len, struct span where)
{
	size_t matched;
	const struct rule *rule = py_module_rule(p, path, len, &matched);

	if (len == 8 && memcmp(path, "builtins", 8) == 0)
		return judge_builtin_path(p, path, len, where);
	return rule && matched == len && !was_imported(p, rule) && report(p, rule, path, len, where);
}

bool py_judge_attribute_name(struct py *p, uint32_t object, const char *name, size_t len, struct span where)
{
	for (unsigned i = 0; i < p->set[object].n; i++) {
		struct py_atom a = p->atom[p->set[object].atom[i]];
		const char *other = name;
		size_t other_len = len;
		const struct rule *rule = a.kind == PY_PATH ? py_reexport(p, &a, &other, &other_len) : NULL;

		if (rule)
			report(p, rule, other, other_len, where);
	}
	return judge_attribute(p->j, name, len, where);
}
