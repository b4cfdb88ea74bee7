/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner on a broker queue (docs/QUEUE.md): requests to the link, and handling of what it delivers.
 *
 *	queue           the channel to the link, pending operations, seals
 *	queue_worker    jobs of the queue become executions on this node, and their results go back
 *	queue_host      what a worker reports about its host
 *	queue_nodes     entries of all nodes
 *	queue_exchange  transfer of package sets, compiled programs and environments between nodes
 *	queue_environments  environments that another node has and this one lacks
 *	queue_placement which jobs a worker waits for, and which it leaves to others for a while
 *	queue_front     executions submitted here become jobs of the queue, and their results come back
 *	queue_keys      Idempotency-Keys, shared by all fronts
 *	queue_execution_keys, queue_session_keys  their meaning for executions and for sessions
 *	queue_batches   batches submitted here are published to all fronts
 *	queue_batch_ask   batches of other fronts
 *	queue_batch_list  batches that no live front has in memory, for lists
 *	queue_elsewhere executions of other fronts, by id
 *	queue_watch     fronts that watch executions on this node
 *	peers           known nodes and their keys
 *
 * An operation is kept until it is answered, and repeated if no broker answered or the link died.  Operations are
 * idempotent: a put names the revision it replaces, and a published job has a unique key.
 *
 *   RULE Q1  Nothing from a broker is trusted unless a known key has sealed it (server/seal.h).  An invalid seal is
 *   reported on stderr, counted, and the message ignored.
 *   RULE Q2  A job is started only when a claim with its attempt number is in the bucket.
 *   RULE Q3  A job has at most one result in the bucket: a result is put only where there is none.
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
#define QUEUE_ABSENT_NS     (2 * NS_PER_SEC) /* while no broker is connected */
#define QUEUE_CLAIM_NS      (60 * NS_PER_SEC)
#define QUEUE_STORE_NS      (3600 * NS_PER_SEC)
#define QUEUE_ASK_NS        (10 * NS_PER_SEC)
#define QUEUE_LEASE_S       15 /* validity of a node's entry */
#define QUEUE_SUBJECT_FRONT "brig.front."
#define QUEUE_SUBJECT_STOP  "brig.cancel."
#define QUEUE_SUBJECT_WATCH "brig.watch."
#define QUEUE_SUBJECT_NODES "$KV.brig-nodes."
#define QUEUE_LOST          "lost"

enum queue_how { QUEUE_OK, QUEUE_TAKEN, QUEUE_NONE, QUEUE_FAILED };

struct queue_answer {
	enum queue_how how;
	uint64_t revision;
	const struct message *m; /* the link's answer, including a sealed message; with QUEUE_OK of a query */
	const char *trouble;     /* with QUEUE_FAILED */
};

struct request;
struct service;
struct queue_op;
typedef void (*queue_fn)(struct service *s, const struct queue_op *op, const struct queue_answer *a);

