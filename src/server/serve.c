/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the master process of the service
 *
 *	master    opens the listeners, starts the others, then waits for signals, control messages and deaths
 *	recorder  (recorder/) starts before the runner and ends after it; the master keeps both ends of the socket between them
 *	runner    (runner/) connected to the front by a channel
 *	front     (front/) a worker has none
 *	link      (link/) only with a queue: connected to the runner by a channel of its own
 *	keepers   (keepers.c) make cells for the runner; started when it asks for one
 *
 * Each of them is connected to the master by a control socket (control.h).
 *
 * A process that dies is restarted, and only that one: the master makes a new channel, gives one end to the new process and
 * sends the other end to its peer (CONTROL_CHANNEL).  What was in flight is lost, and each side knows what that means: the
 * front answers 503 to every client that waits for the runner; the runner treats all clients of the old front as
 * disconnected, and executions that need no client go on.  The listeners belong to the master, so new connections wait in
 * the kernel; so does the recorder's socket, whose messages wait for the next recorder.
 *
 * The runner trusts nothing that the front sends: it reports one that violates the protocol to the master (CONTROL_CUT),
 * which kills it.  Channels are numbered, so that a late report does not hit the next front.
 *
 *	starting -> serving -> draining -> ending      each may be skipped; none is entered twice (enum phase)
 *
 * A process that keeps dying before it is ready is given up: the service drains, and exits with an error.  All die with the
 * master: the kernel signals them (PR_SET_PDEATHSIG), and their sockets end.
 *
 * The master parses no client data and holds only the listeners, the ceilings of cells, which a child derives from the
 * policy, and the certificate files; it re-reads the last two at SIGHUP without looking into them.  The other processes
 * are the same program, executed afresh (role.h), so that nothing of the master's memory is in them.  Signals arrive through
 * a pipe; the other processes ignore them.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "net/host.h"
#include "server/control.h"
#include "server/keepers.h"
#include "server/listen.h"
#include "server/report.h"
#include "server/role.h"
#include "server/serve.h"
#include "sys/memory.h"
#include "sys/proc.h"

#define DRAIN_MS        30000
#define END_NS          (10 * NS_PER_SEC) /* from telling children to exit until they are killed */
#define STARTS_MAX      300 /* in START_WINDOW_NS; a child with a persistent fault dies faster than that */
#define START_WINDOW_NS (60 * NS_PER_SEC)
#define VAIN_STARTS_MAX 5 /* consecutive ones that did not become ready */

struct child {
	pid_t pid;
	int pidfd, control; /* FD_NONE: not running */
	bool is_ready;
	uint64_t window_ns;        /* start of the window */
	unsigned n_starts, n_vain; /* starts in the window; and starts since the process last became ready */
};

enum phase {
	PHASE_STARTING, /* not announced yet: a child that exits makes the service fail */
	PHASE_SERVING,  /* a child that exits is restarted */
	PHASE_DRAINING, /* nothing new is accepted, what runs may finish */
	PHASE_ENDING,   /* what runs is cancelled */
};

struct master {
	const struct serve_options *options;
	struct listeners listeners;
	struct child child[ROLES];
	int to_recorder, of_recorder; /* the two ends of the socket between runner and recorder */
	bool recorder_may_end;        /* all processes that use it have exited, and it was told to exit */
	int program;                  /* this program's executable, from which the others are started */
	int signals;                  /* the read end of a pipe; each byte is a signal: 's' stop, 'h' reload */
	enum phase phase;
	bool is_announced, input_has_ended;
	uint64_t deadline_ns;               /* end of the current phase; UINT64_MAX: none */
	uint32_t channel_number;            /* of the channel created last */
	struct certificate in_use, offered; /* offered: the front has not accepted or refused it yet */
	uint32_t offer_number;
	struct brig_error why; /* why the service ends; code 0: it was told to */
	struct keepers keepers;
};

/* ---- signals ----------------------------------------------------------------------------------------- */

static int signal_pipe = FD_NONE; /* for the signal handler, which gets no argument */

