/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of plan->egress.  The container has no network except its own loopback, and init inside has no way to
 * send a descriptor out; but with a local engine the container's network namespace belongs to this kernel, and a
 * process that may join it can create sockets there.  A short-lived child does that: it joins, listens, sends the
 * sockets back and exits.
 *
 * The engine reports the container's pid.  For an engine in another pid namespace, or in a virtual machine behind a
 * local socket, that number denotes an unrelated process; so the namespaces found there must be those that init has
 * read inside.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/loopback.h"
#include "sys/proc.h"

static int refuse(const struct cell *c, struct brig_error *err, int sys, const char *why)
{
	return err_set(
		err, BRIG_E_REFUSED, sys,
		"%s: the container's network cannot be joined: %s; use a local engine as root, or the native backend",
		str_eq(c->plan->step, "install") ? "packages" : "network_mode allowlist", why);
}

/* Opens one of the container's namespaces, if it is the one that init reported. */
static int open_space(const struct cell *c, uint64_t pid, const char *name)
{
	static const char *const names[WIRE_SPACE_COUNT] = WIRE_SPACE_NAMES;
	char path[64];
	AUTO_FD fd = FD_NONE;
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%llu/ns/%s", (unsigned long long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(names[i], name))
			return st.st_ino == c->pump.spaces.inode[i] ? fd_move(&fd) : -ESRCH;
	return -EINVAL;
}

static int find_network(const struct cell *c, struct brig_error *err)
{
	AUTO_FD pids = FD_NONE;
	AUTO_FD net = FD_NONE;
	uint64_t pid = 0;

	if (!c->host->local)
		return refuse(c, err, 0, "the engine is on another host");
	if (!c->pump.has_spaces || !answer_u64(c->before, "State.Pid", &pid) || pid == 0 || pid > INT32_MAX)
		return refuse(c, err, 0, "nobody says which process it is");
	pids = open_space(c, pid, "pid");
	net = open_space(c, pid, "net");
	if (pids < 0 || net < 0) {
		int rc = net < 0 ? net : pids;

		return rc == -ESRCH || rc == -ENOENT ? refuse(c, err, 0, "the engine's processes are not this host's")
						     : refuse(c, err, -rc, "no permission");
	}
	return fd_move(&net);
}

/* In the child: async-signal-safe calls only. */
static int listen_there(int net, const struct plan_egress *egress)
{
	int rc;

	if (setns(net, CLONE_NEWNET) < 0)
		return -errno;
	rc = loopback_up();
	return rc < 0 ? rc : loopback_offer(egress->place, egress->n_places, EGRESS_BACKLOG);
}

static int await_child(pid_t pid)
{
	return proc_wait(pid) < 0 ? -ECHILD : 0;
}

int docker_listener(struct cell *c, struct brig_error *err)
{
	AUTO_FD net = find_network(c, err);
	AUTO_FD ours = FD_NONE;
	AUTO_FD theirs = FD_NONE;
	int ends[2], sock;
	pid_t pid;

	if (net < 0)
		return net;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket");
	ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid == 0) {
		(void)fd_send(theirs, listen_there(net, c->plan->egress));
		_exit(0);
	}
	if (pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot fork");
	fd_closep(&theirs);
	sock = fd_receive(ours);
	(void)await_child(pid);
	return sock < 0 ? refuse(c, err, -sock, "no permission") : sock;
}
