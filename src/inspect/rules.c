/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of rules in force.  The built-in ones are constant tables with an index made at build time; a set of only
 * those is a struct that points to them.  For a user's file, a new table of both is built on the heap.
 */
#include "inspect/rules.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "inspect/examples.h"
#include "inspect/rules_internal.h"

#define USER_FILES_MAX 16

struct rule_set {
	struct rule_table table;
	/* NULL: `table` points to constants; otherwise to the heap */
	struct rule *row;
	void *entry, *slot;
	struct rule_list file[USER_FILES_MAX];
	size_t n_files;
};

int rules_builtin(struct rule_set **ret, struct brig_error *err)
{
	struct rule_set *set = calloc(1, sizeof(*set));

	if (!set)
		return err_nomem(err);
	set->table = rule_table_builtin;
	*ret = set;
	return 0;
}

static void drop_table(struct rule_set *set)
{
	free(set->row);
	free(set->entry);
	free(set->slot);
	set->row = NULL;
	set->entry = set->slot = NULL;
}

void rules_free(struct rule_set *set)
{
	if (!set)
		return;
	drop_table(set);
	for (size_t i = 0; i < set->n_files; i++)
		rule_list_release(&set->file[i]);
	free(set);
}

size_t rules_count(const struct rule_set *set)
{
	return set->table.n;
}

const struct rule *rules_at(const struct rule_set *set, size_t i)
{
	return i < set->table.n ? &set->table.row[i] : NULL;
}

const struct rule *rules_by_id(const struct rule_set *set, const char *id)
{
	for (size_t i = 0; i < set->table.n; i++)
		if (str_eq(set->table.row[i].id, id))
			return &set->table.row[i];
	return NULL;
}

/* ---- lookup --------------------------------------------------------------------------------------------- */

/* True where "a.b.c" may be cut so that "a.b.*" is tried: module paths also have slashes. */
static bool is_joint(enum rule_kind kind, char c)
{
	return c == '.' || (kind == RULE_MODULE && c == '/');
}

static bool has_wildcards(enum rule_kind kind)
{
	return kind == RULE_MEMBER || kind == RULE_MEMBER_ALLOW || kind == RULE_MODULE;
}

const struct rule *rules_find_long(const struct rule_set *set, enum rule_language lang, enum rule_kind kind,
				   const char *name, size_t len, size_t *ret_matched)
{
	const struct rule_entry *e = rule_table_find(&set->table, lang, kind, name, len);
	char wild[RULE_NAME_LEN + 1];

	*ret_matched = len;
	if (e)
		return &set->table.row[e->rule];
	if (!has_wildcards(kind))
		return NULL;
	for (size_t cut = len < RULE_NAME_LEN - 2 ? len : RULE_NAME_LEN - 2; cut-- > 1;) {
		if (!is_joint(kind, name[cut]))
			continue;
		memcpy(wild, name, cut + 1);
		wild[cut + 1] = '*';
		e = rule_table_find(&set->table, lang, kind, wild, cut + 2);
		*ret_matched = cut;
		if (e)
			return &set->table.row[e->rule];
	}
	return NULL;
}

const struct rule *rules_find(const struct rule_set *set, enum rule_language lang, enum rule_kind kind,
			      const char *name, size_t len)
{
	size_t matched;

	return rules_find_long(set, lang, kind, name, len, &matched);
}

const struct rule *rules_next(const struct rule_set *set, enum rule_language lang, enum rule_kind kind, size_t *at)
{
	size_t end = set->table.kind_start[kind + 1];

	if (*at < set->table.kind_start[kind])
		*at = set->table.kind_start[kind];
	while (*at < end) {
		const struct rule *r = &set->table.row[(*at)++];

		if (r->languages & 1u << lang)
			return r;
	}
	return NULL;
}

/* ---- single rules ----------------------------------------------------------------------------------------- */

static const enum severity severity_of_action[ACTION_COUNT] = {
	[ACTION_ALLOW] = SEVERITY_NONE,
	[ACTION_NOTE] = SEVERITY_MEDIUM,
	[ACTION_WARN] = SEVERITY_HIGH,
	[ACTION_BLOCK] = SEVERITY_CRITICAL,
};

static struct rule *find_row(struct rule *row, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(row[i].id, id))
			return &row[i];
	return NULL;
}

