/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel between front and runner, between runner and link, and between the command line and the front: records
 * over a SOCK_SEQPACKET socket, ordered and never split.
 *
 * A short payload travels in the record itself; a longer one in a sealed file in memory sent along with the record,
 * which the receiver maps and the sender cannot change any more.  So no receiver waits for fragments or reassembles
 * them.  The larger the file, the more of the socket's buffer its record occupies, so that only few large ones are in
 * flight (backpressure).  Nothing blocks: what the socket does not accept is put in a bounded queue.  A peer that
 * violates the format or lets the queue overflow is disconnected; the master kills it and starts a new one.
 */
#ifndef SERVER_CHANNEL_H
#define SERVER_CHANNEL_H

#include "base/err.h"

/* highest tag of a front's requests; the runner uses higher ones for its own (runner/forwarded.c) */
#define CHANNEL_TAG_MAX    0x7fffffffU
#define CHANNEL_INLINE_MAX (48 * KiB)
#define CHANNEL_FDS_MAX    7
#define CHANNEL_QUEUE_MAX  (256 * MiB) /* bytes of the send queue in this process */
#define CHANNEL_HELD_MAX   (1 * GiB)   /* the same plus the files in memory that queued records refer to */

enum record_type {
	/* front to runner: a request (fields.def), answered by exactly one RECORD_ANSWER with the same tag */
	RECORD_ASK,
	/* front to runner: the client has disconnected; an execution that only it waits for is cancelled */
	RECORD_GONE,
	RECORD_EVENT,  /* runner to front: status is an enum event_kind, the payload one JSON object */
	RECORD_ANSWER, /* runner to front: status is the HTTP status, the payload fields; the tag may be reused */
	RECORD_CANCEL, /* front to runner: cancel the request; its RECORD_ANSWER still follows */
	RECORD_SIGNAL, /* front to runner: status is a signal for the program; not answered */
	RECORD_TYPES
};

/* Events of an execution (docs/EVENTS.md); the names are those that clients see. */
enum event_kind {
	EVENT_queued,
	EVENT_started,
	EVENT_finding,
	EVENT_notice,
	EVENT_stdout,
	EVENT_stderr,
	EVENT_sample,
	EVENT_changed, /* a change below a watched directory of a session */
	EVENT_verdict, /* the last one: only the answer follows, and adds nothing */
	EVENT_result,  /* of a batch: the result of one job; "done" is the last one */
	EVENT_done,
	EVENT_KINDS
};
extern const char *const event_name[EVENT_KINDS];

struct record {
	uint32_t tag; /* chosen by the requesting side, unique among its open requests */
	enum record_type type;
	uint16_t status;
	const void *data;
	size_t len;
	/* received: owned by the receiver, which closes them; at most CHANNEL_FDS_MAX - 1 are sent */
	int fds[CHANNEL_FDS_MAX];
	size_t n_fds;
};

struct channel;

/* Takes ownership of the socket. */
int channel_new(int *sock, struct channel **ret, struct brig_error *err);
void channel_free(struct channel *c); /* NULL is allowed */
int channel_fd(const struct channel *c);
/* Events to poll for on that descriptor: POLLIN, and POLLOUT while the send queue is not empty. */
short channel_events(const struct channel *c);

/* Sends or queues.  Descriptors in r->fds are duplicated and stay the caller's.  -code: the channel is unusable. */
int channel_send(struct channel *c, const struct record *r, struct brig_error *err);
/* The same for a payload that is a sealed file already, of r->len bytes; the file stays the caller's. */
int channel_send_file(struct channel *c, const struct record *r, int file, struct brig_error *err);
/* Sends from the queue until it is empty or the socket is full. */
int channel_flush(struct channel *c, struct brig_error *err);
size_t channel_waiting(const struct channel *c); /* bytes in the send queue, including those in files */
/*
 * 1: *ret is the next record, valid until the next call; 0: none yet; -code: the peer has gone or violated the format.
 */
int channel_receive(struct channel *c, struct record *ret, struct brig_error *err);

#endif
