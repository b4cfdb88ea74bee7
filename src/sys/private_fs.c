/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that may mount creates it directly.  Others have a child create it, in a user namespace that maps their own
 * id to itself, and pass it on: what that id owns there, it owns here.
 */
#include "sys/private_fs.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sys/mnt.h"
#include "sys/proc.h"

#define CHILD_NS (10 * NS_PER_SEC)

struct spec {
	char size[24], inodes[24], uid_map[48], gid_map[48];
	int sock; /* the child's end */
};

static int make(const struct spec *s)
{
	const struct mount_param params[] = { { "size", s->size }, { "nr_inodes", s->inodes }, { "mode", "0700" } };

	return mount_new("tmpfs", params, ARRAY_LEN(params), MNT_NOEXEC);
}

/* Async-signal-safe, like everything between clone and exit. */
static _Noreturn void child_main(const struct spec *s)
{
	int rc = fd_put_at(AT_FDCWD, "/proc/self/setgroups", "deny"), fs;

	if (rc == 0)
		rc = fd_put_at(AT_FDCWD, "/proc/self/gid_map", s->gid_map);
	if (rc == 0)
		rc = fd_put_at(AT_FDCWD, "/proc/self/uid_map", s->uid_map);
	fs = rc < 0 ? rc : make(s);
	_exit(fd_send(s->sock, fs) < 0);
}

static int make_in_child(struct spec *s)
{
	int pidfd = FD_NONE, ends[2], fs;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER | CLONE_NEWNS,
				   .pidfd = (uintptr_t)&pidfd };
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	s->sock = ends[1];
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child_main(s);
	fs = pid < 0 ? -errno : 0;
	(void)close(ends[1]);
	if (fs == 0)
		fs = fd_receive(ends[0]);
	(void)close(ends[0]);
	if (pid > 0)
		(void)proc_reap(&pidfd, clock_now_ns() + CHILD_NS, NULL);
	proc_leave(&pidfd);
	return fs;
}

int private_fs(uint64_t bytes, uint64_t inodes)
{
	struct spec s = { .sock = FD_NONE };
	int fs;

	(void)snprintf(s.size, sizeof(s.size), "%llu", (unsigned long long)bytes);
	(void)snprintf(s.inodes, sizeof(s.inodes), "%llu", (unsigned long long)inodes);
	(void)snprintf(s.uid_map, sizeof(s.uid_map), "%u %u 1\n", geteuid(), geteuid());
	(void)snprintf(s.gid_map, sizeof(s.gid_map), "%u %u 1\n", getegid(), getegid());
	fs = make(&s);
	return fs == -EPERM ? make_in_child(&s) : fs;
}