static void on_signal(int sig)
{
	const char word = sig == SIGHUP ? 'h' : 's';
	int saved = errno;

	(void)!write(signal_pipe, &word, 1);
	errno = saved;
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
	(void)signal(SIGPIPE, SIG_IGN); /* whoever read our output may have gone */
	for (size_t i = 0; i < ARRAY_LEN(handled); i++)
		if (sigaction(handled[i], &act, NULL) < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot prepare for signals");
	return 0;
}

/* ---- children -------------------------------------------------------------------------------------------- */

static const char *scheme_of(const struct master *m)
{
	return m->options->tls_cert ? "https" : "http";
}

/* The address of the console; unchanged if there is none. */
static void name_url(const struct master *m, char *dst, size_t size)
{
	for (size_t i = m->listeners.n; i > 0; i--)
		if (!m->listeners.item[i - 1].is_unix)
			(void)snprintf(dst, size, "%s://%s", scheme_of(m), m->listeners.item[i - 1].address);
}

/* What this process is given. */
static struct role_args args_of(const struct master *m, enum serve_role role, int channel, int link, int control)
{
	struct role_args b = { .role = role,
			       .master_pid = getpid(),
			       .options = *m->options,
			       .n_listeners = m->listeners.n,
			       .channel_number = m->channel_number,
			       .control = control,
			       .channel = channel,
			       .link = link,
			       .recorder = role == ROLE_RUNNER     ? m->to_recorder
					   : role == ROLE_RECORDER ? m->of_recorder
								   : FD_NONE,
			       .certificate = CERTIFICATE_NONE };

	memcpy(b.listener, m->listeners.item, m->listeners.n * sizeof(b.listener[0]));
	for (size_t i = 0; i < m->listeners.n && role != ROLE_FRONT; i++)
		b.listener[i].fd = FD_NONE;
	if (role == ROLE_FRONT)
		b.certificate = m->in_use;
	if (!m->is_announced) /* announced only once */
		name_url(m, b.url, sizeof(b.url));
	return b;
}

/* link: the runner's channel to the link; FD_NONE for other processes. */
static int start_child(struct master *m, enum serve_role role, int channel, int link, struct brig_error *err)
{
	struct child *c = &m->child[role];
	AUTO_FD theirs = FD_NONE;
	struct role_args args;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for the %s", role_name[role]);
	c->control = ends[0];
	theirs = ends[1];
	c->is_ready = false;
	args = args_of(m, role, channel, link, theirs);
	c->pid = role_spawn(&args, m->program);
	if (c->pid < 0)
		return err_set(err, BRIG_E_SYSTEM, -c->pid, "cannot start the %s", role_name[role]);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pidfd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot watch the %s", role_name[role]) : 0;
}

static bool is_there(const struct child *c)
{
	return c->pidfd >= 0;
}

static void kill_child(const struct child *c)
{
	if (is_there(c))
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

static void notify(struct master *m, enum serve_role role, enum control_kind kind)
{
	(void)control_send(m->child[role].control, &(struct control_message){ .kind = kind });
}

static int join_recorder(struct master *m, struct brig_error *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for the recorder");
	m->to_recorder = ends[0];
	m->of_recorder = ends[1];
	return 0;
}

static bool has_child(const struct master *m, enum serve_role role)
{
	if (role == ROLE_FRONT)
		return !m->options->is_worker;
	return role != ROLE_LINK || m->options->queue_url;
}

/*
 * Creates the channel between the runner and another process; both descriptors stay unchanged if that process is not
 * used.
 */
static int make_channel(struct master *m, enum serve_role other, int *ret_runner, int *ret_other,
			struct brig_error *err)
{
	int ends[2];

	if (!has_child(m, other))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot join %s and runner", role_name[other]);
	*ret_runner = ends[0];
	*ret_other = ends[1];
	if (other == ROLE_FRONT)
		m->channel_number++;
	return 0;
}

static int start_all(struct master *m, struct brig_error *err)
{
	AUTO_FD runner = FD_NONE;
	AUTO_FD front = FD_NONE;
	AUTO_FD runner_link = FD_NONE;
	AUTO_FD link = FD_NONE;
	int rc;

	if ((rc = make_channel(m, ROLE_FRONT, &runner, &front, err)) < 0 ||
	    (rc = make_channel(m, ROLE_LINK, &runner_link, &link, err)) < 0 || (rc = join_recorder(m, err)) < 0 ||
	    (rc = start_child(m, ROLE_RECORDER, FD_NONE, FD_NONE, err)) < 0 ||
	    (rc = start_child(m, ROLE_RUNNER, runner, runner_link, err)) < 0)
		return rc;
	if (has_child(m, ROLE_LINK))
		rc = start_child(m, ROLE_LINK, link, FD_NONE, err);
	if (rc == 0 && has_child(m, ROLE_FRONT))
		rc = start_child(m, ROLE_FRONT, front, FD_NONE, err);
	return rc;
}

/* Sends a running process its end of a new channel; kills it if it has left hundreds of messages unread. */
static void bring_channel(struct master *m, enum serve_role to, enum control_kind kind, int end)
{
	const struct control_message w = { .kind = kind, .number = m->channel_number, .fds = { end }, .n_fds = 1 };

	if (end >= 0 && control_send(m->child[to].control, &w) == -EAGAIN)
		kill_child(&m->child[to]);
}

static int start_runner_again(struct master *m, struct brig_error *err)
{
	AUTO_FD runner = FD_NONE;
	AUTO_FD front = FD_NONE;
	AUTO_FD runner_link = FD_NONE;
	AUTO_FD link = FD_NONE;
	int rc;

	if ((rc = make_channel(m, ROLE_FRONT, &runner, &front, err)) < 0 ||
	    (rc = make_channel(m, ROLE_LINK, &runner_link, &link, err)) < 0 ||
	    (rc = start_child(m, ROLE_RUNNER, runner, runner_link, err)) < 0)
		return rc;
	bring_channel(m, ROLE_FRONT, CONTROL_CHANNEL, front);
	bring_channel(m, ROLE_LINK, CONTROL_CHANNEL, link);
	return 0;
}

/*
 * Restarts a process that has exited.  If its peer is about to exit as well, the peer's successor gets another channel.
 */
static int start_again(struct master *m, enum serve_role role, struct brig_error *err)
{
	AUTO_FD runner = FD_NONE;
	AUTO_FD own = FD_NONE;
	int rc;

	if (role == ROLE_RECORDER)
		return start_child(m, role, FD_NONE, FD_NONE, err);
	if (role == ROLE_RUNNER)
		return start_runner_again(m, err);
	rc = make_channel(m, role, &runner, &own, err);
	if (rc == 0)
		rc = start_child(m, role, own, FD_NONE, err);
	if (rc == 0)
		bring_channel(m, ROLE_RUNNER, role == ROLE_FRONT ? CONTROL_CHANNEL : CONTROL_LINK, runner);
	return rc;
}

/* ---- the certificate ---------------------------------------------------------------------------------------- */

/* Sends the certificate that was read to the current front. */
static void offer_certificate(struct master *m)
{
	struct control_message w = { .kind = CONTROL_CERTIFICATE,
				     .number = m->offer_number,
				     .n_fds = CERTIFICATE_FILES };

	if (!certificate_is_there(&m->offered))
		return;
	memcpy(w.fds, m->offered.fd, sizeof(m->offered.fd));
	(void)control_send(m->child[ROLE_FRONT].control, &w);
}

static void say_certificate_stays(const char *why)
{
	report("the certificate stays as it was%s%s", *why ? ": " : "", why);
}

static void reload_certificate(struct master *m)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!m->options->tls_cert)
		return;
	if (certificate_read(m->options->tls_cert, m->options->tls_key, &m->offered, &err) < 0) {
		say_certificate_stays(err.msg);
		return;
	}
	m->offer_number++;
	offer_certificate(m);
}

