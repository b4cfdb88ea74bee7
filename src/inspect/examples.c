/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/examples.h"

#include <string.h>

#include "base/str.h"
#include "inspect/dispatch.h"

static bool found(const struct findings *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->row[i].rule, id))
			return true;
	return false;
}

/* The conditions under which the examples of a rule are inspected. */
struct bench {
	const struct rule_set *set;
	const struct rule *rule;
	enum rule_language lang;
	enum inspection level;
};

static int check_example(const struct bench *b, const char *example, bool expected, struct brig_error *err)
{
	const struct inspect_request req = {
		.kind = inspect_example_kind(b->lang),
		.level = b->level,
		.text = example,
		.len = strlen(example),
		.has_input = true,
		.strict_commands = b->rule->kind == RULE_COMMAND_ALLOW,
	};
	struct findings f = { 0 };
	bool seen;
	int rc = inspect_text(b->set, &req, &f, err);

	if (rc < 0)
		return rc;
	seen = found(&f, b->rule->id);
	findings_release(&f);
	if (seen == expected)
		return 0;
	return err_set(err, BRIG_E_POLICY, 0, "%s:%u: rule %s %s its example \"%.120s\" (%s, %s)", b->rule->file,
		       b->rule->line, b->rule->id, expected ? "does not match" : "matches", example,
		       rule_language_name[b->lang], inspection_name[b->level]);
}

static int check_bench(const struct bench *b, struct brig_error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < b->rule->n_match; i++)
		rc = check_example(b, b->rule->match[i], true, err);
	for (size_t i = 0; rc == 0 && i < b->rule->n_no_match; i++)
		rc = check_example(b, b->rule->no_match[i], false, err);
	return rc;
}

static int check_rule(const struct rule_set *set, const struct rule *rule, struct brig_error *err)
{
	struct bench b = { .set = set, .rule = rule };

	for (unsigned lang = 0; lang < RULE_LANGUAGE_COUNT; lang++)
		for (unsigned t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++) {
			int rc;

			if (!(rule->languages & 1u << lang) || rule->severity[t] == SEVERITY_NONE)
				continue;
			b.lang = (enum rule_language)lang;
			b.level = (enum inspection)t;
			rc = check_bench(&b, err);
			if (rc < 0)
				return rc;
		}
	return 0;
}

int rules_check_examples(const struct rule_set *set, const char *file, struct brig_error *err)
{
	for (size_t i = 0; i < rules_count(set); i++) {
		const struct rule *rule = rules_at(set, i);
		int rc;

		if (file && !str_eq(rule->file, file))
			continue;
		rc = check_rule(set, rule, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
