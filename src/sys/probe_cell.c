/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features of a cell, tried one after the other by a child in namespaces of its own:
 *
 *   caller   waits, with a deadline; reads the answers from one shared page
 *   child    enters a user namespace, then each other one; makes detached mounts; confines itself
 *   init     the child's child, first process of the new pid namespace: there a /proc can be made
 *
 * An answer is an errno; a child that a filter of the surrounding container kills leaves the rest
 * unanswered, which counts as missing.  Both children use system calls only: the caller may have threads.
 * They are started without an exit signal, so that the caller's own SIGCHLD handling and wait() see nothing.
 */
#include "sys/probe.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "sys/landlock.h"
#include "sys/mnt.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#define PROBE_DEADLINE_MS 2000
#define UNANSWERED        (-1)

struct answers {
	int err[PROBE_COUNT];
	int map_err; /* of writing the id maps: without them a user namespace is of no use */
};

static const struct {
	enum probe_id id;
	int flag;
} namespaces[] = {
	{ PROBE_mount_ns, CLONE_NEWNS }, { PROBE_net_ns, CLONE_NEWNET },       { PROBE_ipc_ns, CLONE_NEWIPC },
	{ PROBE_uts_ns, CLONE_NEWUTS },  { PROBE_cgroup_ns, CLONE_NEWCGROUP }, { PROBE_time_ns, CLONE_NEWTIME },
	{ PROBE_pid_ns, CLONE_NEWPID },
};

static int failed(int rc)
{
	return rc < 0 ? errno : 0;
}

