/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the link: startup, confinement, and the loop over broker, runner and master */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "queue/nats.h"
#include "server/link/link.h"
#include "server/control.h"
#include "server/report.h"

#define FILE_MAX        MiB /* of certificates and credentials */
#define RECORDS_OF_TURN 256
#define PATIENCE_MS     30000
#define COMPLAINTS_MAX  64 /* reports of invalid data; beyond that only every 64th */

/* ---- the runner ------------------------------------------------------------------------------------------------ */

/* The runner has gone or violates the protocol: its successor will repeat its operations. */
static void leave_runner(struct link *l)
{
	channel_free(MOVE_PTR(l->channel));
	bodies_forget(l);
	/* the next runner subscribes again; otherwise it would receive everything twice */
	broker_unsubscribe(l->broker);
	l->credit = l->given = 0;
}

void link_send(struct link *l, uint32_t tag, enum link_op op, const struct buf *m)
{
	const struct record r = {
		.tag = tag, .type = RECORD_ASK, .status = (uint16_t)op, .data = m->data, .len = m->len
	};
	struct brig_error err = BRIG_ERROR_INIT;

	if (l->channel && !m->full && !m->no_memory && channel_send(l->channel, &r, &err) < 0)
		leave_runner(l);
}

void link_complain(struct link *l, const char *where, const char *why)
{
	AUTO_BUF m = BUF_INIT(KiB);
	char text[400];

	if (l->n_refused++ >= COMPLAINTS_MAX && l->n_refused % COMPLAINTS_MAX != 0)
		return;
	(void)snprintf(text, sizeof(text), "%.200s: %.100s (%llu so far)", where, why,
		       (unsigned long long)l->n_refused);
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e)
			*at = '?';
	message_put_text(&m, FIELD_trouble, text);
	link_send(l, 0, LINK_TROUBLE, &m);
}

/* Reports whether a broker is connected and stream and buckets exist. */
static void tell_up(struct link *l, bool is_new)
{
	bool is_up = broker_is_up(l->broker) && places_are_there(l);
	AUTO_BUF m = BUF_INIT(KiB);

	if (is_up == l->is_up && !is_new)
		return;
	l->is_up = is_up;
	message_put_number(&m, FIELD_credit, is_up);
	link_send(l, 0, LINK_UP, &m);
	pulls_step(l);
}

static void join_runner(struct link *l, int *sock)
{
	struct brig_error err = BRIG_ERROR_INIT;

	leave_runner(l);
	if (channel_new(sock, &l->channel, &err) < 0)
		l->is_over = true;
	else
		tell_up(l, true);
}

static void hear_runner(struct link *l)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	int got = channel_flush(l->channel, &err);

	for (int i = 0; got >= 0 && i < RECORDS_OF_TURN && l->channel; i++) {
		got = channel_receive(l->channel, &r, &err);
		if (got <= 0)
			break;
		for (size_t k = 0; k < r.n_fds; k++)
			fd_closep(&r.fds[k]);
		if (!ops_take(l, &r))
			got = -EPROTO;
	}
	if (got < 0)
		leave_runner(l);
}

/* ---- broker and master ------------------------------------------------------------------------------------------ */

static void on_up(void *user, bool is_up)
{
	struct link *l = user;

	if (is_up)
		l->told[0] = '\0';
	places_begin(l);
	pulls_forget(l);
	places_step(l);
	tell_up(l, false);
}

static void on_message(void *user, const struct broker_message *m)
{
	ops_on_message(user, m);
}

static void hear_master(struct link *l)
{
	struct control_message w;
	int rc = control_receive(l->master, &w);

	if (rc < 0)
		l->is_over = true;
	else if (rc > 0 && (w.kind == CONTROL_DRAIN || w.kind == CONTROL_NOW))
		l->draining = true; /* the loop continues until the runner's last messages are sent */
	else if (rc > 0 && w.kind == CONTROL_CHANNEL && w.n_fds == 1)
		join_runner(l, &w.fds[0]);
	control_close(&w);
}

/* Logs why no broker is connected, once per reason. */
static void tell_trouble(struct link *l)
{
	char text[sizeof(l->told)];

	if (broker_is_up(l->broker) || !broker_trouble(l->broker, text, sizeof(text)) || str_eq(text, l->told))
		return;
	(void)str_copy(l->told, sizeof(l->told), text);
	report("%s; retrying", text);
}

/* When the service stops, the link runs until the runner has gone and its last messages have been sent. */
static bool is_done(const struct link *l)
{
	return l->draining && !l->channel && broker_waiting(l->broker) == 0;
}

