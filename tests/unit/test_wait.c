/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: what waits in one gives way, and comes back with what poll(2) would have said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/wait.h"

static struct {
	int ends[2];
	int ready, before, after;
	short revents;
	const void *outside; /* an address on the stack that the call was made on */
	struct task *other;
} seen;

static int begin(void **state UNUSED)
{
	memset(&seen, 0, sizeof(seen));
	return pipe2(seen.ends, O_CLOEXEC);
}

static int end(void **state UNUSED)
{
	(void)close(seen.ends[0]);
	(void)close(seen.ends[1]);
	return 0;
}

static bool is_ready(const struct task *t)
{
	struct pollfd p = { .fd = task_fd(t), .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static struct task *make(void (*fn)(void *arg))
{
	struct task *t = NULL;

	assert_int_equal(task_new(fn, NULL, &t), 0);
	assert_true(is_ready(t)); /* its first step */
	return t;
}

static void read_pipe(void *arg UNUSED)
{
	struct pollfd p = { .fd = seen.ends[0], .events = POLLIN };

	seen.before++;
	seen.ready = wait_poll(&p, 1, -1);
	seen.revents = p.revents;
	seen.after++;
}

static void test_gives_way(void **state UNUSED)
{
	struct task *t = make(read_pipe);

	assert_true(task_step(t));
	assert_int_equal(seen.before, 1);
	assert_false(is_ready(t));
	assert_true(task_step(t)); /* nothing has happened */
	assert_int_equal(seen.after, 0);
	assert_int_equal(write(seen.ends[1], "x", 1), 1);
	assert_true(is_ready(t));
	assert_false(task_step(t));
	assert_int_equal(seen.ready, 1);
	assert_int_equal(seen.revents, POLLIN);
	assert_true(is_ready(t)); /* whoever polls learns that it has ended */
	assert_false(task_step(t));
	assert_int_equal(seen.after, 1);
	task_free(t);
}

static void wait_in_vain(void *arg UNUSED)
{
	struct pollfd p = { .fd = seen.ends[0], .events = POLLIN };

	seen.ready = wait_poll(&p, 1, 20);
	wait_sleep(NS_PER_MS);
	seen.after++;
}

static void test_time_passes(void **state UNUSED)
{
	struct task *t = make(wait_in_vain);
	uint64_t start = clock_now_ns();
	struct pollfd p = { .fd = task_fd(t), .events = POLLIN };

	while (task_step(t))
		assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(seen.ready, 0);
	assert_int_equal(seen.after, 1);
	assert_true(clock_now_ns() - start >= 21 * NS_PER_MS);
	task_free(t);
}

/* The timer of a wait that something else ended is still set in the next one, and does not end that. */
static void wait_twice(void *arg UNUSED)
{
	struct pollfd p = { .fd = seen.ends[0], .events = POLLIN };
	char byte;

	seen.before = wait_poll(&p, 1, 20);
	(void)!read(seen.ends[0], &byte, 1);
	seen.ready = wait_poll(&p, 1, 60);
	wait_sleep(NS_PER_MS);
	seen.after++;
}

static void test_timer_of_the_last_wait(void **state UNUSED)
{
	struct task *t = make(wait_twice);
	uint64_t start = clock_now_ns();
	struct pollfd p = { .fd = task_fd(t), .events = POLLIN };

	assert_true(task_step(t));
	assert_int_equal(write(seen.ends[1], "x", 1), 1);
	while (task_step(t))
		assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(seen.before, 1);
	assert_int_equal(seen.ready, 0);
	assert_int_equal(seen.after, 1);
	assert_true(clock_now_ns() - start >= 61 * NS_PER_MS);
	task_free(t);
}

static void sleep_until_woken(void *arg UNUSED)
{
	seen.before++;
	wait_for_wake();
	seen.after++;
	wait_for_wake();
	seen.after++;
}

static void test_woken(void **state UNUSED)
{
	struct task *t = make(sleep_until_woken);

	assert_true(task_step(t));
	assert_false(is_ready(t));
	assert_true(task_step(t));
	assert_int_equal(seen.after, 0);
	task_wake(t);
	task_wake(t);
	assert_true(is_ready(t));
	assert_true(task_step(t));
	assert_int_equal(seen.after, 1); /* twice is once */
	assert_false(is_ready(t));
	task_wake(t);
	assert_false(task_step(t));
	assert_int_equal(seen.after, 2);
	task_free(t);
}

/* A file is always ready, twice the same is no mistake, and none at all is passed over. */
static void wait_for_anything(void *arg UNUSED)
{
	AUTO_FD file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct pollfd p[] = { { .fd = file, .events = POLLIN },
			      { .fd = -1, .events = POLLIN },
			      { .fd = seen.ends[0], .events = POLLIN },
			      { .fd = seen.ends[0], .events = POLLIN } };

	seen.ready = wait_poll(p, ARRAY_LEN(p), -1);
	seen.after = wait_poll(p + 1, 3, -1);
}

static void test_odd_descriptors(void **state UNUSED)
{
	struct task *t = make(wait_for_anything);

	assert_true(task_step(t));
	assert_int_equal(seen.ready, 1);
	assert_int_equal(write(seen.ends[1], "x", 1), 1);
	assert_false(task_step(t));
	assert_int_equal(seen.after, 2);
	task_free(t);
}

static void always_ready(void *arg UNUSED)
{
	struct pollfd p = { .fd = seen.ends[1], .events = POLLOUT };

	while (seen.before < 10000)
		seen.before += wait_poll(&p, 1, -1);
}

static void test_gives_way_to_others(void **state UNUSED)
{
	struct task *t = make(always_ready);
	int steps = 0;

	while (task_step(t)) {
		struct pollfd p = { .fd = task_fd(t), .events = POLLIN };

		assert_int_equal(poll(&p, 1, 60000), 1);
		steps++;
	}
	assert_true(steps > 100);
	task_free(t);
}

static void note_stack(void *arg)
{
	seen.outside = __builtin_frame_address(0);
	assert_false(wait_gives_way());
	*(int *)arg += 1;
}

static void call_outside(void *arg UNUSED)
{
	assert_true(wait_gives_way());
	wait_outside(note_stack, &seen.after);
	assert_true(wait_gives_way());
}

static void test_outside(void **state UNUSED)
{
	const char *here = __builtin_frame_address(0);
	struct task *t = make(call_outside);

	assert_false(task_step(t));
	assert_int_equal(seen.after, 1);
	assert_true(labs((const char *)seen.outside - here) < 64 * 1024);
	task_free(t);
	note_stack(&seen.after);
	wait_outside(note_stack, &seen.after);
	assert_int_equal(seen.after, 3);
}

/* A child has a copy of the task, and must not go on where its parent's caller left off. */
static void fork_and_wait(void *arg UNUSED)
{
	struct pollfd p = { .fd = seen.ends[0], .events = POLLIN };
	pid_t pid = fork();

	if (pid == 0)
		_exit(wait_gives_way() ? 1 : wait_poll(&p, 1, 1) == 0 ? 42 : 2);
	assert_int_equal(waitpid(pid, &seen.after, 0), pid);
}

static void test_fork(void **state UNUSED)
{
	struct task *t = make(fork_and_wait);

	assert_false(task_step(t));
	assert_true(WIFEXITED(seen.after));
	assert_int_equal(WEXITSTATUS(seen.after), 42);
	task_free(t);
}

static void wait_and_fork(void *arg UNUSED)
{
	read_pipe(NULL);
	fork_and_wait(NULL);
}

/* A stack that children were not to have when there were many of them is there for one that its own task makes. */
static void test_fork_of_many(void **state UNUSED)
{
	struct task *many[40];

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = make(wait_and_fork);
	assert_true(task_step(many[0]));
	for (size_t i = 1; i < ARRAY_LEN(many); i++)
		task_free(many[i]);
	assert_int_equal(write(seen.ends[1], "x", 1), 1);
	assert_false(task_step(many[0]));
	assert_true(WIFEXITED(seen.after));
	task_free(many[0]);
}

/* The second one of a stack begins as the first did, and what was polled for the first hears nothing of it. */
static void test_spares(void **state UNUSED)
{
	struct task_spares spares = { .n = 0 };
	struct task *first = NULL, *second = NULL;
	struct epoll_event ev = { .events = EPOLLIN };
	int outer = epoll_create1(EPOLL_CLOEXEC);

	assert_int_equal(task_take(&spares, call_outside, NULL, &first), 0);
	assert_true(is_ready(first));
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, task_fd(first), &ev), 0);
	assert_false(task_step(first));
	task_put(&spares, first);
	assert_int_equal(task_take(&spares, read_pipe, NULL, &second), 0);
	assert_true(SANITIZED || second == first);
	assert_true(is_ready(second));
	assert_int_equal(epoll_wait(outer, &ev, 1, 0), 0);
	assert_true(task_step(second));
	assert_false(is_ready(second));
	assert_int_equal(write(seen.ends[1], "x", 1), 1);
	assert_false(task_step(second));
	assert_int_equal(seen.ready, 1);
	task_put(&spares, second);
	task_spares_release(&spares);
	(void)close(outer);
}

