/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link: the process of the service that talks to brokers (docs/QUEUE.md).
 *
 *	main       startup, the loop, the channel to the runner
 *	confine    the process gives up its rights before it receives data from a broker
 *	places     the stream and the buckets, created where they are missing
 *	ops        operations for the runner and their answers; messages that brokers deliver
 *	lists      listing the keys of a bucket
 *	pulls      fetching jobs, as many as the runner grants credit for
 *	bodies     messages longer than a broker carries, in pieces
 *
 * It makes no decisions: it transmits what the runner has sealed, and parses what others have sealed (server/seal.h),
 * so that the runner receives flat, checked messages.  The runner decides what is valid, who may run what, and what
 * becomes of a job.  The link has no state that must survive it: a new link is told everything again.
 *
 *   RULE L1  Each operation is answered once, whatever a broker does: done, taken, none, or trouble, after which it may
 *   be repeated.
 *   RULE L2  Everything that can grow has a limit; what exceeds it is dropped and counted, and requested again by the
 *   side that needs it.
 */
#ifndef SERVER_LINK_LINK_H
#define SERVER_LINK_LINK_H

#include "queue/broker.h"
#include "server/channel.h"
#include "server/link/protocol.h"
#include "server/message.h"
#include "server/seal.h"
#include "server/serve.h"

#define LINK_STREAM        "BRIG_JOBS"
#define LINK_JOBS          "brig.jobs."
#define LINK_REQUEST_NS    (2 * NS_PER_SEC)
#define LINK_TRANSFERS_MAX 64
#define LINK_CLASSES_MAX   1024
#define LINK_REPLICAS_MAX  3

struct link_consumer {
	char class[161], name[161];
	bool is_made, is_asked, is_pulling;
	bool is_later;     /* other nodes are warm: it is polled with pauses instead of waited for */
	bool is_standing;  /* the current pull waits at the broker, it is not a poll */
	uint64_t until_ns; /* when the pull expires */
	uint64_t look_ns;  /* next poll, if is_later */
};

struct transfer;

struct link {
	const struct serve_options *options;
	struct broker *broker;
	struct channel *channel; /* to the runner; NULL: none at present */
	int master;
	bool is_over, draining, is_up /* as last reported to the runner */;
	char told[400]; /* the last reported reason why no broker is connected */
	unsigned replicas;
	/* places.c */
	size_t n_places; /* number of those that exist */
	bool is_placing;
	uint64_t place_again_ns;
	uint64_t stats_ns; /* when the stream's state was queried last */
	/* pulls.c */
	struct link_consumer *consumer;
	size_t n_consumers;
	uint64_t credit, given;
	uint64_t pause_ns; /* between two polls for jobs of a class */
	uint64_t patience_ns;
	/* bodies.c */
	struct transfer *transfers;
	size_t n_transfers;
	uint64_t n_refused;
};

/* main.c */
void link_send(struct link *l, uint32_t tag, enum link_op op, const struct buf *message);
/* Reports invalid data from a broker to the runner. */
void link_complain(struct link *l, const char *where, const char *why);

/* confine.c: 0, or -errno and the step that failed.  Must be called before any thread is started. */
int link_confine(const char **ret_step);

/* places.c */
const char *link_bucket_name(enum link_bucket bucket);
void places_begin(struct link *l); /* a broker has connected */
void places_step(struct link *l);
bool places_are_there(const struct link *l);
void places_count(struct link *l); /* queries the number of jobs periodically */

/* ops.c */
/* False: the runner violates the protocol. */
bool ops_take(struct link *l, const struct record *r);
void ops_on_message(struct link *l, const struct broker_message *m);
void ops_done(struct link *l, uint32_t tag, const char *state, uint64_t revision);
void ops_trouble(struct link *l, uint32_t tag, const char *why);
/* Error code in a broker's JSON answer; 0: none; -1: invalid answer. */
int ops_error_of(const struct broker_message *m, uint64_t *ret_sequence);

/* Whether the text is a valid subject pattern with "*" as whole tokens, and without other special characters. */
bool ops_is_pattern(const char *text);

/* lists.c */
bool lists_take(struct link *l, uint32_t tag, const struct message *m);
/*
 * Copies the subjects listed by a stream as fields of the answer; *ret_strange: how many are no keys below the prefix.
 * False: invalid, or too many.
 */
bool list_read(const void *bytes, size_t len, const char *prefix, struct buf *out, size_t *ret_strange);

/* pulls.c */
void pulls_set_classes(struct link *l, const struct message *m);
void pulls_set_later(struct link *l, const struct message *m);
void pulls_forget(struct link *l); /* the connection has changed: pending requests are void */
void pulls_step(struct link *l);
int pulls_patience(const struct link *l, int wait_ms);
/* Returns a job that the runner does not get: to the stream for another node, or, if it is invalid, terminates it. */
void pulls_return(struct link *l, const char *ack, bool is_for_nobody);
/* Handles a message for a pull; false: it is none. */
bool pulls_on_message(struct link *l, const struct broker_message *m);

/* bodies.c */
/* Destination of a complete message. */
struct destination {
	uint32_t tag; /* of LINK_GET; 0: a job, or a delivered message */
	uint64_t revision;
	char subject[BROKER_SUBJECT_MAX]; /* of a job: the reply subject; of other messages: their own */
	enum link_op op;
};
/* Delivers bytes from a broker to the runner, fetching pieces if necessary. */
void bodies_deliver(struct link *l, const struct destination *to, const void *bytes, size_t len);
/*
 * Called with what is to be sent: the sealed bytes or, if they are too long, a stub for pieces that were put into the
 * bucket before.
 */
typedef void (*body_fn)(struct link *l, void *arg, const void *bytes, size_t len);
/* Takes arg, which is freed after fn was called.  bytes NULL: the pieces could not be put. */
void bodies_send(struct link *l, struct buf *whole, body_fn fn, void *arg);
void bodies_forget(struct link *l); /* the runner has gone */

#endif
