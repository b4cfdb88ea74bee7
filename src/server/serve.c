/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the master
 *
 *	master  opens what is listened at, forks both others, and from then on only waits: for signals, words and ends
 *	front   (front/) joined to the runner by a channel, to the master by a socket for words (enum serve_word)
 *	runner  (runner/)
 *
 * If one of them dies the other one is ended, and both are started anew: the channel between them is gone, and with it
 * whatever was on its way.  The listeners stay open meanwhile, so who connects then just waits.  Only what dies again and
 * again before it is ready is given up.  Both die with the master:
 * the kernel sends them a signal, and their sockets end.
 *
 * The master reads nothing of strangers' and holds nothing but the listeners.  It forks without executing, so nobody may have
 * started a thread before; signals come in through a pipe, and mean nothing to the children.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "server/listen.h"
#include "server/serve.h"
#include "sys/proc.h"

#define DRAIN_MS        30000
#define END_NS          (10 * NS_PER_SEC) /* until who was told to end is killed */
#define STARTS_MAX      300 /* in START_WINDOW_NS: what dies for a reason of its own dies faster than that */
#define START_WINDOW_NS (60 * NS_PER_SEC)
#define VAIN_STARTS_MAX 5 /* one after the other, that led to nothing */

enum child_kind { CHILD_RUNNER, CHILD_FRONT, CHILDREN };
static const char *const child_name[CHILDREN] = { "runner", "front" };

struct child {
	pid_t pid;
	int pidfd, words; /* FD_NONE: it is not there */
	bool is_ready;
};

enum phase {
	PHASE_SERVING,
	PHASE_RESTARTING, /* one has died, and the other is ended */
	PHASE_DRAINING,   /* nothing new is taken, what runs ends */
	PHASE_ENDING,     /* what runs is cancelled */
};

struct master {
	const struct serve_options *options;
	struct listeners listeners;
	struct child child[CHILDREN];
	int signals; /* a byte for each: 's' to stop, 'h' to reload */
	enum phase phase;
	uint64_t deadline_ns;      /* of the phase; UINT64_MAX: none */
	uint64_t window_ns;        /* when the window of starts began */
	unsigned n_starts, n_vain; /* in it; and those after which it was never ready */
	bool is_announced;
	int first_status; /* why a child ended before all was ready: enum brig_code */
};

/* ---- signals ----------------------------------------------------------------------------------------- */

static int signal_pipe = FD_NONE; /* handlers have no other way to be told */

static void on_signal(int sig)
{
	const char word = sig == SIGHUP ? 'h' : 's';
	int saved = errno;

	(void)!write(signal_pipe, &word, 1);
	errno = saved;
}

static void on_nothing(int sig UNUSED)
{
}

static const int handled[] = { SIGINT, SIGTERM, SIGHUP };