/* The front's answer to the certificate offered to it. */
static void on_certificate(struct master *m, const struct control_message *w)
{
	if (w->number != m->offer_number || !certificate_is_there(&m->offered))
		return;
	if (w->kind == CONTROL_TAKEN) {
		certificate_move(&m->in_use, &m->offered);
		report("the certificate was reloaded");
	} else {
		certificate_close(&m->offered);
		say_certificate_stays("");
	}
}

/* ---- phases ------------------------------------------------------------------------------------------------ */

static void enter(struct master *m, enum phase phase, enum control_kind kind, uint64_t patience_ns)
{
	m->phase = phase;
	m->deadline_ns = clock_now_ns() + patience_ns;
	notify(m, ROLE_RUNNER, kind);
	notify(m, ROLE_FRONT, kind);
	notify(m, ROLE_LINK, kind);
}

/* Once all other processes have exited: lets it finish its queue and exit. */
static void end_recorder(struct master *m)
{
	m->recorder_may_end = true;
	m->deadline_ns = clock_now_ns() + END_NS;
	notify(m, ROLE_RECORDER, CONTROL_NOW);
}

static void drain(struct master *m)
{
	uint64_t drain_ms = m->options->drain_ms ? m->options->drain_ms : DRAIN_MS;

	enter(m, PHASE_DRAINING, CONTROL_DRAIN, drain_ms * NS_PER_MS);
	listeners_close(&m->listeners); /* the front has its own copies and goes on answering */
}

