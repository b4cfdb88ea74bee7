/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/inspection.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

/* Shared by the rulebook and all requests that use it. */
struct loaded_rules {
	struct rule_set *set;
	unsigned users;
	uint64_t number;
	char file[SETTING_TEXT_MAX]; /* the policy's rules_file it was loaded with */
};

static void let_go(struct loaded_rules *loaded)
{
	if (!loaded || --loaded->users > 0)
		return;
	rules_free(loaded->set);
	free(loaded);
}

static int load(const struct rulebook *book, const char *rules_file, struct loaded_rules **ret, struct brig_error *err)
{
	const char *const files[] = { rules_file, book->extra };
	struct loaded_rules *loaded = calloc(1, sizeof(*loaded));
	int rc = loaded ? rules_builtin(&loaded->set, err) : err_nomem(err);

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(files); i++)
		if (*files[i])
			rc = rules_add_file(loaded->set, files[i], err);
	if (!loaded)
		return rc;
	loaded->users = 1;
	(void)str_copy(loaded->file, sizeof(loaded->file), rules_file);
	if (rc < 0)
		let_go(loaded);
	else
		*ret = loaded;
	return rc;
}

static int reload(struct rulebook *book, const char *rules_file, struct brig_error *err)
{
	struct loaded_rules *loaded = NULL;
	int rc = load(book, rules_file, &loaded, err);

	if (rc < 0 || !loaded)
		return rc;
	let_go(book->loaded);
	book->loaded = loaded;
	loaded->number = ++book->n_numbers;
	return 0;
}

static bool same_choices(const struct rule_choices *a, const struct rule_choices *b)
{
	return a->n_policy == b->n_policy && a->only_tighten == b->only_tighten && a->level == b->level &&
	       a->rules->used == b->rules->used && memcmp(a->rules->text, b->rules->text, a->rules->used) == 0;
}

/* The number of the loaded rules with these choices applied. */
static uint64_t number_of(struct rulebook *book, const struct rule_choices *choices)
{
	if (choices->rules->n == 0)
		return book->loaded->number;
	if (book->chosen_from == book->loaded->number && same_choices(&book->choices, choices))
		return book->chosen_number;
	setting_list_copy(&book->chosen, choices->rules);
	book->choices = *choices;
	book->choices.rules = &book->chosen;
	book->chosen_from = book->loaded->number;
	return book->chosen_number = ++book->n_numbers;
}

int rulebook_get(struct rulebook *book, const struct policy_resolved *r, struct rules_in_use *ret,
		 struct brig_error *err)
{
	const struct rule_choices choices = { .rules = &r->set.rules,
					      .n_policy = r->n_policy_rules,
					      .only_tighten = r->only_tighten,
					      .level = (enum inspection)r->set.inspection };
	int rc = 0;

	if (!book->loaded || !str_eq(book->loaded->file, r->set.rules_file))
		rc = reload(book, r->set.rules_file, err);
	if (rc < 0)
		return rc;
	book->loaded->users++;
	*ret = (struct rules_in_use){ .loaded = book->loaded, .set = book->loaded->set };
	if (choices.rules->n > 0) {
		rc = rules_adjusted(book->loaded->set, &choices, &ret->adjusted, err);
		ret->set = ret->adjusted;
	}
	if (rc < 0)
		return rc;
	ret->number = number_of(book, &choices);
	book->times_asked = ret->number == book->asked_number ? book->times_asked + 1 : 1;
	book->asked_number = ret->number;
	return 0;
}

/* ---- spare workers ------------------------------------------------------------------------------ */

#define SPARES 2 /* so the next request need not wait for a replacement worker */

struct inspectors *rulebook_spares(const struct rulebook *book, const struct rules_in_use *used)
{
	return used->number && book->inspectors_number == used->number ? book->inspectors : NULL;
}

void rulebook_refill(struct rulebook *book, const struct rules_in_use *used)
{
	struct inspectors *old;

	if (rulebook_spares(book, used) && inspectors_refill(book->inspectors))
		return;
	if (!used->set || used->number != book->asked_number || book->times_asked < 2)
		return;
	old = MOVE_PTR(book->inspectors);
	book->inspectors_number = used->number;
	/* Without spare workers, one is forked for each text. */
	(void)inspectors_open(used->set, SPARES, &book->inspectors, NULL);
	inspectors_close(old); /* last, because it may let another run of this handle continue */
}

void rulebook_rest(struct rulebook *book)
{
	book->inspectors_number = 0;
	inspectors_close(MOVE_PTR(book->inspectors));
}

void rules_put(struct rules_in_use *used)
{
	rules_free(used->adjusted);
	let_go(used->loaded);
	*used = (struct rules_in_use){ .set = NULL };
}

void rulebook_release(struct rulebook *book)
{
	inspectors_close(MOVE_PTR(book->inspectors));
	let_go(MOVE_PTR(book->loaded));
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcasecmp(text + len - end_len, end) == 0;
}

bool inspection_kind(const struct language *lang, const char *file_name, enum inspect_kind *ret)
{
	/* The extension matters only for languages with two grammars. */
	static const struct {
		const char *language, *ending;
		enum inspect_kind kind;
	} rows[] = {
		{ "python", "", INSPECT_PYTHON },
		{ "javascript", "", INSPECT_JAVASCRIPT },
		{ "typescript", ".tsx", INSPECT_TSX },
		{ "typescript", "", INSPECT_TYPESCRIPT },
		{ "go", "", INSPECT_GO },
		{ "shell", "", INSPECT_SHELL },
		{ "bash", "", INSPECT_SHELL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].language, lang->name) && ends_with(file_name ? file_name : "", rows[i].ending)) {
			*ret = rows[i].kind;
			return true;
		}
	return false;
}

static bool is_about_network(const struct rule_set *rules, const char *id)
{
	const struct rule *rule = rules_by_id(rules, id);

	return rule && rule->network && !rule->chosen;
}

void inspection_allow_network(const struct rule_set *rules, struct findings *f)
{
	enum severity worst = f->dropped ? f->worst : SEVERITY_NONE; /* dropped findings may be of any kind */

	for (size_t i = 0; i < f->n; i++) {
		struct finding *one = &f->row[i];

		if (one->severity > SEVERITY_MEDIUM && is_about_network(rules, one->rule))
			one->severity = SEVERITY_MEDIUM;
		one->network = false; /* the cell has a network */
		if (one->severity > worst)
			worst = one->severity;
	}
	f->worst = worst;
}

void inspection_tell_permits(const struct policy_resolved *r, struct findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct finding *one = &f->row[i];
		size_t len = strlen(one->remedy);
		char *end = one->remedy + len;

		if (one->severity != SEVERITY_CRITICAL)
			continue;
		(void)snprintf(end, sizeof(one->remedy) - len,
			       r->only_tighten
				       ? "%sto permit this: rules: {%s: allow} in the policy"
				       : "%sto permit this: --rule %s=allow (or rules: {%s: allow} in the policy)",
			       len ? "; " : "", one->rule, one->rule);
	}
}

struct brig_finding inspection_public(const struct finding *f)
{
	return (struct brig_finding){
		.size = sizeof(struct brig_finding),
		.rule = f->rule,
		.severity = severity_name[f->severity],
		.name = f->name,
		.message = f->message,
		.remedy = f->remedy,
		.line = f->line,
		.column = f->column,
		.end_line = f->end_line,
		.end_column = f->end_column,
		.network = f->network,
	};
}