/* For calls that return a descriptor, or -1 and errno. */
static int opened(int fd)
{
	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

/* For functions that return a descriptor or -errno. */
static int made(int fd)
{
	if (fd < 0)
		return -fd;
	(void)close(fd);
	return 0;
}

static pid_t start_child(void)
{
	return (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
}

/* "1000 <id> 1\n" without stdio: the child may use system calls only. */
static int write_id_map(const char *path, unsigned id)
{
	char text[32] = "1000 ", digits[12];
	size_t n = 5, d = 0;

	do
		digits[d++] = (char)('0' + id % 10);
	while ((id /= 10) > 0);
	while (d > 0)
		text[n++] = digits[--d];
	memcpy(text + n, " 1\n", 4);
	return fd_put_at(AT_FDCWD, path, text);
}

/* Maps the caller onto an ordinary id, as a cell does. */
static int write_maps(uid_t uid, gid_t gid)
{
	int rc = fd_put_at(AT_FDCWD, "/proc/self/setgroups", "deny");

	if (rc == 0)
		rc = write_id_map("/proc/self/uid_map", uid);
	if (rc == 0)
		rc = write_id_map("/proc/self/gid_map", gid);
	return -rc;
}

static void try_mounts(struct answers *a)
{
	static const struct mount_param tmpfs[] = { { "size", "65536" }, { "nr_inodes", "16" }, { "mode", "0700" } };

	a->err[PROBE_read_only_root] = made(mount_copy(AT_FDCWD, "/usr", MNT_RO | MNT_RECURSIVE));
	a->err[PROBE_disk_limit] = made(mount_new("tmpfs", tmpfs, ARRAY_LEN(tmpfs), 0));
}

/* The first process of a pid namespace may mount a /proc for it. */
static void try_proc(struct answers *a)
{
	static const struct mount_param proc[] = { { "subset", "pid" } };
	pid_t pid = start_child();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		a->err[PROBE_proc_subset] = made(mount_new("proc", proc, ARRAY_LEN(proc), MNT_NOEXEC));
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
			;
}

static int try_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };
	unsigned action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		return errno;
	return failed((int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void try_confinement(struct answers *a)
{
	int abi = landlock_abi();

	a->err[PROBE_landlock] = abi > 0 ? 0 : EOPNOTSUPP;
	a->err[PROBE_landlock_scope] = abi >= 6 ? 0 : EOPNOTSUPP;
	a->err[PROBE_pidfd] = opened((int)syscall(SYS_pidfd_open, getpid(), 0));
	a->err[PROBE_no_new_privs] = failed(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	a->err[PROBE_deny_write_exec] = failed(prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0));
	a->err[PROBE_seccomp] = try_filter();
}

static void child(struct answers *a, uid_t uid, gid_t gid)
{
	a->err[PROBE_user_ns] = failed(unshare(CLONE_NEWUSER));
	if (a->err[PROBE_user_ns] == 0)
		a->map_err = write_maps(uid, gid);
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
		a->err[namespaces[i].id] = failed(unshare(namespaces[i].flag));
	/* Opening is enough to know, and can change nothing should this still be the host's value. */
	a->err[PROBE_nested_userns] = opened(open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC));
	a->err[PROBE_user_counts] = opened(open("/proc/sys/user/max_inotify_instances", O_WRONLY | O_CLOEXEC));
	if (a->err[PROBE_mount_ns] == 0)
		try_mounts(a);
	if (a->err[PROBE_mount_ns] == 0 && a->err[PROBE_pid_ns] == 0)
		try_proc(a);
	try_confinement(a);
	_exit(0);
}

static void wait_until_deadline(pid_t pid)
{
	AUTO_FD fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd >= 0 && poll(&p, 1, PROBE_DEADLINE_MS) == 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static void report(struct probe_report *ret, const struct answers *a)
{
	for (enum probe_id id = 0; id < PROBE_COUNT; id++) {
		if (a->err[id] == UNANSWERED)
			continue;
		if (a->err[id] == 0)
			probe_set(ret, id, PROBE_OK, 0, "works");
		else
			probe_set(ret, id, PROBE_MISSING, a->err[id], "the kernel says: %s", strerror(a->err[id]));
	}
	if (a->err[PROBE_user_ns] == 0 && a->map_err != 0)
		probe_set(ret, PROBE_user_ns, PROBE_MISSING, a->map_err, "made, but its id map cannot be written: %s",
			  strerror(a->map_err));
	else if (a->err[PROBE_user_ns] == 0 && a->err[PROBE_mount_ns] == EPERM)
		probe_set(ret, PROBE_user_ns, PROBE_MISSING, EPERM, "made, but its owner gets no privileges inside it");
	if (a->err[PROBE_landlock] == 0)
		probe_set(ret, PROBE_landlock, PROBE_OK, 0, "ABI %d", landlock_abi());
	else if (a->err[PROBE_landlock] != UNANSWERED)
		probe_set(ret, PROBE_landlock, PROBE_MISSING, 0, "the kernel has no Landlock, or it is switched off");
	if (a->err[PROBE_landlock_scope] == EOPNOTSUPP)
		probe_set(ret, PROBE_landlock_scope, PROBE_MISSING, 0, "needs Landlock ABI 6, here is %d",
			  landlock_abi());
}

void probe_cell(struct probe_report *ret)
{
	static const enum probe_id tried[] = {
		PROBE_user_ns,        PROBE_mount_ns,        PROBE_pid_ns,         PROBE_net_ns,
		PROBE_ipc_ns,         PROBE_uts_ns,          PROBE_cgroup_ns,      PROBE_time_ns,
		PROBE_nested_userns,  PROBE_user_counts,     PROBE_read_only_root, PROBE_disk_limit,
		PROBE_proc_subset,    PROBE_no_new_privs,    PROBE_seccomp,        PROBE_landlock,
		PROBE_landlock_scope, PROBE_deny_write_exec, PROBE_pidfd,
	};
	struct answers *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid = -1;

	for (size_t i = 0; i < ARRAY_LEN(tried); i++)
		probe_set(ret, tried[i], PROBE_MISSING, 0, "could not be tried: an earlier step failed");
	if (a == MAP_FAILED)
		return;
	for (size_t i = 0; i < PROBE_COUNT; i++)
		a->err[i] = UNANSWERED;
	pid = start_child();
	if (pid == 0)
		child(a, uid, gid);
	if (pid > 0)
		wait_until_deadline(pid);
	report(ret, a);
	(void)munmap(a, sizeof(*a));
}
