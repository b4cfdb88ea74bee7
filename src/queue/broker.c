/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection at a time.  A thread of ours opens it, retrying until a broker accepts us; from then on libnats
 * reconnects by itself when a broker disappears.  But if a broker rejects us because of our certificate or credentials,
 * libnats gives up and closes the connection: then the thread starts again, since operators fix such problems.  The
 * reason for a rejection is only available in the thread that tried, so that thread stores it.  Subscriptions are kept
 * here, for the next connection.
 */
#include "queue/broker.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "queue/nats.h"

#define INBOX_LEN         22
#define RECONNECT_WAIT_MS 200
#define CONNECT_MS        2000
#define PING_MS           5000
#define PINGS_OUT         2
#define STEP_MESSAGES     256 /* maximum per step, so that other work gets its turn */
#define BUCKETS           1024
#define LOOK_MS           100 /* interval of the check for expired requests */
#define LOOK_NS           (LOOK_MS * NS_PER_MS)
#define SUBSCRIPTIONS_MAX 16
#define TROUBLE_MAX       400

enum state { IS_UP, IS_DOWN, IS_CLOSED };

struct came {
	struct came *next;
	natsMsg *msg; /* NULL: the state of the connection has changed */
	enum state state;
};

struct request {
	struct request *next;            /* in its bucket */
	struct request *later, *earlier; /* in order of creation */
	uint64_t number, deadline_ns, arg;
	broker_reply_fn fn;
};

struct subscription {
	char subject[BROKER_SUBJECT_MAX];
	natsSubscription *handle; /* NULL: not subscribed on any connection yet */
};

struct broker {
	const struct nats_library *nats;
	struct broker_callbacks call;
	natsOptions *options;
	bool has_tls, has_certificate;
	natsConnection *connection;                          /* NULL: a thread is trying to open it */
	struct subscription subscription[SUBSCRIPTIONS_MAX]; /* the first is the inbox */
	size_t n_subscriptions;
	char *jwt, *seed; /* from the credentials */
	char inbox[INBOX_LEN + 16];
	int wake;
	bool is_up;
	uint64_t last_request, looked_ns; /* looked_ns: when expired requests were last checked for */
	struct request *bucket[BUCKETS], *oldest, *youngest;
	size_t n_requests;
	/* Shared with the library's threads: */
	pthread_mutex_t lock;
	struct came *first, **last;
	size_t n, bytes;
	uint64_t dropped;
	natsConnection *opened; /* by our own thread */
	char trouble[TROUBLE_MAX];
};

/* ---- called in the library's threads --------------------------------------------------------------------- */

/* Queues an event; takes the message. */
static void put(struct broker *b, natsMsg *msg, enum state state)
{
	struct came *c = calloc(1, sizeof(*c));
	size_t len = msg ? (size_t)b->nats->natsMsg_GetDataLength(msg) : 0;
	uint64_t one = 1;

	(void)pthread_mutex_lock(&b->lock);
	if (!c || (msg && (b->n >= BROKER_ROW_MAX || b->bytes + len > BROKER_ROW_BYTES_MAX))) {
		b->dropped++;
		(void)pthread_mutex_unlock(&b->lock);
		b->nats->natsMsg_Destroy(msg);
		free(c);
		return;
	}
	c->msg = msg;
	c->state = state;
	*b->last = c;
	b->last = &c->next;
	b->n++;
	b->bytes += len;
	(void)pthread_mutex_unlock(&b->lock);
	(void)!write(b->wake, &one, sizeof(one));
}

static void on_message(natsConnection *nc UNUSED, natsSubscription *sub UNUSED, natsMsg *msg, void *user)
{
	put(user, msg, IS_UP);
}

static void on_connected(natsConnection *nc UNUSED, void *user)
{
	put(user, NULL, IS_UP);
}

static void on_disconnected(natsConnection *nc UNUSED, void *user)
{
	put(user, NULL, IS_DOWN);
}

static void on_closed(natsConnection *nc UNUSED, void *user)
{
	put(user, NULL, IS_CLOSED);
}

/* Instead of the library's output to standard error; failures show as missing replies. */
static void on_error(natsConnection *nc UNUSED, natsSubscription *sub UNUSED, natsStatus err UNUSED, void *user UNUSED)
{
}

static natsStatus give_jwt(char **ret, char **ret_why UNUSED, void *user)
{
	const struct broker *b = user;

	*ret = strdup(b->jwt);
	return *ret ? NATS_OK : NATS_NO_MEMORY;
}

