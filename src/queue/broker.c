/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/broker.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

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
#define STEP_MESSAGES     256 /* of one step, so that others have their turn */
#define BUCKETS           1024
#define SUBSCRIPTIONS_MAX 16
#define LOOK_MS           100 /* how often it is seen whose time is over */
#define LOOK_NS           (LOOK_MS * NS_PER_MS)

struct came {
	struct came *next;
	natsMsg *msg; /* NULL: the connection is up or down */
	bool is_up;
};

struct request {
	struct request *next;            /* of its bucket */
	struct request *later, *earlier; /* in the order in which they were made */
	uint64_t number, deadline_ns, arg;
	broker_reply_fn fn;
};

struct broker {
	const struct nats_library *nats;
	struct broker_callbacks call;
	natsConnection *connection;
	char *jwt, *seed; /* of the credentials */
	char inbox[INBOX_LEN + 16];
	int wake;
	bool is_up;
	uint64_t last_request, looked_ns; /* when it was seen whose time is over */
	struct request *bucket[BUCKETS], *oldest, *youngest;
	size_t n_requests;
	natsSubscription *subscription[SUBSCRIPTIONS_MAX]; /* but that of the inbox */
	size_t n_subscriptions;
	/* what threads of the library put here */
	pthread_mutex_t lock;
	struct came *first, **last;
	size_t n, bytes;
	uint64_t dropped;
};

/* ---- threads of the library -------------------------------------------------------------------------------- */

/* Takes the message. */
static void put(struct broker *b, natsMsg *msg, bool is_up)
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
	c->is_up = is_up;
	*b->last = c;
	b->last = &c->next;
	b->n++;
	b->bytes += len;
	(void)pthread_mutex_unlock(&b->lock);
	(void)!write(b->wake, &one, sizeof(one));
}

static void on_message(natsConnection *nc UNUSED, natsSubscription *sub UNUSED, natsMsg *msg, void *user)
{
	put(user, msg, false);
}

static void on_connected(natsConnection *nc UNUSED, void *user)
{
	put(user, NULL, true);
}

static void on_disconnected(natsConnection *nc UNUSED, void *user)
{
	put(user, NULL, false);
}

/* The library would write to standard error; what matters is told by replies that do not come. */
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

/* What stands between two lines of dashes, the first of which has this word in it. */
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

/* Nothing is kept for brokers that are away: what was not heard is asked again by who needs it. */
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
	    (st = n->natsOptions_SetErrorHandler(to, on_error, b)) != NATS_OK ||
	    (st = n->natsOptions_SetRetryOnFailedConnect(to, true, on_connected, b)) != NATS_OK)
		return st;
	return set_security(b, to, o);
}

static int connect_to(struct broker *b, const struct broker_options *o, struct brig_error *err)
{
	natsOptions *options = NULL;
	natsSubscription *sub = NULL;
	char everything[sizeof(b->inbox) + 4];
	natsStatus st = b->nats->natsOptions_Create(&options);

	if (st == NATS_OK)
		st = set_options(b, options, o);
	if (st == NATS_OK)
		st = b->nats->natsConnection_Connect(&b->connection, options);
	if (st == NATS_OK)
		put(b, NULL, true);
	if (st == NATS_NOT_YET_CONNECTED)
		st = NATS_OK;
	b->nats->natsOptions_Destroy(options);
	(void)snprintf(everything, sizeof(everything), "%s.>", b->inbox);
	if (st == NATS_OK)
		st = b->nats->natsConnection_Subscribe(&sub, b->connection, everything, on_message, b);
	return st == NATS_OK ? 0
			     : err_set(err, BRIG_E_USAGE, 0, "the brokers '%.200s' cannot be used: %s", o->urls,
				       b->nats->natsStatus_GetText(st));
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
	fd_closep(&b->wake); /* the rest goes with the process, which cannot do without brokers */
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
	natsSubscription **sub = &b->subscription[b->n_subscriptions];

	if (b->n_subscriptions == SUBSCRIPTIONS_MAX)
		return -ENOSPC;
	if (b->nats->natsConnection_Subscribe(sub, b->connection, subject, on_message, b) != NATS_OK)
		return -EIO;
	b->n_subscriptions++;
	return 0;
}

void broker_unsubscribe(struct broker *b)
{
	while (b->n_subscriptions > 0)
		b->nats->natsSubscription_Destroy(b->subscription[--b->n_subscriptions]);
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

/* ---- what has come -------------------------------------------------------------------------------------------- */

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

/* Of "INBOX.r.NUMBER". */
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
		b->call.on_message(b->call.user, &m); /* else it comes too late */
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

void broker_step(struct broker *b)
{
	uint64_t n;
	struct came *c = NULL;

	(void)!read(b->wake, &n, sizeof(n));
	for (int i = 0; i < STEP_MESSAGES && (c = next_came(b)); i++) {
		if (c->msg) {
			take(b, c->msg);
			b->nats->natsMsg_Destroy(c->msg);
		} else if (c->is_up != b->is_up) {
			b->is_up = c->is_up;
			b->call.on_up(b->call.user, b->is_up);
		}
		free(c);
	}
	n = 1;
	if (c)
		(void)!write(b->wake, &n, sizeof(n)); /* there is more */
	give_up(b);
}
