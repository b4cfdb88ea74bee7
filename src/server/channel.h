/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way between front and runner, and between the command line and the front: records over a SOCK_SEQPACKET socket, in
 * their order, none of them torn.
 *
 * What is short travels in its record; what is longer in a sealed file in memory beside it, which the receiver maps and
 * nobody can change any more: no piece is ever waited for, and no record has to be put together.  The larger the file, the
 * more room its record takes in the socket, so that few of them are on their way at one time.  Nothing blocks: what the
 * socket does not take waits in a queue with a ceiling.  A peer that breaks the format, or lets the queue run over, is no
 * longer listened to; the master ends it, and starts a new one.
 */
#ifndef SERVER_CHANNEL_H
#define SERVER_CHANNEL_H

#include "base/err.h"

#define CHANNEL_TAG_MAX    0x7fffffffU /* of a front's asks; those above are the runner's own (runner/forwarded.c) */
#define CHANNEL_INLINE_MAX (48 * KiB)
#define CHANNEL_FDS_MAX    7
#define CHANNEL_QUEUE_MAX  (256 * MiB) /* of what waits to be sent */
#define CHANNEL_HELD_MAX   (1 * GiB)   /* with files in memory, which wait beside it */

enum record_type {
	RECORD_ASK,  /* front to runner: a request (fields.def); exactly one RECORD_ANSWER of its tag comes back */
	RECORD_GONE, /* front to runner: who asked has gone; an execution that only that client waits for is cancelled */
	RECORD_EVENT,  /* runner to front: status is an enum event_kind, the payload one JSON object */
	RECORD_ANSWER, /* runner to front: status is that of HTTP, the payload fields; the tag is free again */
	RECORD_CANCEL, /* front to runner: what was asked for is to end; its answer is waited for */
	RECORD_SIGNAL, /* front to runner: status is a signal for the program; it has no answer of its own */
	RECORD_TYPES
};

/* What happens to an execution while it lasts (docs/EVENTS.md); names as clients see them. */
enum event_kind {
	EVENT_queued,
	EVENT_started,
	EVENT_finding,
	EVENT_notice,
	EVENT_stdout,
	EVENT_stderr,
	EVENT_sample,
	EVENT_changed, /* below a watched folder of a session */
	EVENT_verdict, /* the last one: the answer follows, and has nothing to add */
	EVENT_result,  /* of a batch: a job's; the last one is done */
	EVENT_done,
	EVENT_KINDS
};
extern const char *const event_name[EVENT_KINDS];

struct record {
	uint32_t tag; /* chosen by who asked, unique among what is open */
	enum record_type type;
	uint16_t status;
	const void *data;
	size_t len;
	int fds[CHANNEL_FDS_MAX]; /* received: the receiver's, who closes them; at most CHANNEL_FDS_MAX - 1 are sent */
	size_t n_fds;
};

struct channel;

/* Takes the socket. */
int channel_new(int *sock, struct channel **ret, struct brig_error *err);
void channel_free(struct channel *c); /* NULL is fine */
int channel_fd(const struct channel *c);
/* What to wait for on that descriptor: POLLIN, and POLLOUT while something waits to be sent. */
short channel_events(const struct channel *c);

/* Sends or queues; descriptors in r->fds are sent as copies and stay the caller's.  -code: the channel is over. */
int channel_send(struct channel *c, const struct record *r, struct brig_error *err);
/* The same of one whose data are a sealed file already, which stays the caller's: r->len says how long it is. */
int channel_send_file(struct channel *c, const struct record *r, int file, struct brig_error *err);
/* Sends what waits, as far as the socket takes it. */
int channel_flush(struct channel *c, struct brig_error *err);
size_t channel_waiting(const struct channel *c); /* bytes that have not been sent, those in files included */
/* The next record: 1; 0: there is none now; -code: the other has gone, or what came is none.  What ret points to is the
 * channel's until the next call. */
int channel_receive(struct channel *c, struct record *ret, struct brig_error *err);

#endif