static natsStatus sign_nonce(char **ret_why UNUSED, unsigned char **ret, int *ret_len, const char *nonce, void *user)
{
	const struct broker *b = user;

	return b->nats->nats_Sign(b->seed, nonce, ret, ret_len);
}

/* ---- opening ------------------------------------------------------------------------------------------------ */

/* The text between two lines of dashes, the first of which contains word. */
static char *cut_block(const char *text, const char *word)
{
	const char *at = strstr(text, word), *end;

	at = at ? strchr(at, '\n') : NULL;
	end = at ? strstr(at, "\n---") : NULL;
	if (!end)
		return NULL;
	at++;
	while (end > at && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
		end--;
	return strndup(at, (size_t)(end - at));
}

static natsStatus set_credentials(struct broker *b, natsOptions *to, const char *credentials)
{
	b->jwt = cut_block(credentials, "USER JWT");
	b->seed = cut_block(credentials, "USER NKEY SEED");
	if (!b->jwt || !b->seed)
		return NATS_INVALID_ARG;
	return b->nats->natsOptions_SetUserCredentialsCallbacks(to, give_jwt, b, sign_nonce, b);
}

static natsStatus set_servers(struct broker *b, natsOptions *to, const char *urls)
{
	char copy[4096], *at = copy, *one;
	const char *list[32];
	int n = 0;

	if (!str_copy(copy, sizeof(copy), urls))
		return NATS_INVALID_ARG;
	while ((one = strsep(&at, ","))) {
		if (n == (int)ARRAY_LEN(list) || *one == '\0')
			return NATS_INVALID_ARG;
		list[n++] = one;
	}
	return b->nats->natsOptions_SetServers(to, list, n);
}

static natsStatus set_security(struct broker *b, natsOptions *to, const struct broker_options *o)
{
	natsStatus st = o->tls ? b->nats->natsOptions_SetSecure(to, true) : NATS_OK;

	if (st == NATS_OK && o->ca)
		st = b->nats->natsOptions_SetCATrustedCertificates(to, o->ca);
	if (st == NATS_OK && o->cert)
		st = b->nats->natsOptions_SetCertificatesChain(to, o->cert, o->key);
	if (st == NATS_OK && o->credentials)
		st = set_credentials(b, to, o->credentials);
	return st;
}

/* Nothing is buffered while brokers are unreachable: requests that were not received are repeated by their callers. */
static natsStatus set_options(struct broker *b, natsOptions *to, const struct broker_options *o)
{
	const struct nats_library *n = b->nats;
	natsStatus st;

	if ((st = set_servers(b, to, o->urls)) != NATS_OK || (st = n->natsOptions_SetName(to, o->name)) != NATS_OK ||
	    (st = n->natsOptions_SetMaxReconnect(to, -1)) != NATS_OK ||
	    (st = n->natsOptions_SetReconnectWait(to, RECONNECT_WAIT_MS)) != NATS_OK ||
	    (st = n->natsOptions_SetTimeout(to, CONNECT_MS)) != NATS_OK ||
	    (st = n->natsOptions_SetPingInterval(to, PING_MS)) != NATS_OK ||
	    (st = n->natsOptions_SetMaxPingsOut(to, PINGS_OUT)) != NATS_OK ||
	    (st = n->natsOptions_SetSendAsap(to, true)) != NATS_OK ||
	    (st = n->natsOptions_SetMaxPendingMsgs(to, BROKER_ROW_MAX)) != NATS_OK ||
	    (st = n->natsOptions_SetIgnoreDiscoveredServers(to, true)) != NATS_OK ||
	    (st = n->natsOptions_SetDisconnectedCB(to, on_disconnected, b)) != NATS_OK ||
	    (st = n->natsOptions_SetReconnectedCB(to, on_connected, b)) != NATS_OK ||
	    (st = n->natsOptions_SetClosedCB(to, on_closed, b)) != NATS_OK ||
	    (st = n->natsOptions_SetErrorHandler(to, on_error, b)) != NATS_OK)
		return st;
	return set_security(b, to, o);
}

/* ---- connecting --------------------------------------------------------------------------------------------- */

enum trouble_when { ALWAYS, WITHOUT_CERTIFICATE, WITH_CERTIFICATE };

static const char *explain(const struct broker *b, natsStatus status)
{
	static const struct {
		natsStatus status;
		enum trouble_when when;
		const char *sentence;
	} rows[] = {
#define TROUBLE(status, when, sentence) { status, when, sentence },
#include "queue/troubles.def"
#undef TROUBLE
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].status == status &&
		    (rows[i].when == ALWAYS ||
		     (b->has_tls && b->has_certificate == (rows[i].when == WITH_CERTIFICATE))))
			return rows[i].sentence;
	return "the brokers cannot be spoken to";
}