/* A pending operation of the link. */
struct queue_op {
	TAILQ_ENTRY(queue_op) in_list;
	uint32_t tag;
	enum link_op op;
	struct buf message;
	/* again_ns: when it is repeated; UINT64_MAX: it has been sent and not answered */
	uint64_t deadline_ns, again_ns;
	queue_fn fn;
	char id[EXECUTION_ID_LEN + 1]; /* id of its object, for fn */
	uint64_t number;               /* for fn */
	void *arg;                     /* for fn; freed with the operation */
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

/* A node, as described by its entry. */
#define QUEUE_CLASSES_MAX 4096 /* bytes of class names that are kept */
struct queue_node {
	char key[SEAL_KEY_HEX + 1], name[PEER_NAME_MAX + 1];
	uint64_t issued_s, expires_s, running, slots, places, begun, begun_again, begun_warm, hears, sessions;
	bool is_front; /* it is a front: it may have sessions, but takes no jobs */
	/* id under which it receives forwarded requests (forward.h); "": unknown */
	char ask_at[EXECUTION_ID_LEN + 1];
	/* in the unit of the fields; UINT64_MAX: its kernel does not report it */
	uint64_t pressure_cpu, pressure_memory;
	/* separated by spaces */
	char classes[QUEUE_CLASSES_MAX], ready[QUEUE_CLASSES_MAX / 2];
	char protections[QUEUE_CLASSES_MAX / 4], lacks[QUEUE_CLASSES_MAX / 4], backends[QUEUE_CLASSES_MAX / 16];
	char cannot[QUEUE_CLASSES_MAX]; /* separated by newlines */
	char offers[QUEUE_CLASSES_MAX]; /* names of environments */
	char has[QUEUE_SETS_MAX * 84], sets[QUEUE_SETS_MAX * (QUEUE_SET_HEX + 1)];
};

struct queue {
	bool is_on, is_worker;
	struct channel *channel; /* NULL: no link at present */
	short events;
	bool channel_is_bad, is_up;
	uint8_t seed[SIGN_SEED_LEN];
	char key[SEAL_KEY_HEX + 1];
	struct peers peers;
	char front_id[EXECUTION_ID_LEN + 1];
	struct queue_op_list ops;
	size_t n_ops;
	uint32_t last_tag;
	uint64_t patience_ns, tick_ns; /* tick_ns: next call of the periodic functions */
	/* of a worker */
	struct delivery_list deliveries;
	size_t n_deliveries;
	uint64_t taken, credit; /* jobs delivered, and the limit last granted, since the channel was opened */
	uint64_t progress_ns, beat_ns, pressure_ns;
	bool is_leaving, has_left;            /* others have been told that it takes no new jobs; that it has gone */
	uint64_t places;                      /* jobs to run at one time under the present CPU and memory pressure */
	double pressure_cpu, pressure_memory; /* negative: the kernel does not report it */
	uint64_t host_ns;                     /* time of the last check of the host */
	/* whether the host can enforce the policy of this trust level, as far as known */
	bool is_able[TOKEN_TRUST_COUNT];
	uint64_t able_ns;                 /* time of the capabilities from which is_able was derived; 0: none */
	char warm[QUEUE_CLASSES_MAX / 2]; /* kinds of jobs for which cells are kept ready, separated by spaces */
	struct buf classes;               /* kinds of jobs that can run with what is on this node */
	struct buf told;  /* kinds requested through the link: also those with environments that others would give */
	struct buf later; /* last message about kinds that are warm on other nodes */
	struct exchange *exchange; /* NULL: not used on this node, or out of memory */
	struct queue_node *node;
	size_t n_nodes;
	uint64_t since_ns; /* since when entries of nodes are received; 0: not yet */
	/* of a front */
	struct keyed_list keyed;
	uint64_t last_keyed;
	struct shared_batch_list shared;
	struct batch_ask_list batch_asks;
	size_t n_batch_asks;
	struct batch_listing_list batch_listings;
	size_t n_batch_listings, n_listed_asks /* batch_asks for listings */;
	uint64_t last_batch;
	uint64_t depth, oldest_s;
	struct queue_counts counts;
};

/* ---- queue.c --------------------------------------------------------------------------------------------------- */

int queue_open(struct service *s, int *sock, struct brig_error *err);
void queue_close(struct service *s);
/* Reloads the list of nodes after a change of the policy; if it is invalid, the old one stays in use. */
void queue_reload(struct service *s);
/* Takes the socket of a new link. */
void queue_join(struct service *s, int *sock);
void queue_hear(struct service *s);
/* Called once per turn of the loop; returns the poll timeout in milliseconds. */
int queue_tick(struct service *s, int wait_ms);
bool queue_is_idle(const struct service *s);

void queue_tell(struct service *s, enum link_op op, const struct buf *m);
/* Sends an operation to the link; takes the message.  NULL: too many are pending, and fn is never called. */
struct queue_op *queue_ask(struct service *s, enum link_op op, struct buf *m, uint64_t patience_ns, queue_fn fn,
			   const char *id);
struct queue_op *queue_get(struct service *s, enum link_bucket bucket, const char *id, queue_fn fn);
/*
 * queue_begin() starts a message, queue_seal() seals it into another, queue_put() seals it and puts it into a bucket.
 */
void queue_begin(const struct service *s, struct buf *inner, const char *as);
bool queue_seal(const struct service *s, const struct buf *inner, struct buf *out);
struct queue_op *queue_put(struct service *s, enum link_bucket bucket, const char *id, uint64_t revision,
			   const struct buf *inner, uint64_t patience_ns, queue_fn fn);
/* Validates a sealed message; false: it was refused and reported.  *ret points into m. */
struct queue_sealed {
	struct message m;
	const struct peer *by;
	const uint8_t *sig;
};
bool queue_unseal(struct service *s, const struct message *m, const char *as, unsigned roles, struct queue_sealed *ret);
/* The type of a sealed message, before its seal is verified. */
bool queue_is_sealed_as(const struct message *m, const char *as);
/* Makes a class such as "unknown.python": two tokens of a subject. */
void queue_class(const char *trust, const char *what, char *dst, size_t size);
/* False for "none", which requests no environment. */
bool queue_is_environment(const char *name);
void queue_class_of(const struct service *s, const struct execution *x, char *dst, size_t size);
void queue_complain(struct service *s, const char *fmt, ...) PRINTF(2, 3);

/* ---- queue_worker.c ---------------------------------------------------------------------------------------------- */

void worker_on_job(struct service *s, const struct message *m);
void worker_on_told(struct service *s, const struct message *m);
void worker_begin(struct service *s); /* called when a new link is connected */
void worker_tell_classes(struct service *s);
/* Checks whether the classes of this node have changed. */
void worker_look_at_classes(struct service *s);
void worker_tick(struct service *s);
void worker_event(struct execution *x, enum event_kind kind, const char *text, size_t len);
uint64_t worker_attempt(const struct execution *x); /* 0: not known any more */
void worker_on_end(struct service *s, struct execution *x, uint64_t cpu_ns);
void worker_release(struct service *s);
/* Numbers in the reply subject of a delivered message: how often it was delivered, and its sequence in the stream. */
enum ack_number { ACK_TIMES = 4, ACK_SEQUENCE = 5 };
uint64_t queue_ack_number(const char *ack, enum ack_number which);

/* ---- queue_watch.c ------------------------------------------------------------------------------------------------- */

/* An event of an execution on this node, for one front; serial: its number among those sent to this front. */
struct queue_event {
	const char *to;
	uint64_t attempt, serial; /* attempt 0: not known any more */
	uint64_t nonce;           /* identifies the front's watch; 0: the front that submitted the job */
	enum event_kind kind;
	const char *text; /* NULL: none */
	size_t len;
};
void worker_send_event(struct service *s, const char *id, const struct queue_event *e);
/* A front's request to watch an execution. */
void watchers_on_told(struct service *s, const struct message *m, const char *id);
void watchers_event(struct execution *x, const struct queue_event *e);
void watchers_release(struct execution *x);
/* The i-th watching front; NULL: there are no more. */
const char *watchers_next(const struct execution *x, size_t i);

/* queue_host.c: periodic check of the host; and its fields in this node's entry */
void worker_look_at_host(struct service *s);
void worker_put_host(const struct service *s, struct buf *m);
/* Measures pressure and sets the number of jobs to run at one time. */
void worker_look_at_pressure(struct service *s);
/* Updates the kinds that are warm here; true: they have changed. */
bool worker_look_at_pools(struct service *s);
/* Updates is_able from the known capabilities; true: it has changed. */
bool worker_look_at_policy(struct service *s);

/* queue_environments.c */
/* Adds the environments that this node gives to others to its entry.  False: there are none. */
bool environments_put(const struct service *s, struct buf *m);
/* Adds the classes of environments that this node lacks and others would give, for this trust level. */
void environments_borrow(const struct service *s, const char *trust, struct buf *m);
/*
 * True: the job needs an environment that this node lacks and is now fetching, if it can be had; the job must go back
 * to the stream.
 */
bool environments_hold_back(struct service *s, const struct message *job);
/* The token in the class of an environment: "env-NAME". */
void environment_word(const char *name, char *dst, size_t size);
/* Appends those of the classes whose environments this node lacks. */
void environments_add_missing(const struct service *s, const char *classes, struct buf *list);

/* queue_placement.c */
void worker_place(struct service *s);
bool placement_has(const char *words, const char *word, size_t len);

/* ---- queue_front.c ------------------------------------------------------------------------------------------------- */

/* An execution on another node. */
struct remote {
	uint8_t hash[SHA256_LEN];
	uint64_t serial; /* of the last event */
	uint64_t look_ns, expires_s;
	unsigned looks;
	bool is_published, is_told /* there is a result */, is_looking, is_missed;
	uint64_t attempt; /* of the last event; 0: unknown */
	/* of one accepted by another front (queue_elsewhere.c) */
	bool is_adopted, is_heard /* events arrive */,
		is_over /* there is a result, and the node was asked for the events */;
	uint64_t nonce;    /* identifies this front's watch in messages to the node and in the events it sends */
	uint64_t watch_ns; /* when the watch is requested again */
	char node[PEER_NAME_MAX + 1]; /* the node that reported on it last; "": none */
};

/* queue_nodes.c: handling of a node's entry; and queries */
void nodes_on_told(struct service *s, const struct message *m);
size_t nodes_live(const struct service *s);
bool node_is_live(const struct queue_node *node);
uint64_t queue_oldest_age(const struct service *s); /* seconds */
/* Lines of a metric, one for each live worker. */
void nodes_add_running(const struct service *s, const char *name, struct buf *out);
void nodes_add_slots(const struct service *s, const char *name, struct buf *out);
void nodes_add_places(const struct service *s, const char *name, struct buf *out);
void nodes_add_begun(const struct service *s, const char *name, struct buf *out);
void nodes_add_again(const struct service *s, const char *name, struct buf *out);
void nodes_add_warm(const struct service *s, const char *name, struct buf *out);

/* Append the contents of a file (FD_NONE: nothing), and the options of a job.  False: too long, or out of memory. */
bool queue_put_file(int file, struct buf *inner);
bool queue_put_options(const struct job *job, struct buf *inner);
/* Whether a job can run on another node: all it needs can be sent. */
bool remote_is_possible(const struct service *s, const struct job *job);
void remote_start(struct service *s, struct execution *x);
void remote_cancel(struct service *s, struct execution *x);
/*
 * Puts a claim that prevents the job from being started; fn must call remote_on_cancel_put(), which notifies the node
 * that has started it already.
 */
struct queue_op *remote_put_cancel(struct service *s, const char *id, uint64_t patience_ns, queue_fn fn);
void remote_on_cancel_put(struct service *s, const struct queue_op *op, const struct queue_answer *a);
/* The service is stopped: listeners are answered; asynchronous executions continue without this front. */
void remote_leave(struct service *s, struct execution *x);
void front_on_told(struct service *s, const struct message *m);
void front_begin(struct service *s);
void front_tick(struct service *s);

/* ---- queue_keys.c: requests that wait for the bucket of keys --------------------------------- */

/* True: the tag belonged to such a request. */
bool keys_gone(struct service *s, uint32_t tag);
void keys_all_gone(struct service *s);
void keys_release(struct service *s);

/* ---- queue_execution_keys.c ------------------------------------------------------------------------------------------ */

/*
 * Submits an execution with a key that can run on another node: started if no front knows the key, joined otherwise.
 * Takes the job.
 */
void execution_keys_take(struct service *s, const struct request *req, struct job *job, uint64_t memory,
			 const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN]);

