/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner on a queue (docs/QUEUE.md): what it has the link do, and what it makes of what comes back.
 *
 *	queue         the channel to the link, asks that are answered later, seals
 *	queue_worker  jobs of the queue become executions here, and their results go back
 *	queue_host    what a worker says of the host that it is on
 *	queue_exchange  package sets and compiled programs that workers give each other
 *	queue_environments  environments that another node has, and this one does not yet
 *	queue_placement  which jobs it waits for, and which it leaves to others for a while
 *	queue_front   executions that were asked for here become jobs of the queue, and their results come back
 *	queue_keys    Idempotency-Keys, which all fronts know
 *	queue_execution_keys, queue_session_keys  what each means for executions, and for sessions
 *	queue_batches    batches that are asked for here become known to all fronts
 *	queue_batch_ask  batches of other fronts
 *	queue_batch_list  those that no front tells of any more, for lists
 *	queue_elsewhere  executions of other fronts, by their ids
 *	queue_watch   fronts that watch what runs here
 *	peers         whose seals count
 *
 * An ask is kept until it is answered, and asked again when a broker did not answer or the link has died: each can be asked
 * twice, since what is put says what it replaces, and what is published has its own name.
 *
 *   RULE Q1  Nothing of brokers is believed that no known key has sealed (server/seal.h).  What is sealed wrongly is named on
 *            standard error, counted, and as if it had not come.
 *   RULE Q2  A job begins when a claim with its number is in the bucket, and not before.
 *   RULE Q3  A job ends with one result in the bucket, which is put where none is, or not at all.
 */
#ifndef SERVER_RUNNER_QUEUE_H
#define SERVER_RUNNER_QUEUE_H

#include <sys/queue.h>

#include "base/buf.h"
#include "server/channel.h"
#include "server/link/protocol.h"
#include "server/runner/executions.h"
#include "server/runner/peers.h"
#include "server/runner/queue_exchange.h"
#include "server/seal.h"

#define QUEUE_OPS_MAX       16384
#define QUEUE_ATTEMPTS_MAX  3
#define QUEUE_EXPIRES_S     3600
#define QUEUE_PATIENCE_MS   30000
#define QUEUE_PUBLISH_NS    (15 * NS_PER_SEC)
#define QUEUE_ABSENT_NS     (2 * NS_PER_SEC) /* while no broker is there */
#define QUEUE_CLAIM_NS      (60 * NS_PER_SEC)
#define QUEUE_STORE_NS      (3600 * NS_PER_SEC)
#define QUEUE_ASK_NS        (10 * NS_PER_SEC)
#define QUEUE_LEASE_S       15 /* of a node's entry */
#define QUEUE_SUBJECT_FRONT "brig.front."
#define QUEUE_SUBJECT_STOP  "brig.cancel."
#define QUEUE_SUBJECT_WATCH "brig.watch."
#define QUEUE_SUBJECT_NODES "$KV.brig-nodes."
#define QUEUE_LOST          "lost"

enum queue_how { QUEUE_OK, QUEUE_TAKEN, QUEUE_NONE, QUEUE_FAILED };

struct queue_answer {
	enum queue_how how;
	uint64_t revision;
	const struct message *m; /* the record's, with what is sealed in it; of QUEUE_OK of a question */
	const char *trouble;     /* of QUEUE_FAILED */
};

struct request;
struct service;
struct queue_op;
typedef void (*queue_fn)(struct service *s, const struct queue_op *op, const struct queue_answer *a);

/* What is asked of the link. */
struct queue_op {
	TAILQ_ENTRY(queue_op) in_list;
	uint32_t tag;
	enum link_op op;
	struct buf message;
	uint64_t deadline_ns, again_ns; /* again_ns: when it is asked again; UINT64_MAX: it is being asked */
	queue_fn fn;
	char id[EXECUTION_ID_LEN + 1]; /* what it is about, for fn */
	uint64_t number;               /* likewise */
	void *arg;                     /* likewise, freed with it */
};
TAILQ_HEAD(queue_op_list, queue_op);

