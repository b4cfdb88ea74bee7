/* SPDX-License-Identifier: Apache-2.0 */
/* The steward's loop: messages of the owner, exits of processes, changes in watched directories, bytes of terminals. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "backend/guest/claim.h"
#include "backend/guest/steward/inside.h"
#include "backend/guest/wait.h"
#include "base/fd.h"

#define CONTROL_FD_MIN 16 /* above the numbers that a child's descriptors get */
#define FAILED         125

static struct steward the_steward; /* large: pages are allocated when they are used */

void steward_tell(const struct steward *s, enum steward_kind kind, uint64_t tag, const int64_t *number, size_t n,
		  const char *const *words, size_t n_words, int fd)
{
	struct steward_head head = { .kind = kind, .tag = tag };
	int rc;

	for (size_t i = 0; i < n && i < STEWARD_NUMBERS; i++)
		head.number[i] = number[i];
	/* Blocks until the owner reads; the loop notices if the owner is gone. */
	rc = steward_send(s->control, &head, words, n_words, &fd, fd >= 0, 0);
	if (rc == -E2BIG)
		(void)steward_send(s->control, &head, NULL, 0, &fd, fd >= 0, 0);
}

void steward_done(const struct steward *s, int sys)
{
	const int64_t number = sys;

	steward_tell(s, STEWARD_DONE, s->asked.head.tag, &number, 1, NULL, 0, FD_NONE);
}

static void end_session(struct steward *s)
{
	if (s->is_paused)
		others_continue(s); /* on cgroup v1 frozen processes do not die */
	steward_done(s, 0);
	_exit(0);
}

static const struct {
	void (*serve)(struct steward *s);
	size_t words, fds; /* minimum; exact if the other is 0 */
} asked[STEWARD_ASKED_END] = {
	[STEWARD_START] = { process_start, 2, 2 },   [STEWARD_SIGNAL] = { process_signal, 0, 0 },
	[STEWARD_RESIZE] = { process_resize, 0, 0 }, [STEWARD_OPEN] = { files_open, 1, 0 },
	[STEWARD_STAT] = { files_stat, 1, 0 },       [STEWARD_LIST] = { files_list, 1, 0 },
	[STEWARD_MKDIR] = { files_mkdir, 1, 0 },     [STEWARD_MOVE] = { files_move, 2, 0 },
	[STEWARD_REMOVE] = { files_remove, 1, 0 },   [STEWARD_WATCH] = { watches_begin, 1, 0 },
	[STEWARD_UNWATCH] = { watches_end, 0, 0 },   [STEWARD_CONNECT] = { ports_connect, 0, 0 },
	[STEWARD_PAUSE] = { process_pause, 0, 0 },   [STEWARD_RESUME] = { process_resume, 0, 0 },
	[STEWARD_SAVE] = { copies_save, 0, 1 },      [STEWARD_LOAD] = { copies_load, 0, 1 },
	[STEWARD_CPU] = { usage_cpu, 0, 0 },         [STEWARD_FREEZER] = { freezer_take, 0, 2 },
	[STEWARD_END] = { end_session, 0, 0 },
};

static void serve_owner(struct steward *s)
{
	int rc = steward_receive(s->control, &s->asked, MSG_DONTWAIT);
	uint32_t kind;

	if (rc == -EAGAIN)
		return;
	if (rc <= 0)
		_exit(rc == 0 ? 0 : FAILED); /* end of file, or a malformed message, which the owner does not send */
	kind = s->asked.head.kind;
	if (kind >= STEWARD_ASKED_END || s->asked.head.n_words < asked[kind].words || s->asked.n_fds < asked[kind].fds)
		steward_done(s, EPROTO);
	else
		asked[kind].serve(s);
	steward_message_release(&s->asked);
}

static void serve(struct steward *s)
{
	struct pollfd slots[3 + TERMINAL_SLOTS * STEWARD_PROCESSES_MAX];
	size_t n;

	slots[0] = (struct pollfd){ .fd = s->control, .events = POLLIN };
	slots[1] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	slots[2] = (struct pollfd){ .fd = s->inotify, .events = POLLIN };
	n = 3 + process_fill(s, slots + 3);
	if (poll(slots, n, -1) <= 0)
		return;
	/* Drain terminals before reporting the exit of their processes. */
	process_serve(s, slots + 3);
	if (slots[1].revents)
		process_reap(s);
	if (slots[2].revents)
		watches_serve(s);
	if (slots[0].revents)
		serve_owner(s);
}

/*
 * Standard input is the control socket: moves it to a number that no child inherits, and puts /dev/null in its place.
 */
static int take_control(struct steward *s)
{
	int none;

	s->control = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
	none = open("/dev/null", O_RDONLY);
	if (s->control < 0 || none < 0 || dup2(none, STDIN_FILENO) < 0)
		return -errno;
	if (none != STDIN_FILENO)
		(void)close(none);
	return 0;
}

static int take_signals(struct steward *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Signals that a program of the same user may send, as far as they can be ignored. */
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD && sig != SIGKILL && sig != SIGSTOP)
			(void)signal(sig, SIG_IGN);
	return s->signals < 0 ? -errno : 0;
}

/* In a session created in advance: reports that it is ready, and continues when the session has an owner. */
static int await_owner(struct steward *s, int sock)
{
	struct guest_word waiting = { .magic = GUEST_WORD_MAGIC, .kind = GUEST_WAITING };
	struct iovec whole = { .iov_base = &waiting, .iov_len = sizeof(waiting) };
	bool may_go = false;
	int rc;

	spare_begin(s);
	rc = fd_send_record(sock, &whole, 1, NULL, 0, 0);
	if (rc == 0)
		rc = guest_claim_take(sock, NULL, &may_go);
	if (rc == 0 && !may_go)
		rc = guest_claim_await_go(sock);
	(void)close(sock); /* which tells the supervisor that it has continued */
	return rc;
}

/* The payload has closed everything above standard error except the socket that a waiting cell uses. */
static int take_wait_socket(void)
{
	int sock = fcntl(GUEST_WAIT_SOCKET, F_DUPFD_CLOEXEC, CONTROL_FD_MIN);

	if (sock >= 0)
		(void)close(GUEST_WAIT_SOCKET);
	return sock;
}

int main(void)
{
	struct steward *s = &the_steward;
	const int64_t pid = getpid();
	int sock = take_wait_socket();

	s->inotify = s->spare.sock = s->freezer.procs = s->freezer.state = s->freezer.events = FD_NONE;
	for (size_t i = 0; i < STEWARD_WATCHES_MAX; i++)
		s->watched[i].wd = -1;
	/* Programs of the same user cannot trace it or open its descriptors through /proc. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || take_control(s) < 0 || take_signals(s) < 0)
		return FAILED;
	if (sock >= 0 && await_owner(s, sock) < 0)
		return FAILED;
	steward_tell(s, STEWARD_READY, 0, &pid, 1, NULL, 0, FD_NONE);
	for (;;)
		serve(s);
}
