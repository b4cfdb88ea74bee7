/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Supervisor side of a cell's birth: channels, the clone, and the user id maps.
 *
 * User ids.  Started by root, a cell gets two host ids that belong to nobody, computed from the pid of
 * its init: no two living cells share them, there is no allocator that could leak, and no host id, least
 * of all 0, is ever mapped.  Started by an ordinary user, the only id that may be mapped is that user's.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "backend/native/cell.h"
#include "base/fd.h"

/* systemd's table of reserved user ids leaves 0x70000000-0x7ffdffff to nobody; pids go up to 2^22. */
#define HOST_ID_BASE 0x70000000u

/* Child ends are moved out of the way of 0-3, which the payload fills one by one. */
#define CHILD_FD_MIN 16

static int move_up(int *fd)
{
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, CHILD_FD_MIN);

	if (moved < 0)
		return -errno;
	fd_closep(fd);
	*fd = moved;
	return 0;
}

static int open_pipe(int *child, int *ours, bool child_reads)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*child = ends[child_reads ? 0 : 1];
	*ours = ends[child_reads ? 1 : 0];
	/* Only our end: O_NONBLOCK is a property of the open file, and each end has its own. */
	if (fd_set_nonblock(*ours) < 0)
		return -errno;
	return move_up(child);
}

static int open_socket(int *child, int *ours)
{
	int ends[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*child = ends[0];
	*ours = ends[1];
	if (setsockopt(*ours, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	return move_up(child);
}

int cell_open_pipes(struct cell *c, struct brig_error *err)
{
	struct cell_spec *s = &c->spec;
	int rc = open_pipe(&s->stdio[0], &c->in, true);

	if (rc == 0)
		rc = open_pipe(&s->stdio[1], &c->out, false);
	if (rc == 0)
		rc = open_pipe(&s->stdio[2], &c->err, false);
	if (rc == 0)
		rc = open_socket(&s->ctl, &c->ctl);
	if (rc == 0)
		rc = open_socket(&s->go, &c->go);
	if (rc == 0) {
		c->poll = epoll_create1(EPOLL_CLOEXEC);
		rc = c->poll < 0 ? -errno : 0;
	}
	return rc < 0 ? cell_step_failed(STEP_open_pipes, -rc, err) : 0;
}

static void close_child_ends(struct cell_spec *s)
{
	for (int i = 0; i < 3; i++)
		fd_closep(&s->stdio[i]);
	fd_closep(&s->ctl);
	fd_closep(&s->go);
	fd_closep(&s->ld_cache);
	for (size_t i = 0; i < s->n_dirs; i++)
		fd_closep(&s->dirs[i].tree);
	for (size_t i = 0; i < s->n_binds; i++)
		fd_closep(&s->binds[i].tree);
}

static int watch_child(struct cell *c)
{
	const int fds[] = { c->ctl, c->go, c->init_pidfd };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fds[i] };

		if (epoll_ctl(c->poll, EPOLL_CTL_ADD, fds[i], &ev) < 0)
			return -errno;
	}
	return 0;
}

/* In the child: our ends must be gone, or end-of-file on them would never come. */
static void close_our_ends(const struct cell *c)
{
	const int ours[] = { c->in, c->out, c->err, c->ctl, c->go, c->poll, c->janitor.lifeline, c->janitor.pidfd };

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (ours[i] >= 0)
			(void)close(ours[i]);
}

int cell_clone_init(struct cell *c, struct brig_error *err)
{
	int into = c->cgroup ? cgroup_clone_fd(c->cgroup) : -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
			 CLONE_NEWIPC | CLONE_NEWUTS,
		.pidfd = (uintptr_t)&c->init_pidfd,
	};
	long pid;
	int rc;

	if (into >= 0) {
		args.flags |= CLONE_INTO_CGROUP | CLONE_NEWCGROUP;
		args.cgroup = (uint64_t)into;
		c->spec.cgroup_ns_cloned = true;
	}
	/* No exit signal: a caller's own wait() must not find this child. */
	pid = FAULT_HIT(STEP_clone_init) ? -1 : syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		close_our_ends(c);
		cell_init_main(&c->spec);
	}
	if (pid < 0) {
		c->init_pidfd = FD_NONE;
		return cell_step_failed(STEP_clone_init, FAULT_HIT(STEP_clone_init) ? FAULT_ERRNO : errno, err);
	}
	c->init_pid = (pid_t)pid;
	close_child_ends(&c->spec);
	rc = watch_child(c);
	return rc < 0 ? cell_step_failed(STEP_clone_init, -rc, err) : 0;
}

static int write_map(pid_t pid, const char *name, uint32_t inside, uint32_t host_init, uint32_t host_payload, bool two)
{
	char path[48], map[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	if (two)
		(void)snprintf(map, sizeof(map), "0 %u 1\n%u %u 1\n", host_init, inside, host_payload);
	else
		(void)snprintf(map, sizeof(map), "%u %u 1\n", inside, host_payload);
	return fd_put_at(AT_FDCWD, path, map);
}

int cell_write_id_maps(struct cell *c, struct brig_error *err)
{
	const struct plan *plan = c->spec.plan;
	bool two = c->spec.two_ids;
	int rc = 0;

	if (two) {
		c->init_host_uid = HOST_ID_BASE + 2 * (uint32_t)c->init_pid;
		c->payload_host_uid = c->init_host_uid + 1;
	} else {
		c->init_host_uid = c->payload_host_uid = geteuid();
		/* The kernel wants this before an unprivileged gid map. */
		char path[48];

		(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", c->init_pid);
		rc = fd_put_at(AT_FDCWD, path, "deny");
	}
	if (rc == 0)
		rc = write_map(c->init_pid, "gid_map", plan->gid, c->init_host_uid, two ? c->payload_host_uid : getegid(), two);
	if (rc == 0)
		rc = write_map(c->init_pid, "uid_map", plan->uid, c->init_host_uid, c->payload_host_uid, two);
	if (rc == 0 && FAULT_HIT(STEP_write_id_maps))
		rc = -FAULT_ERRNO;
	if (rc == 0 && write(c->ctl, "m", 1) != 1)
		rc = -errno;
	return rc < 0 ? cell_step_failed(STEP_write_id_maps, -rc, err) : 0;
}
