/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front: the process that speaks HTTP.  One thread, one epoll set.  Since it parses what clients send, it has no
 * privileges, no files and no secrets (confine.c); it knows a table of routes (server/routes.def) and nothing about
 * sandboxes.
 *
 *	loop.c      epoll, listeners, the channel, deadlines, exit
 *	client.c    one connection: input, output, states
 *	request.c   from a head to a request or a refusal; from a complete request to an answer or a message to the runner
 *	check.c     Host, Origin, credentials, media types
 *	trace.c     traceparent
 *	route.c     paths and query parameters
 *	body.c      documents to fields
 *	session_body.c  documents about sessions to fields
 *	batch.c     many jobs in one body, as an array or one per line
 *	tar.c       archives, normalised
 *	form.c      multipart bodies: a document and files
 *	reply.c     heads of answers, and error documents
 *	stream.c    event streams
 *	websocket.c WebSocket connections
 *	input.c     data from a client for a running program
 *	../doors/   the wire formats of other clients (doors/door.h)
 *	tls.c       TLS between a connection's socket and client.c
 *	page.c      the console and the description of the API
 *	port.c      servers in sessions (port.h)
 *	relay.c     the command line's own socket: records instead of HTTP
 *	log.c       one line per request
 *
 * The states of a connection:
 *
 *	idle -> head -> body -> asked -> answer -> idle      asked: the runner has the request; only a hang-up is detected
 *	                  `--------------^                   a request that the front answers itself, or refuses
 *	                        asked -> stream -> idle
 *	                                 answer -> linger    the last answer: the client gets a moment to read it
 *	          handshake -> socket -> linger              a WebSocket, until either side closes it
 *	                        asked -> port -> idle        a server in a session has it, until its answer is complete
 *
 *   RULE F1  A descriptor is removed from the epoll set before it is closed, and a connection is freed only at the end
 *   of the round.
 *   RULE F2  Every state except asked has a deadline.  All deadlines of a kind have the same length, so each list is
 *   sorted by insertion.
 *   RULE F3  The memory of a connection is bounded, and so is that of all together: FRONT_SPOOL_MAX, FRONT_PENDING_MAX.
 *   RULE F4  While an answer is pending, nothing is read from the connection; from a WebSocket, always.
 */
#ifndef SERVER_FRONT_H
#define SERVER_FRONT_H

#include <sys/queue.h>

#include "base/buf.h"
#include "net/address.h"
#include "net/http1.h"
#include "server/channel.h"
#include "server/front/tls.h"
#include "server/message.h"
#include "server/routes.h"
#include "server/serve.h"

#define FRONT_READ_BYTES   ((size_t)(64 * KiB)) /* of one read, into a buffer shared by all connections */
#define FRONT_BODY_MAX     (64 * MiB)
#define FRONT_SPOOL_MAX    (256 * MiB) /* incomplete bodies, all together */
#define FRONT_PENDING_MAX  (256 * MiB) /* unsent answers, all together */
#define FRONT_STREAM_MAX   (16 * MiB)  /* unsent events of one stream */
#define FRONT_STREAM_FULL  (64 * KiB)  /* above this, samples are omitted */
#define FRONT_QUEUE_MAX    (32 * MiB)  /* messages not taken by the runner; above this, requests are refused */
#define FRONT_REFUSED_MAX  64          /* connections above the limit that still get an error answer */
#define FRONT_CONNECTIONS  4096
#define FRONT_BODY_WINDOW  (64 * KiB) /* minimum of a body per period */
#define FRONT_BODY_PERIODS 60         /* maximum number of periods */
#define REQUEST_ID_MAX     64
#define TRACE_TEXT_LEN     55
#define FRONT_PORTS_MAX    256        /* connections to servers in sessions */
#define RELAYS_MAX         256        /* concurrent commands */
#define RELAYS_OF_USER     192        /* of one user other than root */
#define RELAY_QUEUE_MAX    (64 * MiB) /* unsent events of one command */
#define STREAM_PARTS_MAX   4
#define TAG_BUCKETS        1024
#define PEER_BUCKETS       256

enum client_state {
	CLIENT_IDLE, /* no byte of a request yet */
	CLIENT_HEAD,
	CLIENT_BODY,
	CLIENT_ASKED,
	CLIENT_ANSWER,
	CLIENT_STREAM,
	CLIENT_SOCKET,
	CLIENT_PORT,
	CLIENT_LINGER,
	CLIENT_DEAD, /* freed at the end of the round */
};

enum deadline_kind {
	DEADLINE_HEAD,
	DEADLINE_BODY,
	DEADLINE_WRITE,
	DEADLINE_IDLE,
	DEADLINE_LINGER,
	DEADLINE_PING,
	/* like DEADLINE_PING, for protocols that promise more frequent pings (door_call.pings_soon) */
	DEADLINE_SOON,
	DEADLINE_OPENING, /* for the first message of a WebSocket whose client must speak first */
	DEADLINE_PORT,    /* neither the client nor the server in a session sends anything */
	DEADLINE_KINDS,
	DEADLINE_NONE = DEADLINE_KINDS
};

enum source_kind {
	SOURCE_LISTENER,
	SOURCE_CHANNEL,
	SOURCE_MASTER,
	SOURCE_CLIENT,
	SOURCE_RELAY,
	SOURCE_INPUT,
	SOURCE_PORT
};

/* What epoll data points to; the first member of the object. */
struct source {
	enum source_kind kind;
	int fd;
	uint32_t events; /* polled for; 0: not in the epoll set */
};

/* Connections from one address. */
struct peer {
	struct peer *next;
	struct address address;
	uint32_t n;
};

struct watched_listener {
	struct source source;
	const struct listener *listener;
};

enum request_media { MEDIA_JSON, MEDIA_FORM, MEDIA_LINES, MEDIA_TAR, MEDIA_FILE };

struct door_call;
struct port;
struct websocket;
struct input;

struct request {
	uint32_t tag;     /* 0: not sent to the runner */
	enum route route; /* ROUTE_COUNT: not found */
	bool is_head, keep_alive, version_1_0, wants_stream, takes_gzip, was_streaming;
	bool keeps_body; /* for one request to the runner: the body is needed afterwards */
	char id[REQUEST_ID_MAX + 1];
	char trace[TRACE_TEXT_LEN + 1]; /* traceparent with this request's span; "": the client sent none */
	char method[16];
	char content_type[256]; /* for MEDIA_FORM, and for doors */
	char etag[72];          /* If-None-Match */
	enum request_media media;
	struct buf fields; /* of the message to the runner */
	struct http1_body_reader reader;
	struct buf body;
	uint64_t began_ns, period_bytes, periods;
	unsigned status;    /* of the answer */
	uint64_t sent;      /* bytes of the answer's body */
	char who[65];       /* name of the token, for the log */
	char execution[65]; /* id of the execution, for the log; "": none */
	char verdict[33];
	char path[4097];        /* of an artifact, a file or an asset */
	struct door_call *call; /* NULL: a request to the API */
	struct port *port;      /* for a server in a session; NULL: it is none */
};

struct client {
	struct source source;
	struct front *front;
	struct client *next_dead, *next_of_tag;
	struct client *before, *after; /* neighbours in the list of its deadline */
	enum deadline_kind deadline_kind;
	uint64_t deadline_ns;
	enum client_state state;
	bool is_last; /* close the connection after this answer */
	bool is_tls;
	struct tls_session *tls; /* NULL: none, or no byte has been received */
	const struct listener *listener;
	struct peer *peer; /* NULL: on a unix socket */
	struct address local;
	uint16_t local_port;
	struct buf in;
	size_t in_at, seen; /* offset in `in` of the next request; how far its head was scanned */
	struct buf out;
	size_t out_at;
	struct request *req;
	struct websocket *websocket; /* NULL: not a WebSocket */
	struct input *input;         /* to a running program; NULL: none */
};

struct deadline_list {
	struct client *first, *last;
	uint64_t length_ns;
};

struct relay;
TAILQ_HEAD(relay_list, relay);
LIST_HEAD(port_list, port);

struct front {
	const struct serve_options *options;
	struct tls *tls; /* NULL: no TLS */
	int epoll;
	struct watched_listener listener[LISTENERS_MAX];
	size_t n_listeners;
	struct source channel_source, master_source;
	struct channel *channel; /* to the runner; NULL: none at present */
	struct deadline_list deadline[DEADLINE_KINDS];
	struct client *by_tag[TAG_BUCKETS];
	struct peer *peers[PEER_BUCKETS];
	struct client *dead;
	struct port_list ports;
	struct port *dead_ports;
	struct relay *relay_by_tag[TAG_BUCKETS];
	struct relay_list relays, idle_relays, dead_relays; /* idle ones: those longest without a request first */
	struct json_t *languages;                           /* cached for doors; NULL: never requested */
	uint64_t languages_ns;
	struct mcp_sessions *mcp;             /* of that door; NULL: not used yet */
	struct librechat_runtimes *librechat; /* likewise */
	uint32_t last_tag, n_relays, n_ports, n_clients, connections, connections_of_peer;
	uint32_t n_active; /* clients and relays with an unanswered request */
	uint64_t now_ns, body_max, spooled, pending, log_lost;
	bool draining, over, failed, is_paused, was_busy;
	bool lost_runner;   /* the channel has failed; handled at the end of the round */
	uint64_t rest_ns;   /* when to return memory, if was_busy */
	uint64_t resume_ns; /* when to resume, if listeners are paused */
	char scratch[FRONT_READ_BYTES];
};

/* confine.c: 0, or -errno and the step that failed. */
int front_confine(const char **ret_step);
/* Whether this kernel lacks Landlock, which is logged because it weakens the confinement. */
bool front_lacks_landlock(void);

/* loop.c */
int front_run(struct front *f);
void front_watch(struct front *f, struct source *s, uint32_t events);
int front_use_certificate(struct front *f, const struct certificate *files, struct brig_error *err);
void deadline_set(struct client *c, enum deadline_kind kind); /* DEADLINE_NONE: clears it */
struct client *front_by_tag(const struct front *f, uint32_t tag);
void front_add_tag(struct front *f, struct client *c);
void front_drop_tag(struct front *f, struct client *c);
/* Accepts no connections for a moment. */
void front_pause_listeners(struct front *f);
uint32_t front_new_tag(struct front *f); /* a tag that no client and no relay uses */
/* Sends a message to the runner.  If the channel fails, pending requests are answered at the end of the round. */
void front_send(struct front *f, const struct record *r);
bool front_can_ask(const struct front *f); /* the runner is there and keeps up */

/* client.c */
void client_accept(struct front *f, const struct watched_listener *at);
void client_on_event(struct client *c, uint32_t events);
void client_on_deadline(struct client *c);
/* Processes received data until more is needed from the client or the runner. */
void client_advance(struct client *c);
/* Sends data, and buffers what the socket does not take.  False: the connection was closed. */
bool client_put(struct client *c, const struct iovec *pieces, size_t n);
size_t client_pending(const struct client *c);
/* The answer is complete: once it is sent, the next request may be processed. */
void client_finish(struct client *c);
/*
 * For port.c, which transfers data itself.  Like recv(), into front->scratch; keeps received bytes for later; discards
 * kept bytes that have been used; sends buffered data.
 */
ssize_t client_receive(struct client *c);
bool client_keep(struct client *c, const char *bytes, size_t len);
void client_used(struct client *c, size_t len);
void client_write(struct client *c);
void client_close(struct client *c, bool at_once); /* at_once: discards unsent data (RST) */

/* request.c */
struct request *request_new(struct client *c);
void request_free(struct client *c);
/* A head was received: continues with the body, the runner or an answer. */
void request_begin(struct client *c, const char *bytes, const struct http1_head *head);
/* Continues with the body. */
void request_read_body(struct client *c, const struct http1_head *head);
/* The request is complete. */
void request_finish(struct client *c);
/* Sends the request's fields to the runner, with these descriptors (FD_NONE: none), which stay the caller's. */
void request_ask(struct client *c, int files, int input);
void request_on_answer(struct client *c, struct record *r); /* may take its descriptors */

/* check.c: each returns false if it refused and answered the request */
bool check_host(struct client *c, const char *bytes, const struct http1_head *head);
/* Whether Origin matches the request's Host. */
bool check_origin(const struct client *c, const char *bytes, struct http1_text host, struct http1_text origin);
bool check_credentials(struct client *c, const char *bytes, const struct http1_head *head);
bool check_media(struct client *c, const char *bytes, const struct http1_head *head);
void check_id(struct request *req, const char *bytes, const struct http1_head *head);

/* trace.c: reads traceparent and creates a span for the request; returns both ids of one that has a span. */
void trace_take(struct request *req, const char *bytes, const struct http1_head *head);
void trace_ids(const struct request *req, char trace[33], char span[17]);

/* route.c */
struct route_match {
	enum route route;        /* ROUTE_COUNT: no route has this path */
	bool is_wrong_method;    /* `route` has the path, but another method */
	char allow[64];          /* the methods in that case: "GET, HEAD, POST" */
	char id[65], path[4097]; /* "": not in the route */
	uint64_t item;           /* 0: not in the route */
	const char *why;         /* reason why the path is invalid; NULL: merely unknown */
};
void route_find(const char *method, size_t method_len, const char *path, size_t len, struct route_match *ret);
/* Routes that are answered only with an event stream. */
bool route_is_events(enum route route);
/* Whether a path matches a pattern as in routes.def; its parameters are stored in ret. */
bool route_fits(const char *pattern, const char *path, const char *end, struct route_match *ret);
/* Parses query parameters into fields: 0 or -BRIG_E_USAGE. */
int route_query(enum route route, const char *query, size_t len, struct buf *fields, struct brig_error *err);

/* Parts of a form besides the document; data NULL: absent. */
struct body_parts {
	struct bytes code, input;
};
/*
 * body.c: converts a document of the route's kind; *ret_files: an archive, owned by the caller, or FD_NONE.  0 or
 * -code.
 */
int body_to_fields(enum route route, const struct bytes *text, const struct body_parts *parts, struct buf *fields,
		   int *ret_files, struct brig_error *err);
/* The setting for which an option of the command line is an alias. */
const char *body_setting_of(const char *name);

/* batch.c: one job per line */
int batch_lines_to_fields(const char *text, size_t len, struct buf *fields, struct brig_error *err);

/* tar.c: normalises an archive (server/archive.h) into a file owned by the caller */
int tar_to_file(const char *bytes, size_t len, int *ret_files, struct brig_error *err);

/* form.c: the same for a multipart body */
int form_to_fields(enum route route, const char *content_type, const struct bytes *form, struct buf *fields,
		   int *ret_files, struct brig_error *err);

/* reply.c */
struct reply {
	unsigned status;
	const char *content_type; /* NULL: JSON */
	const char *more;         /* additional header lines, each with its line end; NULL: none */
	const void *body;
	size_t len;
	uint64_t retry_after; /* seconds; 0: none */
	const char *location, *allow;
	const char *policy; /* Content-Security-Policy; NULL: that of documents */
	bool may_be_kept;   /* otherwise Cache-Control: no-store */
};
void reply_send(struct client *c, const struct reply *a);
void reply_error(struct client *c, unsigned status, const char *fmt, ...) PRINTF(3, 4);
/* The same, and closes the connection: for a request whose end is unknown or not waited for. */
void reply_refuse(struct client *c, unsigned status, const char *fmt, ...) PRINTF(3, 4);
/* 405 with the permitted methods. */
void reply_not_allowed(struct client *c, const char *path, const char *allow);
const char *reply_reason(unsigned status);
/* "Tue, 17 Nov 2026 15:57:25 GMT" */
void reply_date(char dst[32]);
void reply_date_of(char dst[32], uint64_t seconds); /* since 1970; "": after the year 9999 */

/* stream.c */
/* false, like the next function: the connection was closed */
bool stream_begin(struct client *c, const char *content_type);
bool stream_put(struct client *c, const struct iovec *parts, size_t n); /* at most STREAM_PARTS_MAX */
void stream_event(struct client *c, const struct record *r);
void stream_ping(struct client *c);
void stream_rest(struct client *c); /* all is sent: starts the ping timer */
void stream_end(struct client *c);

/*
 * input.c: data for a running program goes through a socket pair; the other end, owned by the caller, is for the runner
 * (FIELD_has_input_fd).  -errno.
 */
int input_open(struct client *c, int *ret_other);
/* False: too much is buffered.  Data for a program that has ended is discarded. */
bool input_write(struct client *c, const char *bytes, size_t len);
void input_on_event(struct input *in);
void input_close(struct client *c); /* also if there is none; freed at the end of the round */
void input_free(struct input *in);

/* page.c: answers without the runner */
void page_answer(struct client *c);

/* relay.c */
void relays_init(struct front *f);
void relay_accept(struct front *f, const struct watched_listener *at);
void relay_on_event(struct relay *r, uint32_t events);
/* A record of the runner for a relay's request; false: it is for no relay. */
bool relay_on_record(struct front *f, const struct record *rec);
bool relay_has_tag(const struct front *f, uint32_t tag);
uint64_t relays_deadline(const struct front *f); /* UINT64_MAX: none */
void relays_on_time(struct front *f);
void relays_free_closed(struct front *f);
/* The runner has gone: closes relays with a pending request, since its state is unknown. */
void relays_without_runner(struct front *f);

/* log.c */
void log_request(struct client *c);
void log_relay(struct front *f, const char *route, const char *who, unsigned status, uint64_t began_ns);
void log_trouble(struct front *f, const char *text);

#endif
