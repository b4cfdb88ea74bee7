/* SPDX-License-Identifier: Apache-2.0 */
/* Which backend is chosen, with backends that exist only here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "executor/select.h"

/* What each backend answers when it is opened, and what became of it. */
static struct {
	bool absent;            /* not in this build */
	enum brig_code failure; /* 0: it opens */
	const char *details;    /* behind why it does not; NULL: none */
	protection_set missing;
	int opened, closed;
} world[BACKEND_KIND_COUNT];

static int open_kind(enum backend_kind kind, struct backend_host **ret, protection_set *ret_missing,
		     struct brig_error *err)
{
	world[kind].opened++;
	if (world[kind].failure)
		return err_set(err, world[kind].failure, 0, "%s is not to be had%s%s", backend_kind_name[kind],
			       world[kind].details ? ": " : "", world[kind].details ? world[kind].details : "");
	*ret_missing = world[kind].missing;
	*ret = (struct backend_host *)(void *)&world[kind];
	return 0;
}

static int open_native(const struct settings *set UNUSED, struct backend_host **ret, protection_set *m,
		       struct brig_error *err)
{
	return open_kind(BACKEND_NATIVE, ret, m, err);
}

static int open_docker(const struct settings *set UNUSED, struct backend_host **ret, protection_set *m,
		       struct brig_error *err)
{
	return open_kind(BACKEND_DOCKER, ret, m, err);
}

static int open_direct(const struct settings *set UNUSED, struct backend_host **ret, protection_set *m,
		       struct brig_error *err)
{
	return open_kind(BACKEND_DIRECT, ret, m, err);
}

static void close_any(struct backend_host *h)
{
	for (size_t i = 0; i < BACKEND_KIND_COUNT; i++)
		world[i].closed += (void *)h == (void *)&world[i];
}

#define DOCKER_NEVER (PROT_BIT(PROT_user_ns) | PROT_BIT(PROT_time_ns))
#define ALL          (PROT_BIT(PROT_COUNT) - 1)

static const struct backend_ops fakes[] = {
	[BACKEND_NATIVE] = { .name = "native", .open = open_native, .close = close_any },
	[BACKEND_DOCKER] = { .name = "docker", .open = open_docker, .close = close_any, .never = DOCKER_NEVER },
	[BACKEND_DIRECT] = { .name = "direct", .open = open_direct, .close = close_any, .never = ALL },
};

static const struct backend_ops *find_fake(enum backend_kind kind, struct brig_error *err)
{
	if (kind != BACKEND_AUTO && !world[kind].absent)
		return &fakes[kind];
	(void)err_set(err, BRIG_E_REFUSED, 0, "no %s in this build", backend_kind_name[kind]);
	return NULL;
}

static struct settings set;
static struct select_ask ask;
static struct selection chosen;
static struct brig_error err;

static int begin(void **state UNUSED)
{
	memset(world, 0, sizeof(world));
	memset(&set, 0, sizeof(set));
	set.enable_sandbox = true;
	ask = (struct select_ask){ .set = &set, .trust = TRUST_UNKNOWN, .find = find_fake };
	err = (struct brig_error)BRIG_ERROR_INIT;
	world[BACKEND_DOCKER].missing = DOCKER_NEVER;
	world[BACKEND_DIRECT].missing = ALL;
	return 0;
}

/* Whatever was opened is either chosen and still open, or closed. */
static void expect_balance(void)
{
	for (size_t i = 0; i < BACKEND_KIND_COUNT; i++) {
		int open = chosen.ops && chosen.ops == &fakes[i];
		int failed = world[i].failure ? world[i].opened : 0;

		assert_int_equal(world[i].opened - failed - world[i].closed, open);
	}
}

static void expect_chosen(const char *name)
{
	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	assert_string_equal(chosen.ops->name, name);
	expect_balance();
	selection_release(&chosen);
	expect_balance();
}

static void expect_refusal(const char *words)
{
	assert_true(select_backend(&ask, &chosen, &err) < 0);
	assert_null(chosen.ops);
	assert_non_null(strstr(err.msg, words));
	expect_balance();
}

static void a_refusal_names_all_and_what_to_paste(void **state UNUSED)
{
	set.backend = BACKEND_NATIVE;
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_memory_limit) | PROT_BIT(PROT_landlock) | PROT_BIT(PROT_time_ns);
	ask.may_degrade = PROT_BIT(PROT_time_ns);
	expect_refusal("cannot keep memory_limit, landlock: ");
	/* It takes the place of what is given up already, so it names that too. */
	expect_refusal("--allow-degraded time_ns,memory_limit,landlock");
	world[BACKEND_NATIVE].missing |= PROT_BIT(PROT_seccomp);
	expect_refusal("seccomp");
	assert_null(strstr(err.msg, "allow-degraded"));
}

