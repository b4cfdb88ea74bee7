/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the native backend and the monitor that need no cell: records over sockets, and the pace of looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <fcntl.h>

#include "backend/native/report.h"
#include "monitor/pace.h"
#include "sys/cpus.h"

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

/* ---- cpus ------------------------------------------------------------------------------------- */

static cpu_set_t may_use(pid_t pid)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(pid, sizeof(set), &set), 0);
	return set;
}

/* Leaves the caller two of the cpus that it has; false if it has fewer. */
static bool keep_two_cpus(void)
{
	cpu_set_t have = may_use(0), two;

	CPU_ZERO(&two);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&two) < 2; i++)
		if (CPU_ISSET(i, &have))
			CPU_SET(i, &two);
	return CPU_COUNT(&two) == 2 && sched_setaffinity(0, sizeof(two), &two) == 0;
}

static void a_pair_of_cpus_parts_and_joins(void **state UNUSED)
{
	cpu_set_t before = may_use(0), seen;
	struct cpu_pair pair;
	int down[2], up[2];
	char byte;
	pid_t child;

	if (!keep_two_cpus())
		skip();
	pair = cpu_pair_find();
	assert_true(pair.usable);
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		if (read(down[0], &byte, 1) == 1)
			cpu_pair_join(&pair);
		_exit(write(up[1], "j", 1) == 1 && read(down[0], &byte, 1) == 1 ? 0 : 1);
	}
	assert_true(child > 0);
	cpu_pair_part(&pair, child);
	seen = may_use(child);
	assert_int_equal(CPU_COUNT(&seen), 1);
	assert_int_equal(write(down[1], "g", 1), 1);
	assert_int_equal(read(up[0], &byte, 1), 1);
	seen = may_use(child);
	assert_true(CPU_EQUAL(&seen, &pair.both));
	assert_int_equal(write(down[1], "e", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (size_t i = 0; i < 2; i++) {
		(void)close(down[i]);
		(void)close(up[i]);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void other_numbers_of_cpus_are_left_alone(void **state UNUSED)
{
	cpu_set_t before = may_use(0), one, seen;
	struct cpu_pair pair;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	pair = cpu_pair_find();
	assert_false(pair.usable);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	cpu_pair_part(&pair, getpid());
	cpu_pair_join(&pair);
	seen = may_use(0);
	assert_true(CPU_EQUAL(&seen, &before));
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
		cmocka_unit_test(a_pair_of_cpus_parts_and_joins),
		cmocka_unit_test(other_numbers_of_cpus_are_left_alone),
	};

	return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
