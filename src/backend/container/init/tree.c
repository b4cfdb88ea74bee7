/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives a project into the workspace, and sends the workspace back.
 *
 * Packages follow the project, into a file system of their own.
 *
 * On the way in, the stream of files/pack.h is on stdin between the job and its files, and this process unpacks it.
 * brig has enlarged the workspace by what the project needs; facts about limits subtract that.
 *
 * On the way out, all other processes are dead.  A child packs the tree into a pipe and this process splits it into
 * frames: whatever the tree does to the packing (its memory is charged to the container, which may have none left), PID
 * 1 survives to report it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/container/init/inside.h"
#include "base/fd.h"
#include "files/pack.h"
#include "files/walk.h"

int tree_take(struct inside *in)
{
	const struct unpack_options o = { .caps = { .entries = in->job.tree_entries, .bytes = in->job.tree_bytes },
					  .uid = UINT32_MAX,
					  .gid = UINT32_MAX };
	struct pack_counts counts;

	return in->job.flags & WIRE_PROJECT ? unpack_tree(in->place[0], STDIN_FILENO, &o, &counts) : 0;
}

/* Into its own file system, to which Landlock rules forbid writing: see payload.c. */
int tree_show(struct inside *in)
{
	const struct wire_job *j = &in->job;
	const struct unpack_options o = { .caps = { .entries = j->shown_entries, .bytes = j->shown_bytes },
					  .uid = UINT32_MAX,
					  .gid = UINT32_MAX };
	struct pack_counts counts;
	AUTO_FD dir = FD_NONE;
	int rc;

	if (!j->shown[0])
		return 0;
	dir = open(j->shown, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	rc = unpack_tree(dir, STDIN_FILENO, &o, &counts);
	if (rc == 0 && j->link[0] && symlinkat(j->link_to, in->place[0], j->link) < 0)
		rc = -errno;
	return rc;
}

/* In the child.  Its exit status is the errno that ended packing early. */
static int pack(const struct inside *in, int out)
{
	const struct pack_caps caps = { .entries = in->job.tree_entries, .bytes = in->job.tree_bytes, .in_part = true };
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;

	if (pack_tree(in->place[0], &caps, NULL, NULL, out, &counts, &err) == 0)
		return counts.cut ? E2BIG : 0; /* a well-formed stream, but incomplete */
	return err.sys ? err.sys : ENOMEM;
}

static void pass_on(int from, enum wire_frame type)
{
	static char piece[WIRE_BODY_MAX];
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR)) {
		char prefix[WIRE_PREFIX];

		if (n < 0)
			continue;
		wire_prefix(prefix, type, (uint32_t)n);
		speak_bytes(STDERR_FILENO, prefix, sizeof(prefix));
		speak_bytes(STDERR_FILENO, piece, (size_t)n);
	}
}

static int await_child(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	/* killed: out of memory */
	return info.si_code == CLD_EXITED ? info.si_status : ENOMEM;
}

/* Sends a child's output about the workspace in frames of this type.  Returns the child's errno, or ours. */
static int send_by_child(struct inside *in, int (*child)(const struct inside *in, int out), enum wire_frame type)
{
	int ends[2], rc;
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		(void)close(ends[0]);
		end(child(in, ends[1]));
	}
	rc = errno;
	(void)close(ends[1]);
	if (pid > 0) {
		pass_on(ends[0], type);
		rc = await_child((pid_t)pid);
	}
	(void)close(ends[0]);
	return rc;
}

void tree_send(struct inside *in)
{
	wire_put_number(&in->out, WIRE_TREE_END, (uint64_t)send_by_child(in, pack, WIRE_TREE));
}

/* ---- names of what is left ------------------------------------------------------------------------------- */

struct list {
	size_t len;
	char data[WIRE_LEFT_BYTES];
};

static enum walk_next name_one(void *arg, const struct walk_entry *e)
{
	struct list *l = arg;
	size_t n;

	if (*e->name == '.')
		return WALK_SKIP; /* hidden files are not reported */
	if (!S_ISREG(e->st->st_mode))
		return WALK_ON;
	n = wire_left_encode((uint64_t)e->st->st_size, e->path, l->data + l->len, sizeof(l->data) - l->len);
	l->len += n;
	return n ? WALK_ON : WALK_STOP;
}

static int name_all(const struct inside *in, int out)
{
	const struct walk_caps caps = { .entries = WIRE_LEFT_FILES };
	static struct list list;
	struct brig_error err = BRIG_ERROR_INIT;
	struct walk_outcome seen;

	(void)walk_tree(in->place[0], &caps, name_one, &list, &seen, &err);
	return fd_write_all(out, list.data, list.len) < 0 ? EIO : 0;
}

/* A reminder, not an inventory: the list may be incomplete. */
void tree_name_left(struct inside *in)
{
	(void)send_by_child(in, name_all, WIRE_LEFT);
}
