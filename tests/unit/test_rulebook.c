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

/* One request: the rules that it was judged by, and whether there were spare workers for it. */
static bool ask(struct request *t, const struct policy_resolved *r, const char *rule, enum severity *ret)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rules_in_use used = { .set = NULL };
	bool spared;

	if (rulebook_get(&t->book, r, &used, &err) < 0)
		fail_msg("%s", err.msg);
	spared = rulebook_spares(&t->book, &used) != NULL;
	if (ret)
		*ret = rules_by_id(used.set, rule)->severity[r->set.inspection];
	rules_put(&used);
	return spared;
}

static void the_second_request_in_a_row_brings_spare_workers(void **state)
{
	struct request *t = *state;

	rulebook_refill(&t->book); /* nothing was asked for yet */
	assert_false(ask(t, &t->plain, NULL, NULL));
	rulebook_refill(&t->book);
	assert_false(ask(t, &t->other, NULL, NULL));
	rulebook_refill(&t->book);
	assert_false(ask(t, &t->plain, NULL, NULL));
	rulebook_refill(&t->book);
	assert_false(ask(t, &t->plain, NULL, NULL));
	rulebook_refill(&t->book);
	assert_true(ask(t, &t->plain, NULL, NULL));
}

/* Workers judge by the rules that they were made with: a request with choices of its own gets none of them. */
static void other_rules_take_no_spare_worker(void **state)
{
	struct request *t = *state;

	for (int i = 0; i < 3; i++) {
		assert_false(ask(t, &t->other, NULL, NULL));
		rulebook_refill(&t->book);
	}
	(void)ask(t, &t->plain, NULL, NULL);
	(void)ask(t, &t->plain, NULL, NULL);
	rulebook_refill(&t->book);
	assert_false(ask(t, &t->other, NULL, NULL));
	assert_true(ask(t, &t->plain, NULL, NULL));
}

static void choices_hold_for_their_request(void **state)
{
	struct request *t = *state;
	enum severity chosen, plain;

	t->plain.set.inspection = t->other.set.inspection = INSPECTION_STRICT;
	(void)ask(t, &t->other, "py-network", &chosen);
	(void)ask(t, &t->plain, "py-network", &plain);
	assert_int_equal(chosen, SEVERITY_NONE);
	assert_int_not_equal(plain, SEVERITY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_second_request_in_a_row_brings_spare_workers, make, drop),
		cmocka_unit_test_setup_teardown(other_rules_take_no_spare_worker, make, drop),
		cmocka_unit_test_setup_teardown(choices_hold_for_their_request, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