/* A hint that names the most similar id, for the end of a sentence. */
static const char *suggest_id(const struct rule_set *set, const char *id, char *dst, size_t size)
{
	AUTO_FREE const char **ids = calloc(set->table.n + 1, sizeof(*ids));
	const char *near;

	for (size_t i = 0; ids && i < set->table.n; i++)
		ids[i] = set->table.row[i].id;
	near = ids ? str_nearest(id, ids, set->table.n) : NULL;
	(void)snprintf(dst, size, near ? "; did you mean '%s'?" : "; 'brig rules' lists them", near);
	return dst;
}

enum severity rule_severity(const struct rule *rule, enum inspection level)
{
	enum severity s = rule->severity[level];

	return level == INSPECTION_REPORT && s == SEVERITY_CRITICAL && !rule->chosen ? SEVERITY_HIGH : s;
}

static int adjust(const struct rule_set *set, struct rule *row, const char *item, bool only_tighten,
		  enum inspection level, struct brig_error *err)
{
	size_t len = strcspn(item, "="), action = 0;
	char id[RULE_ID_LEN + 1], hint[96];
	struct rule *rule;

	while (action < ACTION_COUNT && !str_eq(item + len + (item[len] == '='), rule_action_name[action]))
		action++;
	(void)snprintf(id, sizeof(id), "%.*s", (int)min_u64(len, RULE_ID_LEN), item);
	rule = find_row(row, set->table.n, id);
	if (!rule || len > RULE_ID_LEN || action == ACTION_COUNT)
		return err_set(err, BRIG_E_POLICY, 0, "rules: there is no rule '%s'%s", id,
			       suggest_id(set, id, hint, sizeof(hint)));
	if (rule->kind == RULE_MEMBER_ALLOW)
		return err_set(err, BRIG_E_POLICY, 0,
			       "rules: %s is a list of exceptions, which does nothing by itself; name the rule that it "
			       "excepts from",
			       id);
	if (only_tighten && severity_of_action[action] < rule_severity(rule, level))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "rule %s is %s under this policy, and '%s' would be milder: a request can only tighten; "
			       "leave it out, or write rules: {%s: %s} into the policy",
			       id, severity_name[rule_severity(rule, level)], rule_action_name[action], id,
			       rule_action_name[action]);
	for (size_t t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++)
		rule->severity[t] = severity_of_action[action];
	rule->chosen = true;
	rule->settled = !only_tighten;
	return 0;
}

int rules_adjusted(const struct rule_set *set, const struct rule_choices *choices, struct rule_set **ret,
		   struct brig_error *err)
{
	struct rule_set *made = calloc(1, sizeof(*made));
	size_t n = 0;
	int rc = 0;

	if (made)
		made->row = calloc(set->table.n + 1, sizeof(*made->row));
	if (!made || !made->row) {
		free(made);
		return err_nomem(err);
	}
	memcpy(made->row, set->table.row, set->table.n * sizeof(*made->row));
	made->table = set->table;
	made->table.row = made->row;
	for (const char *item = NULL; rc == 0 && (item = setting_list_next(choices->rules, item)); n++)
		rc = adjust(set, made->row, item, choices->only_tighten && n >= choices->n_policy, choices->level, err);
	if (rc < 0)
		rules_free(made);
	else
		*ret = made;
	return rc;
}

/* ---- users' files ----------------------------------------------------------------------------------------- */

static int read_file(const char *path, struct buf *text, struct brig_error *err)
{
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	char chunk[16 * 1024];
	ssize_t n;

	if (fd == -EINVAL)
		return err_set(err, BRIG_E_POLICY, 0, "cannot read the rules in %s: it is %s, not a regular file", path,
			       file_kind(st.st_mode));
	if (fd < 0)
		return err_set(err, BRIG_E_POLICY, -fd, "cannot read the rules in %s", path);
	while ((n = fd_read_all(fd, chunk, sizeof(chunk))) > 0) {
		(void)buf_add(text, chunk, (size_t)n);
		if (text->no_memory)
			return err_nomem(err);
		if (text->full)
			return err_set(err, BRIG_E_POLICY, 0, "%s:1: longer than %u bytes", path,
				       (unsigned)RULES_FILE_MAX);
	}
	if (n < 0)
		return err_set(err, BRIG_E_POLICY, (int)-n, "cannot read the rules in %s", path);
	return 0;
}