/* In the thread that tried: the library's detailed message is thread-local. */
static void note_trouble(struct broker *b, natsStatus status)
{
	natsStatus last;
	const char *detail = b->nats->nats_GetLastError(&last), *at = detail ? strstr(detail, "): ") : NULL;

	(void)pthread_mutex_lock(&b->lock);
	(void)snprintf(b->trouble, sizeof(b->trouble), "%s (%.150s)", explain(b, status),
		       at ? at + 3 : b->nats->natsStatus_GetText(status));
	for (char *c = b->trouble; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?'; /* part of the text comes from a broker */
	(void)pthread_mutex_unlock(&b->lock);
}

static void *keep_trying(void *user)
{
	struct broker *b = user;
	natsConnection *nc = NULL;
	natsStatus st;

	while ((st = b->nats->natsConnection_Connect(&nc, b->options)) != NATS_OK) {
		note_trouble(b, st);
		(void)poll(NULL, 0, RECONNECT_WAIT_MS);
	}
	(void)pthread_mutex_lock(&b->lock);
	b->opened = nc;
	b->trouble[0] = '\0';
	(void)pthread_mutex_unlock(&b->lock);
	put(b, NULL, IS_UP);
	return NULL;
}

static int begin_to_connect(struct broker *b)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, keep_trying, b);

	if (rc == 0)
		(void)pthread_detach(thread);
	return -rc;
}

static void end_subscription(const struct broker *b, struct subscription *s)
{
	if (s->handle)
		b->nats->natsSubscription_Destroy(MOVE_PTR(s->handle));
}

static int subscribe(struct broker *b, struct subscription *s)
{
	end_subscription(b, s); /* of a connection that is closed */
	return b->nats->natsConnection_Subscribe(&s->handle, b->connection, s->subject, on_message, b) == NATS_OK
		       ? 0
		       : -EIO;
}

/* Takes over a new connection, and subscribes again on it. */
static void take_connection(struct broker *b)
{
	(void)pthread_mutex_lock(&b->lock);
	b->connection = MOVE_PTR(b->opened);
	(void)pthread_mutex_unlock(&b->lock);
	for (size_t i = 0; b->connection && i < b->n_subscriptions; i++)
		(void)subscribe(b, &b->subscription[i]);
}

/* The addresses without user names and passwords. */
static const char *show_urls(const char *urls, char *dst, size_t size)
{
	AUTO_BUF text = BUF_INIT(size - 1);

	for (const char *at = urls; *at; at += strspn(at, ",")) {
		size_t len = strcspn(at, ",");
		const char *sign = memrchr(at, '@', len);

		(void)buf_addf(&text, "%s%.*s", text.len ? "," : "", (int)(sign ? at + len - sign - 1 : (ptrdiff_t)len),
			       sign ? sign + 1 : at);
		at += len;
	}
	(void)str_copy(dst, size, buf_str(&text));
	return dst;
}

static int connect_to(struct broker *b, const struct broker_options *o, struct brig_error *err)
{
	natsStatus st = b->nats->natsOptions_Create(&b->options);
	char shown[200];
	int rc;

	b->has_tls = o->tls;
	b->has_certificate = o->cert != NULL;
	if (st == NATS_OK)
		st = set_options(b, b->options, o);
	if (st != NATS_OK)
		return err_set(err, BRIG_E_USAGE, 0, "the brokers '%s' cannot be used: %s%s",
			       show_urls(o->urls, shown, sizeof(shown)), b->nats->natsStatus_GetText(st),
			       st == NATS_SSL_ERROR ? ": what --queue-ca, --queue-cert and --queue-key name must be "
						      "PEM, and the key that of the certificate"
			       : st == NATS_INVALID_ARG ? ": check the addresses, and that --queue-credentials names a "
							  "file of NATS credentials"
							: "");
	(void)snprintf(b->subscription[b->n_subscriptions++].subject, BROKER_SUBJECT_MAX, "%s.>", b->inbox);
	rc = begin_to_connect(b);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot begin to connect to brokers") : 0;
}