struct exchange;
struct keyed;
LIST_HEAD(keyed_list, keyed);
struct shared_batch;
LIST_HEAD(shared_batch_list, shared_batch);
struct batch_ask;
LIST_HEAD(batch_ask_list, batch_ask);
struct batch_listing;
LIST_HEAD(batch_listing_list, batch_listing);
struct delivery;
LIST_HEAD(delivery_list, delivery);

struct queue_counts {
	uint64_t published, taken, begun, stored, late, lost, refused, returned, redelivered, warm, received;
};

/* A worker, as it says. */
#define QUEUE_CLASSES_MAX 4096 /* bytes of their names that are shown */
struct queue_node {
	char key[SEAL_KEY_HEX + 1], name[PEER_NAME_MAX + 1];
	uint64_t issued_s, expires_s, running, slots, places, begun, begun_again, begun_warm, hears, sessions;
	bool is_front;                     /* it is one that has sessions, and takes no jobs */
	char ask_at[EXECUTION_ID_LEN + 1]; /* by which it is asked of its sessions (forward.h); "": it does not say */
	uint64_t pressure_cpu, pressure_memory; /* as the fields; UINT64_MAX: its kernel does not say */
	/* with a space between each two */
	char classes[QUEUE_CLASSES_MAX], ready[QUEUE_CLASSES_MAX / 2];
	char protections[QUEUE_CLASSES_MAX / 4], lacks[QUEUE_CLASSES_MAX / 4], backends[QUEUE_CLASSES_MAX / 16];
	char cannot[QUEUE_CLASSES_MAX]; /* a line each */
	char offers[QUEUE_CLASSES_MAX]; /* environments */
	char has[QUEUE_SETS_MAX * 84], sets[QUEUE_SETS_MAX * (QUEUE_SET_HEX + 1)];
};

struct queue {
	bool is_on, is_worker;
	struct channel *channel; /* NULL: there is no link now */
	short events;
	bool channel_is_bad, is_up;
	uint8_t seed[SIGN_SEED_LEN];
	char key[SEAL_KEY_HEX + 1];
	struct peers peers;
	char front_id[EXECUTION_ID_LEN + 1];
	struct queue_op_list ops;
	size_t n_ops;
	uint32_t last_tag;
	uint64_t patience_ns, tick_ns; /* tick_ns: when queue_tick() has to be called next */
	/* of a worker */
	struct delivery_list deliveries;
	size_t n_deliveries;
	uint64_t taken, credit; /* since the channel began */
	uint64_t progress_ns, beat_ns, pressure_ns;
	bool is_leaving, has_left;            /* others have been told that it takes nothing new; that it has gone */
	uint64_t places;                      /* for jobs, as far as the host has cpu and memory to spare */
	double pressure_cpu, pressure_memory; /* less than nothing: the kernel does not say */
	uint64_t host_ns;                     /* when the host was looked at */
	bool is_able[TOKEN_TRUST_COUNT];  /* that the host keeps the policy of this trust, as far as was found out */
	uint64_t able_ns;                 /* of the capabilities that tell so; 0: of none */
	char warm[QUEUE_CLASSES_MAX / 2]; /* kinds that cells are kept ready for, with a space between each two */
	struct buf classes;               /* of jobs that can be run with what is here */
	struct buf told;           /* those that the link takes jobs of: with environments that others would give */
	struct buf later;          /* what the link was told last of kinds that others have warm */
	struct exchange *exchange; /* NULL: this is no worker, or there was no memory */
	struct queue_node *node;
	size_t n_nodes;
	uint64_t since_ns; /* that entries of nodes are heard; 0: not yet */
	/* of a front */
	struct keyed_list keyed;
	uint64_t last_keyed;
	struct shared_batch_list shared;
	struct batch_ask_list batch_asks;
	size_t n_batch_asks;
	struct batch_listing_list batch_listings;
	size_t n_batch_listings, n_listed_asks /* batch_asks for them */;
	uint64_t last_batch;
	uint64_t depth, oldest_s;
	struct queue_counts counts;
};

/* ---- queue.c --------------------------------------------------------------------------------------------------- */