static int catch_signals(struct master *m, struct brig_error *err)
{
	const struct sigaction act = { .sa_handler = on_signal };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot prepare for signals");
	m->signals = ends[0];
	signal_pipe = ends[1];
	(void)signal(SIGPIPE, SIG_IGN); /* nobody may be reading what is said */
	for (size_t i = 0; i < ARRAY_LEN(handled); i++)
		if (sigaction(handled[i], &act, NULL) < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot prepare for signals");
	return 0;
}

/* ---- children -------------------------------------------------------------------------------------------- */

/* A handler rather than SIG_IGN: what is executed later has the usual meaning again. */
static void leave_master(const struct master *m)
{
	const struct sigaction act = { .sa_handler = on_nothing, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < ARRAY_LEN(handled); i++)
		(void)sigaction(handled[i], &act, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)close(signal_pipe);
	(void)close(m->signals);
	(void)setpgid(0, 0); /* Ctrl-C is the master's */
}

static _Noreturn void be_front(struct master *m, int channel, int words)
{
	struct front_birth birth = { .options = m->options, .channel = channel, .master = words };

	birth.n_listeners = m->listeners.n;
	memcpy(birth.listener, m->listeners.item, m->listeners.n * sizeof(birth.listener[0]));
	_exit(front_main(&birth));
}

static _Noreturn void be_runner(struct master *m, int channel, int words, const char *url)
{
	const struct runner_birth birth = { .options = m->options,
					    .channel = channel,
					    .master = words,
					    .url = url,
					    .listener = m->listeners.item,
					    .n_listeners = m->listeners.n };

	for (size_t i = 0; i < m->listeners.n; i++)
		fd_closep(&m->listeners.item[i].fd);
	exit(runner_main(&birth));
}

static const char *scheme_of(const struct master *m)
{
	return m->options->tls_cert ? "https" : "http";
}

/* Where the console is, or NULL. */
static const char *url_of(const struct master *m, char *dst, size_t size)
{
	for (size_t i = 0; i < m->listeners.n; i++)
		if (!m->listeners.item[i].is_unix) {
			(void)snprintf(dst, size, "%s://%s", scheme_of(m), m->listeners.item[i].address);
			return dst;
		}
	return NULL;
}

/* What a child has of the master's that is not its own goes: an end of a socket that is left must be seen by its other end. */
static _Noreturn void be_child(struct master *m, enum child_kind kind, int channel, int words, pid_t parent)
{
	char url[160];

	leave_master(m);
	/* The front does this again when it has changed its ids, which makes the kernel forget it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < CHILDREN; i++) {
		fd_closep(&m->child[i].words);
		fd_closep(&m->child[i].pidfd);
	}
	if (kind == CHILD_FRONT)
		be_front(m, channel, words);
	be_runner(m, channel, words, url_of(m, url, sizeof(url)));
}

static int start_child(struct master *m, enum child_kind kind, int channel, int other_end, struct brig_error *err)
{
	struct child *c = &m->child[kind];
	AUTO_FD theirs = FD_NONE;
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for the %s", child_name[kind]);
	c->words = ends[0];
	theirs = ends[1];
	c->is_ready = false;
	c->pid = fork();
	if (c->pid == 0) {
		(void)close(other_end);
		be_child(m, kind, channel, theirs, parent);
	}
	if (c->pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot start the %s", child_name[kind]);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pidfd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot watch the %s", child_name[kind]) : 0;
}

static int start_both(struct master *m, struct brig_error *err)
{
	AUTO_FD runner = FD_NONE;
	AUTO_FD front = FD_NONE;
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot join front and runner");
	runner = ends[0];
	front = ends[1];
	rc = start_child(m, CHILD_RUNNER, runner, front, err);
	if (rc == 0)
		rc = start_child(m, CHILD_FRONT, front, runner, err);
	m->phase = PHASE_SERVING;
	m->deadline_ns = UINT64_MAX;
	return rc;
}

static void tell(struct master *m, enum child_kind kind, enum serve_word word)
{
	const char byte = (char)word;

	if (m->child[kind].words >= 0)
		(void)send(m->child[kind].words, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tell_both(struct master *m, enum serve_word word)
{
	tell(m, CHILD_RUNNER, word);
	tell(m, CHILD_FRONT, word);
}

static bool is_there(const struct child *c)
{
	return c->pidfd >= 0;
}

/* ---- phases ------------------------------------------------------------------------------------------------ */

static void enter(struct master *m, enum phase phase, enum serve_word word, uint64_t patience_ns)
{
	m->phase = phase;
	m->deadline_ns = clock_now_ns() + patience_ns;
	tell_both(m, word);
}

static void on_stop(struct master *m)
{
	uint64_t drain_ms = m->options->drain_ms ? m->options->drain_ms : DRAIN_MS;

	if (m->phase == PHASE_SERVING) {
		enter(m, PHASE_DRAINING, WORD_DRAIN, drain_ms * NS_PER_MS);
		listeners_close(
			&m->listeners); /* who connects now is told so by the kernel, and does not wait for the end */
	} else {
		enter(m, PHASE_ENDING, WORD_NOW, END_NS);
	}
}

static void on_late(struct master *m)
{
	if (m->phase == PHASE_DRAINING) {
		enter(m, PHASE_ENDING, WORD_NOW, END_NS);
		return;
	}
	m->deadline_ns = clock_now_ns() + END_NS;
	for (size_t i = 0; i < CHILDREN; i++)
		if (is_there(&m->child[i]))
			(void)syscall(SYS_pidfd_send_signal, m->child[i].pidfd, SIGKILL, NULL, 0);
}

/* Both have gone.  1: started anew; 0: it is over; -code. */
static int on_all_gone(struct master *m, struct brig_error *err)
{
	uint64_t now = clock_now_ns();

	if (m->phase != PHASE_RESTARTING)
		return 0;
	if (!m->is_announced) /* the child has said why */
		return err_set(err, (enum brig_code)m->first_status, 0, "the service could not be started");
	if (now - m->window_ns > START_WINDOW_NS) {
		m->window_ns = now;
		m->n_starts = 0;
	}
	if (++m->n_starts > STARTS_MAX || ++m->n_vain > VAIN_STARTS_MAX)
		return err_set(err, BRIG_E_SYSTEM, 0, "the service dies as often as it is started: it is given up");
	return start_both(m, err) < 0 ? -err->code : 1;
}

/* The end of a child; what it means is said by the phase. */
static void on_end(struct master *m, enum child_kind kind)
{
	struct child *c = &m->child[kind];
	siginfo_t how = { 0 };

	if (proc_reap(&c->pidfd, clock_now_ns() + END_NS, &how) < 0)
		fd_closep(&c->pidfd);
	fd_closep(&c->words);
	/* Of two that ended, the one that has more to say than that the other has gone. */
	if (how.si_code == CLD_EXITED && how.si_status >= BRIG_E_USAGE && how.si_status < BRIG_E_SYSTEM)
		m->first_status = how.si_status;
	if (m->phase != PHASE_SERVING)
		return;
	if (m->is_announced || how.si_code != CLD_EXITED)
		(void)dprintf(STDERR_FILENO, "brig: the %s of the service has ended (%s %d)%s\n", child_name[kind],
			      how.si_code == CLD_EXITED ? "status" : "signal", how.si_status,
			      m->is_announced ? "; it is started anew" : "");
	enter(m, PHASE_RESTARTING, WORD_NOW, END_NS);
}

/* ---- words, and the loop ------------------------------------------------------------------------------------- */

static void announce(struct master *m)
{
	AUTO_BUF text = BUF_INIT(4 * KiB);

	if (!m->child[CHILD_FRONT].is_ready || !m->child[CHILD_RUNNER].is_ready)
		return;
	m->n_vain = 0;
	if (m->is_announced)
		return;
	m->is_announced = true;
	for (size_t i = 0; i < m->listeners.n; i++)
		if (!m->listeners.item[i].is_unix)
			(void)buf_addf(&text, "ready %s://%s\n", scheme_of(m), m->listeners.item[i].address);
	for (size_t i = 0; i < m->listeners.n; i++)
		if (m->listeners.item[i].is_unix && !m->listeners.item[i].is_records)
			(void)buf_addf(&text, "ready unix:%s\n", m->listeners.item[i].address);
	(void)fd_write_all(STDOUT_FILENO, buf_str(&text), text.len);
}

static void on_word(struct master *m, struct child *c)
{
	char word = 0;
	ssize_t n = recv(c->words, &word, 1, MSG_DONTWAIT);

	if (n == 0)
		fd_closep(&c->words); /* its end comes by itself */
	else if (n == 1 && word == WORD_READY)
		c->is_ready = true;
	announce(m);
}

static void on_signals(struct master *m)
{
	char words[16];
	ssize_t n = read(m->signals, words, sizeof(words));

	for (ssize_t i = 0; i < n; i++)
		if (words[i] == 'h')
			tell(m, CHILD_RUNNER, WORD_RELOAD);
		else
			on_stop(m);
}

static int patience_ms(const struct master *m)
{
	uint64_t now = clock_now_ns();

	if (m->deadline_ns == UINT64_MAX)
		return -1;
	return m->deadline_ns <= now ? 0 : (int)min_u64((m->deadline_ns - now) / NS_PER_MS + 1, 60000);
}

/* 1: it goes on; 0: it is over; -code. */
static int go_on(struct master *m, struct brig_error *err)
{
	struct pollfd p[1 + 2 * CHILDREN] = { { .fd = m->signals, .events = POLLIN } };

	for (size_t i = 0; i < CHILDREN; i++) {
		p[1 + i] = (struct pollfd){ .fd = m->child[i].words, .events = POLLIN };
		p[1 + CHILDREN + i] = (struct pollfd){ .fd = m->child[i].pidfd, .events = POLLIN };
	}
	if (poll(p, ARRAY_LEN(p), patience_ms(m)) < 0)
		return errno == EINTR ? 1 : err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the service");
	if (p[0].revents)
		on_signals(m);
	for (enum child_kind i = 0; i < CHILDREN; i++) {
		if (p[1 + i].revents)
			on_word(m, &m->child[i]);
		if (p[1 + CHILDREN + i].revents)
			on_end(m, i);
	}
	if (clock_now_ns() >= m->deadline_ns)
		on_late(m);
	if (!is_there(&m->child[CHILD_RUNNER]) && !is_there(&m->child[CHILD_FRONT]))
		return on_all_gone(m, err);
	return 1;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Each connection is a descriptor, and each cell has some of brig's own. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

static void kill_rest(struct master *m)
{
	m->phase = PHASE_ENDING;
	on_late(m);
	for (enum child_kind i = 0; i < CHILDREN; i++)
		if (is_there(&m->child[i]))
			on_end(m, i);
}

int serve(const struct serve_options *options, struct brig_error *err)
{
	struct serve_options own = *options;
	struct master m = {
		.options = &own, .signals = FD_NONE, .deadline_ns = UINT64_MAX, .first_status = BRIG_E_SYSTEM
	};
	int rc;

	for (size_t i = 0; i < CHILDREN; i++)
		m.child[i].pidfd = m.child[i].words = FD_NONE;
	raise_files();
	rc = listeners_open(&m.listeners, options, err);
	for (size_t i = 0; i < m.listeners.n && !own.unix_path; i++) /* which systemd may have made */
		if (m.listeners.item[i].is_unix)
			own.unix_path = m.listeners.item[i].address;
	if (rc == 0)
		rc = catch_signals(&m, err);
	if (rc == 0 && options->no_auth)
		(void)dprintf(STDERR_FILENO,
			      "brig: NO AUTHENTICATION: everybody on this machine who can connect may run "
			      "programs here (--no-auth)\n");
	if (rc == 0)
		rc = start_both(&m, err);
	if (rc == 0)
		do
			rc = go_on(&m, err);
		while (rc == 1);
	kill_rest(&m);
	listeners_close(&m.listeners);
	return rc;
}