static void on_stop(struct master *m)
{
	if (m->phase <= PHASE_SERVING)
		drain(m);
	else
		enter(m, PHASE_ENDING, CONTROL_NOW, END_NS);
}

static void on_late(struct master *m)
{
	if (m->phase == PHASE_DRAINING) {
		enter(m, PHASE_ENDING, CONTROL_NOW, END_NS);
		return;
	}
	m->deadline_ns = clock_now_ns() + END_NS;
	for (enum serve_role i = 0; i < ROLES; i++)
		if (i != ROLE_RECORDER || m->recorder_may_end)
			kill_child(&m->child[i]);
}

/* ---- ends of children --------------------------------------------------------------------------------------- */

/*
 * If several processes fail at startup, prefer the error code of the one that failed by itself over those that only
 * lost a peer; each has logged its reason.
 */
static void on_failed_start(struct master *m, const siginfo_t *how)
{
	enum brig_code code = BRIG_E_SYSTEM;

	if (how->si_code == CLD_EXITED && how->si_status >= BRIG_E_USAGE && how->si_status < BRIG_E_SYSTEM)
		code = (enum brig_code)how->si_status;
	if (m->why.code == 0 || code != BRIG_E_SYSTEM)
		(void)err_set(&m->why, code, 0, "the service could not be started");
	if (m->phase == PHASE_STARTING)
		enter(m, PHASE_ENDING, CONTROL_NOW, END_NS);
}

static bool is_worth_a_start(struct child *c)
{
	uint64_t now = clock_now_ns();

	if (now - c->window_ns > START_WINDOW_NS) {
		c->window_ns = now;
		c->n_starts = 0;
	}
	return ++c->n_starts <= STARTS_MAX && ++c->n_vain <= VAIN_STARTS_MAX;
}

/* Restarts a process, or drains the service if that is useless. */
static void replace(struct master *m, enum serve_role role)
{
	if (!is_worth_a_start(&m->child[role]))
		(void)err_set(&m->why, BRIG_E_SYSTEM, 0,
			      "the %s of the service dies as often as it is started: it is given up", role_name[role]);
	else if (start_again(m, role, &m->why) == 0) {
		if (role == ROLE_FRONT)
			offer_certificate(m);
		return;
	}
	if (m->phase == PHASE_SERVING)
		drain(m);
	else if (role == ROLE_RECORDER)
		enter(m, PHASE_ENDING, CONTROL_NOW, END_NS); /* executions could not be recorded any more */
}

/* The recorder exits with status 0 in order to be restarted with a reloaded policy. */
static bool is_reload(enum serve_role role, const siginfo_t *how)
{
	return role == ROLE_RECORDER && how->si_code == CLD_EXITED && how->si_status == 0;
}

/* Whether a process is restarted: any while the service serves, the recorder as long as records may come. */
static bool is_needed(const struct master *m, enum serve_role role)
{
	return m->phase == PHASE_SERVING || (role == ROLE_RECORDER && m->is_announced && !m->recorder_may_end);
}

/* A child has exited; the phase determines what follows. */
static void on_end(struct master *m, enum serve_role role)
{
	struct child *c = &m->child[role];
	siginfo_t how = { 0 };

	if (proc_reap(&c->pidfd, clock_now_ns() + END_NS, &how) < 0)
		fd_closep(&c->pidfd);
	fd_closep(&c->control);
	if ((is_needed(m, role) && !is_reload(role, &how)) || (m->phase == PHASE_STARTING && how.si_code != CLD_EXITED))
		report("the %s of the service has ended (%s %d)%s", role_name[role],
		       how.si_code == CLD_EXITED ? "status" : "signal", how.si_status,
		       is_needed(m, role) ? "; it is started anew" : "");
	if (is_needed(m, role))
		replace(m, role);
	else if (m->phase == PHASE_STARTING || (m->why.code != 0 && !m->is_announced))
		on_failed_start(m, &how);
}

/* ---- control messages, and the loop ------------------------------------------------------------------------------------- */

