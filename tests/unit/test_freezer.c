/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that processes of a cell are frozen in: they still count, and are removed however they are. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sys/cgroup.h"

static struct cgroup *make(struct cgroup_host *h)
{
	const struct cgroup_limits limits = { .pids = 10 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup *cg = NULL;
	char id[32];

	(void)snprintf(id, sizeof(id), "freezer-%d", getpid());
	if (cgroup_create(h, id, &limits, &cg, &err) < 0)
		fail_msg("%s", err.msg);
	return cg;
}

static pid_t spawn_inside(const struct cgroup *cg)
{
	int fds[CGROUP_ENTRIES_MAX + 1], n;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	n = cgroup_open_entries(cg, fds, CGROUP_ENTRIES_MAX + 1);
	if (n < 0 || cgroup_enter(fds, (size_t)n) < 0)
		_exit(99);
	for (;;)
		pause();
}

/* Freezes the group, moves the process in, and waits until it is frozen. */
static void freeze(const struct cgroup_freezer *f, pid_t pid)
{
	const char *word = f->version == 1 ? "FROZEN" : "1", *sign = f->version == 1 ? "FROZEN" : "frozen 1";
	char text[128] = "", number[16];
	int tries = 0;

	(void)snprintf(number, sizeof(number), "%d", pid);
	assert_true(pwrite(f->state, word, strlen(word), 0) > 0);
	assert_true(pwrite(f->procs, number, strlen(number), 0) > 0);
	while (!strstr(text, sign) && tries++ < 10000) {
		ssize_t n = pread(f->version == 1 ? f->state : f->events, text, sizeof(text) - 1, 0);

		assert_true(n > 0);
		text[n] = '\0';
		(void)usleep(1000);
	}
	assert_true(tries < 10000);
}

/* Of v1 what is frozen dies only when it is thawed, which removing does. */
static void what_is_frozen_counts_and_is_removed(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = NULL;
	struct cgroup_freezer f = CGROUP_FREEZER_INIT;
	struct cgroup *cg;
	int status = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(cgroup_host_open(false, &h, &err), 0);
	if (!cgroup_host_has(h, CGROUP_PIDS)) {
		cgroup_host_free(h);
		skip(); /* no groups for us here */
	}
	cg = make(h);
	if (cgroup_make_freezer(cg, &f) < 0) {
		assert_int_equal(cgroup_destroy(cg, clock_now_ns() + NS_PER_SEC), 0);
		cgroup_host_free(h);
		skip(); /* this host has no freezer for us */
	}
	pid = spawn_inside(cg);
	while (cgroup_count_tasks(cg, 0) == 0)
		(void)usleep(100);
	freeze(&f, pid);
	assert_int_equal(cgroup_count_tasks(cg, 0), 1); /* it is still the cell's */
	cgroup_freezer_close(&f);
	assert_int_equal(cgroup_destroy(cg, clock_now_ns() + 10 * NS_PER_SEC), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cgroup_host_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_frozen_counts_and_is_removed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
