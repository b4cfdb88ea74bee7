/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"

#define PIECE     (64 * 1024)
#define PIECES    16 /* read from one child before the others get their turn */
#define PATH_SELF "/proc/self/exe"

extern char **environ;

/* ---- starting ------------------------------------------------------------------------------------- */

/* The standard descriptors and those of the invocation; all others are close-on-exec. */
static int child_descriptors(posix_spawn_file_actions_t *actions, const struct invocation *p, int out, int err)
{
	int rc = p->input < 0 ? posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
			      : posix_spawn_file_actions_adddup2(actions, p->input, STDIN_FILENO);

	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, err, STDERR_FILENO);
	for (size_t i = 0; rc == 0 && i < p->n_fds; i++)
		rc = posix_spawn_file_actions_adddup2(actions, p->fd[i], INVOCATION_FD_FIRST + (int)i);
	return -rc;
}

/* The child gets its own process group: a terminal's Ctrl-C goes to the server, which ends its children. */
static int spawn(const struct invocation *p, int out, int err, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc = -posix_spawn_file_actions_init(&actions);

	if (rc < 0)
		return rc;
	rc = -posix_spawnattr_init(&attr);
	if (rc == 0) {
		rc = -posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
		if (rc == 0)
			rc = child_descriptors(&actions, p, out, err);
		if (rc == 0)
			rc = -posix_spawn(ret, PATH_SELF, &actions, &attr, p->word, environ);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return rc;
}

int child_start(struct child *c, const struct invocation *p, struct brig_error *err)
{
	AUTO_FD out = FD_NONE;
	AUTO_FD complaints = FD_NONE;
	pid_t pid = 0;
	int rc = fd_pipe_to_child(&out, &c->out, false, INVOCATION_FD_OURS);

	if (rc == 0)
		rc = fd_pipe_to_child(&complaints, &c->err, false, INVOCATION_FD_OURS);
	if (rc == 0)
		rc = spawn(p, out, complaints, &pid);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot start another brig");
	c->events = p->events;
	c->process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->process >= 0)
		return 0;
	rc = errno;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return err_set(err, BRIG_E_SYSTEM, rc, "cannot watch another brig");
}

/* ---- reading -------------------------------------------------------------------------------------- */

/* Passes on the complete lines; fresh: where the unscanned text begins. */
static void hand_on_lines(struct child *c, size_t fresh, child_line_fn fn, void *user)
{
	size_t begin = 0;

	for (size_t i = fresh; i < c->text.len; i++)
		if (c->text.data[i] == '\n') {
			fn(user, c->text.data + begin, i - begin);
			begin = i + 1;
		}
	if (begin > 0) {
		memmove(c->text.data, c->text.data + begin, c->text.len - begin);
		c->text.len -= begin;
	}
}

/* Reads one piece; false: nothing now, or end of file, in which case the descriptor is closed. */
static bool read_piece(int *fd, struct buf *to)
{
	char piece[PIECE];
	ssize_t n = *fd < 0 ? 0 : read(*fd, piece, sizeof(piece));

	if (n > 0)
		buf_add(to, piece, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		fd_closep(fd);
	return n > 0;
}

void child_read(struct child *c, child_line_fn fn, void *user)
{
	for (int i = 0; i < PIECES; i++) {
		size_t fresh = c->text.len;
		bool is_more = read_piece(&c->out, &c->text);

		if (c->events)
			hand_on_lines(c, fresh, fn, user);
		is_more |= read_piece(&c->err, &c->complaint);
		if (!is_more)
			return;
	}
}

bool child_ended(const struct child *c, int *ret_status)
{
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)c->process, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return false;
	*ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return true;
}

void child_signal(const struct child *c, int sig)
{
	if (c->process >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->process, sig, NULL, 0);
}

void child_poll(const struct child *c, struct pollfd fds[CHILD_FDS])
{
	/* poll() ignores negative descriptors */
	fds[0] = (struct pollfd){ .fd = c->process, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = c->out, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = c->err, .events = POLLIN };
}

void child_release(struct child *c)
{
	fd_closep(&c->process);
	fd_closep(&c->out);
	fd_closep(&c->err);
	buf_release(&c->text);
	buf_release(&c->complaint);
	*c = (struct child)CHILD_INIT;
}
