/* SPDX-License-Identifier: Apache-2.0 */
/* Users of an image by name: what its own files say, and what they cannot make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/docker/accounts.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "# a comment\n\n"
			     "+nis::::::\n"
			     "short:x:7\n"
			     "letters:x:7a:7:::\n"
			     "huge:x:4294967295:1:::\n"
			     "toor:x:0:1000:::\n"
			     "wheel:x:1001:0:::\n"
			     "twice:x:5:5:::\n"
			     "twice:x:6:5:::\n"
			     "same:x:5:5:::\nsame:x:5:5:a:b:c\n"
			     "node:x:1000:1000:Node,,,:/home/node:/bin/bash\n"
			     "last:x:9:8:::";
static const char group[] = "root:x:0:\nnode:x:1000:\nstaff:x:50:node,other\nbad:x\n";

static const struct {
	const char *user;
	uint32_t uid, gid; /* 0: refused */
	const char *says;
} rows[] = {
	{ "node", 1000, 1000, NULL },
	{ "node:staff", 1000, 50, NULL },
	{ "node:77", 1000, 77, NULL },
	{ "77:staff", 77, 50, NULL },
	{ "same", 5, 5, NULL },
	{ "last", 9, 8, NULL },
	{ "nod", 0, 0, "has no 'nod'" },
	{ "node2", 0, 0, "has no 'node2'" },
	{ "short", 0, 0, "makes no sense" },
	{ "letters", 0, 0, "makes no sense" },
	{ "huge", 0, 0, "makes no sense" },
	{ "twice", 0, 0, "twice" },
	{ "root", 0, 0, "0:0" },
	{ "toor", 0, 0, "0:1000" },
	{ "wheel", 0, 0, "1001:0" },
	{ "node:root", 0, 0, "1000:0" },
	{ "node:bad", 0, 0, "makes no sense" },
	{ "node:nobody", 0, 0, "/etc/group of the image has no 'nobody'" },
	{ "node:0", 0, 0, "never runs as user or group 0" },
};

static void test_names(void **state)
{
	const struct accounts a = {
		.passwd = passwd, .passwd_len = sizeof(passwd) - 1, .group = group, .group_len = sizeof(group) - 1
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		uint32_t uid = 0, gid = 0;
		int rc = accounts_find(&a, rows[i].user, &uid, &gid, &err);

		assert_int_equal(rc, rows[i].says ? -BRIG_E_REFUSED : 0);
		assert_int_equal(uid, rows[i].uid);
		assert_int_equal(gid, rows[i].gid);
		if (rows[i].says && !strstr(err.msg, rows[i].says))
			fail_msg("'%s' does not say '%s'", err.msg, rows[i].says);
	}
}

static void test_files_that_are_none(void **state)
{
	struct accounts a = { .passwd = "node:x:1:1:::\n\0", .passwd_len = 15 };
	AUTO_FREE char *large = malloc(ACCOUNTS_MAX + 1);
	struct brig_error err = BRIG_ERROR_INIT;
	uint32_t uid, gid;

	(void)state;
	assert_true(accounts_find(&a, "node", &uid, &gid, &err) < 0); /* a NUL in it */
	a.passwd_len = 14;
	assert_int_equal(accounts_find(&a, "node", &uid, &gid, &err), 0);
	assert_true(accounts_find(&a, "node:node", &uid, &gid, &err) < 0); /* no groups at all */
	assert_non_null(large);
	memset(large, '\n', ACCOUNTS_MAX + 1);
	a = (struct accounts){ .passwd = large, .passwd_len = ACCOUNTS_MAX + 1 };
	assert_true(accounts_find(&a, "node", &uid, &gid, &err) < 0);
	assert_non_null(strstr(err.msg, "too large"));
	memset(large, 'x', 2000);
	memcpy(large, "node:", 5);
	a.passwd_len = 2000;
	assert_true(accounts_find(&a, "node", &uid, &gid, &err) < 0);
	assert_non_null(strstr(err.msg, "too long"));
}

/* One entry with its data and two blocks of nothing, as engines pack a file. */
static size_t make_tar(char *dst, char type, const char *size, size_t data)
{
	memset(dst, 0, 512 * 6);
	(void)snprintf(dst, 100, "passwd");
	(void)snprintf(dst + 124, 12, "%s", size);
	dst[156] = type;
	memset(dst + 512, 'a', data);
	return 512 + (data + 511) / 512 * 512 + 1024;
}

static void test_archives(void **state)
{
	char tar[512 * 8];
	struct brig_error err = BRIG_ERROR_INIT;
	const char *data = NULL;
	size_t len, got = 0;

	(void)state;
	len = make_tar(tar, '0', "00000000003", 3);
	assert_int_equal(accounts_untar(tar, len, &data, &got, &err), 0);
	assert_int_equal(got, 3);
	assert_memory_equal(data, "aaa", 3);
	for (size_t cut = 0; cut < 1024; cut++)
		assert_true(accounts_untar(tar, cut, &data, &got, &err) < 0);
	tar[512 + 512 + 7] = 'x'; /* something behind the file */
	assert_true(accounts_untar(tar, len, &data, &got, &err) < 0);
	len = make_tar(tar, '2', "00000000000", 0);
	assert_true(accounts_untar(tar, len, &data, &got, &err) < 0);
	assert_non_null(strstr(err.msg, "link"));
	len = make_tar(tar, '0', "77777777777", 3);
	assert_true(accounts_untar(tar, len, &data, &got, &err) < 0);
	len = make_tar(tar, '0', "nonsense", 3);
	assert_true(accounts_untar(tar, len, &data, &got, &err) < 0);
	/* Extended attributes before it. */
	(void)make_tar(tar, 'x', "00000000100", 64);
	len = 1024 + make_tar(tar + 1024, '0', "00000000002", 2);
	assert_int_equal(accounts_untar(tar, len, &data, &got, &err), 0);
	assert_int_equal(got, 2);
	(void)make_tar(tar, 'x', "77777777777", 0);
	assert_true(accounts_untar(tar, 2048, &data, &got, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_files_that_are_none),
		cmocka_unit_test(test_archives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