int queue_open(struct service *s, int *sock, struct brig_error *err);
void queue_close(struct service *s);
/* The policy or the list of nodes is read anew; what is wrong leaves the old one. */
void queue_reload(struct service *s);
/* Takes the socket of a new link. */
void queue_join(struct service *s, int *sock);
void queue_hear(struct service *s);
/* Once in a turn: the milliseconds that may be waited. */
int queue_tick(struct service *s, int wait_ms);
bool queue_is_idle(const struct service *s);

void queue_tell(struct service *s, enum link_op op, const struct buf *m);
/* Takes the message.  False: there are too many asks already, and fn was not and will not be called. */
struct queue_op *queue_ask(struct service *s, enum link_op op, struct buf *m, uint64_t patience_ns, queue_fn fn,
			   const char *id);
struct queue_op *queue_get(struct service *s, enum link_bucket bucket, const char *id, queue_fn fn);
/* inner is what queue_begin() began: it is sealed, and put. */
void queue_begin(const struct service *s, struct buf *inner, const char *as);
bool queue_seal(const struct service *s, const struct buf *inner, struct buf *out);
struct queue_op *queue_put(struct service *s, enum link_bucket bucket, const char *id, uint64_t revision,
			   const struct buf *inner, uint64_t patience_ns, queue_fn fn);
/* What came sealed: false, and it was named on standard error.  ret points into m. */
struct queue_sealed {
	struct message m;
	const struct peer *by;
	const uint8_t *sig;
};
bool queue_unseal(struct service *s, const struct message *m, const char *as, unsigned roles, struct queue_sealed *ret);
/* What the link sent says that it is, before anybody has looked at the seal. */
bool queue_is_sealed_as(const struct message *m, const char *as);
/* "unknown.python": two words of a subject. */
void queue_class(const char *trust, const char *what, char *dst, size_t size);
/* "none" asks for no environment, and is none. */
bool queue_is_environment(const char *name);
void queue_class_of(const struct service *s, const struct execution *x, char *dst, size_t size);
void queue_complain(struct service *s, const char *fmt, ...) PRINTF(2, 3);

/* ---- queue_worker.c ---------------------------------------------------------------------------------------------- */

void worker_on_job(struct service *s, const struct message *m);
void worker_on_told(struct service *s, const struct message *m);
void worker_begin(struct service *s); /* there is a new link */
void worker_tell_classes(struct service *s);
/* What is here may be something else than before. */
void worker_look_at_classes(struct service *s);
void worker_tick(struct service *s);
void worker_event(struct execution *x, enum event_kind kind, const char *text, size_t len);
uint64_t worker_attempt(const struct execution *x); /* 0: that is not known any more */
void worker_on_end(struct service *s, struct execution *x, uint64_t cpu_ns);
void worker_release(struct service *s);
/* Of a message, by the place where words about it go: how often it was handed out, and its number in the stream. */
enum ack_number { ACK_TIMES = 4, ACK_SEQUENCE = 5 };
uint64_t queue_ack_number(const char *ack, enum ack_number which);

/* ---- queue_watch.c ------------------------------------------------------------------------------------------------- */

/* What happens to an execution here, to one front; serial: its number among those that this front gets. */
struct queue_event {
	const char *to;
	uint64_t attempt, serial; /* attempt 0: that is not known any more */
	uint64_t nonce;           /* by which the front knows that it asked for this; 0: it is the one that waits */
	enum event_kind kind;
	const char *text; /* NULL: none */
	size_t len;
};
void worker_send_event(struct service *s, const char *id, const struct queue_event *e);
/* A front says that somebody watches there. */
void watchers_on_told(struct service *s, const struct message *m, const char *id);
void watchers_event(struct execution *x, const struct queue_event *e);
void watchers_release(struct execution *x);
/* The front of this place; NULL: that was the last. */
const char *watchers_next(const struct execution *x, size_t i);

/* queue_host.c: it is time to look at the host; and what is known of it, for the entry of this node */
void worker_look_at_host(struct service *s);
void worker_put_host(const struct service *s, struct buf *m);
/* How busy it is, and how many jobs at once that leaves. */
void worker_look_at_pressure(struct service *s);
/* Which kinds are warm here: true if they are others than before. */
bool worker_look_at_pools(struct service *s);
/* What the capabilities that are known tell of the policy: true if they are others than before. */
bool worker_look_at_policy(struct service *s);

