/* SPDX-License-Identifier: Apache-2.0 */
/* What every backend's guest does to itself and reads of itself: the readers over files as the kernel writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/guest/confine.h"
#include "backend/guest/facts.h"
#include "base/fd.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

static char file[] = "/tmp/test_guest-XXXXXX";

static const char *with(const char *text)
{
	static int fd = FD_NONE;

	if (fd < 0)
		fd = mkstemp(file);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	return file;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(file);
	return 0;
}

static void test_status(void **state)
{
	struct guest_status s;

	(void)state;
	assert_true(guest_status_read(
		with("Name:\tUid: 0\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t9\t8\nGroups:\t4 24 \nCapInh:\t0000000000000001\n"
		     "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t00000000a0000000\n"
		     "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t13\n"),
		&s));
	assert_int_equal(s.number[STATUS_UID], 7);
	assert_true(s.known[STATUS_GID]);
	assert_int_equal(s.number[STATUS_GID], 0); /* they differ */
	assert_int_equal(s.number[STATUS_CAPABILITIES], 0xa0000001);
	assert_int_equal(s.number[STATUS_NO_NEW_PRIVS], 1);
	assert_int_equal(s.number[STATUS_SECCOMP], 2);
	assert_int_equal(s.number[STATUS_SECCOMP_FILTERS], 13);
	assert_string_equal(s.groups, "4 24");
}

/* What is not there is not known: nothing is taken for zero. */
static void test_status_without(void **state)
{
	struct guest_status s;

	(void)state;
	assert_true(
		guest_status_read(with("Name:\tx\nCapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t0\nGroups:\t \n"), &s));
	for (size_t i = 0; i < STATUS_NUMBERS; i++)
		assert_false(s.known[i]);
	assert_true(s.has_groups);
	assert_string_equal(s.groups, "");
	assert_false(guest_status_read("/nowhere/status", &s));
}

static void test_id_map(void **state)
{
	static const char map[] = "         0     100000          1\n      1000     101000          1";
	const char *at = map;
	struct guest_id_row row;
	struct guest_text text;

	(void)state;
	assert_true(guest_id_row_next(&at, &row));
	assert_true(guest_id_row_next(&at, &row));
	assert_int_equal(row.inside, 1000);
	assert_int_equal(row.outside, 101000);
	assert_false(guest_id_row_next(&at, &row));
	guest_id_map_text(map, &text);
	assert_string_equal(text.s, "0->100000+1 1000->101000+1");
	guest_id_map_text("no map", &text);
	assert_string_equal(text.s, "");
}

static void test_network(void **state)
{
	struct guest_network net;

	(void)state;
	assert_true(guest_network_read(with("Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n"
					    "    lo: 1 2 3 4 5 6 7 8 9 10 11\n  eth0: 1 2 3 4 5 6 7 8 9 32 33\n"),
				       &net));
	assert_string_equal(net.interfaces.s, "lo eth0");
	assert_int_equal(net.packets_out, 32);
}

static void test_landlock_in_force(void **state)
{
	(void)state;
	assert_int_equal(guest_landlock_in_force(7, EACCES), 7);
	assert_int_equal(guest_landlock_in_force(7, 0), 0);
	assert_int_equal(guest_landlock_in_force(4, 0), 4); /* has no right that could be missing */
	assert_string_equal(guest_core_dumps(1), "none");
	assert_string_equal(guest_core_dumps(2), "possible");
}

/* A limit that does not fit is not forgotten. */
static void test_too_many_limits(void **state)
{
	struct guest_confine c = { .n_rlimits = 0 };

	(void)state;
	for (int i = 0; i <= GUEST_RLIMITS_MAX; i++)
		guest_add_rlimit(&c, RLIMIT_RTPRIO, 0);
	assert_int_equal(guest_set_rlimits(&c), -E2BIG);
}

/* Whoever waits for its program does so behind its filter, whichever that is. */
static void test_filters_let_it_wait(void **state)
{
	static const enum syscall_family families[] = { FAMILY_GENERIC, FAMILY_INTERPRETER, FAMILY_JIT,
							FAMILY_TOOLCHAIN };
	static const int calls[] = { SYS_sendmsg, SYS_recvmsg, SYS_pread64,   SYS_write,
				     SYS_close,   SYS_execve,  SYS_exit_group };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(families) * 4; i++) {
		const bool strict = i & 1, tells = i & 2;
		struct seccomp_filter f = tells ? seccomp_filter_telling(families[i / 4], strict)
						: seccomp_filter_for(families[i / 4], strict);
		struct seccomp_data open_file = { .nr = SYS_openat, .arch = NATIVE_ARCH };

		open_file.args[2] = O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
		assert_int_equal(seccomp_decide(f, &open_file), SECCOMP_RET_ALLOW);
		for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
			const struct seccomp_data call = { .nr = calls[c], .arch = NATIVE_ARCH };

			assert_int_equal(seccomp_decide(f, &call), SECCOMP_RET_ALLOW);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_status_without),
		cmocka_unit_test(test_id_map),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_landlock_in_force),
		cmocka_unit_test(test_too_many_limits),
		cmocka_unit_test(test_filters_let_it_wait),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
