/* SPDX-License-Identifier: Apache-2.0 */
/* One janitor for the control groups of several cells, and what becomes of them if it or its supervisor does not live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/native/janitor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"

struct watched {
	struct cgroup *cg;
	struct guarded *guarded;
};

static struct cgroup_host *host;
static struct janitors janitors;

static uint64_t soon(void)
{
	return clock_now_ns() + 30 * NS_PER_SEC;
}

static struct watched guard_and_make(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct watched w = { .cg = NULL };
	static int n;
	char id[48];

	(void)snprintf(id, sizeof(id), "janitor%d-%d", (int)getpid(), n++);
	assert_int_equal(cgroup_prepare(host, id, &w.cg, &err), 0);
	assert_int_equal(janitor_guard(&janitors, w.cg, &w.guarded), 0);
	assert_int_equal(cgroup_make(w.cg, &err), 0);
	return w;
}

static bool exists(const struct cgroup *cg)
{
	struct stat st;

	for (size_t i = 0; i < cg->n_leaves; i++)
		if (fstatat(cg->leaf[i].parent, cg->leaf[i].name, &st, 0) == 0)
			return true;
	return false;
}

static void release(struct watched *w)
{
	janitor_release(&janitors, w->guarded, soon());
	cgroup_free(w->cg);
}

static pid_t only_child(void)
{
	char path[64], text[256];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
	assert_true(fd_get_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_int_equal(sscanf(text, "%d %d", &pid, &pid), 1);
	return pid;
}

static bool has_child(void)
{
	siginfo_t child;

	return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

static pid_t spawn_inside(const struct cgroup *cg)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid;

	if (cgroup_clone_fd(cg) >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_clone_fd(cg);
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0 && cgroup_enter_self(cg) < 0)
		_exit(99);
	return pid;
}

/* Makes groups with a process in each, tells their names, and is killed. */
static _Noreturn void be_supervisor(int names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct watched w = guard_and_make();
		pid_t task = spawn_inside(w.cg);

		if (task == 0) {
			janitor_close_in_child(&janitors);
			for (;;)
				(void)pause();
		}
		while (cgroup_count_tasks(w.cg, 0) == 0)
			(void)sched_yield();
		if (task < 0 || write(names, cgroup_name(w.cg), CGROUP_NAME_MAX) != CGROUP_NAME_MAX)
			_exit(1);
	}
	(void)kill(getpid(), SIGKILL);
	_exit(1);
}

static int open_host(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;

	janitors = (struct janitors){ .current = NULL };
	return cgroup_host_open(false, &host, &err);
}

static int close_host(void **state UNUSED)
{
	janitor_end(&janitors, soon());
	cgroup_host_free(host);
	return has_child();
}

static void needs_groups(void)
{
	if (!cgroup_host_has(host, CGROUP_PIDS)) {
		print_message("skipped: %s\n", cgroup_host_why(host, CGROUP_PIDS));
		skip();
	}
}

static void one_serves_several_cells(void **state UNUSED)
{
	struct watched w[3];
	pid_t janitor;

	needs_groups();
	for (size_t i = 0; i < ARRAY_LEN(w); i++)
		w[i] = guard_and_make();
	janitor = only_child();
	janitor_finish(&janitors, w[1].guarded, FD_NONE);
	assert_int_equal(janitor_await(w[1].guarded, soon()), 0);
	assert_false(exists(w[1].cg));
	assert_true(exists(w[0].cg) && exists(w[2].cg));
	release(&w[1]);
	w[1] = guard_and_make(); /* the same one still takes more */
	assert_int_equal(only_child(), janitor);
	for (size_t i = 0; i < ARRAY_LEN(w); i++)
		janitor_finish(&janitors, w[i].guarded, FD_NONE);
	for (size_t i = 0; i < ARRAY_LEN(w); i++) {
		assert_int_equal(janitor_await(w[i].guarded, soon()), 0);
		assert_false(exists(w[i].cg));
		release(&w[i]);
	}
	assert_false(has_child()); /* nobody is left to be served */
}

static void one_that_stays_outlives_its_cells(void **state UNUSED)
{
	struct watched w;
	pid_t janitor;

	needs_groups();
	janitors.stays = true;
	w = guard_and_make();
	janitor = only_child();
	janitor_finish(&janitors, w.guarded, FD_NONE);
	assert_int_equal(janitor_await(w.guarded, soon()), 0);
	release(&w);
	w = guard_and_make();
	assert_int_equal(only_child(), janitor);
	janitor_finish(&janitors, w.guarded, FD_NONE);
	assert_int_equal(janitor_await(w.guarded, soon()), 0);
	release(&w);
	janitor_end(&janitors, soon());
	assert_false(has_child());
}

