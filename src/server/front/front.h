/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that speaks HTTP.  One thread, one epoll set; it reads what strangers write, so it can do nothing but answer:
 * no privilege, no file, no secret (confine.c), and a table of routes (server/routes.def) instead of knowledge of sandboxes.
 *
 *	loop.c      epoll, listeners, the channel, deadlines, the end
 *	client.c      one connection: bytes in, bytes out, who waits for what
 *	request.c   a head becomes a request, or a refusal; a whole request becomes an answer or a message to the runner
 *	check.c     Host, Origin, credentials, media types
 *	trace.c     traceparent
 *	route.c     paths and query parameters
 *	body.c      documents become fields
 *	batch.c     many jobs in one body, and a job in each line of it
 *	tar.c       archives, written anew
 *	form.c      multipart bodies become a document and files
 *	reply.c    heads of answers, and documents of errors
 *	stream.c    events as they come
 *	websocket.c connections that become WebSockets
 *	input.c     what a client types, on its way to a program that runs
 *	../doors/   the wire formats of other clients (doors/door.h)
 *	tls.c       what is between the socket of a connection and client.c, if the service has a certificate
 *	page.c      the console and the description of the API
 *	port.c      servers of sessions (port.h)
 *	relay.c     the command line's own socket: records instead of HTTP
 *	log.c       one line per request
 *
 * The life of a connection:
 *
 *	idle -> head -> body -> asked -> answer -> idle      asked: the runner has it; all that is looked for is a hang-up
 *	                  `--------------^                   a request that the front answers itself, or refuses
 *	                        asked -> stream -> idle
 *	                                 answer -> linger    the last one: a moment for the client to read it
 *	          a handshake -> socket -> linger            a WebSocket, until either side closes it
 *	                        asked -> port -> idle        a server of a session has it, until its answer is whole
 *
 *   RULE F1  A descriptor leaves the epoll set before it is closed, and a connection is freed only after the whole round.
 *   RULE F2  Each state but asked has a deadline.  Each kind of deadline has one length, so its list is sorted by itself.
 *   RULE F3  What a connection holds is bounded, and so is what all hold together: FRONT_SPOOL_MAX, FRONT_PENDING_MAX.
 *   RULE F4  While an answer is pending nothing is read of the connection; of a WebSocket always.
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

#define FRONT_READ_BYTES   ((size_t)(64 * KiB)) /* of one read, into memory that all connections share */
#define FRONT_BODY_MAX     (64 * MiB)
#define FRONT_SPOOL_MAX    (256 * MiB) /* bodies that are coming in, together */
#define FRONT_PENDING_MAX  (256 * MiB) /* answers that wait for their readers, together */
#define FRONT_STREAM_MAX   (16 * MiB)  /* events that wait for one reader */
#define FRONT_STREAM_FULL  (64 * KiB)  /* more than this: samples are left out */
#define FRONT_QUEUE_MAX    (32 * MiB)  /* messages that the runner has not taken: more is refused */
#define FRONT_REFUSED_MAX  64          /* connections beyond the limit that are told so at once */
#define FRONT_CONNECTIONS  4096
#define FRONT_BODY_WINDOW  (64 * KiB) /* what a body must bring in each period */
#define FRONT_BODY_PERIODS 60         /* and how many it may last */
#define REQUEST_ID_MAX     64
#define TRACE_TEXT_LEN     55
#define FRONT_PORTS_MAX    256        /* connections to servers of sessions */
#define RELAYS_MAX         256        /* commands at once */
#define RELAYS_OF_USER     192        /* of one user that is not root */
#define RELAY_QUEUE_MAX    (64 * MiB) /* events that wait for one command */
#define STREAM_PARTS_MAX   4
#define TAG_BUCKETS        1024
#define PEER_BUCKETS       256

enum client_state {
	CLIENT_IDLE, /* no byte of a request has come */
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
	DEADLINE_SOON,    /* likewise, of a stream whose protocol promises more (door_call.pings_soon) */
	DEADLINE_OPENING, /* of a WebSocket whose client has to speak first */
	DEADLINE_PORT,    /* neither a client nor a server of a session says anything */
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

/* What epoll points to; first member of what it is. */
struct source {
	enum source_kind kind;
	int fd;
	uint32_t events; /* that epoll watches for; 0: it is not in the set */
};

/* Connections of one address. */
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
	uint32_t tag;     /* 0: the runner has not been asked */
	enum route route; /* ROUTE_COUNT: none was found */
	bool is_head, keep_alive, version_1_0, wants_stream, takes_gzip, was_streaming;
	bool keeps_body; /* for one ask: somebody reads it afterwards */
	char id[REQUEST_ID_MAX + 1];
	char trace[TRACE_TEXT_LEN + 1]; /* traceparent, with this request as the parent; "": none came */
	char method[16];
	char content_type[256]; /* of MEDIA_FORM, and through a door */
	char etag[72];          /* If-None-Match */
	enum request_media media;
	struct buf fields; /* for the runner */
	struct http1_body_reader reader;
	struct buf body;
	uint64_t began_ns, period_bytes, periods;
	unsigned status;    /* that it was answered with */
	uint64_t sent;      /* bytes of the answer's body */
	char who[65];       /* the token's name, for the log */
	char execution[65]; /* that it was answered with, likewise; "": none */
	char verdict[33];
	char path[4097];        /* of an artifact or asset */
	struct door_call *call; /* NULL: it came to the API */
	struct port *port;      /* to a server of a session; NULL: it is for none */
};

struct client {
	struct source source;
	struct front *front;
	struct client *next_dead, *next_of_tag;
	struct client *before, *after; /* in the list of its deadline */
	enum deadline_kind deadline_kind;
	uint64_t deadline_ns;
	enum client_state state;
	bool is_last; /* the connection ends with this answer */
	bool is_tls;
	struct tls_session *tls; /* NULL: none, or not a byte has come */
	const struct listener *listener;
	struct peer *peer; /* NULL: on a unix socket */
	struct address local;
	uint16_t local_port;
	struct buf in;
	size_t in_at, seen; /* of it: where the next request begins; how far its head was looked at */
	struct buf out;
	size_t out_at;
	struct request *req;
	struct websocket *websocket; /* NULL: it is none */
	struct input *input;         /* of a program that runs for it; NULL: none */
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
	struct tls *tls; /* NULL: connections are plain */
	int epoll;
	struct watched_listener listener[LISTENERS_MAX];
	size_t n_listeners;
	struct source channel_source, master_source;
	struct channel *channel; /* to the runner; NULL: there is none now */
	struct deadline_list deadline[DEADLINE_KINDS];
	struct client *by_tag[TAG_BUCKETS];
	struct peer *peers[PEER_BUCKETS];
	struct client *dead;
	struct port_list ports;
	struct port *dead_ports;
	struct relay *relay_by_tag[TAG_BUCKETS];
	struct relay_list relays, idle_relays,
		dead_relays;      /* idle ones: who is without an ask for the longest time first */
	struct json_t *languages; /* as doors last heard of them; NULL: never */
	uint64_t languages_ns;
	struct mcp_sessions *mcp;             /* of the door; NULL: there was none yet */
	struct librechat_runtimes *librechat; /* likewise */
	uint32_t last_tag, n_relays, n_ports, n_clients, connections, connections_of_peer;
	uint32_t n_active; /* with a request that is not answered */
	uint64_t now_ns, body_max, spooled, pending, log_lost;
	bool draining, over, failed, is_paused, was_busy;
	bool lost_runner;   /* nothing more is sent to it: seen to at the end of the round */
	uint64_t rest_ns;   /* if it was busy */
	uint64_t resume_ns; /* if listeners are paused */
	char scratch[FRONT_READ_BYTES];
};

/* confine.c: 0, or -errno with the step that failed. */
int front_confine(const char **ret_step);
/* This kernel has no Landlock: a wall less, which whoever runs the service must hear of. */
bool front_lacks_landlock(void);

/* loop.c */
int front_run(struct front *f);
void front_watch(struct front *f, struct source *s, uint32_t events);
int front_use_certificate(struct front *f, const struct certificate *files, struct brig_error *err);
void deadline_set(struct client *c, enum deadline_kind kind); /* DEADLINE_NONE: no longer any */
struct client *front_by_tag(const struct front *f, uint32_t tag);
void front_add_tag(struct front *f, struct client *c);
void front_drop_tag(struct front *f, struct client *c);
/* Nobody is accepted for a moment. */
void front_pause_listeners(struct front *f);
uint32_t front_new_tag(struct front *f); /* that nobody has, client or relay */
/* A message to the runner.  Where there is none any more, whoever waits for it is answered at the end of the round. */
void front_send(struct front *f, const struct record *r);
bool front_can_ask(const struct front *f); /* there is one, and it keeps up */

/* client.c */
void client_accept(struct front *f, const struct watched_listener *at);
void client_on_event(struct client *c, uint32_t events);
void client_on_deadline(struct client *c);
/* Goes on with what has come in, until it is the client's or the runner's turn. */
void client_advance(struct client *c);
/* Puts bytes behind what waits to be sent, as far as they do not go out at once.  False: the connection is gone. */
bool client_put(struct client *c, const struct iovec *pieces, size_t n);
size_t client_pending(const struct client *c);
/* What was put is the whole answer: when it is out the next request may come. */
void client_finish(struct client *c);
/* For who reads and writes the bytes of a connection itself (port.c): as recv(), into front->scratch; bytes that were read and are
 * for the next one; those that were and are not needed any more; what waits goes out. */
ssize_t client_receive(struct client *c);
bool client_keep(struct client *c, const char *bytes, size_t len);
void client_used(struct client *c, size_t len);
void client_write(struct client *c);
void client_close(struct client *c, bool at_once); /* at once: what the client has not taken is thrown away */

/* request.c */
struct request *request_new(struct client *c);
void request_free(struct client *c);
/* A head has come: on to the body, to the runner or to an answer. */
void request_begin(struct client *c, const char *bytes, const struct http1_head *head);
/* On to its body. */
void request_read_body(struct client *c, const struct http1_head *head);
/* All of it is there. */
void request_finish(struct client *c);
/* Asks the runner what its fields say, with these descriptors beside them (FD_NONE: none), which stay the caller's. */
void request_ask(struct client *c, int files, int input);
void request_on_answer(struct client *c, struct record *r); /* may take its descriptors */

/* check.c: each answers and returns false if the request is not to be served */
bool check_host(struct client *c, const char *bytes, const struct http1_head *head);
/* Whether an Origin is that of this request's Host. */
bool check_origin(const struct client *c, const char *bytes, struct http1_text host, struct http1_text origin);
bool check_credentials(struct client *c, const char *bytes, const struct http1_head *head);
bool check_media(struct client *c, const char *bytes, const struct http1_head *head);
void check_id(struct request *req, const char *bytes, const struct http1_head *head);

/* trace.c: reads traceparent, and makes a span of the request; both ids of one that has. */
void trace_take(struct request *req, const char *bytes, const struct http1_head *head);
void trace_ids(const struct request *req, char trace[33], char span[17]);

/* route.c */
struct route_match {
	enum route route;        /* ROUTE_COUNT: nothing has this path */
	bool is_wrong_method;    /* the route is one of those that have the path */
	char allow[64];          /* then: "GET, HEAD, POST" */
	char id[65], path[4097]; /* "": the route has none */
	uint64_t item;           /* 0: likewise */
	const char *why;         /* of a path that cannot be: a sentence; NULL: it is just unknown */
};
void route_find(const char *method, size_t method_len, const char *path, size_t len, struct route_match *ret);
/* What is answered with events and with nothing else. */
bool route_is_events(enum route route);
/* Whether a path, to its end, is of a pattern as of routes.def; what the pattern names is in ret. */
bool route_fits(const char *pattern, const char *path, const char *end, struct route_match *ret);
/* Parameters behind the question mark, as fields: 0 or -BRIG_E_USAGE. */
int route_query(enum route route, const char *query, size_t len, struct buf *fields, struct brig_error *err);

/* What came beside a document, as parts of a form: data is NULL where there is none. */
struct body_parts {
	struct bytes code, input;
};
/* body.c: a document of the route's kind as fields; *ret_files: an archive, the caller's, FD_NONE: none.  0 or -code. */
int body_to_fields(enum route route, const struct bytes *text, const struct body_parts *parts, struct buf *fields,
		   int *ret_files, struct brig_error *err);
/* The setting that an option of the command line stands for. */
const char *body_setting_of(const char *name);

/* batch.c: a job in each line */
int batch_lines_to_fields(const char *text, size_t len, struct buf *fields, struct brig_error *err);

/* tar.c: an archive as one that is plain (server/archive.h), the caller's */
int tar_to_file(const char *bytes, size_t len, int *ret_files, struct brig_error *err);

/* form.c: likewise of a multipart body */
int form_to_fields(enum route route, const char *content_type, const struct bytes *form, struct buf *fields,
		   int *ret_files, struct brig_error *err);

/* reply.c */
struct reply {
	unsigned status;
	const char *content_type; /* NULL: JSON */
	const char *more;         /* lines of the head, each with its end; NULL: none */
	const void *body;
	size_t len;
	uint64_t retry_after; /* seconds; 0: none */
	const char *location, *allow;
	const char *policy; /* Content-Security-Policy; NULL: the one of documents */
	bool may_be_kept;   /* else Cache-Control: no-store */
};
void reply_send(struct client *c, const struct reply *a);
void reply_error(struct client *c, unsigned status, const char *fmt, ...) PRINTF(3, 4);
/* The same, as the last answer of the connection: of a request whose end is not known or not waited for. */
void reply_refuse(struct client *c, unsigned status, const char *fmt, ...) PRINTF(3, 4);
/* 405, with the methods that there are. */
void reply_not_allowed(struct client *c, const char *path, const char *allow);
const char *reply_reason(unsigned status);
/* "Tue, 17 Nov 2026 15:57:25 GMT" */
void reply_date(char dst[32]);
/* Text as it stands between the quotes of a JSON string. */

/* stream.c */
bool stream_begin(struct client *c, const char *content_type);          /* false, as of the next: the client is gone */
bool stream_put(struct client *c, const struct iovec *parts, size_t n); /* at most STREAM_PARTS_MAX */
void stream_event(struct client *c, const struct record *r);
void stream_ping(struct client *c);
void stream_rest(struct client *c); /* nothing waits to be sent: the next ping's time begins */
void stream_end(struct client *c);

/* input.c: what is written goes to a socket whose other end, the caller's, is for the runner (FIELD_has_input_fd).  -errno. */
int input_open(struct client *c, int *ret_other);
/* False: more waits for the program already than is kept; what a program that has ended would get is left out. */
bool input_write(struct client *c, const char *bytes, size_t len);
void input_on_event(struct input *in);
void input_close(struct client *c); /* none is fine; it is freed after the round */
void input_free(struct input *in);

/* page.c: what the front answers itself */
void page_answer(struct client *c);

/* relay.c */
void relays_init(struct front *f);
void relay_accept(struct front *f, const struct watched_listener *at);
void relay_on_event(struct relay *r, uint32_t events);
/* A record of the runner's for an ask of a relay; false: it is for none. */
bool relay_on_record(struct front *f, const struct record *rec);
bool relay_has_tag(const struct front *f, uint32_t tag);
uint64_t relays_deadline(const struct front *f); /* UINT64_MAX: none */
void relays_on_time(struct front *f);
void relays_free_closed(struct front *f);
/* The runner has gone: who waits for it is hung up on, since nobody knows how far that came. */
void relays_without_runner(struct front *f);

/* log.c */
void log_request(struct client *c);
void log_relay(struct front *f, const char *route, const char *who, unsigned status, uint64_t began_ns);
void log_trouble(struct front *f, const char *text);

#endif
