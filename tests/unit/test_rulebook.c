/* SPDX-License-Identifier: Apache-2.0 */
/* Which rules a handle keeps from one request to the next, and for which of them it has spare workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "executor/inspection.h"

struct request {
	struct rulebook book;
	struct policy_resolved plain, other;
};

static int make(void **state)
{
	struct request *t = calloc(1, sizeof(*t));

	*state = t;
	if (!t)
		return -1;
	t->plain.set.inspection = t->other.set.inspection = INSPECTION_GUARD;
	return setting_list_add(&t->other.set.rules, "py-network=allow") ? 0 : -1;
}

static int drop(void **state)
{
	struct request *t = *state;

	rulebook_release(&t->book);
	free(t);
	return 0;
}

static const struct rule_set *ask(struct request *t, const struct policy_resolved *r)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct rule_set *rules = NULL;

	if (rulebook_get(&t->book, r, &rules, &err) < 0)
		fail_msg("%s", err.msg);
	return rules;
}

static void the_second_request_in_a_row_brings_spare_workers(void **state)
{
	struct request *t = *state;

	rulebook_refill(&t->book); /* nothing was asked for yet */
	(void)ask(t, &t->plain);
	rulebook_refill(&t->book);
	assert_null(rulebook_spares(&t->book));
	(void)ask(t, &t->other);
	rulebook_refill(&t->book);
	assert_null(rulebook_spares(&t->book));
	(void)ask(t, &t->plain);
	(void)ask(t, &t->plain);
	rulebook_refill(&t->book);
	assert_non_null(rulebook_spares(&t->book));
}

/* Workers judge by the rules that they were made with: a request with others gets none of them. */
static void other_rules_take_no_spare_worker(void **state)
{
	struct request *t = *state;

	for (int i = 0; i < 2; i++)
		(void)ask(t, &t->other);
	rulebook_refill(&t->book);
	assert_non_null(rulebook_spares(&t->book));
	(void)ask(t, &t->plain);
	assert_null(rulebook_spares(&t->book));
	/* The same choices at another level are another set; so is the first one, made anew. */
	t->plain.set.rules = t->other.set.rules;
	t->plain.set.inspection = INSPECTION_STRICT;
	(void)ask(t, &t->plain);
	assert_null(rulebook_spares(&t->book));
	(void)ask(t, &t->other);
	assert_null(rulebook_spares(&t->book));
	rulebook_refill(&t->book);
	(void)ask(t, &t->other);
	rulebook_refill(&t->book);
	assert_non_null(rulebook_spares(&t->book));
}

static void the_same_choices_are_made_once(void **state)
{
	struct request *t = *state;
	const struct rule_set *first = ask(t, &t->other);

	assert_ptr_equal(ask(t, &t->other), first);
	assert_ptr_not_equal(ask(t, &t->plain), first);
	assert_int_equal(rules_by_id(ask(t, &t->other), "py-network")->severity[INSPECTION_GUARD], SEVERITY_NONE);
	assert_int_not_equal(rules_by_id(ask(t, &t->plain), "py-network")->severity[INSPECTION_STRICT], SEVERITY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_second_request_in_a_row_brings_spare_workers, make, drop),
		cmocka_unit_test_setup_teardown(other_rules_take_no_spare_worker, make, drop),
		cmocka_unit_test_setup_teardown(the_same_choices_are_made_once, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
