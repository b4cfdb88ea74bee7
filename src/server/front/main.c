/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - startup of the front */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "server/doors/door.h"
#include "server/front/websocket.h"
#include "server/control.h"
#include "server/report.h"
#include "sys/crypto.h"
#include "sys/memory.h"

#define SAFE_FD     64
#define OTHER_FILES (128 + RELAYS_MAX + FRONT_PORTS_MAX) /* descriptors other than HTTP connections */

static const uint64_t default_ms[DEADLINE_KINDS] = {
	[DEADLINE_HEAD] = 5000,    [DEADLINE_BODY] = 10000,  [DEADLINE_WRITE] = 10000,
	[DEADLINE_IDLE] = 60000,   [DEADLINE_LINGER] = 2000, [DEADLINE_PING] = 15000,
	[DEADLINE_OPENING] = 1000, [DEADLINE_SOON] = 5000,   [DEADLINE_PORT] = 600000,
};

static void set_deadlines(struct front *f)
{
	const uint64_t wanted[DEADLINE_KINDS] = {
		[DEADLINE_HEAD] = f->options->head_ms,
		[DEADLINE_BODY] = f->options->body_ms,
		[DEADLINE_IDLE] = f->options->idle_ms,
	};

	for (size_t i = 0; i < DEADLINE_KINDS; i++)
		f->deadline[i].length_ns = (wanted[i] ? wanted[i] : default_ms[i]) * NS_PER_MS;
}

/* The configured number of connections, limited by the number of descriptors. */
static void set_connections(struct front *f)
{
	struct rlimit files;

	f->connections = f->options->connections ? f->options->connections : FRONT_CONNECTIONS;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < f->connections + FRONT_REFUSED_MAX + OTHER_FILES)
		f->connections = files.rlim_cur > 2 * OTHER_FILES + FRONT_REFUSED_MAX
					 ? (uint32_t)files.rlim_cur - OTHER_FILES - FRONT_REFUSED_MAX
					 : OTHER_FILES / 4;
	f->connections_of_peer = f->connections / 4 > 8 ? f->connections / 4 : 8;
}

/* Moves the descriptor to this number: 0 or -errno. */
static int put_at(int *fd, int number)
{
	int rc = dup3(*fd, number, O_CLOEXEC) < 0 ? -errno : 0;

	*fd = number;
	return rc;
}

/*
 * Keeps only its sockets and stderr; closes everything else inherited.  All are moved up first, so that none overwrites
 * another.
 */
static int take_descriptors(struct front_args *b)
{
	int *mine[LISTENERS_MAX + 2 + CERTIFICATE_FILES] = { &b->channel, &b->master }, rc = 0;
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t n = 2;

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	for (size_t i = 0; i < b->n_listeners; i++)
		mine[n++] = &b->listener[i].fd;
	for (size_t i = 0; i < CERTIFICATE_FILES && certificate_is_there(&b->certificate); i++)
		mine[n++] = &b->certificate.fd[i];
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = fd_move_up(mine[i], SAFE_FD);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_at(mine[i], STDERR_FILENO + 1 + (int)i);
	if (rc == 0 && close_range((unsigned)(STDERR_FILENO + 1 + (int)n), ~0U, 0) < 0)
		rc = -errno;
	null = FD_NONE; /* closed by close_range() */
	return rc;
}

/*
 * All fronts share the listener's open file description, so options set by an earlier, possibly compromised front are
 * reset.
 */
static int renew(int listener)
{
	const struct linger none = { .l_onoff = 0 };

	if (fd_set_nonblock(listener) < 0 || setsockopt(listener, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) < 0)
		return -errno;
	return 0;
}

static int set_up(struct front *f, const struct front_args *args, struct brig_error *err)
{
	int channel = args->channel;

	f->options = args->options;
	f->body_max = args->options->body_max ? args->options->body_max : FRONT_BODY_MAX;
	f->now_ns = clock_now_ns();
	f->was_busy = true; /* memory used during startup is returned as after a request */
	f->rest_ns = f->now_ns + MEMORY_REST_NS;
	relays_init(f);
	set_deadlines(f);
	set_connections(f);
	if (f->options->tls_cert &&
	    (tls_open(&f->tls, err) < 0 || front_use_certificate(f, &args->certificate, err) < 0))
		return -err->code;
	if (doors_have_sockets(&f->options->doors) && websocket_load(err) < 0)
		return -err->code;
	if (f->options->librechat_key)
		crypto_warm_up(); /* before the confinement, which forbids what its initialisation does */
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (f->epoll < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for connections");
	if (channel_new(&channel, &f->channel, err) < 0)
		return -err->code;
	f->channel_source = (struct source){ .kind = SOURCE_CHANNEL, .fd = channel_fd(f->channel) };
	f->master_source = (struct source){ .kind = SOURCE_MASTER, .fd = args->master };
	front_watch(f, &f->channel_source, EPOLLIN);
	front_watch(f, &f->master_source, EPOLLIN);
	for (; f->n_listeners < args->n_listeners; f->n_listeners++) {
		struct watched_listener *d = &f->listener[f->n_listeners];

		d->listener = &args->listener[f->n_listeners];
		d->source = (struct source){ .kind = SOURCE_LISTENER, .fd = d->listener->fd };
		front_watch(f, &d->source, EPOLLIN);
		if (d->source.events == 0 || renew(d->source.fd) < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot listen at %s", d->listener->address);
	}
	return 0;
}

int front_main(const struct front_args *given)
{
	struct front_args own = *given, *args = &own;
	struct brig_error err = BRIG_ERROR_INIT;
	struct front *f = calloc(1, sizeof(*f));
	const char *step = "";
	int rc;

	(void)prctl(PR_SET_NAME, "brig-front");
	(void)signal(SIGPIPE, SIG_IGN); /* a broken pipe on stderr */
	if (!f)
		return BRIG_E_NOMEM;
	rc = take_descriptors(args);
	if (rc < 0)
		(void)err_set(&err, BRIG_E_SYSTEM, -rc, "cannot sort its descriptors");
	if (rc < 0 || set_up(f, args, &err) < 0) {
		report("%s", err.msg);
		return err.code;
	}
	certificate_close(&args->certificate);
	if (front_lacks_landlock()) /* tested before the filter, which forbids the call */
		log_trouble(f, "this kernel has no Landlock: the front is held by its system call filter and its ids "
			       "alone; see landlock of 'brig doctor'");
	rc = front_confine(&step);
	if (rc < 0) {
		(void)err_set(&err, BRIG_E_REFUSED, -rc, "the front cannot be confined (%s)", step);
		log_trouble(f, err.msg);
		return err.code;
	}
	if (control_send(args->master, &(struct control_message){ .kind = CONTROL_READY }) < 0)
		return BRIG_E_SYSTEM;
	return front_run(f);
}