static void a_dead_supervisor_leaves_no_group(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup *known[2];
	char name[CGROUP_NAME_MAX];
	pid_t supervisor;
	int names[2];

	needs_groups();
	assert_int_equal(pipe2(names, O_CLOEXEC), 0);
	supervisor = fork();
	if (supervisor == 0)
		be_supervisor(names[1], ARRAY_LEN(known));
	fd_closep(&names[1]);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		assert_int_equal(read(names[0], name, sizeof(name)), sizeof(name));
		assert_int_equal(cgroup_prepare(host, "unmade", &known[i], &err), 0);
		cgroup_take_name(known[i], name);
	}
	/* Its end: everybody who has the pipe is dead, the supervisor and the processes inside. */
	assert_int_equal(read(names[0], name, sizeof(name)), 0);
	assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		uint64_t until = soon();

		while (exists(known[i]) && clock_now_ns() < until)
			(void)sched_yield();
		assert_false(exists(known[i]));
		cgroup_free(known[i]);
	}
	fd_closep(&names[0]);
}

static void a_killed_one_is_missed_and_replaced(void **state UNUSED)
{
	struct watched a, b;
	siginfo_t end;
	pid_t janitor;

	needs_groups();
	a = guard_and_make();
	janitor = only_child();
	assert_int_equal(kill(janitor, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)janitor, &end, WEXITED | WNOWAIT | __WALL), 0);
	b = guard_and_make();
	janitor_finish(&janitors, a.guarded, FD_NONE);
	assert_int_equal(janitor_await(a.guarded, soon()), -ECHILD);
	assert_int_equal(cgroup_remove(a.cg, soon()), 0);
	release(&a);
	assert_int_not_equal(only_child(), janitor);
	janitor_finish(&janitors, b.guarded, FD_NONE);
	assert_int_equal(janitor_await(b.guarded, soon()), 0);
	release(&b);
}

/* Nobody waits for one that does not read, and what it was told it still does. */
static void a_stopped_one_is_late_and_no_more(void **state UNUSED)
{
	struct watched w;
	pid_t janitor;

	needs_groups();
	janitors.stays = true;
	w = guard_and_make();
	janitor = only_child();
	assert_int_equal(kill(janitor, SIGSTOP), 0);
	janitor_finish(&janitors, w.guarded, FD_NONE);
	assert_int_equal(janitor_await(w.guarded, clock_now_ns() + 20 * NS_PER_MS), -EBUSY);
	assert_true(exists(w.cg));
	assert_int_equal(kill(janitor, SIGCONT), 0);
	assert_int_equal(janitor_await(w.guarded, soon()), 0);
	assert_false(exists(w.cg));
	release(&w);
}

/* A process that was forked meanwhile may have a copy of the way to it, and take its time to die. */
static void one_ends_though_a_copy_of_its_socket_is_held(void **state UNUSED)
{
	AUTO_FD copy = FD_NONE;
	struct watched w;

	janitors.stays = true;
	w = guard_and_make();
	copy = fcntl(janitor_fd(w.guarded), F_DUPFD_CLOEXEC, 3);
	assert_true(copy >= 0);
	janitor_finish(&janitors, w.guarded, FD_NONE);
	assert_int_equal(janitor_await(w.guarded, soon()), 0);
	release(&w);
	assert_true(has_child());
	janitor_end(&janitors, clock_now_ns() + 5 * NS_PER_SEC);
	assert_false(has_child());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_serves_several_cells, open_host, close_host),
		cmocka_unit_test_setup_teardown(one_that_stays_outlives_its_cells, open_host, close_host),
		cmocka_unit_test_setup_teardown(a_dead_supervisor_leaves_no_group, open_host, close_host),
		cmocka_unit_test_setup_teardown(a_killed_one_is_missed_and_replaced, open_host, close_host),
		cmocka_unit_test_setup_teardown(a_stopped_one_is_late_and_no_more, open_host, close_host),
		cmocka_unit_test_setup_teardown(one_ends_though_a_copy_of_its_socket_is_held, open_host, close_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
