/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_exchange.c - transfer of package sets, compiled programs and environments between nodes
 *
 * Each node's entry lists what it stores, under keys that are the same on every host (brig/exchange.h).  A run that
 * lacks an item calls want(); if a node that may give has it, it is requested piece by piece, directly over core NATS,
 * so that brokers store nothing of it:
 *
 *	node that lacks it                         node that has it
 *	want: id, kind, key, offset        -->    packs it into an unnamed file, in a child process
 *	piece: id, pause                   <--    while packing
 *	piece: id, content, created, total, offset, bytes  <--
 *	... a few at a time, from the first missing byte; requested again after a timeout ...
 *	unpacks, hashes and stores it in a child process; the run continues
 *
 * On any failure or delay the run creates the item itself after a timeout: only time is lost.
 *
 * Environments are transferred the same way, but no run waits for one; their jobs go back to the stream until it has
 * arrived (queue_environments.c).  A front can give environments; it fetches nothing.
 *
 * Trust: the giver states, in pieces that it seals, which hash the item with a key has.  That cannot be verified
 * without creating the item, so only nodes marked "gives" in the operator's list are asked, and a piece is refused if
 * it comes from another node, belongs to another request (the id is random), or has another hash than the first one.
 * The store verifies that the bytes have this hash, with the rules for what an install cell left (store/give.c).
 * Pieces contain no path and no command.
 */
#include "server/runner/queue_exchange.h"

#include <brig/exchange.h>

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "server/report.h"
#include "server/runner/service.h"
#include "sys/statedir.h"

#define PIECE      (192 * KiB)
#define WINDOW     4 /* pieces requested ahead */
#define PACKED_MAX (256 * MiB)
#define SLOTS      4                  /* in each direction */
#define QUIET_NS   NS_PER_SEC         /* until a piece is requested again */
#define TRIES      3                  /* for one piece */
#define TAKE_NS    (110 * NS_PER_SEC) /* for all of it; the waiting run's timeout is slightly longer */
#define IDLE_NS    (60 * NS_PER_SEC)  /* until an unused packed item is dropped */
#define LOOK_NS    (60 * NS_PER_SEC)
#define STEP_MS    10                /* poll interval while a child process works */
#define VAIN_NS    (60 * NS_PER_SEC) /* until an environment is requested again after a failure */
#define VAIN_MAX   16
#define WORD_MAX   80
#define FILE_FD    3
#define SAID_MAX   (QUEUE_SETS_MAX * (BRIG_EXCHANGE_KIND_MAX + BRIG_EXCHANGE_HEX + 2))

/* Result of a child process, in shared memory. */
struct outcome {
	int rc;
	struct brig_parcel parcel;
	struct brig_error err;
};

struct slot {
	char kind[BRIG_EXCHANGE_KIND_MAX + 1], key[BRIG_EXCHANGE_HEX + 1]; /* kind "": free */
	int file;                                                          /* the packed item, an unnamed file */
	uint64_t total, used_ns;
	struct outcome *outcome;
	int pidfd; /* of the child that packs or unpacks; FD_NONE: none */
	/* of an item given */
	bool is_packed;
	/* of an item fetched */
	char id[EXECUTION_ID_LEN + 1], giver[SEAL_KEY_HEX + 1], name[PEER_NAME_MAX + 1];
	int done; /* eventfd on which the run waits */
	struct brig_parcel parcel;
	uint64_t whole, asked, deadline_ns, quiet_ns;
	unsigned tries;
	char word[WORD_MAX + 1]; /* of an environment */
};

struct exchange {
	struct slot given[SLOTS], taken[SLOTS];
	char said[SAID_MAX]; /* what this node stores, as of looked_ns */
	uint64_t looked_ns;  /* when `said` was listed */
	uint64_t wanted_ns;  /* when a run last lacked something, which will be stored soon */
	struct {
		char hex[QUEUE_SET_HEX + 1];
		uint64_t used;
	} set[QUEUE_SETS_MAX];
	uint64_t uses;
	struct {
		char word[WORD_MAX + 1];
		uint64_t until_ns;
	} vain[VAIN_MAX]; /* environments that could not be fetched */
	size_t next_vain;
};