static void a_second_reason_is_never_cut_within(void **state UNUSED)
{
	static char long_text[sizeof(err.msg)];
	size_t len = sizeof(long_text) - 60;

	memset(long_text, 'x', len);
	world[BACKEND_NATIVE].failure = world[BACKEND_DOCKER].failure = BRIG_E_REFUSED;
	world[BACKEND_DOCKER].details = "none of these";
	expect_refusal("native is not to be had; and docker: docker is not to be had: none of these");
	world[BACKEND_DOCKER].details = long_text;
	expect_refusal("native is not to be had; and docker: docker is not to be had");
	assert_null(strchr(err.msg, 'x'));
	world[BACKEND_NATIVE].details = long_text;
	expect_refusal(long_text);
	assert_null(strstr(err.msg, "; and"));
}

static void auto_takes_native_and_asks_nobody_else(void **state UNUSED)
{
	expect_chosen("native");
	assert_string_equal(chosen.why, "");
	assert_int_equal(world[BACKEND_DOCKER].opened, 0);
	assert_int_equal(world[BACKEND_DIRECT].opened, 0);
}

static void auto_goes_on_to_docker_and_says_why(void **state UNUSED)
{
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	expect_chosen("docker");
	assert_non_null(strstr(chosen.why, "landlock"));
	assert_true(chosen.excused == DOCKER_NEVER);
}

static void a_native_backend_that_cannot_be_opened_counts_too(void **state UNUSED)
{
	world[BACKEND_NATIVE].failure = BRIG_E_SYSTEM;
	expect_chosen("docker");
	assert_non_null(strstr(chosen.why, "native is not to be had"));
}

static void what_the_policy_gives_up_is_no_reason_to_move(void **state UNUSED)
{
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	ask.may_degrade = PROT_BIT(PROT_landlock);
	expect_chosen("native");
	assert_true(chosen.missing == PROT_BIT(PROT_landlock));
	assert_true(chosen.excused == 0);
}

static void what_docker_gives_elsewhere_is_refused(void **state UNUSED)
{
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	world[BACKEND_DOCKER].missing |= PROT_BIT(PROT_memory_limit);
	expect_refusal("landlock");
	assert_non_null(strstr(err.msg, "memory_limit"));
	assert_int_equal(err.code, BRIG_E_REFUSED);
}

static void untrusted_code_does_not_lose_an_essential_protection_by_itself(void **state UNUSED)
{
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	ask.trust = TRUST_UNTRUSTED;
	expect_refusal("user_ns");
	world[BACKEND_DOCKER].missing = PROT_BIT(PROT_time_ns); /* a rootless engine */
	world[BACKEND_NATIVE].opened = world[BACKEND_NATIVE].closed = 0;
	world[BACKEND_DOCKER].opened = world[BACKEND_DOCKER].closed = 0;
	expect_chosen("docker");
}

static void a_named_backend_is_excused_for_its_nature(void **state UNUSED)
{
	set.backend = BACKEND_DOCKER;
	ask.trust = TRUST_UNTRUSTED;
	expect_chosen("docker");
	assert_true(chosen.excused == DOCKER_NEVER);
	assert_string_equal(chosen.why, "");
	assert_int_equal(world[BACKEND_NATIVE].opened, 0);
}

static void a_named_backend_is_never_exchanged(void **state UNUSED)
{
	struct brig_error why = { .code = BRIG_E_REFUSED, .msg = "no" };

	set.backend = BACKEND_NATIVE;
	set.fallback = FALLBACK_DIRECT;
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	expect_refusal("landlock");
	assert_int_equal(world[BACKEND_DOCKER].opened, 0);
	assert_int_equal(world[BACKEND_DIRECT].opened, 0);
	world[BACKEND_NATIVE].missing = 0;
	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	assert_true(select_next(&ask, &chosen, &why) < 0);
	assert_string_equal(why.msg, "no");
	assert_int_equal(world[BACKEND_DOCKER].opened, 0);
	selection_release(&chosen);
}

static void an_image_has_docker_asked_first(void **state UNUSED)
{
	(void)str_copy(set.docker_image, sizeof(set.docker_image), "python:3");
	expect_chosen("docker");
	assert_string_equal(chosen.why, "");
	assert_int_equal(world[BACKEND_NATIVE].opened, 0);
	world[BACKEND_DOCKER].failure = BRIG_E_REFUSED;
	world[BACKEND_DOCKER].opened = world[BACKEND_DOCKER].closed = 0;
	expect_chosen("native");
	assert_non_null(strstr(chosen.why, "docker is not to be had"));
}

static void an_image_takes_nothing_from_untrusted_code(void **state UNUSED)
{
	struct brig_error why = { .code = BRIG_E_REFUSED, .msg = "no such image" };

	(void)str_copy(set.docker_image, sizeof(set.docker_image), "python:3");
	ask.trust = TRUST_UNTRUSTED;
	expect_chosen("native");
	assert_non_null(strstr(chosen.why, "user_ns"));
	ask.trust = TRUST_UNKNOWN;
	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	assert_int_equal(select_next(&ask, &chosen, &why), 0);
	assert_string_equal(chosen.ops->name, "native");
	assert_string_equal(chosen.why, "no such image");
	selection_release(&chosen);
}

static void an_image_does_not_overrule_a_name(void **state UNUSED)
{
	(void)str_copy(set.docker_image, sizeof(set.docker_image), "python:3");
	set.backend = BACKEND_NATIVE;
	expect_chosen("native");
	assert_int_equal(world[BACKEND_DOCKER].opened, 0);
}

