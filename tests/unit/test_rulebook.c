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

/* One request; spares: whether it finds any.  Then it is over. */
static void ask(struct request *t, const struct policy_resolved *r, bool spares)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rules_in_use used = { .set = NULL };

	if (rulebook_get(&t->book, r, &used, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(rulebook_spares(&t->book, &used) != NULL, spares);
	rulebook_refill(&t->book, &used);
	rules_put(&used);
}

static void the_second_request_in_a_row_brings_spare_workers(void **state)
{
	struct request *t = *state;
	const struct rules_in_use none = { .set = NULL };

	rulebook_refill(&t->book, &none); /* of a request that was not inspected */
	assert_null(rulebook_spares(&t->book, &none));
	ask(t, &t->plain, false);
	ask(t, &t->other, false);
	ask(t, &t->plain, false);
	ask(t, &t->plain, false);
	ask(t, &t->plain, true);
}

/* Workers judge by the rules that they were made with: a request with others gets none of them. */
static void other_rules_take_no_spare_worker(void **state)
{
	struct request *t = *state;

	ask(t, &t->other, false);
	ask(t, &t->other, false);
	ask(t, &t->other, true);
	ask(t, &t->plain, false);
	ask(t, &t->other, true);
	/* The same choices at another level are another set; so is the first one, made anew. */
	t->plain.set.rules = t->other.set.rules;
	t->plain.set.inspection = INSPECTION_STRICT;
	ask(t, &t->plain, false);
	ask(t, &t->other, false);
	ask(t, &t->other, false);
	ask(t, &t->other, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_second_request_in_a_row_brings_spare_workers, make, drop),
		cmocka_unit_test_setup_teardown(other_rules_take_no_spare_worker, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
