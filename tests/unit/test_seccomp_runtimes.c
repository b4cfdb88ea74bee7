/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real runtimes under the real filters, and what the kernel itself says to calls that are refused.  Each program of
 * tests/unit/runtimes does what ordinary programs of its language do and prints "ok"; it runs in a fresh folder with
 * nothing but no_new_privs and the filter, so a failure is the filter's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/seccomp.h"
#include "temp_folder.h"

static char folder[] = "/tmp/unit-seccomp-XXXXXX";
static char runtimes[512]; /* the folder with the programs */

static void confine(struct seccomp_filter filter)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || seccomp_install(filter) != 0)
		_exit(99);
}

/* ---- programs ---- */

static bool have(const char *program)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
	return system(command) == 0;
}

/* Runs argv in the folder under a filter, with its output collected; returns the wait status. */
static int run_under(struct seccomp_filter filter, char *const argv[], char *output, size_t size)
{
	int ends[2];
	int status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0 || chdir(folder) != 0)
			_exit(98);
		confine(filter);
		execvp(argv[0], argv);
		_exit(97);
	}
	close(ends[1]);
	n = fd_read_all(ends[0], output, size - 1);
	output[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void expect_success(enum syscall_family family, bool strict, char *const argv[], const char *ending)
{
	static char output[16384];
	int status = run_under(seccomp_filter_for(family, strict), argv, output, sizeof(output));
	size_t len = strlen(output), tail = strlen(ending);

	if (status != 0 || len < tail || !str_eq(output + len - tail, ending))
		fail_msg("%s under %s%s: status 0x%x, output: %s", argv[0], syscall_family_name[family],
			 strict ? " strict" : "", status, output);
}

/* Both profiles; argv[n] is a program of tests/unit/runtimes. */
static void run_both(enum syscall_family family, const char *interpreter, const char *file)
{
	char path[600];
	char name[16];
	char *argv[] = { name, path, NULL };

	if (!have(interpreter)) {
		print_message("# %s is not installed\n", interpreter);
		skip();
	}
	(void)str_copy(name, sizeof(name), interpreter);
	snprintf(path, sizeof(path), "%s/%s", runtimes, file);
	expect_success(family, false, argv, "ok\n");
	expect_success(family, true, argv, "ok\n");
}

static void python_runs(void **state)
{
	(void)state;
	run_both(FAMILY_INTERPRETER, "python3", "run.py");
}

static void node_runs(void **state)
{
	(void)state;
	run_both(FAMILY_JIT, "node", "run.js");
}

static void dash_runs(void **state)
{
	(void)state;
	run_both(FAMILY_GENERIC, "dash", "run.sh");
}

static void bash_runs(void **state)
{
	(void)state;
	run_both(FAMILY_GENERIC, "bash", "run.sh");
}

/* Compiles with the toolchain's filter, runs the result with the generic one. */
static void build_and_run(const char *compiler, const char *command_format)
{
	char command[1400];
	char *build[] = { (char[]){ "sh" }, (char[]){ "-c" }, command, NULL };
	char *run[] = { (char[]){ "./program" }, NULL };

	if (!have(compiler)) {
		print_message("# %s is not installed\n", compiler);
		skip();
	}
	snprintf(command, sizeof(command), "rm -f program; runtimes='%s'; export runtimes; %s", runtimes,
		 command_format);
	for (int strict = 0; strict < 2; strict++) {
		expect_success(FAMILY_TOOLCHAIN, strict, build, "");
		expect_success(FAMILY_GENERIC, strict, run, "ok\n");
	}
}

static void gcc_builds_and_its_program_runs(void **state)
{
	(void)state;
	build_and_run("gcc", "gcc -O2 -g -pipe -pthread -Wall -o program \"$runtimes/run.c\" && "
			     "gcc -c -save-temps -o run.o \"$runtimes/run.c\" && ar rc run.a run.o && strip run.o");
}

static void clang_builds_and_its_program_runs(void **state)
{
	(void)state;
	build_and_run("clang", "clang -O1 -pthread -o program \"$runtimes/run.c\"");
}

static void go_builds_and_its_program_runs(void **state)
{
	(void)state;
	build_and_run("go", "HOME=$PWD GOCACHE=$PWD/cache GOPATH=$PWD/go GOFLAGS=-p=2 GO111MODULE=off "
			    "go build -o program \"$runtimes/run.go\"");
}

static void esbuild_translates(void **state)
{
	char command[] =
		"echo 'export let x: number = 1; console.log(x)' >a.ts; esbuild a.ts --bundle --outfile=a.js && "
		"esbuild --minify <a.js | grep -q console && echo ok";
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, command, NULL };

	(void)state;
	if (!have("esbuild")) {
		print_message("# esbuild is not installed\n");
		skip();
	}
	expect_success(FAMILY_TOOLCHAIN, false, argv, "ok\n");
	expect_success(FAMILY_TOOLCHAIN, true, argv, "ok\n");
}