static void direct_needs_the_fallback(void **state UNUSED)
{
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	world[BACKEND_DOCKER].failure = BRIG_E_REFUSED;
	expect_refusal("docker is not to be had");
	assert_int_equal(world[BACKEND_DIRECT].opened, 0);
	set.fallback = FALLBACK_DIRECT;
	expect_chosen("direct");
	assert_non_null(strstr(chosen.why, "landlock"));
	assert_non_null(strstr(chosen.why, "docker"));
	assert_true(chosen.missing == ALL);
}

static void fallback_comes_last(void **state UNUSED)
{
	set.fallback = FALLBACK_DIRECT;
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	expect_chosen("docker");
	assert_int_equal(world[BACKEND_DIRECT].opened, 0);
}

static void enable_sandbox_false_is_direct_by_name(void **state UNUSED)
{
	set.enable_sandbox = false;
	expect_chosen("direct");
	assert_string_equal(chosen.why, "");
	assert_int_equal(world[BACKEND_NATIVE].opened, 0);
}

static void moves_on_when_the_cell_could_not_be_built(void **state UNUSED)
{
	struct brig_error why = { .code = BRIG_E_REFUSED, .msg = "cannot clone" };

	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	assert_int_equal(select_next(&ask, &chosen, &why), 0);
	assert_string_equal(chosen.ops->name, "docker");
	assert_string_equal(chosen.why, "cannot clone");
	expect_balance();
	assert_true(select_next(&ask, &chosen, &why) < 0); /* no fallback */
	assert_null(chosen.ops);
	expect_balance();
}

static void a_build_without_docker_says_so(void **state UNUSED)
{
	world[BACKEND_DOCKER].absent = true;
	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_landlock);
	expect_refusal("no docker in this build");
}

/* Hosts that serve more than one request stay open, one for each answer to the question whether they would. */
static bool same_memory(const struct settings *a, const struct settings *b)
{
	return a->mem_limit == b->mem_limit;
}

static const struct backend_ops *find_sharing(enum backend_kind kind UNUSED, struct brig_error *e UNUSED)
{
	static struct backend_ops sharing;

	sharing = fakes[BACKEND_NATIVE];
	sharing.same_host = same_memory;
	return &sharing;
}

static void a_host_that_serves_more_than_one_is_kept(void **state UNUSED)
{
	struct kept_hosts hosts = { .first = NULL };
	struct selection second;

	ask.hosts = &hosts;
	ask.find = find_sharing;
	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	assert_int_equal(select_backend(&ask, &second, &err), 0);
	assert_ptr_equal(chosen.host, second.host);
	assert_int_equal(world[BACKEND_NATIVE].opened, 1);
	selection_release(&chosen);
	selection_release(&second);
	assert_int_equal(world[BACKEND_NATIVE].closed, 0);
	set.mem_limit++;
	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	selection_release(&chosen);
	assert_int_equal(world[BACKEND_NATIVE].opened, 2);
	kept_hosts_release(&hosts);
	assert_int_equal(world[BACKEND_NATIVE].closed, 2);
}

/* What a kept host lacks is refused each time, and it stays open for those who do not mind. */
static void a_kept_host_lacks_what_it_lacks(void **state UNUSED)
{
	struct kept_hosts hosts = { .first = NULL };

	world[BACKEND_NATIVE].missing = PROT_BIT(PROT_time_ns);
	set.backend = BACKEND_NATIVE;
	ask.hosts = &hosts;
	ask.find = find_sharing;
	for (int i = 0; i < 2; i++)
		assert_true(select_backend(&ask, &chosen, &err) < 0);
	ask.may_degrade = PROT_BIT(PROT_time_ns);
	assert_int_equal(select_backend(&ask, &chosen, &err), 0);
	assert_true(chosen.missing == PROT_BIT(PROT_time_ns));
	selection_release(&chosen);
	assert_int_equal(world[BACKEND_NATIVE].opened, 1);
	kept_hosts_release(&hosts);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		T(a_refusal_names_all_and_what_to_paste),
		T(a_second_reason_is_never_cut_within),
		T(auto_takes_native_and_asks_nobody_else),
		T(auto_goes_on_to_docker_and_says_why),
		T(a_native_backend_that_cannot_be_opened_counts_too),
		T(what_the_policy_gives_up_is_no_reason_to_move),
		T(what_docker_gives_elsewhere_is_refused),
		T(untrusted_code_does_not_lose_an_essential_protection_by_itself),
		T(a_named_backend_is_excused_for_its_nature),
		T(a_named_backend_is_never_exchanged),
		T(an_image_has_docker_asked_first),
		T(an_image_takes_nothing_from_untrusted_code),
		T(an_image_does_not_overrule_a_name),
		T(direct_needs_the_fallback),
		T(fallback_comes_last),
		T(enable_sandbox_false_is_direct_by_name),
		T(moves_on_when_the_cell_could_not_be_built),
		T(a_build_without_docker_says_so),
		T(a_host_that_serves_more_than_one_is_kept),
		T(a_kept_host_lacks_what_it_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