static void say(struct service *s, const char *to, const struct buf *inner)
{
	AUTO_BUF m = BUF_INIT(LINK_WHOLE_MAX);
	char subject[LINK_SUBJECT_MAX];

	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_GIVE, to);
	message_put_text(&m, FIELD_subject, subject);
	if (queue_seal(s, inner, &m))
		queue_tell(s, LINK_TELL, &m);
}

static struct slot *find(struct slot *list, const char *kind, const char *key)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (list[i].kind[0] && str_eq(list[i].kind, kind) && str_eq(list[i].key, key))
			return &list[i];
	return NULL;
}

static void slot_init(struct slot *t)
{
	*t = (struct slot){ .file = FD_NONE, .pidfd = FD_NONE, .done = FD_NONE };
}

static void slot_free(struct slot *t)
{
	uint64_t one = 1;
	siginfo_t info;

	if (t->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, t->pidfd, SIGKILL, NULL, 0);
		(void)waitid(P_PIDFD, (id_t)t->pidfd, &info, WEXITED);
	}
	if (t->done >= 0)
		(void)!write(t->done, &one, sizeof(one));
	if (t->outcome)
		(void)munmap(t->outcome, sizeof(*t->outcome));
	fd_closep(&t->pidfd);
	fd_closep(&t->file);
	fd_closep(&t->done);
	slot_init(t);
}