static void announce(const struct master *m)
{
	AUTO_BUF text = BUF_INIT(4 * KiB);

	for (size_t i = 0; i < m->listeners.n; i++)
		if (!m->listeners.item[i].is_unix)
			(void)buf_addf(&text, "ready %s://%s\n", scheme_of(m), m->listeners.item[i].address);
	for (size_t i = 0; i < m->listeners.n; i++)
		if (m->listeners.item[i].is_unix && !m->listeners.item[i].is_records)
			(void)buf_addf(&text, "ready unix:%s\n", m->listeners.item[i].address);
	if (m->options->is_worker)
		(void)buf_addf(&text, "ready worker %s\n", m->options->node_name);
	(void)fd_write_all(STDOUT_FILENO, buf_str(&text), text.len);
	memory_rest(); /* from now on the master only waits */
}

static void on_ready(struct master *m, struct child *c)
{
	c->is_ready = true;
	c->n_vain = 0;
	for (enum serve_role i = 0; i < ROLES; i++)
		if (has_child(m, i) && !m->child[i].is_ready)
			return;
	if (m->phase != PHASE_STARTING)
		return;
	m->phase = PHASE_SERVING;
	m->is_announced = true;
	announce(m);
}

static void on_word(struct master *m, enum serve_role role)
{
	struct child *c = &m->child[role];
	struct control_message w;
	int rc = control_receive(c->control, &w);

	if (rc < 0)
		fd_closep(&c->control); /* the pidfd reports the exit separately */
	else if (rc > 0 && w.kind == CONTROL_READY)
		on_ready(m, c);
	else if (rc > 0 && w.kind == CONTROL_CUT && role == ROLE_RUNNER && w.number == m->channel_number)
		kill_child(&m->child[ROLE_FRONT]);
	else if (rc > 0 && w.kind == CONTROL_KEEPER && role == ROLE_RUNNER && w.n_fds == 1)
		keepers_start(&m->keepers, w.fds[0], w.number == 1);
	else if (rc > 0 && w.kind == CONTROL_RELOAD && role == ROLE_RUNNER)
		/* only now: the recorder could not start again with an invalid policy */
		notify(m, ROLE_RECORDER, CONTROL_RELOAD);
	else if (rc > 0 && (w.kind == CONTROL_TAKEN || w.kind == CONTROL_REFUSED) && role == ROLE_FRONT)
		on_certificate(m, &w);
	control_close(&w);
}

/*
 * The ceilings first: the policy that the runner reads next must not exceed them, and if they cannot be derived the
 * runner must not use that policy either.
 */
static void on_reload(struct master *m)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (keepers_read_policy(&m->keepers, m->options, &err) < 0)
		report("the policy was not reloaded, the old one stays in force: %s", err.msg);
	else
		notify(m, ROLE_RUNNER, CONTROL_RELOAD);
	reload_certificate(m);
}

static void on_signals(struct master *m)
{
	char signs[16];
	ssize_t n = read(m->signals, signs, sizeof(signs));

	for (ssize_t i = 0; i < n; i++)
		if (signs[i] == 'h')
			on_reload(m);
		else
			on_stop(m);
}

/* Standard input has ended: the parent that holds its other end has exited, or asks the service to stop. */
static void on_input(struct master *m)
{
	char ignored[64];
	ssize_t n = read(STDIN_FILENO, ignored, sizeof(ignored));

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	m->input_has_ended = true;
	on_stop(m);
}

static int patience_ms(const struct master *m)
{
	uint64_t now = clock_now_ns();

	if (m->deadline_ns == UINT64_MAX)
		return -1;
	return m->deadline_ns <= now ? 0 : (int)min_u64((m->deadline_ns - now) / NS_PER_MS + 1, 60000);
}

