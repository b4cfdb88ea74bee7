/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers of NATS, as one process speaks to them.
 *
 * libnats has threads of its own: it connects, connects anew, encrypts, and calls back when a message has come.  Here a
 * message that has come goes into a row with a ceiling, and a descriptor becomes readable; everything else is done by the one
 * thread that calls broker_step().  Whatever is asked of JetStream is a message with a place to reply to, so nothing ever
 * waits for a broker: a request is answered, or its time is over, and the caller is told in either case, once.
 *
 * What a broker sends is believed by nobody: bytes are handed on with their length, subjects as they came.
 */
#ifndef QUEUE_BROKER_H
#define QUEUE_BROKER_H

#include "base/err.h"

#define BROKER_ROW_MAX       8192                  /* messages that wait for broker_step() */
#define BROKER_ROW_BYTES_MAX ((size_t)(128 * MiB)) /* and their bytes */
#define BROKER_REQUESTS_MAX  16384                 /* that wait for a reply */
#define BROKER_SUBJECT_MAX   256
#define BROKER_HEADERS_MAX   2

struct broker;

struct broker_options {
	const char *urls; /* "nats://a:4222,b:4222" */
	const char *name; /* that brokers show for this connection */
	bool tls;
	/* Contents, not files: who speaks to brokers can open none.  NULL: none. */
	const char *ca, *cert, *key, *credentials;
};

struct broker_header {
	const char *name, *value;
};

/* What was sent or is to be sent. */
struct broker_message {
	const char *subject;
	const char *reply; /* "": none */
	const void *data;
	size_t len;
	unsigned status;   /* of one that came: 404, 408, 409, 503 ...; 0: it is an ordinary one */
	uint64_t sequence; /* in its stream, of one that was asked for by its subject; 0: it says none */
	struct broker_header header[BROKER_HEADERS_MAX]; /* of one that is to be sent; name NULL: none */
};

/* m is NULL: no reply came in time, and the request may or may not have been heard. */
typedef void (*broker_reply_fn)(void *user, uint64_t arg, const struct broker_message *m);
typedef void (*broker_message_fn)(void *user, const struct broker_message *m);
typedef void (*broker_up_fn)(void *user, bool is_up);

struct broker_callbacks {
	broker_up_fn on_up;
	broker_message_fn on_message; /* of a subscription */
	void *user;
};

/* Loads the library and begins to connect; it goes on trying for ever. */
int broker_open(const struct broker_options *o, const struct broker_callbacks *callbacks, struct broker **ret,
		struct brig_error *err);
int broker_fd(const struct broker *b);       /* readable: broker_step() has something to do */
int broker_patience(const struct broker *b); /* milliseconds until it has without that; -1: never */
void broker_step(struct broker *b);
bool broker_is_up(const struct broker *b);
/* Why there has been none since the last one, in a sentence that says what to do; false: nothing is known of it. */
bool broker_trouble(struct broker *b, char *dst, size_t size);
size_t broker_payload_max(const struct broker *b);
uint64_t broker_dropped(const struct broker *b); /* messages for which there was no room */
size_t broker_waiting(const struct broker *b);   /* requests without a reply */

/* Also on connections to come.  0 or -errno. */
int broker_subscribe(struct broker *b, const char *subject);
/* All that was subscribed to by the above; what has come already is handed over all the same. */
void broker_unsubscribe(struct broker *b);
/* 0, or -errno: nothing was sent. */
int broker_publish(struct broker *b, const struct broker_message *m);
/* fn is called once, with arg, from broker_step(): never before this returns. */
int broker_request(struct broker *b, const struct broker_message *m, uint64_t patience_ns, broker_reply_fn fn,
		   uint64_t arg);
/* A place to reply to for more than one message, each of which comes to on_message: "INBOX.word". */
const char *broker_inbox(const struct broker *b);

#endif