bool broker_trouble(struct broker *b, char *dst, size_t size)
{
	(void)pthread_mutex_lock(&b->lock);
	(void)str_copy(dst, size, b->trouble);
	(void)pthread_mutex_unlock(&b->lock);
	return *dst;
}

int broker_open(const struct broker_options *o, const struct broker_callbacks *callbacks, struct broker **ret,
		struct brig_error *err)
{
	struct broker *b = calloc(1, sizeof(*b));
	char word[INBOX_LEN + 1];

	if (!b)
		return err_nomem(err);
	b->call = *callbacks;
	b->last = &b->first;
	b->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->wake < 0 || pthread_mutex_init(&b->lock, NULL) != 0 || id_random(word, INBOX_LEN) < 0) {
		(void)err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for brokers");
		goto fail;
	}
	(void)snprintf(b->inbox, sizeof(b->inbox), "_INBOX.%s", word);
	b->nats = nats_library(err);
	if (!b->nats || connect_to(b, o, err) < 0)
		goto fail;
	*ret = b;
	return 0;
fail:
	fd_closep(&b->wake); /* the rest is freed with the process, which exits without a broker object */
	return -err->code;
}

int broker_fd(const struct broker *b)
{
	return b->wake;
}

bool broker_is_up(const struct broker *b)
{
	return b->is_up;
}

size_t broker_payload_max(const struct broker *b)
{
	int64_t n = b->is_up ? b->nats->natsConnection_GetMaxPayload(b->connection) : 0;

	return n > 0 ? (size_t)n : (size_t)MiB;
}

uint64_t broker_dropped(const struct broker *b)
{
	return b->dropped;
}

size_t broker_waiting(const struct broker *b)
{
	return b->n_requests;
}

const char *broker_inbox(const struct broker *b)
{
	return b->inbox;
}

/* ---- sending -------------------------------------------------------------------------------------------------- */

int broker_subscribe(struct broker *b, const char *subject)
{
	struct subscription *s = &b->subscription[b->n_subscriptions];

	if (b->n_subscriptions == SUBSCRIPTIONS_MAX || !str_copy(s->subject, sizeof(s->subject), subject))
		return -EINVAL;
	b->n_subscriptions++;
	return b->connection ? subscribe(b, s) : 0;
}

void broker_unsubscribe(struct broker *b)
{
	while (b->n_subscriptions > 1)
		end_subscription(b, &b->subscription[--b->n_subscriptions]);
}

int broker_publish(struct broker *b, const struct broker_message *m)
{
	natsMsg *msg = NULL;
	natsStatus st = NATS_CONNECTION_DISCONNECTED;

	if (!b->is_up)
		return -ENOTCONN;
	if (m->len > broker_payload_max(b))
		return -EMSGSIZE;
	st = b->nats->natsMsg_Create(&msg, m->subject, m->reply && *m->reply ? m->reply : NULL, m->data, (int)m->len);
	for (size_t i = 0; st == NATS_OK && i < BROKER_HEADERS_MAX && m->header[i].name; i++)
		st = b->nats->natsMsgHeader_Set(msg, m->header[i].name, m->header[i].value);
	if (st == NATS_OK)
		st = b->nats->natsConnection_PublishMsg(b->connection, msg);
	b->nats->natsMsg_Destroy(msg);
	return st == NATS_OK ? 0 : -EIO;
}

int broker_request(struct broker *b, const struct broker_message *m, uint64_t patience_ns, broker_reply_fn fn,
		   uint64_t arg)
{
	struct broker_message own = *m;
	struct request *r, **bucket;
	char reply[sizeof(b->inbox) + 32];
	int rc;

	if (b->n_requests >= BROKER_REQUESTS_MAX)
		return -EAGAIN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct request){
		.number = ++b->last_request, .deadline_ns = clock_now_ns() + patience_ns, .arg = arg, .fn = fn
	};
	(void)snprintf(reply, sizeof(reply), "%s.r.%llu", b->inbox, (unsigned long long)r->number);
	own.reply = reply;
	rc = broker_publish(b, &own);
	if (rc < 0) {
		free(r);
		return rc;
	}
	bucket = &b->bucket[r->number % BUCKETS];
	r->next = *bucket;
	*bucket = r;
	r->earlier = b->youngest;
	*(b->youngest ? &b->youngest->later : &b->oldest) = r;
	b->youngest = r;
	b->n_requests++;
	return 0;
}

