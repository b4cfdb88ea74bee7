/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project on its way into the workspace, and the workspace on its way out.
 *
 * Coming in, the stream of files/pack.h lies between the job and its files on stdin and is unpacked by this process; what
 * it needs of the workspace's size was added to it by brig, and is taken off again where limits are said.
 *
 * Going out, everybody else is dead.  A child packs the tree into a pipe and this process cuts it into frames: whatever
 * the tree does to the packing (its memory counts as the container's, and may be used up), PID 1 survives to say so.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/docker/init/inside.h"
#include "files/pack.h"

int tree_take(struct inside *in)
{
	const struct unpack_options o = { .caps = { .entries = in->job.tree_entries, .bytes = in->job.tree_bytes },
					  .uid = UINT32_MAX,
					  .gid = UINT32_MAX };
	struct pack_counts counts;

	return in->job.flags & WIRE_PROJECT ? unpack_tree(in->place[0], STDIN_FILENO, &o, &counts) : 0;
}

/* Exit status of the packing child: the errno that ended it early. */
static int pack(const struct inside *in, int out)
{
	const struct pack_caps caps = { .entries = in->job.tree_entries, .bytes = in->job.tree_bytes, .in_part = true };
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;

	if (pack_tree(in->place[0], &caps, NULL, NULL, out, &counts, &err) == 0)
		return counts.cut ? E2BIG : 0; /* a sound stream, but not of everything */
	return err.sys ? err.sys : ENOMEM;
}

static void pass_on(int from)
{
	static char piece[WIRE_BODY_MAX];
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR)) {
		char prefix[WIRE_PREFIX];

		if (n < 0)
			continue;
		wire_prefix(prefix, WIRE_TREE, (uint32_t)n);
		speak_bytes(STDERR_FILENO, prefix, sizeof(prefix));
		speak_bytes(STDERR_FILENO, piece, (size_t)n);
	}
}

static int await_child(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	/* Killed: there was no memory left for it. */
	return info.si_code == CLD_EXITED ? info.si_status : ENOMEM;
}

void tree_send(struct inside *in)
{
	int ends[2], rc;
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0) {
		wire_put_number(&in->out, WIRE_TREE_END, (uint64_t)errno);
		return;
	}
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		(void)close(ends[0]);
		end(pack(in, ends[1]));
	}
	rc = errno;
	(void)close(ends[1]);
	if (pid > 0) {
		pass_on(ends[0]);
		rc = await_child((pid_t)pid);
	}
	(void)close(ends[0]);
	wire_put_number(&in->out, WIRE_TREE_END, (uint64_t)rc);
}
