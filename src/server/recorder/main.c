/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the recorder of the service
 *
 * The runner has the rights it needs for its runs; if it is compromised, it must not be able to rewrite what was
 * recorded.  So it has no descriptor of audit log and history, and sends records to this process to append.  The
 * messages, and which parts of them are trusted, are defined by the library (brig_recorder_step();
 * src/executor/record_packet.h).  Here are only startup, loop and exit.
 *
 *	start     open policy and state directory; confine; tell the master that it is ready
 *	turn      handle messages
 *	end       when the master says so, or has gone: messages still in the socket are handled first
 *
 * The policy is read at startup only: to reload it, the recorder exits and the master starts another one.  No message
 * is lost, since the master keeps the socket open.
 */
#include <brig/recorder.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "server/recorder/recorder.h"
#include "server/report.h"
#include "server/serve.h"
#include "server/control.h"
#include "sys/memory.h"
#include "sys/statedir.h"

#define SAFE_FD        64  /* above the numbers that descriptors are moved to */
#define COMPLAINTS_MAX 100 /* reports of invalid messages, which could fill the log */

struct recorder_life {
	int socket, master;
	struct brig *b;
	struct brig_recorder *recorder;
	unsigned complaints;
	sigset_t awake; /* signal mask while it waits */
};

static void complain(const struct brig_error *err)
{
	report("%s", err->msg);
}

static int put_at(int *fd, int place)
{
	if (dup3(*fd, place, O_CLOEXEC) < 0)
		return -errno;
	*fd = place;
	return 0;
}

/* Keeps stderr, the socket and the control socket; closes all other inherited descriptors. */
static int take_descriptors(struct recorder_life *l)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int rc;

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	if ((rc = fd_move_up(&l->socket, SAFE_FD)) < 0 || (rc = fd_move_up(&l->master, SAFE_FD)) < 0 ||
	    (rc = put_at(&l->socket, STDERR_FILENO + 1)) < 0 || (rc = put_at(&l->master, STDERR_FILENO + 2)) < 0)
		return rc;
	null = FD_NONE; /* closed by close_range() */
	return close_range(STDERR_FILENO + 3, ~0U, 0) < 0 ? -errno : 0;
}

/* path: the resolved state directory, since the variables that determine it are wiped later. */
static int open_parts(struct recorder_life *l, const struct serve_options *options, char *path, size_t size,
		      struct brig_error *err)
{
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	int rc = statedir_path(options->state, path, size, err);

	if (rc < 0)
		return rc;
	opts.policy_file = options->policy;
	opts.preset = options->preset;
	opts.state_dir = path;
	rc = brig_open(&opts, &l->b, err);
	return rc < 0 ? rc : brig_recorder_open(l->b, &l->recorder, err);
}

static int start_up(struct recorder_life *l, const struct serve_options *options, struct brig_error *err)
{
	const char *step = "";
	char path[STATEDIR_PATH_MAX];
	int rc = take_descriptors(l);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot sort its descriptors");
	rc = open_parts(l, options, path, sizeof(path), err);
	if (rc < 0)
		return rc;
	rc = recorder_confine(path, &step);
	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, -rc, "the recorder cannot be confined (%s)", step);
	rc = control_send(l->master, &(struct control_message){ .kind = CONTROL_READY });
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot tell the master that everything is in place");
	return 0;
}

/* Handles all waiting messages: 0 or -code. */
static int work(struct recorder_life *l)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int rc;

	while ((rc = brig_recorder_step(l->recorder, l->socket, &err)) == 1) {
		if (err.code && l->complaints++ < COMPLAINTS_MAX)
			complain(&err);
		err = (struct brig_error)BRIG_ERROR_INIT;
	}
	if (rc < 0)
		complain(&err);
	return rc;
}

/* Whether the master asks it to exit, or has gone. */
static bool is_told_to_end(const struct recorder_life *l)
{
	struct control_message w;
	int rc = control_receive(l->master, &w);

	control_close(&w);
	return rc < 0 || (rc > 0 && (w.kind == CONTROL_NOW || w.kind == CONTROL_RELOAD));
}

static int live(struct recorder_life *l)
{
	struct pollfd p[] = { { .fd = l->socket, .events = POLLIN }, { .fd = l->master, .events = POLLIN } };
	const struct timespec rest = { .tv_nsec = 0, .tv_sec = MEMORY_REST_NS / NS_PER_SEC };
	bool ends = false, rests = false;

	while (!ends) {
		int n = ppoll(p, ARRAY_LEN(p), rests ? NULL : &rest, &l->awake);

		if (n < 0 && errno != EINTR)
			return BRIG_E_SYSTEM;
		if (n < 0) /* they say nothing then */
			p[0].revents = p[1].revents = 0;
		if (n == 0)
			memory_rest();
		rests = n == 0;
		ends = p[1].revents != 0 && is_told_to_end(l);
		if (work(l) < 0)
			return BRIG_E_SYSTEM;
	}
	return 0;
}

static void on_child(int sig UNUSED)
{
}

int recorder_main(const struct recorder_args *args)
{
	/* SIGCHLD is unblocked only during ppoll(), so that exited children are reaped at once. */
	const struct sigaction act = { .sa_handler = on_child };
	struct recorder_life l = { .socket = args->socket, .master = args->master };
	struct brig_error err = BRIG_ERROR_INIT;
	sigset_t child;
	int status;

	(void)prctl(PR_SET_NAME, "brig-recorder");
	(void)signal(SIGPIPE, SIG_IGN); /* a broken pipe on stderr */
	(void)sigaction(SIGCHLD, &act, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, &l.awake);
	if (start_up(&l, args->options, &err) < 0) {
		complain(&err);
		return err.code;
	}
	status = live(&l);
	brig_recorder_close(l.recorder);
	brig_close(l.b);
	return status;
}