static int live(struct link *l)
{
	while (!l->is_over && !is_done(l)) {
		struct pollfd p[] = { { .fd = l->master, .events = POLLIN },
				      { .fd = broker_fd(l->broker), .events = POLLIN },
				      { .fd = l->channel ? channel_fd(l->channel) : -1,
					.events = l->channel ? channel_events(l->channel) : 0 } };
		int wait_ms = pulls_patience(l, broker_patience(l->broker));

		if (!places_are_there(l))
			wait_ms = 100;
		else if (wait_ms < 0)
			wait_ms = 1000;
		if (poll(p, ARRAY_LEN(p), wait_ms) < 0 && errno != EINTR)
			return BRIG_E_SYSTEM;
		if (p[0].revents)
			hear_master(l);
		if (p[2].revents && l->channel)
			hear_runner(l);
		broker_step(l->broker);
		places_step(l);
		places_count(l);
		tell_up(l, false);
		tell_trouble(l);
		pulls_step(l);
	}
	return 0;
}

/* ---- startup --------------------------------------------------------------------------------- */

/* The whole file; NULL: *err. */
static char *read_text(const char *path, const char *what, struct brig_error *err)
{
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	char *text = fd >= 0 && st.st_size > 0 && (uint64_t)st.st_size <= FILE_MAX ? calloc(1, (size_t)st.st_size + 1)
										   : NULL;

	if (text && fd_read_all(fd, text, (size_t)st.st_size) == st.st_size)
		return text;
	free(text);
	(void)err_set(err, BRIG_E_USAGE, fd < 0 ? -fd : 0, "cannot read %s, %.200s", what, path);
	return NULL;
}

static int read_files(const struct serve_options *o, struct broker_options *ret, struct brig_error *err)
{
	const struct {
		const char *path, *what;
		const char **text;
	} files[] = { { o->queue_ca, "the certificates that brokers are known by", &ret->ca },
		      { o->queue_cert, "the certificate for brokers", &ret->cert },
		      { o->queue_key, "its key", &ret->key },
		      { o->queue_credentials, "the credentials for brokers", &ret->credentials } };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (files[i].path && !(*files[i].text = read_text(files[i].path, files[i].what, err)))
			return -err->code;
	ret->tls = o->queue_ca || strncmp(o->queue_url, "tls://", 6) == 0;
	return 0;
}

/* Three if at least three brokers are named, otherwise one. */
static unsigned choose_replicas(const char *urls)
{
	unsigned n = 1;

	for (; *urls; urls++)
		n += *urls == ',';
	return n >= LINK_REPLICAS_MAX ? LINK_REPLICAS_MAX : 1;
}

/* Keeps the standard streams and the sockets to master and runner; closes all others. */
static int take_descriptors(struct link_args *b)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int low = b->channel < b->master ? b->channel : b->master, high = low == b->channel ? b->master : b->channel;

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	fd_closep(&null);
	if ((low > STDERR_FILENO + 1 &&
	     syscall(SYS_close_range, (unsigned)STDERR_FILENO + 1, (unsigned)low - 1, 0) < 0) ||
	    (high > low + 1 && syscall(SYS_close_range, (unsigned)low + 1, (unsigned)high - 1, 0) < 0) ||
	    syscall(SYS_close_range, (unsigned)high + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

static int start_up(struct link *l, struct link_args *args, struct brig_error *err)
{
	const struct broker_callbacks callbacks = { .on_up = on_up, .on_message = on_message, .user = l };
	struct broker_options o = { .urls = args->options->queue_url, .name = "brig" };
	const char *step = "";
	int rc = take_descriptors(args);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot sort its descriptors");
	l->options = args->options;
	l->master = args->master;
	l->replicas = choose_replicas(o.urls);
	l->patience_ns =
		(args->options->queue_patience_ms ? args->options->queue_patience_ms : PATIENCE_MS) * NS_PER_MS;
	if (read_files(args->options, &o, err) < 0 || !nats_library(err))
		return -err->code;
	rc = link_confine(&step);
	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, -rc, "the link cannot be confined (%s)", step);
	if (channel_new(&args->channel, &l->channel, err) < 0)
		return -err->code;
	return broker_open(&o, &callbacks, &l->broker, err);
}

int link_main(const struct link_args *given)
{
	struct link_args args = *given;
	struct brig_error err = BRIG_ERROR_INIT;
	struct link l = { .is_up = false };

	(void)prctl(PR_SET_NAME, "brig-link");
	(void)signal(SIGPIPE, SIG_IGN);
	if (start_up(&l, &args, &err) < 0) {
		report("%s", err.msg);
		return err.code;
	}
	if (control_send(l.master, &(struct control_message){ .kind = CONTROL_READY }) < 0)
		return BRIG_E_SYSTEM;
	return live(&l);
}