/* ---- queue_session_keys.c -------------------------------------------------------------------------------------------- */

/* Creates a session with a key, unless a front knows the key; true: the request was taken. */
bool session_keys_take(struct service *s, struct request *req);

/* ---- queue_batches.c, queue_batch_ask.c, queue_batch_list.c ------------------------------------------------------------ */

#define BATCH_TIME_DIGITS 10
#define BATCH_OWNER_HEX   32
#define BATCH_KEY_LEN     (BATCH_TIME_DIGITS + 1 + BATCH_OWNER_HEX + 1 + EXECUTION_ID_LEN)

struct batch;
/* Key of a batch in its bucket; and the pattern for the batches of an owner or with an id (NULL: any). */
void batch_key(const char *owner, uint64_t created_s, const char *id, char dst[BATCH_KEY_LEN + 1]);
void batch_keys_of(const char *owner, const char *id, char dst[BATCH_KEY_LEN + 1]);
/* The id in such a key, which is untrusted input; NULL: invalid. */
const char *batch_key_id(const char *key);
struct queue_op *batch_get(struct service *s, const char *owner, const char *id, queue_fn fn);
/* All jobs are over: stores their verdicts for lists, if all are known; and the key for that. */
void batch_share_end(struct service *s, const struct batch *b);
void batch_end_key(const char *id, char dst[BATCH_KEY_LEN + 1]);
/* Publishes a batch before it starts; takes it.  name, body: hashes of its Idempotency-Key, or NULL. */
void batch_share(struct service *s, const struct request *req, struct batch *b, const uint8_t *name,
		 const uint8_t *body);