/* queue_environments.c */
/* For the entry of this node, if others take environments from it: which those are.  False: none are. */
bool environments_put(const struct service *s, struct buf *m);
/* Classes, of this trust, of environments that are not here and that somebody would give. */
void environments_borrow(const struct service *s, const char *trust, struct buf *m);
/* True: a job of an environment that is not here.  It is about to be, or not; the job goes back to the stream meanwhile. */
bool environments_hold_back(struct service *s, const struct message *job);
/* A word of the class of an environment: "env-NAME". */
void environment_word(const char *name, char *dst, size_t size);
/* Of the words of a list, those of environments that are not here: others have them. */
void environments_add_missing(const struct service *s, const char *classes, struct buf *list);

/* queue_placement.c */
void worker_place(struct service *s);
bool placement_has(const char *words, const char *word, size_t len);

/* ---- queue_front.c ------------------------------------------------------------------------------------------------- */

/* An execution that is elsewhere. */
struct remote {
	uint8_t hash[SHA256_LEN];
	uint64_t serial; /* of the last event */
	uint64_t look_ns, expires_s;
	unsigned looks;
	bool is_published, is_told /* that there is a result */, is_looking, is_missed;
	uint64_t attempt; /* that the last event was of; 0: none has said so */
	/* of one that another front has promised (queue_elsewhere.c) */
	bool is_adopted, is_heard /* events come */,
		is_over /* there is a result, and its node was asked for the log */;
	uint64_t nonce;               /* of words to its node, and of events that answer them */
	uint64_t watch_ns;            /* when its node is told again that somebody watches */
	char node[PEER_NAME_MAX + 1]; /* the last one that said something of it; "": none has */
};

/* queue_nodes.c: an entry of a worker; and what is known of all of them, for who asks */
void nodes_on_told(struct service *s, const struct message *m);
size_t nodes_live(const struct service *s);
bool node_is_live(const struct queue_node *node);
uint64_t queue_oldest_age(const struct service *s); /* seconds */
/* Lines of metrics, one for each worker that is there. */
void nodes_add_running(const struct service *s, const char *name, struct buf *out);
void nodes_add_slots(const struct service *s, const char *name, struct buf *out);
void nodes_add_places(const struct service *s, const char *name, struct buf *out);
void nodes_add_begun(const struct service *s, const char *name, struct buf *out);
void nodes_add_again(const struct service *s, const char *name, struct buf *out);
void nodes_add_warm(const struct service *s, const char *name, struct buf *out);

/* Bytes of a file that goes with a message, and wishes of a job, as fields; file FD_NONE: there is none.  False: too long, no memory. */
bool queue_put_file(int file, struct buf *inner);
bool queue_put_options(const struct job *job, struct buf *inner);
/* Whether it can be run elsewhere: what it needs travels. */
bool remote_is_possible(const struct service *s, const struct job *job);
void remote_start(struct service *s, struct execution *x);
void remote_cancel(struct service *s, struct execution *x);
/* That nobody is to begin it; fn is to call remote_on_cancel_put(), by which who has begun it is told. */
struct queue_op *remote_put_cancel(struct service *s, const char *id, uint64_t patience_ns, queue_fn fn);
void remote_on_cancel_put(struct service *s, const struct queue_op *op, const struct queue_answer *a);
/* The service is stopped: who waits is told; what is asynchronous goes on without this front. */
void remote_leave(struct service *s, struct execution *x);
void front_on_told(struct service *s, const struct message *m);
void front_begin(struct service *s);
void front_tick(struct service *s);

/* ---- queue_keys.c, of whoever waits for what becomes of a key ---------------------------------------------------------- */

/* True: the tag was of one of them. */
bool keys_gone(struct service *s, uint32_t tag);
void keys_all_gone(struct service *s);
void keys_release(struct service *s);

/* ---- queue_execution_keys.c ------------------------------------------------------------------------------------------ */