/* ---- refusals, asked of the kernel ---- */

static long set_core_limit(void)
{
	struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_CORE, &none);
}

static long nested_filter(void)
{
	struct sock_filter allow = { 0x06, 0, 0, 0x7fff0000 };
	struct sock_fprog prog = { 1, &allow };

	return prctl(PR_SET_SECCOMP, 2, &prog);
}

static long dirty_vsock(void)
{
	return syscall(SYS_socket, (1ull << 32) | 40, 1, 0);
}

static long alg(void)
{
	return socket(38, SOCK_SEQPACKET, 0);
}

static long new_user_namespace(void)
{
	return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}

static long dirty_new_user_namespace(void)
{
	return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | (7ull << 32), 0, 0, 0, 0);
}

static long clone_three(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

static long io_uring(void)
{
	return syscall(425, 1, NULL);
}

static long anonymous_file(void)
{
	return syscall(SYS_memfd_create, "x", 0);
}

static long no_such_call(void)
{
	return syscall(1023);
}

static long negative_call(void)
{
	return syscall(-1);
}

static long move_pages_by_reference(void)
{
	return syscall(SYS_splice, 0, NULL, 1, NULL, 1, 0);
}

static long fake_input(void)
{
	return syscall(SYS_ioctl, 0, (3ull << 32) | 0x5412, "x");
}

static long trace_me(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long new_namespace(void)
{
	return unshare(CLONE_NEWNET);
}

#ifdef __x86_64__
static long x32_call(void)
{
	return syscall(0x40000000 | SYS_getpid);
}

static long i386_call(void)
{
	long ret = 20; /* getpid */

	__asm__ volatile("int $0x80" : "+a"(ret) : : "memory", "r8", "r9", "r10", "r11");
	return ret;
}
#endif

static const struct refusal {
	const char *name;
	long (*attempt)(void);
	int answer; /* errno, or 0: killed */
	int strict;
} refusals[] = {
	{ "RLIMIT_CORE", set_core_limit, EPERM, EPERM },
	{ "nested filter", nested_filter, EPERM, EPERM },
	{ "AF_VSOCK with a dirty upper half", dirty_vsock, EPERM, EPERM },
	{ "AF_ALG", alg, EPERM, EPERM },
	{ "clone with a user namespace", new_user_namespace, EPERM, EPERM },
	{ "the same with a dirty upper half", dirty_new_user_namespace, EPERM, EPERM },
	{ "clone3", clone_three, ENOSYS, ENOSYS },
	{ "io_uring_setup", io_uring, ENOSYS, ENOSYS },
	{ "memfd_create", anonymous_file, ENOSYS, ENOSYS },
	{ "an unknown number", no_such_call, ENOSYS, ENOSYS },
	{ "a negative number", negative_call, ENOSYS, ENOSYS },
	{ "splice", move_pages_by_reference, EINVAL, EINVAL },
	{ "TIOCSTI with a dirty upper half", fake_input, EPERM, EPERM },
	{ "ptrace", trace_me, EPERM, 0 },
	{ "unshare", new_namespace, EPERM, 0 },
#ifdef __x86_64__
	{ "an x32 number", x32_call, 0, 0 },
	{ "an i386 call", i386_call, 0, 0 },
#endif
};

/* The errno of the attempt, 0 if it was killed by the filter, -1 if it was let through. */
static int attempt_under(struct seccomp_filter filter, long (*attempt)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		confine(filter);
		errno = 0;
		_exit(attempt() == -1 && errno > 0 ? errno : 96);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) != 96 ? WEXITSTATUS(status) : -1;
}

static void the_kernel_refuses(void **state)
{
	(void)state;
	for (unsigned family = 0; family < FAMILY_COUNT; family++)
		for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
			int got = attempt_under(seccomp_filter_for(family, false), refusals[i].attempt);
			int strict = attempt_under(seccomp_filter_for(family, true), refusals[i].attempt);

			if (got != refusals[i].answer || strict != refusals[i].strict)
				fail_msg("%s under %s: %d, strict %d", refusals[i].name, syscall_family_name[family],
					 got, strict);
		}
}

