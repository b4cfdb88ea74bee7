/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's process between fork and exec.  While init builds the file tree it makes the network, ipc and
 * host name namespaces and puts up every wall that needs no tree; then, in the cell's own root, the rest, with
 * the system call filter last.  Then it tells the supervisor that all of them are up, waits for the word, and
 * becomes the program.
 *
 * Once it has begun to give things up there is no way back: any failure ends it.
 */
#include <assert.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "backend/guest/wait.h"
#include "backend/native/cell_spec.h"
#include "base/fd.h"
#include "sys/caps.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* Where the two channels are kept while everything above standard error is closed. */
#define GO_FD   3
#define MATE_FD 4
/* ... and a waiting cell's library, which the interpreter then finds as GUEST_WAIT_LIBRARY. */
#define LIBRARY_FD 5
static_assert(GO_FD == GUEST_WAIT_SOCKET && MATE_FD == GUEST_WAIT_LIBRARY,
	      "the interpreter waits on descriptors of ours");

static int connect_stdio(struct cell_build *b)
{
	for (int i = 0; i < 3; i++)
		if (dup2(b->spec->stdio[i], i) < 0)
			return -errno;
	if (dup3(b->spec->go, GO_FD, O_CLOEXEC) < 0 || dup3(b->mate, MATE_FD, O_CLOEXEC) < 0)
		return -errno;
	if (b->spec->wait_library >= 0 && dup3(b->spec->wait_library, LIBRARY_FD, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

/* What init waits to join, and then fills: names, the loopback interface. */
static int make_namespaces(struct cell_build *b UNUSED)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -errno;
	return mate_send(MATE_FD, MATE_NAMESPACES, 0, 0);
}

static int enter_cgroup(struct cell_build *b)
{
	return build_enter_cgroup(b->spec, GO_FD);
}

int build_offer_to_oom_killer(struct cell_build *b UNUSED)
{
	return fd_put_at(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
}

int build_set_rlimits(struct cell_build *b)
{
	const struct limits *l = &b->spec->plan->limits;
	const protection_set may = b->spec->plan->may_degrade;
	const struct {
		int resource;
		uint64_t value;
		bool wanted;
	} rows[] = {
		/* A piped core_pattern ignores 0 and starts a helper on the host; the kernel skips it only for 1. */
		{ RLIMIT_CORE, 1, true },
		{ RLIMIT_NOFILE, l->open_files, true },
		/* A copied project, which is at most half of the memory, may have files that are larger. */
		{ RLIMIT_FSIZE, l->disk_bytes + (b->spec->plan->workspace ? l->memory_bytes / 2 : 0), true },
		{ RLIMIT_STACK, 8 * MiB, true },
		{ RLIMIT_MEMLOCK, 64 * KiB, true },
		{ RLIMIT_SIGPENDING, 256, true },
		{ RLIMIT_MSGQUEUE, 64 * KiB, true },
		{ RLIMIT_NICE, 0, true },
		{ RLIMIT_RTPRIO, 0, true },
		{ RLIMIT_CPU, l->cpu_time_ms / 1000 + 2, true }, /* behind the cgroup's clock */
		/* Substitutes where there is no controller and the policy accepts that. */
		{ RLIMIT_NPROC, l->pids, !b->spec->has_cgroup && may & PROT_BIT(PROT_pids_limit) },
		{ RLIMIT_DATA, l->memory_bytes, !b->spec->has_cgroup && may & PROT_BIT(PROT_memory_limit) },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rlimit now, want = { rows[i].value, rows[i].value };

		if (!rows[i].wanted)
			continue;
		if (getrlimit(rows[i].resource, &now) < 0)
			return -errno;
		/* Never more than what we were given ourselves: raising needs a privilege. */
		if (want.rlim_cur > now.rlim_max)
			want.rlim_cur = want.rlim_max = now.rlim_max;
		if (setrlimit(rows[i].resource, &want) < 0)
			return -errno;
	}
	return 0;
}

/* That init has changed our root together with its own is the kernel's rule; that it did is checked. */
static int await_tree(struct cell_build *b UNUSED)
{
	struct mate_message tree;
	struct stat root;
	int rc = mate_receive(MATE_FD, MATE_TREE, &tree);

	if (rc < 0)
		return rc;
	if (stat("/", &root) < 0)
		return -errno;
	return root.st_dev == tree.root_dev && root.st_ino == tree.root_ino ? 0 : -EXDEV;
}

static int enter_workspace(struct cell_build *b UNUSED)
{
	char cwd[64];

	if (chdir(PLAN_WORKSPACE) < 0)
		return -errno;
	/* "(unreachable)/..." would mean that we are outside of our root. */
	if (!getcwd(cwd, sizeof(cwd)) || strcmp(cwd, PLAN_WORKSPACE) != 0)
		return -EXDEV;
	return 0;
}

static int take_payload_ids(struct cell_build *b)
{
	const struct plan *plan = b->spec->plan;

	if (!b->spec->two_ids)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
	    setresuid(plan->uid, plan->uid, plan->uid) < 0)
		return -errno;
	return 0;
}

static int clear_caps(struct cell_build *b UNUSED)
{
	return caps_clear();
}

static int close_files(struct cell_build *b)
{
	const unsigned last = b->spec->wait_library >= 0 ? LIBRARY_FD : MATE_FD;

	if (close_range(last + 1, ~0U, 0) < 0)
		return -errno;
	return setsid() < 0 ? -errno : 0;
}

int build_memory_rules(struct cell_build *b)
{
	if (!b->spec->plan->deny_write_exec)
		return 0;
	/* A hardening that kernels before 6.3 do not know: not promised, so not an error. */
	if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

int build_no_new_privs(struct cell_build *b UNUSED)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int apply_landlock(struct cell_build *b)
{
	if (b->spec->abi == 0)
		return -EOPNOTSUPP;
	return landlock_confine(b->spec->abi, b->spec->rules, b->spec->n_rules);
}

/*
 * The kernel shows a process' Landlock domain nowhere, so it is proven by trying: an ioctl on a device
 * opened inside the domain must be denied (ABI 5 on; before, there is no such right to miss).
 */
static int probe_landlock(void)
{
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int size;

	if (null < 0)
		return errno;
	return ioctl(null, FIONREAD, &size) < 0 ? errno : 0;
}

static const struct build_step steps[] = {
	{ STEP_stdio, connect_stdio },
	{ STEP_namespaces, make_namespaces },
	{ STEP_enter_cgroup, enter_cgroup },
	{ STEP_cgroup_ns, build_cgroup_ns },
	{ STEP_oom_score, build_offer_to_oom_killer },
	{ STEP_rlimits, build_set_rlimits },
	{ STEP_close_files, close_files },
	{ STEP_memory_rules, build_memory_rules },
	{ STEP_no_new_privs, build_no_new_privs },
	/* From here on in the tree that init has built. */
	{ STEP_await_tree, await_tree },
	{ STEP_payload_ids, take_payload_ids },
	{ STEP_clear_caps, clear_caps },
	{ STEP_working_dir, enter_workspace },
	{ STEP_landlock, apply_landlock },
};

static int install_filter(struct cell_build *b)
{
	/* Telling of refused calls is a service; refusing them is the wall.  So without a listener it is the plain form. */
	if (b->spec->telling_filter.n > 0 && seccomp_install_telling(b->spec->telling_filter, &b->listener) == 0)
		return 0;
	return seccomp_install(b->spec->payload_filter);
}
static const struct build_step filter_step[] = { { STEP_seccomp, install_filter } };

/* Not _exit(): a sanitizer's version of it makes calls that the filter refuses, and they would wait for an answer. */
static _Noreturn void quit(void)
{
	for (;;)
		(void)syscall(SYS_exit_group, 125);
}

static _Noreturn void give_up(int sock, enum step step, int rc)
{
	if (rc != -ECANCELED) /* else init failed first, and has said why */
		(void)report_failure(sock, step, rc);
	quit();
}

/* Init must have left the host's tree and confined itself, and the supervisor must have written every limit. */
static void await_go(void)
{
	struct mate_message sealed;
	char word;

	if (mate_receive(MATE_FD, MATE_SEALED, &sealed) < 0 || read(GO_FD, &word, 1) != 1)
		quit();
}

/* The interpreter of a waiting cell gets two descriptors, which are gone when it goes on. */
static int pass_to_interpreter(const struct cell_spec *spec)
{
	if (spec->wait_library < 0)
		return 0;
	if (dup2(LIBRARY_FD, GUEST_WAIT_LIBRARY) < 0 || fcntl(GUEST_WAIT_SOCKET, F_SETFD, 0) < 0)
		return -errno;
	return 0;
}

static int execute(const struct cell_spec *spec)
{
	int rc = FAULT_HIT(STEP_exec) ? -FAULT_ERRNO : pass_to_interpreter(spec);

	if (rc < 0)
		return rc;
	(void)execve(spec->plan->argv[0], (char *const *)(uintptr_t)spec->plan->argv,
		     (char *const *)(uintptr_t)spec->envp);
	return -errno;
}

_Noreturn void payload_main(struct cell_build *b)
{
	struct report confined = report_make(REPORT_CONFINED);
	enum step failed = STEP_stdio;
	int rc = build_run(b, steps, 1, &failed);

	b->listener = FD_NONE;
	if (rc < 0)
		give_up(b->spec->go, failed, rc);
	rc = build_run(b, steps + 1, ARRAY_LEN(steps) - 1, &failed);
	confined.value = probe_landlock();
	if (rc == 0)
		rc = build_run(b, filter_step, ARRAY_LEN(filter_step), &failed);
	if (rc < 0)
		give_up(GO_FD, failed, rc);
	/* The program does not get it: it is close-on-exec. */
	if (report_send(GO_FD, &confined, &b->listener, b->listener >= 0) < 0)
		quit();
	await_go();
	give_up(GO_FD, STEP_exec, execute(b->spec));
}