/* ---- received messages ----------------------------------------------------------------------------------- */

static void unlist(struct broker *b, struct request *r)
{
	struct request **at = &b->bucket[r->number % BUCKETS];

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	*(r->earlier ? &r->earlier->later : &b->oldest) = r->later;
	*(r->later ? &r->later->earlier : &b->youngest) = r->earlier;
	b->n_requests--;
}

static void answer(struct broker *b, struct request *r, const struct broker_message *m)
{
	unlist(b, r);
	r->fn(b->call.user, r->arg, m);
	free(r);
}

/* By the number in "INBOX.r.NUMBER". */
static struct request *find_request(const struct broker *b, const char *subject)
{
	size_t len = strlen(b->inbox);
	struct request *r;
	uint64_t number;

	if (strncmp(subject, b->inbox, len) != 0 || strncmp(subject + len, ".r.", 3) != 0 ||
	    !str_to_u64(subject + len + 3, &number))
		return NULL;
	r = b->bucket[number % BUCKETS];
	while (r && r->number != number)
		r = r->next;
	return r;
}

static uint64_t number_of(const struct broker *b, natsMsg *msg, const char *header)
{
	const char *text = NULL;
	uint64_t n = 0;

	if (b->nats->natsMsgHeader_Get(msg, header, &text) != NATS_OK || !text || !str_to_u64(text, &n))
		return 0;
	return n;
}

static void take(struct broker *b, natsMsg *msg)
{
	const char *subject = b->nats->natsMsg_GetSubject(msg), *reply = b->nats->natsMsg_GetReply(msg);
	struct broker_message m = { .subject = subject ? subject : "",
				    .reply = reply ? reply : "",
				    .data = b->nats->natsMsg_GetData(msg),
				    .len = (size_t)b->nats->natsMsg_GetDataLength(msg),
				    .status = (unsigned)number_of(b, msg, "Status"),
				    .sequence = number_of(b, msg, "Nats-Sequence") };
	struct request *r = find_request(b, m.subject);
	size_t len = strlen(b->inbox);

	if (r)
		answer(b, r, &m);
	else if (strncmp(m.subject, b->inbox, len) != 0 || strncmp(m.subject + len, ".r.", 3) != 0)
		b->call.on_message(b->call.user, &m); /* otherwise it is a late reply */
}

static struct came *next_came(struct broker *b)
{
	struct came *c;

	(void)pthread_mutex_lock(&b->lock);
	c = b->first;
	if (c) {
		b->first = c->next;
		if (!b->first)
			b->last = &b->first;
		b->n--;
		if (c->msg)
			b->bytes -= (size_t)b->nats->natsMsg_GetDataLength(c->msg);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return c;
}

int broker_patience(const struct broker *b)
{
	return b->oldest ? LOOK_MS : -1;
}

static void give_up(struct broker *b)
{
	uint64_t now = clock_now_ns();

	if (now - b->looked_ns < LOOK_NS)
		return;
	b->looked_ns = now;
	for (struct request *r = b->oldest, *later; r; r = later) {
		later = r->later;
		if (r->deadline_ns <= now)
			answer(b, r, NULL);
	}
}

static void change_state(struct broker *b, enum state state)
{
	bool is_up = state == IS_UP;

	if (is_up && !b->connection)
		take_connection(b);
	if (is_up != b->is_up) {
		b->is_up = is_up;
		b->call.on_up(b->call.user, is_up);
	}
	if (state == IS_CLOSED && b->connection) {
		b->nats->natsConnection_Destroy(MOVE_PTR(b->connection));
		(void)begin_to_connect(b); /* on failure there is no connection */
	}
}

void broker_step(struct broker *b)
{
	uint64_t n;
	struct came *c = NULL;

	(void)!read(b->wake, &n, sizeof(n));
	for (int i = 0; i < STEP_MESSAGES && (c = next_came(b)); i++) {
		if (c->msg) {
			take(b, c->msg);
			b->nats->natsMsg_Destroy(c->msg);
		} else {
			change_state(b, c->state);
		}
		free(c);
	}
	n = 1;
	if (c)
		(void)!write(b->wake, &n, sizeof(n)); /* more events are queued */
	give_up(b);
}