/* Answers a query about a batch that is not in memory; false: there is no queue, or the id is malformed. */
bool batch_ask_elsewhere(struct service *s, const struct request *req, const char *id);
/*
 * Looks up the batch with this key for a listing, which gets the outcome.  False: out of memory, or too many queries.
 */
bool batch_ask_listed(struct service *s, const struct token *token, const char *key, uint64_t listing);
/* Drops the queries of this listing. */
void batch_asks_drop(struct service *s, uint64_t listing);
/* Adds batches from the bucket to a list, and ends its last part (gathering_end_one()). */
struct gathering;
void batch_listing_begin(struct service *s, struct gathering *of, const struct token *token, size_t limit);
/* The outcome of batch_ask_listed().  b NULL: no information; then is_whole says that there is nothing to report. */
void batch_listing_told(struct service *s, uint64_t listing, const struct batch *b, bool is_whole);
void batch_listings_tick(struct service *s);
bool batch_listings_gone(struct service *s, uint32_t tag);
void batch_listings_release(struct service *s);
void batch_asks_tick(struct service *s);
/* True: the tag belonged to a query, or to a list. */
bool batch_asks_gone(struct service *s, uint32_t tag);
void batch_asks_all_gone(struct service *s);
void batch_asks_release(struct service *s);
bool shared_batches_gone(struct service *s, uint32_t tag);
void shared_batches_all_gone(struct service *s);
void shared_batches_release(struct service *s);

/* ---- queue_elsewhere.c --------------------------------------------------------------------------------------------- */

/*
 * Answers a repeated request with an execution that another front accepted: waits for the result, streams events, or
 * answers 202.
 */
void front_join(struct service *s, const struct request *req, const char *id, const struct queue_sealed *from,
		bool is_over);
/* Answers a request for an execution that is not in memory: state, events, artifact (path) or cancellation. */
void front_look_up(struct service *s, const struct request *req, const char *id, const char *path);
/* True: the tag belonged to such a request. */
bool front_gone(struct service *s, uint32_t tag);
void front_all_gone(struct service *s);
/* Periodic check of an adopted execution; may free it. */
void adopted_tick(struct service *s, struct execution *x, uint64_t now);
/* Its result is there.  True: wait a little longer for its earlier events. */
bool adopted_waits_for_log(struct service *s, struct execution *x);

#endif