/* 1: continue; 0: all processes have exited; -code. */
static int go_on(struct master *m, struct brig_error *err)
{
	bool minds_input = m->options->ends_with_input && !m->input_has_ended;
	struct pollfd p[3 + 2 * ROLES] = {
		{ .fd = m->signals, .events = POLLIN },
		[1 + 2 * ROLES] = { .fd = minds_input ? STDIN_FILENO : -1, .events = POLLIN },
		[2 + 2 * ROLES] = { .fd = m->keepers.ended, .events = POLLIN },
	};

	for (size_t i = 0; i < ROLES; i++) {
		p[1 + i] = (struct pollfd){ .fd = m->child[i].control, .events = POLLIN };
		p[1 + ROLES + i] = (struct pollfd){ .fd = m->child[i].pidfd, .events = POLLIN };
	}
	if (poll(p, ARRAY_LEN(p), patience_ms(m)) < 0)
		return errno == EINTR ? 1 : err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the service");
	if (p[0].revents)
		on_signals(m);
	if (p[1 + 2 * ROLES].revents)
		on_input(m);
	if (p[2 + 2 * ROLES].revents)
		keepers_reap(&m->keepers);
	for (enum serve_role i = 0; i < ROLES; i++) {
		if (p[1 + i].revents)
			on_word(m, i);
		if (p[1 + ROLES + i].revents)
			on_end(m, i);
	}
	if (clock_now_ns() >= m->deadline_ns)
		on_late(m);
	if (is_there(&m->child[ROLE_RUNNER]) || is_there(&m->child[ROLE_FRONT]) || is_there(&m->child[ROLE_LINK]))
		return 1;
	if (!m->recorder_may_end)
		end_recorder(m);
	if (is_there(&m->child[ROLE_RECORDER]))
		return 1;
	if (m->why.code != 0)
		*err = m->why;
	return -(int)m->why.code;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

/* Each connection needs a descriptor, and each cell several. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* Through a descriptor, so that a package upgrade does not mix processes of two versions. */
static int open_program(struct master *m, struct brig_error *err)
{
	m->program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return m->program < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot open this program to start its parts") : 0;
}

static void kill_rest(struct master *m)
{
	m->phase = PHASE_ENDING;
	m->recorder_may_end = true;
	on_late(m);
	for (enum serve_role i = 0; i < ROLES; i++)
		if (is_there(&m->child[i]))
			on_end(m, i);
}

/* The domain for servers in sessions. */
static int check_domain(struct serve_options *o, struct brig_error *err)
{
	struct host host;

	if (!o->port_domain)
		o->port_domain = "localhost";
	if (host_parse(o->port_domain, strlen(o->port_domain), false, &host) && !host.is_address)
		return 0;
	return err_set(err, BRIG_E_USAGE, 0,
		       "--port-domain '%.100s' is no name of a domain: give one such as sandbox.example.org",
		       o->port_domain);
}

/* Everything that can fail for the user's configuration comes before the first process is started. */
static int open_all(struct master *m, struct serve_options *own, struct brig_error *err)
{
	int rc = open_program(m, err);

	if (rc == 0)
		rc = check_domain(own, err);
	if (rc == 0 && own->tls_cert)
		rc = certificate_read(own->tls_cert, own->tls_key, &m->in_use, err);
	if (rc == 0 && !own->is_worker)
		rc = listeners_open(&m->listeners, own, err);
	for (size_t i = 0; i < m->listeners.n && !own->unix_path; i++) /* a unix socket that systemd passed */
		if (m->listeners.item[i].is_unix)
			own->unix_path = m->listeners.item[i].address;
	if (rc == 0)
		rc = catch_signals(m, err);
	if (rc == 0 && own->no_auth && !own->is_worker)
		report("NO AUTHENTICATION: everybody on this machine who can connect may run programs here "
		       "(--no-auth)");
	return rc == 0 ? keepers_open(&m->keepers, own, err) : rc;
}

static void close_all(struct master *m)
{
	kill_rest(m);
	keepers_close(&m->keepers, END_NS);
	fd_closep(&m->to_recorder);
	fd_closep(&m->of_recorder);
	fd_closep(&m->program);
	listeners_close(&m->listeners);
	certificate_close(&m->in_use);
	certificate_close(&m->offered);
}

int serve(const struct serve_options *options, struct brig_error *err)
{
	struct serve_options own = *options;
	struct master m = { .options = &own,
			    .keepers = KEEPERS_NONE,
			    .to_recorder = FD_NONE,
			    .of_recorder = FD_NONE,
			    .program = FD_NONE,
			    .signals = FD_NONE,
			    .deadline_ns = UINT64_MAX,
			    .why = BRIG_ERROR_INIT,
			    .in_use = CERTIFICATE_NONE,
			    .offered = CERTIFICATE_NONE };
	int rc;

	for (size_t i = 0; i < ROLES; i++)
		m.child[i].pidfd = m.child[i].control = FD_NONE;
	report_begin(NULL, own.json_log);
	raise_files();
	rc = open_all(&m, &own, err);
	if (rc == 0)
		rc = start_all(&m, err);
	if (rc == 0)
		do
			rc = go_on(&m, err);
		while (rc == 1);
	close_all(&m);
	return rc;
}
