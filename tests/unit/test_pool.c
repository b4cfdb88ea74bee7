/* SPDX-License-Identifier: Apache-2.0 */
/* Warm containers: the messages of a claim, and the records of who has claimed what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/pool.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_claim_arrives_as_it_was_sent(void **state UNUSED)
{
	struct pool_claim sent = { .run = "abcdefghij234567" }, got;
	char bytes[POOL_CLAIM_BYTES];

	memset(sent.key, 7, sizeof(sent.key));
	pool_claim_encode(&sent, bytes);
	assert_true(pool_claim_decode(bytes, sizeof(bytes), &got));
	assert_memory_equal(sent.key, got.key, sizeof(got.key));
	assert_string_equal(sent.run, got.run);
}

/* Every byte means something: one that is changed is refused, or (the key, the id's letters) changes what is read. */
static void a_damaged_claim_is_not_the_same_claim(void **state UNUSED)
{
	struct pool_claim sent = { .run = "abcdefghij234567" }, got;
	char bytes[POOL_CLAIM_BYTES];

	for (size_t i = 0; i < sizeof(bytes); i++) {
		pool_claim_encode(&sent, bytes);
		bytes[i] ^= 1;
		if (pool_claim_decode(bytes, sizeof(bytes), &got))
			assert_true(memcmp(got.key, sent.key, sizeof(got.key)) != 0 || strcmp(got.run, sent.run) != 0);
	}
	pool_claim_encode(&sent, bytes);
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_false(pool_claim_decode(bytes, len, &got));
}

static void replies_are_strict(void **state UNUSED)
{
	struct pool_reply sent = { .answer = POOL_HERE, .container = ID }, got;
	char bytes[POOL_REPLY_BYTES];

	pool_reply_encode(&sent, bytes);
	assert_true(pool_reply_decode(bytes, sizeof(bytes), &got));
	assert_string_equal(got.container, ID);
	bytes[20] = '/'; /* would leave its place in a path */
	assert_false(pool_reply_decode(bytes, sizeof(bytes), &got));
	sent.answer = POOL_EMPTY;
	pool_reply_encode(&sent, bytes);
	assert_true(pool_reply_decode(bytes, sizeof(bytes), &got));
	assert_string_equal(got.container, "");
	bytes[30] = 'a';
	assert_false(pool_reply_decode(bytes, sizeof(bytes), &got));
	sent.answer = POOL_ANSWER_END;
	pool_reply_encode(&sent, bytes);
	assert_false(pool_reply_decode(bytes, sizeof(bytes), &got));
}

static void records_name_the_claimer(void **state UNUSED)
{
	char folder[] = "/tmp/unit-test-pool-XXXXXX", claims[64], path[128];
	uint64_t pid = 0, start = 0;
	int place;

	assert_non_null(mkdtemp(folder));
	place = pool_place_open(folder, /* make= */ true);
	assert_true(place >= 0);
	assert_false(pool_record_read(folder, geteuid(), ID, &pid, &start));
	assert_int_equal(pool_record_write(place, ID, getpid()), 0);
	assert_int_equal(pool_record_write(place, ID, getpid()), -EEXIST); /* a container is handed out once */
	assert_true(pool_record_read(folder, geteuid(), ID, &pid, &start));
	assert_int_equal(pid, getpid());
	assert_true(start == owner_start_time(getpid()) && start > 0);
	assert_false(pool_record_read(folder, geteuid() + 1, ID, &pid, &start)); /* not that user's folder */
	assert_int_equal(pool_record_write(place, "../../etc/passwd", getpid()), -ESRCH);
	pool_record_remove(place, "../lock");
	pool_record_remove(place, ID);
	assert_false(pool_record_read(folder, geteuid(), ID, &pid, &start));
	(void)close(place);
	(void)snprintf(claims, sizeof(claims), "%s/claims", folder);
	assert_int_equal(rmdir(claims), 0);
	/* Others could have planted names in it. */
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(pool_place_open(folder, /* make= */ false), -EPERM);
	(void)snprintf(path, sizeof(path), "%s-link", folder);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(symlink(folder, path), 0);
	assert_true(pool_place_open(path, /* make= */ false) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void the_place_is_the_users_own(void **state UNUSED)
{
	char path[POOL_PATH_MAX];

	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
	assert_int_equal(pool_place(path), 0);
	assert_string_equal(path, "/run/user/7/brig");
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
	assert_int_equal(pool_place(path), geteuid() == 0 ? 0 : -ENOENT);
	assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_arrives_as_it_was_sent),
		cmocka_unit_test(a_damaged_claim_is_not_the_same_claim),
		cmocka_unit_test(replies_are_strict),
		cmocka_unit_test(records_name_the_claimer),
		cmocka_unit_test(the_place_is_the_users_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