/*
 * An execution is asked for with a key, and can be run elsewhere: it is entered if no front knows the key, and joined if one does.  Takes the
 * job.
 */
void execution_keys_take(struct service *s, const struct request *req, struct job *job, uint64_t memory,
			 const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN]);

/* ---- queue_session_keys.c -------------------------------------------------------------------------------------------- */

/* A session is asked for with a key: it is made if no front knows the key; true: the request was taken. */
bool session_keys_take(struct service *s, struct request *req);

/* ---- queue_batches.c, queue_batch_ask.c, queue_batch_list.c ------------------------------------------------------------ */

#define BATCH_TIME_DIGITS 10
#define BATCH_OWNER_HEX   32
#define BATCH_KEY_LEN     (BATCH_TIME_DIGITS + 1 + BATCH_OWNER_HEX + 1 + EXECUTION_ID_LEN)

struct batch;
/* The key of a batch in its bucket; and those of an owner, and of an id: NULL: of any. */
void batch_key(const char *owner, uint64_t created_s, const char *id, char dst[BATCH_KEY_LEN + 1]);
void batch_keys_of(const char *owner, const char *id, char dst[BATCH_KEY_LEN + 1]);
/* The id in such a key, which others may have made up; NULL: it is none. */
const char *batch_key_id(const char *key);
struct queue_op *batch_get(struct service *s, const char *owner, const char *id, queue_fn fn);
/* All of its jobs are over: how they have ended is kept for lists, if each is known to have; and the key of that. */
void batch_share_end(struct service *s, const struct batch *b);
void batch_end_key(const char *id, char dst[BATCH_KEY_LEN + 1]);
/* Takes a batch of which nothing was promised yet: it begins when all fronts can know of it.  name, body: of its key, or NULL. */
void batch_share(struct service *s, const struct request *req, struct batch *b, const uint8_t *name,
		 const uint8_t *body);
/* Somebody asks for one that is not at hand here; false: there is no queue, or no such id. */
bool batch_ask_elsewhere(struct service *s, const struct request *req, const char *id);
/* The batch of this key, for a list, which is told what became of it.  False: there is no memory for it, or too much to do. */
bool batch_ask_listed(struct service *s, const struct token *token, const char *key, uint64_t listing);
/* Nobody waits for those of that list any more. */
void batch_asks_drop(struct service *s, uint64_t listing);
/* The rest of a list, which ends it (gathering_end_one()). */
struct gathering;
void batch_listing_begin(struct service *s, struct gathering *of, const struct token *token, size_t limit);
/* b is NULL: nothing can be told of it; is_whole: and there is nothing to be told. */
void batch_listing_told(struct service *s, uint64_t listing, const struct batch *b, bool is_whole);
void batch_listings_tick(struct service *s);
bool batch_listings_gone(struct service *s, uint32_t tag);
void batch_listings_release(struct service *s);
void batch_asks_tick(struct service *s);
/* True: the tag was of one who waits for one of them, or for a list. */
bool batch_asks_gone(struct service *s, uint32_t tag);
void batch_asks_all_gone(struct service *s);
void batch_asks_release(struct service *s);
bool shared_batches_gone(struct service *s, uint32_t tag);
void shared_batches_all_gone(struct service *s);
void shared_batches_release(struct service *s);

/* ---- queue_elsewhere.c --------------------------------------------------------------------------------------------- */

/* Somebody asks for the same as before, by a key: who asked waits, or watches, or is told that it was accepted. */
void front_join(struct service *s, const struct request *req, const char *id, const struct queue_sealed *from,
		bool is_over);
/* Somebody asks for an execution that is not at hand here: its state, its events, an artifact (path), or its end. */
void front_look_up(struct service *s, const struct request *req, const char *id, const char *path);
/* True: the tag was of such a one. */
bool front_gone(struct service *s, uint32_t tag);
void front_all_gone(struct service *s);
/* Of an adopted one, once in a while: it may be gone when this returns. */
void adopted_tick(struct service *s, struct execution *x, uint64_t now);
/* Its result is there.  True: but what happened before it may still come. */
bool adopted_waits_for_log(struct service *s, struct execution *x);

#endif
