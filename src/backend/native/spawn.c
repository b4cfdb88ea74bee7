/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of creating a cell: channels and clone. */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "backend/native/cell.h"
#include "base/fd.h"

/* Child ends are moved out of the way of 0-3, which the payload fills one by one. */
#define CHILD_FD_MIN 16

static int open_socket(int *child, int *ours)
{
	int ends[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*child = ends[0];
	*ours = ends[1];
	if (setsockopt(*ours, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	return fd_move_up(child, CHILD_FD_MIN);
}

/* For a session, standard input is the socket to its owner. */
static int open_input(struct cell *c)
{
	int ends[2];

	if (FAULT_HIT(STEP_open_pipes))
		return -FAULT_ERRNO;
	if (!c->spec.plan->session)
		return fd_pipe_to_child(&c->spec.stdio[0], &c->in, true, CHILD_FD_MIN);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	c->spec.stdio[0] = ends[0];
	c->in = ends[1];
	return fd_move_up(&c->spec.stdio[0], CHILD_FD_MIN);
}

int cell_open_pipes(struct cell *c, struct brig_error *err)
{
	struct cell_spec *s = &c->spec;
	int rc = open_input(c);

	if (rc == 0)
		rc = fd_pipe_to_child(&s->stdio[1], &c->out, false, CHILD_FD_MIN);
	if (rc == 0)
		rc = fd_pipe_to_child(&s->stdio[2], &c->err, false, CHILD_FD_MIN);
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

void cell_close_child_ends(struct cell *c)
{
	struct cell_spec *s = &c->spec;

	for (int i = 0; i < 3; i++)
		fd_closep(&s->stdio[i]);
	fd_closep(&s->ctl);
	fd_closep(&s->go);
	fd_closep(&s->ld_cache);
}

/* If the program's process comes later, its streams are kept for it. */
static void close_inits_ends(struct cell *c)
{
	if (!c->spec.joined)
		cell_close_child_ends(c);
	fd_closep(&c->spec.ctl);
	fd_closep(&c->spec.ld_cache);
}

/*
 * If the program was permitted to start in advance, we have nothing to do before exec.  Then only the end of a channel
 * wakes us, which exec or a failure causes, and all earlier reports are read at that time.  Waking for each report
 * would take CPU time from the payload on hosts with few CPUs.
 */
static int watch_child(struct cell *c)
{
	const uint32_t reports = cell_starts_at_once(c) ? 0 : EPOLLIN; /* EPOLLHUP is always reported */
	const struct {
		int fd;
		uint32_t events;
	} rows[] = { { c->ctl, reports }, { c->go, reports }, { c->init_pidfd, EPOLLIN } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct epoll_event ev = { .events = rows[i].events, .data.fd = rows[i].fd };

		if (epoll_ctl(c->poll, EPOLL_CTL_ADD, rows[i].fd, &ev) < 0)
			return -errno;
	}
	return 0;
}

/* In the child: closes our ends, or it would never see end of file on its own. */
static void close_our_ends(const struct cell *c)
{
	const int ours[] = { c->in, c->out, c->err, c->ctl, c->go, c->poll };

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (ours[i] >= 0)
			(void)close(ours[i]);
	janitor_close_in_child(&c->host->janitors);
}

int cell_clone_init(struct cell *c, struct brig_error *err)
{
	int into = c->cgroup ? cgroup_clone_fd(c->cgroup) : -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS,
		.pidfd = (uintptr_t)&c->init_pidfd,
	};
	long pid;
	int rc;

	if (into >= 0) {
		args.flags |= CLONE_INTO_CGROUP | CLONE_NEWCGROUP;
		args.cgroup = (uint64_t)into;
		c->spec.cgroup_ns_cloned = true;
	}
	rc = FAULT_HIT(STEP_clone_init) ? -FAULT_ERRNO : zygote_enter_owner(c->zygote);
	/* No exit signal: wait() in the caller's code must not find this child. */
	pid = rc < 0 ? rc : syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		close_our_ends(c);
		cell_init_main(&c->spec);
	}
	rc = rc < 0 ? rc : pid < 0 ? -errno : 0;
	zygote_leave_owner(c->zygote);
	if (rc < 0) {
		c->init_pidfd = FD_NONE;
		return cell_step_failed(STEP_clone_init, -rc, err);
	}
	c->init_pid = (pid_t)pid;
	close_inits_ends(c);
	rc = watch_child(c);
	return rc < 0 ? cell_step_failed(STEP_clone_init, -rc, err) : 0;
}
