/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the native backend and the monitor that need no cell: records over sockets, the pace of looks,
 * and children that end late. */
#include <linux/sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <fcntl.h>

#include "backend/native/report.h"
#include "base/clock.h"
#include "monitor/pace.h"
#include "sys/proc.h"

struct ends {
	int a, b;
};

static struct ends open_ends(void)
{
	int fds[2], on = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	return (struct ends){ fds[0], fds[1] };
}

static void close_ends(struct ends *e)
{
	fd_closep(&e->a);
	fd_closep(&e->b);
}

static void records_travel_with_descriptors(void **state UNUSED)
{
	struct ends e = open_ends();
	struct report r = report_make(REPORT_READY);
	int fds[HANDED_COUNT];
	struct received got;

	for (size_t i = 0; i < HANDED_COUNT; i++)
		fds[i] = e.a;
	assert_int_equal(report_receive(e.b, false, &got), -EAGAIN);
	assert_int_equal(report_send(e.a, &r, fds, HANDED_COUNT), 0);
	assert_int_equal(report_receive(e.b, false, &got), 1);
	assert_int_equal(got.report.kind, REPORT_READY);
	assert_int_equal(got.n_fds, HANDED_COUNT);
	assert_int_equal(got.sender, getpid());
	for (size_t i = 0; i < HANDED_COUNT; i++)
		fd_closep(&got.fds[i]);
	fd_closep(&e.a);
	assert_int_equal(report_receive(e.b, false, &got), 0);
	close_ends(&e);
}

static void unsound_records_are_refused(void **state UNUSED)
{
	struct report good = report_make(REPORT_ENDED), bad[6], out;

	good.exited = 1;
	assert_true(report_decode(&good, sizeof(good), &out));
	assert_false(report_decode(&good, sizeof(good) - 1, &out));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = good;
	bad[0].magic ^= 1;
	bad[1].kind = 0;
	bad[2].kind = REPORT_KIND_END;
	bad[3].step = STEP_COUNT;
	bad[4].value = 256;
	bad[5].exited = 0; /* signal 0 does not exist */
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(report_decode(&bad[i], sizeof(bad[i]), &out));
}

static void unsound_records_leak_no_descriptor(void **state UNUSED)
{
	struct ends e = open_ends();
	struct report r = report_make(REPORT_READY);
	int probe_before = dup(e.a), probe_after;
	struct received got;

	(void)close(probe_before);
	r.magic = 0;
	assert_int_equal(report_send(e.a, &r, (int[]){ e.a, e.b }, 2), 0);
	assert_int_equal(report_receive(e.b, false, &got), -EPROTO);
	probe_after = dup(e.a); /* the lowest free number is the same as before */
	assert_int_equal(probe_after, probe_before);
	(void)close(probe_after);
	/* A record that is too long is cut by the kernel and must not pass for a good one. */
	assert_int_equal(send(e.a, (char[sizeof(struct report) + 8]){ 0 }, sizeof(struct report) + 8, 0),
			 (int)sizeof(struct report) + 8);
	assert_int_equal(report_receive(e.b, false, &got), -EPROTO);
	close_ends(&e);
}

static void every_step_has_words(void **state UNUSED)
{
	for (enum step s = 0; s < STEP_COUNT; s++) {
		assert_true(strlen(step_info[s].name) > 0);
		assert_true(strlen(step_info[s].what) > 0);
		assert_true(step_info[s].protection <= PROT_COUNT);
	}
}

static void cpu_is_looked_at_when_it_could_be_over(void **state UNUSED)
{
	struct pace p = { .wall_deadline_ns = 100 * NS_PER_SEC, .cpu_limit_ns = NS_PER_SEC, .cpu_percent = 50 };
	uint64_t now = 5 * NS_PER_SEC;

	pace_start(&p, now);
	/* Half a cpu needs two seconds for one second of cpu time. */
	assert_int_equal(pace_timeout_ms(&p, now), 2000);
	assert_false(pace_cpu_is_due(&p, now + NS_PER_SEC));
	assert_true(pace_cpu_is_due(&p, now + 2 * NS_PER_SEC));
	assert_false(pace_cpu_is_over(&p, NS_PER_SEC / 2, now + 2 * NS_PER_SEC));
	assert_int_equal(pace_timeout_ms(&p, now + 2 * NS_PER_SEC), 1000);
	assert_true(pace_cpu_is_over(&p, NS_PER_SEC, now + 3 * NS_PER_SEC));
	/* Nearly used up: looks are short apart, but never a busy loop. */
	assert_false(pace_cpu_is_over(&p, NS_PER_SEC - 1, now));
	assert_true(pace_timeout_ms(&p, now) >= 1);
}

static void samples_come_at_their_interval(void **state UNUSED)
{
	struct pace p = { .wall_deadline_ns = 10 * NS_PER_SEC, .cpu_percent = 100, .interval_ns = 100 * NS_PER_MS };

	pace_start(&p, 0);
	assert_false(pace_sample_is_due(&p, 99 * NS_PER_MS));
	assert_true(pace_sample_is_due(&p, 350 * NS_PER_MS));
	assert_false(pace_sample_is_due(&p, 449 * NS_PER_MS)); /* no burst after a pause */
	assert_true(pace_sample_is_due(&p, 450 * NS_PER_MS));
	assert_false(pace_wall_is_over(&p, 10 * NS_PER_SEC - 1));
	assert_true(pace_wall_is_over(&p, 10 * NS_PER_SEC));
	assert_int_equal(pace_timeout_ms(&p, 11 * NS_PER_SEC), 0);
}

/* ---- children that end late --------------------------------------------------------------------- */

static bool has_children(void)
{
	siginfo_t any;

	return waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

static void late_children_are_buried_when_they_have_ended(void **state UNUSED)
{
	int told[2], pidfd = FD_NONE, watch;
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd };
	char word;
	long pid;

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		(void)close(told[1]);
		_exit((int)read(told[0], &word, 1));
	}
	assert_true(pid > 0);
	watch = dup(pidfd);
	assert_int_equal(proc_reap(&pidfd, 0, NULL), -ETIMEDOUT);
	proc_leave(&pidfd);
	assert_int_equal(pidfd, FD_NONE);
	proc_reap_late();
	assert_true(has_children());
	assert_int_equal(close(told[1]), 0);
	assert_int_equal(proc_await(watch, clock_now_ns() + 60 * NS_PER_SEC), 0);
	assert_true(has_children());
	proc_reap_late();
	assert_false(has_children());
	proc_leave(&pidfd); /* none: nothing to do */
	(void)close(told[0]);
	(void)close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_travel_with_descriptors),
		cmocka_unit_test(unsound_records_are_refused),
		cmocka_unit_test(unsound_records_leak_no_descriptor),
		cmocka_unit_test(every_step_has_words),
		cmocka_unit_test(cpu_is_looked_at_when_it_could_be_over),
		cmocka_unit_test(samples_come_at_their_interval),
		cmocka_unit_test(late_children_are_buried_when_they_have_ended),
	};

	return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
