/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link: the process of the service that speaks to brokers (docs/QUEUE.md).
 *
 *	main       args, the loop, the channel to the runner
 *	confine    what is taken from it before it hears a broker
 *	places     the stream and the buckets, which it makes where they are missing
 *	ops        what the runner wants done, and its answer; told: what brokers send by themselves
 *	lists      which keys of a bucket there are
 *	pulls      jobs, as many as the runner has room for
 *	bodies     what is longer than a broker carries, in pieces
 *
 * It is a hand and no head: it writes what the runner has sealed, and reads what others have (server/seal.h), so that the
 * runner gets flat, checked messages.  What is true, who may run what and what becomes of a job the runner decides.  It holds
 * nothing that would be lost with it: who is started in its place is told everything anew.
 *
 *   RULE L1  One answer for each ask, whatever a broker does: done, taken, none, or trouble, after which it may be asked again.
 *   RULE L2  Everything that grows has a ceiling; what is over it is dropped and counted, and asked for again by who needs it.
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
	bool is_later;     /* others have it warm: it is looked for now and then, and not waited for */
	bool is_standing;  /* the pull waits at the broker, and is no look */
	uint64_t until_ns; /* that the pull lasts */
	uint64_t look_ns;  /* of a later one: when it is looked for next */
};

struct transfer;

struct link {
	const struct serve_options *options;
	struct broker *broker;
	struct channel *channel; /* to the runner; NULL: there is none now */
	int master;
	bool is_over, draining, is_up /* as the runner was told */;
	char told[400]; /* why there is no broker, as was said last */
	unsigned replicas;
	/* places.c */
	size_t n_places; /* that are there */
	bool is_placing;
	uint64_t place_again_ns;
	uint64_t stats_ns; /* when the stream was last asked how it is */
	/* pulls.c */
	struct link_consumer *consumer;
	size_t n_consumers;
	uint64_t credit, given;
	uint64_t pause_ns; /* between two looks for jobs of a class */
	uint64_t patience_ns;
	/* bodies.c */
	struct transfer *transfers;
	size_t n_transfers;
	uint64_t n_refused;
};

/* main.c */
void link_send(struct link *l, uint32_t tag, enum link_op op, const struct buf *message);
/* Something of strangers that is not taken: told to the runner, with what it was. */
void link_complain(struct link *l, const char *where, const char *why);

/* confine.c: 0, or -errno with the step that failed.  Before a thread is there. */
int link_confine(const char **ret_step);

/* places.c */
const char *link_bucket_name(enum link_bucket bucket);
void places_begin(struct link *l); /* a broker is there */
void places_step(struct link *l);
bool places_are_there(const struct link *l);
void places_count(struct link *l); /* how many jobs there are, now and then */

/* ops.c */
/* False: the runner does not speak its language. */
bool ops_take(struct link *l, const struct record *r);
void ops_on_message(struct link *l, const struct broker_message *m);
void ops_done(struct link *l, uint32_t tag, const char *state, uint64_t revision);
void ops_trouble(struct link *l, uint32_t tag, const char *why);
/* What a broker's JSON says went wrong, by its number; 0: nothing did; -1: it is no answer. */
int ops_error_of(const struct broker_message *m, uint64_t *ret_sequence);

/* Words of a subject, of which some may stand for any; nothing else in it steers. */
bool ops_is_pattern(const char *text);

/* lists.c */
bool lists_take(struct link *l, uint32_t tag, const struct message *m);
/* What a stream tells of its subjects, as fields of the answer; how many of them are no keys below the prefix.  False: it tells nothing, or too much. */
bool list_read(const void *bytes, size_t len, const char *prefix, struct buf *out, size_t *ret_strange);

/* pulls.c */
void pulls_set_classes(struct link *l, const struct message *m);
void pulls_set_later(struct link *l, const struct message *m);
void pulls_forget(struct link *l); /* there is another broker, or none: what was asked of the last one is void */
void pulls_step(struct link *l);
int pulls_patience(const struct link *l, int wait_ms);
/* A job that the runner does not get: to another node, or, if it is for nobody, out of the stream. */
void pulls_return(struct link *l, const char *ack, bool is_for_nobody);
/* A message that came for a pull; false: it is none. */
bool pulls_on_message(struct link *l, const struct broker_message *m);

/* bodies.c */
/* Where bytes go when they are whole. */
struct destination {
	uint32_t tag; /* of LINK_GET; 0: it is a job, or told */
	uint64_t revision;
	char subject[BROKER_SUBJECT_MAX]; /* of a job, where words go; of what was told its own */
	enum link_op op;
};
/* Bytes of a broker's to the runner, from wherever they are. */
void bodies_deliver(struct link *l, const struct destination *to, const void *bytes, size_t len);
/* Sealed bytes, on their way out: *bytes is what is to be sent now, a piece of text where the whole is too long; then the pieces
 * have been put before, and fn is called with the text. */
typedef void (*body_fn)(struct link *l, void *arg, const void *bytes, size_t len);
/* Takes arg, which is freed after fn was called; bytes NULL: it could not be put. */
void bodies_send(struct link *l, struct buf *whole, body_fn fn, void *arg);
void bodies_forget(struct link *l); /* the runner has gone */

#endif