static void step_other(void *arg UNUSED)
{
	assert_true(task_is_running(seen.other) == false);
	assert_true(task_step(seen.other));
	wait_sleep(1);
	seen.after = 10;
}

static void test_nested(void **state UNUSED)
{
	struct task *outer = make(step_other);

	seen.other = make(read_pipe);
	assert_true(task_step(outer));
	assert_int_equal(seen.before, 1);
	assert_int_equal(poll(&(struct pollfd){ .fd = task_fd(outer), .events = POLLIN }, 1, 60000), 1);
	assert_false(task_step(outer));
	assert_int_equal(seen.after, 10);
	assert_int_equal(write(seen.ends[1], "x", 1), 1);
	assert_false(task_step(seen.other));
	assert_int_equal(seen.after, 11);
	task_free(outer);
	task_free(seen.other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gives_way, begin, end),
		cmocka_unit_test_setup_teardown(test_time_passes, begin, end),
		cmocka_unit_test_setup_teardown(test_timer_of_the_last_wait, begin, end),
		cmocka_unit_test_setup_teardown(test_woken, begin, end),
		cmocka_unit_test_setup_teardown(test_odd_descriptors, begin, end),
		cmocka_unit_test_setup_teardown(test_gives_way_to_others, begin, end),
		cmocka_unit_test_setup_teardown(test_outside, begin, end),
		cmocka_unit_test_setup_teardown(test_fork, begin, end),
		cmocka_unit_test_setup_teardown(test_fork_of_many, begin, end),
		cmocka_unit_test_setup_teardown(test_spares, begin, end),
		cmocka_unit_test_setup_teardown(test_nested, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