/* A free slot with an unnamed file, which disappears with its last descriptor. */
static struct slot *slot_new(const struct service *s, struct slot *list, const char *kind, const char *key)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR state = STATEDIR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct slot *t = NULL;

	for (size_t i = 0; i < SLOTS && !t; i++)
		if (!list[i].kind[0])
			t = &list[i];
	if (!t || statedir_open(s->options->state, true, &state, &err) < 0 ||
	    statedir_open_sub(&state, "queue", true, &dir, &err) < 0)
		return NULL;
	t->file = openat(dir.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	t->outcome = mmap(NULL, sizeof(*t->outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->outcome == MAP_FAILED)
		t->outcome = NULL;
	if (t->file < 0 || !t->outcome || !str_copy(t->kind, sizeof(t->kind), kind) ||
	    !str_copy(t->key, sizeof(t->key), key)) {
		slot_free(t);
		return NULL;
	}
	t->used_ns = clock_now_ns();
	return t;
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

typedef int (*work_function)(struct brig *b, const struct slot *t, struct outcome *out);

static int pack(struct brig *b, const struct slot *t, struct outcome *out)
{
	int rc = brig_exchange_pack(b, t->kind, t->key, PACKED_MAX, FILE_FD, &out->parcel, &out->err);

	return rc == 0 ? -ENOENT : rc;
}

static int unpack(struct brig *b, const struct slot *t, struct outcome *out)
{
	if (lseek(FILE_FD, 0, SEEK_SET) < 0)
		return -errno;
	return brig_exchange_take(b, t->kind, t->key, &t->parcel, FILE_FD, &out->err);
}

/* The child has the library's handle, one file, and none of the runner's descriptors (see answerers.c). */
static _Noreturn void be_worker(struct brig *b, struct slot *t, pid_t runner, work_function work)
{
	(void)prctl(PR_SET_NAME, "brig-exchange");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != runner || dup2(t->file, FILE_FD) < 0 ||
	    close_range(FILE_FD + 1, ~0U, 0) < 0)
		_exit(1);
	t->outcome->rc = work(b, t, t->outcome);
	_exit(0);
}

static bool start(struct service *s, struct slot *t, work_function work)
{
	pid_t runner = getpid(), pid;

	*t->outcome = (struct outcome){ .rc = -EIO, .parcel = BRIG_PARCEL_INIT, .err = BRIG_ERROR_INIT };
	pid = fork();
	if (pid == 0)
		be_worker(s->host->b, t, runner, work);
	if (pid > 0)
		t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid > 0 && t->pidfd < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return t->pidfd >= 0;
}

/* True: the child has exited, and outcome is valid. */
static bool has_ended(struct slot *t)
{
	siginfo_t info = { .si_pid = 0 };

	if (t->pidfd < 0 || waitid(P_PIDFD, (id_t)t->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return false;
	fd_closep(&t->pidfd);
	return true;
}

/* ---- giving ------------------------------------------------------------------------------------------------------ */

static void begin_piece(const struct service *s, const char *id, struct buf *inner)
{
	queue_begin(s, inner, "piece");
	message_put_text(inner, FIELD_id, id);
}

static void refuse(struct service *s, const char *to, const char *id, const char *why)
{
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	begin_piece(s, id, &inner);
	message_put_text(&inner, FIELD_reason, why);
	say(s, to, &inner);
}

static void give_piece(struct service *s, struct slot *t, const char *to, const char *id, uint64_t offset)
{
	AUTO_BUF inner = BUF_INIT(LINK_WHOLE_MAX);
	AUTO_FREE char *bytes = malloc(PIECE);
	ssize_t n = bytes && offset < t->total ? pread(t->file, bytes, PIECE, (off_t)offset) : -1;

	if (n <= 0) {
		refuse(s, to, id, "there is no such piece");
		return;
	}
	t->used_ns = clock_now_ns();
	begin_piece(s, id, &inner);
	message_put_text(&inner, FIELD_content_hash, t->parcel.content);
	message_put_number(&inner, FIELD_created, t->parcel.created);
	message_put_number(&inner, FIELD_total, t->total);
	message_put_number(&inner, FIELD_offset, offset);
	message_put_bytes(&inner, FIELD_body, bytes, (size_t)n);
	say(s, to, &inner);
}

/* Frees the least recently used slot that is not being packed, if none is free. */
static void make_place(struct exchange *e)
{
	struct slot *oldest = NULL;

	for (size_t i = 0; i < SLOTS; i++) {
		if (!e->given[i].kind[0])
			return;
		if (e->given[i].pidfd < 0 && (!oldest || e->given[i].used_ns < oldest->used_ns))
			oldest = &e->given[i];
	}
	if (oldest)
		slot_free(oldest);
}

/* Announces that the item is being packed. */
static void have_patience(struct service *s, const char *to, const char *id)
{
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	begin_piece(s, id, &inner);
	message_put_number(&inner, FIELD_pause, QUIET_NS / NS_PER_MS);
	say(s, to, &inner);
}

/* A node repeats its request while the item is packed; the first piece goes to the last node that asked. */
static void on_want(struct service *s, const struct queue_sealed *said)
{
	struct exchange *e = s->queue.exchange;
	const char *kind = message_text(&said->m, FIELD_kept_kind), *key = message_text(&said->m, FIELD_kept_key);
	const char *id = message_text(&said->m, FIELD_id);
	struct slot *t;

	if (!kind || !key || !id)
		return;
	t = find(e->given, kind, key);
	if (t && t->is_packed) {
		give_piece(s, t, said->by->key, id, message_number(&said->m, FIELD_offset, 0));
		return;
	}
	if (!t) {
		make_place(e);
		t = slot_new(s, e->given, kind, key);
		if (!t || !start(s, t, pack)) {
			if (t)
				slot_free(t);
			refuse(s, said->by->key, id, "it has no place for that now");
			return;
		}
	}
	(void)str_copy(t->id, sizeof(t->id), id);
	(void)str_copy(t->giver, sizeof(t->giver), said->by->key); /* in a slot of this direction: the receiver */
	have_patience(s, said->by->key, id);
}

static void step_given(struct service *s, struct slot *t, uint64_t now)
{
	off_t end;

	if (has_ended(t)) {
		end = t->outcome->rc > 0 ? lseek(t->file, 0, SEEK_END) : -1;
		if (end <= 0 || (uint64_t)end > PACKED_MAX) {
			refuse(s, t->giver, t->id, "it is not there any more, or too large");
			slot_free(t);
			return;
		}
		t->parcel = t->outcome->parcel;
		t->total = (uint64_t)end;
		t->is_packed = true;
		give_piece(s, t, t->giver, t->id, 0);
	} else if (t->is_packed && now - t->used_ns > IDLE_NS) {
		slot_free(t);
	}
}

/* ---- taking -------------------------------------------------------------------------------------------------------- */

static void ask_piece(struct service *s, const struct slot *t, uint64_t offset)
{
	AUTO_BUF inner = BUF_INIT(4 * KiB);

	queue_begin(s, &inner, "want");
	message_put_text(&inner, FIELD_id, t->id);
	message_put_text(&inner, FIELD_kept_kind, t->kind);
	message_put_text(&inner, FIELD_kept_key, t->key);
	message_put_number(&inner, FIELD_offset, offset);
	say(s, t->giver, &inner);
}

/* Requests pieces up to the window; before the first piece the size is unknown. */
static void ask_more(struct service *s, struct slot *t)
{
	uint64_t until = t->total ? min_u64(t->total, t->whole + WINDOW * PIECE) : 1;

	for (t->asked = max_u64(t->asked, t->whole); t->asked < until; t->asked += PIECE)
		ask_piece(s, t, t->asked);
}

static bool is_given_by(const struct queue_node *node, const char *word)
{
	return node_is_live(node) && placement_has(node->has, word, strlen(word));
}

static bool is_offered_by(const struct queue_node *node, const char *word)
{
	return node_is_live(node) && placement_has(node->offers, word, strlen(word));
}

/* A random node that has the item and may give. */
static const struct peer *find_giver(const struct service *s,
				     bool (*is_had_by)(const struct queue_node *, const char *), const char *word)
{
	const struct queue *q = &s->queue;
	uint64_t first = 0;

	if (q->n_nodes > 0 && crypto_random(&first, sizeof(first)) < 0)
		return NULL;
	for (size_t i = 0; i < q->n_nodes; i++) {
		const struct queue_node *node = &q->node[(first + i) % q->n_nodes];
		const struct peer *p = peers_find(&q->peers, node->key, node->is_front ? PEER_FRONT : PEER_WORKER);

		if (p && p->gives && !str_eq(node->key, q->key) && is_had_by(node, word))
			return p;
	}
	return NULL;
}

/* NULL: it is requested already, or no slot is free. */
static struct slot *begin_taking(struct service *s, const struct peer *giver, const char *kind, const char *key)
{
	struct slot *list = s->queue.exchange->taken, *t;

	t = giver && !find(list, kind, key) ? slot_new(s, list, kind, key) : NULL;
	if (t && id_random(t->id, EXECUTION_ID_LEN) < 0) {
		slot_free(t);
		t = NULL;
	}
	if (!t)
		return NULL;
	(void)str_copy(t->giver, sizeof(t->giver), giver->key);
	(void)str_copy(t->name, sizeof(t->name), giver->name);
	t->deadline_ns = clock_now_ns() + TAKE_NS;
	t->quiet_ns = clock_now_ns() + QUIET_NS;
	return t;
}

static int want(void *user, const char *kind, const char *key)
{
	struct service *s = user;
	char word[BRIG_EXCHANGE_KIND_MAX + BRIG_EXCHANGE_HEX + 2];
	const struct peer *giver;
	struct slot *t;
	int fd;

	(void)snprintf(word, sizeof(word), "%s:%s", kind, key);
	giver = s->queue.is_up && !s->draining ? find_giver(s, is_given_by, word) : NULL;
	t = begin_taking(s, giver, kind, key);
	s->queue.exchange->wanted_ns = clock_now_ns();
	if (!t)
		return -1;
	t->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = t->done >= 0 ? fcntl(t->done, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0) {
		slot_free(t);
		return -1;
	}
	ask_more(s, t);
	return fd;
}

/* ---- environments ------------------------------------------------------------------------------------------------- */

void exchange_get_environment(struct service *s, const char *name, const char *word)
{
	const struct peer *giver = s->queue.exchange && s->queue.is_up ? find_giver(s, is_offered_by, word) : NULL;
	char key[BRIG_EXCHANGE_HEX + 1];
	struct slot *t;

	brig_exchange_environment(name, key);
	t = giver ? begin_taking(s, giver, BRIG_EXCHANGE_ENVIRONMENT, key) : NULL;
	if (!t)
		return;
	(void)str_copy(t->word, sizeof(t->word), word);
	ask_more(s, t);
}

bool exchange_is_vain(const struct service *s, const char *word)
{
	const struct exchange *e = s->queue.exchange;

	for (size_t i = 0; e && i < VAIN_MAX; i++)
		if (str_eq(e->vain[i].word, word) && clock_now_ns() < e->vain[i].until_ns)
			return true;
	return false;
}

/* Its jobs are left to other nodes for a while. */
static void give_up_environment(struct service *s, struct slot *t, const char *why)
{
	struct exchange *e = s->queue.exchange;
	size_t i = e->next_vain++ % VAIN_MAX;

	queue_complain(s, "%s does not give the environment %s, whose jobs stay with nodes that have it: %s", t->name,
		       t->word, why);
	(void)str_copy(e->vain[i].word, sizeof(e->vain[i].word), t->word);
	e->vain[i].until_ns = clock_now_ns() + VAIN_NS;
	slot_free(t);
}

/* ---- pieces --------------------------------------------------------------------------------------------------------- */

static void give_up(struct service *s, struct slot *t, const char *why)
{
	if (t->word[0]) {
		give_up_environment(s, t, why);
		return;
	}
	queue_complain(s, "%s does not give %s %.12s, which is made here instead: %s", t->name, t->kind, t->key, why);
	slot_free(t);
}

/* The first piece defines hash and size; the others must match. */
static bool is_same_parcel(struct slot *t, const struct message *m)
{
	const char *content = message_text(m, FIELD_content_hash);
	uint64_t total = message_number(m, FIELD_total, 0);

	if (!content || strlen(content) != BRIG_EXCHANGE_HEX || total == 0 || total > PACKED_MAX)
		return false;
	if (t->total == 0) {
		t->parcel = (struct brig_parcel)BRIG_PARCEL_INIT;
		(void)str_copy(t->parcel.content, sizeof(t->parcel.content), content);
		t->parcel.created = message_number(m, FIELD_created, 0);
		t->total = total;
	}
	return total == t->total && str_eq(content, t->parcel.content);
}

static struct slot *find_taken(struct exchange *e, const char *id, const char *giver)
{
	for (size_t i = 0; id && i < SLOTS; i++)
		if (e->taken[i].kind[0] && str_eq(e->taken[i].id, id) && str_eq(e->taken[i].giver, giver))
			return &e->taken[i];
	return NULL;
}

static void on_piece(struct service *s, const struct queue_sealed *said)
{
	struct slot *t = find_taken(s->queue.exchange, message_text(&said->m, FIELD_id), said->by->key);
	const char *why = message_text(&said->m, FIELD_reason), *bytes;
	uint64_t offset = message_number(&said->m, FIELD_offset, UINT64_MAX);
	size_t len;

	if (!t || t->pidfd >= 0)
		return; /* given up, or complete */
	if (message_has(&said->m, FIELD_pause)) {
		t->quiet_ns = clock_now_ns() + QUIET_NS;
		t->tries = 0;
		return;
	}
	if (why || !is_same_parcel(t, &said->m)) {
		give_up(s, t, why ? why : "its pieces are not of one thing, or it is too large");
		return;
	}
	bytes = message_bytes(&said->m, FIELD_body, &len);
	if (offset != t->whole || !bytes)
		return; /* a duplicate, or out of order */
	if (len != min_u64(PIECE, t->total - offset) || pwrite(t->file, bytes, len, (off_t)offset) != (ssize_t)len) {
		give_up(s, t, "a piece has another length, or there is no room for it");
		return;
	}
	t->whole += len;
	t->quiet_ns = clock_now_ns() + QUIET_NS;
	t->tries = 0;
	if (t->whole < t->total)
		ask_more(s, t);
	else if (!start(s, t, unpack))
		give_up(s, t, "there is no process to unpack it");
}

static void step_taken(struct service *s, struct slot *t, uint64_t now)
{
	if (has_ended(t)) {
		if (t->outcome->rc < 0) {
			give_up(s, t, t->outcome->err.msg);
			return;
		}
		report("queue: %s gave %s %.12s, %llu KB", t->name, t->kind, t->key,
		       (unsigned long long)(t->total / KiB));
		s->queue.counts.received++;
		s->queue.exchange->looked_ns = 0;
		if (t->word[0]) {
			worker_look_at_classes(s);
			s->queue.beat_ns = 0; /* announce it: others can fetch it from here */
		}
		slot_free(t);
	} else if (now > t->deadline_ns) {
		give_up(s, t, "it takes too long");
	} else if (t->pidfd < 0 && now > t->quiet_ns) {
		if (++t->tries > TRIES) {
			give_up(s, t, "it says nothing");
			return;
		}
		t->quiet_ns = now + QUIET_NS;
		t->asked = t->whole;
		ask_more(s, t);
	}
}

/* ---- messages -------------------------------------------------------------------------------- */

bool exchange_on_told(struct service *s, const char *subject, const struct message *m)
{
	struct queue_sealed said;
	size_t len;
	const char *bytes = message_bytes(m, FIELD_sealed, &len), *why, *as;
	struct message inner;
	bool is_want;

	if (strncmp(subject, QUEUE_SUBJECT_GIVE, strlen(QUEUE_SUBJECT_GIVE)) != 0)
		return false;
	if (!bytes || !message_read(bytes, len, &inner, &why))
		return true;
	as = message_text(&inner, FIELD_sealed_as);
	is_want = as && str_eq(as, "want");
	if (!s->queue.exchange ||
	    !queue_unseal(s, m, is_want ? "want" : "piece", is_want ? PEER_WORKER : PEER_WORKER | PEER_FRONT, &said))
		return true;
	if (is_want)
		on_want(s, &said);
	else
		on_piece(s, &said);
	return true;
}

/* The stored items change when something was missing, and slowly through eviction. */
static void look(struct service *s)
{
	struct exchange *e = s->queue.exchange;
	AUTO_BUF words = BUF_INIT(sizeof(e->said) - 1);
	char *text = NULL;
	json_t *doc;
	const json_t *word;
	size_t i;

	if (brig_exchange_list_json(s->host->b, QUEUE_SETS_MAX, &text, NULL) < 0)
		return;
	doc = json_loads(text, 0, NULL);
	brig_free(text);
	json_array_foreach(json_object_get(doc, "kept"), i, word)(void)
		buf_addf(&words, "%s%s", words.len ? " " : "", json_string_value(word));
	json_decref(doc);
	(void)str_copy(e->said, sizeof(e->said), buf_str(&words));
}

static void put_words(struct buf *m, enum field f, const char *at)
{
	char word[128];

	while (*at) {
		size_t len = strcspn(at, " ");

		(void)snprintf(word, sizeof(word), "%.*s", (int)len, at);
		message_put_text(m, f, word);
		at += len + (at[len] == ' ');
	}
}

void exchange_put(struct service *s, struct buf *m)
{
	struct exchange *e = s->queue.exchange;
	uint64_t now = clock_now_ns();

	if (!e)
		return;
	if (e->looked_ns == 0 || now - e->looked_ns > LOOK_NS || now - e->wanted_ns < LOOK_NS) {
		e->looked_ns = now;
		look(s);
	}
	put_words(m, FIELD_has, e->said);
	for (size_t i = 0; i < QUEUE_SETS_MAX; i++)
		if (e->set[i].hex[0])
			message_put_text(m, FIELD_set, e->set[i].hex);
}

/* ---- package sets of jobs -------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A hash of the package set that a job needs, the same on all nodes; false: it needs none. */
static bool set_of(const struct message *job, char ret[QUEUE_SET_HEX + 1])
{
	size_t n = message_count(job, FIELD_package);
	AUTO_FREE const char **words = calloc(n + 1, sizeof(*words));
	const char *heads[] = { message_text(job, FIELD_trust), message_text(job, FIELD_language) };
	uint8_t hash[SHA256_LEN];
	struct sha256 h;

	if (n == 0 || !words)
		return false;
	message_texts(job, FIELD_package, words);
	qsort(words, n, sizeof(*words), by_text);
	sha256_begin(&h);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		sha256_add(&h, heads[i] ? heads[i] : "", heads[i] ? strlen(heads[i]) + 1 : 1);
	for (size_t i = 0; i < n; i++)
		sha256_add(&h, words[i], strlen(words[i]) + 1);
	sha256_end(&h, hash);
	(void)hex_put(ret, hash, QUEUE_SET_HEX / 2);
	return true;
}

static bool is_set_here(const struct exchange *e, const char *set)
{
	for (size_t i = 0; i < QUEUE_SETS_MAX; i++)
		if (str_eq(e->set[i].hex, set))
			return true;
	return false;
}

void sets_note(struct service *s, const struct message *job)
{
	struct exchange *e = s->queue.exchange;
	char set[QUEUE_SET_HEX + 1];
	size_t at = 0;

	if (!e || !set_of(job, set))
		return;
	for (size_t i = 0; i < QUEUE_SETS_MAX; i++) {
		if (str_eq(e->set[i].hex, set)) {
			e->set[i].used = ++e->uses;
			return;
		}
		if (e->set[i].used < e->set[at].used)
			at = i;
	}
	(void)str_copy(e->set[at].hex, sizeof(e->set[at].hex), set);
	e->set[at].used = ++e->uses;
	s->queue.beat_ns = 0; /* announce it */
}

/*
 * The stream then delivers the job to another waiting node.  After one round of all live nodes, whichever gets it keeps
 * it.
 */
bool sets_are_elsewhere(const struct service *s, const struct message *job, const char *ack)
{
	const struct queue *q = &s->queue;
	char set[QUEUE_SET_HEX + 1];

	if (!q->exchange || !set_of(job, set) || is_set_here(q->exchange, set) ||
	    queue_ack_number(ack, ACK_TIMES) > nodes_live(s))
		return false;
	for (size_t i = 0; i < q->n_nodes; i++) {
		const struct queue_node *node = &q->node[i];

		if (!str_eq(node->key, q->key) && node_is_live(node) && node->running < node->places &&
		    placement_has(node->sets, set, strlen(set)))
			return true;
	}
	return false;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* If the same key is used by a worker, that worker gives, since both subscribe to the same subject. */
static bool is_giving_front(const struct queue *q)
{
	const struct peer *p = peers_find(&q->peers, q->key, PEER_FRONT);

	return !q->is_worker && p && p->gives && !(p->roles & PEER_WORKER);
}

void exchange_begin(struct service *s)
{
	const struct brig_exchange x = { .size = sizeof(x), .want = want, .user = s };
	struct exchange *e = s->queue.exchange;
	AUTO_BUF listen = BUF_INIT(KiB);
	char subject[LINK_SUBJECT_MAX];

	if (!s->queue.is_worker && !is_giving_front(&s->queue))
		return;
	if (!e) {
		e = s->queue.exchange = calloc(1, sizeof(*e));
		for (size_t i = 0; e && i < SLOTS; i++) {
			slot_init(&e->given[i]);
			slot_init(&e->taken[i]);
		}
	}
	if (!e || (s->queue.is_worker && brig_exchange_set(s->host->b, &x, NULL) < 0))
		return; /* without it, this node creates everything itself */
	(void)snprintf(subject, sizeof(subject), "%s%s", QUEUE_SUBJECT_GIVE, s->queue.key);
	message_put_text(&listen, FIELD_subject, subject);
	queue_tell(s, LINK_LISTEN, &listen);
}

int exchange_step(struct service *s, int wait_ms)
{
	struct exchange *e = s->queue.exchange;
	uint64_t now = clock_now_ns();
	bool is_busy = false;

	for (size_t i = 0; e && i < SLOTS; i++) {
		if (e->given[i].kind[0])
			step_given(s, &e->given[i], now);
		if (e->taken[i].kind[0])
			step_taken(s, &e->taken[i], now);
		is_busy |= e->given[i].pidfd >= 0 || e->taken[i].pidfd >= 0;
	}
	return is_busy && (wait_ms < 0 || wait_ms > STEP_MS) ? STEP_MS : wait_ms;
}

void exchange_release(struct service *s)
{
	struct exchange *e = s->queue.exchange;

	for (size_t i = 0; e && i < SLOTS; i++) {
		slot_free(&e->given[i]);
		slot_free(&e->taken[i]);
	}
	free(MOVE_PTR(s->queue.exchange));
}