static void init_may_wait_and_report_only(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct timespec ts = { 0, 1000 };

		confine(seccomp_filter_init());
		if (nanosleep(&ts, NULL) != 0 || waitpid(-1, NULL, WNOHANG) != -1 || kill(getpid(), 0) != 0 ||
		    write(1, "", 0) != 0)
			(void)syscall(SYS_exit_group, 1);
		/* Not _exit(): sanitizers put calls of their own before functions that do not return. */
		(void)syscall(SYS_exit_group, 42);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	assert_int_equal(attempt_under(seccomp_filter_init(), new_namespace), 0);
	assert_int_equal(attempt_under(seccomp_filter_init(), alg), 0);
	assert_int_equal(attempt_under(seccomp_filter_init(), no_such_call), 0);
}

/* Reported, not judged: what a run pays. */
static void installing_is_cheap(void **state)
{
	enum { ROUNDS = 50 };
	int ends[2];
	uint64_t best = UINT64_MAX, took;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			took = clock_now_ns();
			if (seccomp_install(seccomp_filter_for(FAMILY_GENERIC, false)) != 0)
				_exit(1);
			took = clock_now_ns() - took;
			_exit(write(ends[1], &took, sizeof(took)) != sizeof(took));
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(read(ends[0], &took, sizeof(took)), sizeof(took));
		best = min_u64(best, took);
	}
	print_message("# installing the generic filter: %llu ns at best\n", (unsigned long long)best);
	close(ends[0]);
	close(ends[1]);
}

/* ---- the folder ---- */

static int make_folder(void **state)
{
	const char *root = getenv("TEST_SOURCE_ROOT"), *old_path = getenv("PATH");
	char path[4096];

	(void)state;
	/* esbuild comes with package.json */
	snprintf(path, sizeof(path), "%s:%s/node_modules/.bin", old_path ? old_path : "/usr/bin:/bin",
		 root ? root : ".");
	setenv("PATH", path, 1);
	snprintf(runtimes, sizeof(runtimes), "%s/tests/unit/runtimes", root ? root : ".");
	return mkdtemp(folder) && access(runtimes, R_OK) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	/* Go makes its module folders read-only. */
	snprintf(command, sizeof(command), "chmod -R u+w %s", folder);
	(void)!system(command);
	return temp_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_refuses),
		cmocka_unit_test(init_may_wait_and_report_only),
		cmocka_unit_test(installing_is_cheap),
		cmocka_unit_test(dash_runs),
		cmocka_unit_test(bash_runs),
		cmocka_unit_test(python_runs),
		cmocka_unit_test(node_runs),
		cmocka_unit_test(gcc_builds_and_its_program_runs),
		cmocka_unit_test(clang_builds_and_its_program_runs),
		cmocka_unit_test(go_builds_and_its_program_runs),
		cmocka_unit_test(esbuild_translates),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