static bool list_has(const struct rule_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++)
		if (!list->row[i].extends && str_eq(list->row[i].id, id))
			return true;
	return false;
}

static const char *const *join(struct rule_list *list, const char *const *a, size_t n_a, const char *const *b,
			       size_t n_b)
{
	const char **all = rule_list_keep(list, (n_a + n_b + 1) * sizeof(*all));

	if (!all)
		return NULL;
	for (size_t i = 0; i < n_a + n_b; i++)
		all[i] = i < n_a ? a[i] : b[i - n_a];
	return all;
}

/* Adds the names and examples.  The rule then counts as one of the file, so that all its examples are run. */
static int extend(const struct rule_set *set, struct rule_list *list, const struct rule *by, struct rule *row, size_t n,
		  struct brig_error *err)
{
	struct rule *rule = find_row(row, n, by->id);
	char hint[96];

	if (!rule)
		return err_set(err, BRIG_E_POLICY, 0, "%s:%u: there is no rule '%s' to extend%s", by->file, by->line,
			       by->id, suggest_id(set, by->id, hint, sizeof(hint)));
	rule->names = join(list, rule->names, rule->n_names, by->names, by->n_names);
	rule->match = join(list, rule->match, rule->n_match, by->match, by->n_match);
	rule->no_match = join(list, rule->no_match, rule->n_no_match, by->no_match, by->n_no_match);
	if (!rule->names || !rule->match || !rule->no_match)
		return err_nomem(err);
	rule->n_names += by->n_names;
	rule->n_match += by->n_match;
	rule->n_no_match += by->n_no_match;
	rule->file = by->file;
	rule->line = by->line;
	return 0;
}

/* Order: the old rules that the file does not replace, then the file's.  Extensions are applied last. */
static int merge(const struct rule_set *set, struct rule_list *list, struct rule **ret, size_t *ret_n,
		 struct brig_error *err)
{
	struct rule *row = calloc(set->table.n + list->n + 1, sizeof(*row));
	size_t n = 0;
	int rc = 0;

	if (!row)
		return err_nomem(err);
	for (size_t i = 0; i < set->table.n; i++)
		if (!list_has(list, set->table.row[i].id))
			row[n++] = set->table.row[i];
	for (size_t i = 0; i < list->n; i++)
		if (!list->row[i].extends)
			row[n++] = list->row[i];
	for (size_t i = 0; rc == 0 && i < list->n; i++)
		if (list->row[i].extends)
			rc = extend(set, list, &list->row[i], row, n, err);
	if (rc < 0) {
		free(row);
		return rc;
	}
	*ret = row;
	*ret_n = n;
	return 0;
}

static void take_table(struct rule_set *set, const struct rule_table *table, struct rule *row)
{
	drop_table(set);
	set->table = *table;
	set->row = row;
	/* Both are heap memory of rule_table_build(); the table has const pointers to them. */
	memcpy(&set->entry, &table->entry, sizeof(set->entry));
	memcpy(&set->slot, &table->slot, sizeof(set->slot));
}

int rules_add_file(struct rule_set *set, const char *path, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(RULES_FILE_MAX);
	struct rule_set next = { 0 };
	struct rule_table table = { 0 };
	struct rule_list list;
	struct rule *row = NULL;
	size_t n = 0;
	int rc;

	if (set->n_files == USER_FILES_MAX)
		return err_set(err, BRIG_E_POLICY, 0, "%s: %d files of rules are the most", path, USER_FILES_MAX);
	if ((rc = read_file(path, &text, err)) < 0 ||
	    (rc = rule_list_parse(path, buf_str(&text), text.len, &list, err)) < 0)
		return rc;
	rc = merge(set, &list, &row, &n, err);
	if (rc == 0 && (rc = rule_table_build(row, n, &table, err)) < 0)
		free(row);
	if (rc == 0) {
		take_table(&next, &table, row);
		rc = rules_check_examples(&next, path, err);
		if (rc < 0)
			drop_table(&next);
	}
	if (rc < 0) {
		rule_list_release(&list);
		return rc;
	}
	take_table(set, &table, row);
	set->file[set->n_files++] = list;
	return 0;
}
