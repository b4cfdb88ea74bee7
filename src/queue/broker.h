/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication of one process with NATS brokers.
 *
 * libnats has threads of its own: it connects, reconnects, encrypts, and calls back when a message arrives.  Here a
 * received message goes into a bounded queue, and a descriptor becomes readable; everything else is done by the one
 * thread that calls broker_step().  JetStream requests are messages with a reply subject, so nothing ever blocks on a
 * broker: a request is answered or expires, and its callback is called exactly once in either case.
 *
 * Messages from brokers are not trusted or interpreted here: data is passed on with its length, subjects as received.
 */
#ifndef QUEUE_BROKER_H
#define QUEUE_BROKER_H

#include "base/err.h"

#define BROKER_ROW_MAX       8192                  /* messages queued for broker_step() */
#define BROKER_ROW_BYTES_MAX ((size_t)(128 * MiB)) /* total size of these */
#define BROKER_REQUESTS_MAX  16384                 /* without a reply */
#define BROKER_SUBJECT_MAX   256
#define BROKER_HEADERS_MAX   2

struct broker;

struct broker_options {
	const char *urls; /* "nats://a:4222,b:4222" */
	const char *name; /* shown by brokers for this connection */
	bool tls;
	/* Contents, not files: the process that talks to brokers can open none.  NULL: none. */
	const char *ca, *cert, *key, *credentials;
};

struct broker_header {
	const char *name, *value;
};

/* A message that was received or is to be sent. */
struct broker_message {
	const char *subject;
	const char *reply; /* "": none */
	const void *data;
	size_t len;
	unsigned status;   /* of a received message: 404, 408, 409, 503 ...; 0: ordinary */
	uint64_t sequence; /* in its stream, for a received message that was requested by subject; 0: none */
	struct broker_header header[BROKER_HEADERS_MAX]; /* of a message to be sent; name NULL: none */
};

/* m is NULL: no reply in time; the request may or may not have been received. */
typedef void (*broker_reply_fn)(void *user, uint64_t arg, const struct broker_message *m);
typedef void (*broker_message_fn)(void *user, const struct broker_message *m);
typedef void (*broker_up_fn)(void *user, bool is_up);

struct broker_callbacks {
	broker_up_fn on_up;
	broker_message_fn on_message; /* from a subscription */
	void *user;
};

/* Loads the library and begins to connect; retries forever. */
int broker_open(const struct broker_options *o, const struct broker_callbacks *callbacks, struct broker **ret,
		struct brig_error *err);
int broker_fd(const struct broker *b);       /* readable: call broker_step() */
int broker_patience(const struct broker *b); /* milliseconds until broker_step() must be called anyway; -1: never */
void broker_step(struct broker *b);
bool broker_is_up(const struct broker *b);
/* Why there is no connection, as a sentence that says what to do; false: unknown. */
bool broker_trouble(struct broker *b, char *dst, size_t size);
size_t broker_payload_max(const struct broker *b);
uint64_t broker_dropped(const struct broker *b); /* messages that exceeded the limits of the queue */
size_t broker_waiting(const struct broker *b);   /* requests without a reply */

/* Also applies to later connections.  0 or -errno. */
int broker_subscribe(struct broker *b, const char *subject);
/* Ends all these subscriptions; messages that were received already are still delivered. */
void broker_unsubscribe(struct broker *b);
/* 0, or -errno: nothing was sent. */
int broker_publish(struct broker *b, const struct broker_message *m);
/* fn is called exactly once with arg, from broker_step(), and never before this function returns. */
int broker_request(struct broker *b, const struct broker_message *m, uint64_t patience_ns, broker_reply_fn fn,
		   uint64_t arg);
/* A reply subject for several messages, each of which is delivered to on_message: "INBOX.word". */
const char *broker_inbox(const struct broker *b);

#endif
