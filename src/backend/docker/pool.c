/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: a process that keeps containers warm and gives each of them to one run.
 *
 *	keeper    this thread: answers claims, immediately and without the engine, and notices closed connections
 *	filler    a second thread with its own engine connection: creates containers, removes used and stale ones
 *
 * A warm container is started and its init waits for its job, so a claim saves create, attach and start.  It is not
 * paused: init sleeps in read(2) and uses no CPU, while unpausing costs up to a tenth of a cold start.  It contains
 * nothing of a run: files, command, environment, limits of the job, keys and random numbers come with the job (INV-6),
 * and the limits that the engine enforces are compared with the run's own plan at the claim.  It is used once; the run
 * removes it, or the pool does if the run's connection closes before that.
 *
 * Creating a container keeps engine and CPUs busy for longer than most runs last, so a run that has just claimed one
 * has priority: the next is created when it ends, after CALM_MS, or when a claim finds the pool empty.
 *
 * Two things identify the owner of a container: its labels name the pool, and once it is claimed a record names the
 * claimer (pool_place.c).  If a pool is killed, the init of each of its containers sees end of file on stdin and exits;
 * reap removes them.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "backend/docker/images.h"
#include "backend/docker/pool.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

#define KINDS_MAX     32
#define WARM_MAX      512
#define CLAIMS_MAX    512
#define AGE_MAX_SECS  1800 /* an unclaimed container is replaced after this time */
#define FIRST_PAUSE   (NS_PER_SEC / 2)
#define LONGEST_PAUSE (30 * NS_PER_SEC)
#define QUIET_MS      5000 /* timeout for a connection that sends no claim */
#define CALM_MS       100

/* Containers with the same configuration. */
struct kind {
	struct cell cell; /* for plan, image and body; never a container */
	uint8_t key[SHA256_LEN];
	unsigned ready, coming;
};

struct warm {
	char id[ENGINE_ID_LEN + 1];
	struct http_stream *stream;
	size_t kind;
	uint64_t born_ns;
};

/* A connection: a claimer before and after its claim. */
struct claimer {
	int sock;
	char container[ENGINE_ID_LEN + 1]; /* "": none claimed yet */
	uint64_t since_ns;
};

struct pool {
	const struct backend_pool *want;
	struct backend_host *host;
	char path[POOL_PATH_MAX];
	int place, lock, listener, wake; /* wake: eventfd by which the filler wakes the keeper */
	struct kind kind[KINDS_MAX];
	size_t n_kinds;
	struct claimer claimer[CLAIMS_MAX];
	size_t n_claimers;

	pthread_t filler;
	bool has_filler;
	pthread_mutex_t mutex; /* protects everything below, and ready and coming above */
	pthread_cond_t work;
	bool stopping;
	struct warm warm[WARM_MAX];
	size_t n_warm;
	char used[WARM_MAX + CLAIMS_MAX][ENGINE_ID_LEN + 1]; /* to be removed */
	size_t n_used;
	uint64_t calm_ns;  /* no container is created before this time */
	char trouble[400]; /* the last error; reported once */
	bool told;
};

static void notify(const struct pool *p, const char *fmt, ...) PRINTF(2, 3);
static void notify(const struct pool *p, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->want->notify.fn)
		p->want->notify.fn(p->want->notify.arg, text);
}

/* ---- filler: creating and removing ---------------------------------------------------------------- */

static void set_label(json_t *labels, const char *key, const char *value)
{
	(void)json_object_set_new(labels, key, json_string(value));
}

/*
 * The body of a kind with its own labels: an id for this container, and the directory of the record that names its
 * claimer.
 */
static json_t *body_for(const struct pool *p, const struct kind *k, char id[RUN_ID_LEN + 1])
{
	json_t *body = json_copy(k->cell.asked),
	       *labels = owner_labels(&k->cell.host->self, k->cell.plan, 2 * (uint64_t)ENGINE_GRACE_MS);
	char deadline[32];

	if (id_random(id, RUN_ID_LEN) < 0 || !body || !labels) {
		json_decref(body);
		json_decref(labels);
		return NULL;
	}
	(void)snprintf(deadline, sizeof(deadline), "%llu", (unsigned long long)time(NULL) + 2 * AGE_MAX_SECS);
	set_label(labels, LABEL_CELL, id);
	set_label(labels, LABEL_DEADLINE, deadline);
	set_label(labels, LABEL_POOL, p->path);
	(void)json_object_set_new(body, "Labels", labels);
	return body;
}

static int check_made(struct engine *e, const json_t *body, const char *id, struct brig_error *err)
{
	char difference[200];
	json_t *found = NULL;
	int rc = engine_inspect(e, id, &found, err);

	if (rc > 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "a container vanished while it started");
	if (rc == 0 && !map_check(body, found, /* podman= */ false, /* ended= */ false, difference, sizeof(difference)))
		rc = err_set(err, BRIG_E_REFUSED, 0, "the engine did not make the container that was asked for: %s",
			     difference);
	json_decref(found);
	return rc;
}

static int make_warm(struct pool *p, struct engine *e, const struct kind *k, struct warm *ret, struct brig_error *err)
{
	char id[RUN_ID_LEN + 1], name[64];
	json_t *body = body_for(p, k, id);
	int rc;

	*ret = (struct warm){ .born_ns = clock_now_ns() };
	if (!body)
		return err_nomem(err);
	engine_set_deadline(e, ret->born_ns + 2 * ENGINE_GRACE_MS * NS_PER_MS);
	(void)snprintf(name, sizeof(name), "brig-%s-pool", id);
	rc = engine_create(e, name, body, ret->id, NULL, 0, err);
	if (rc == 0)
		rc = engine_attach(e, ret->id, /* with_stdin= */ true, &ret->stream, err);
	if (rc == 0)
		rc = engine_start(e, ret->id, err);
	if (rc == 0)
		rc = check_made(e, body, ret->id, err);
	json_decref(body);
	if (rc < 0 && ret->id[0]) {
		struct brig_error ignored = BRIG_ERROR_INIT;

		http_stream_close(MOVE_PTR(ret->stream));
		(void)engine_remove(e, ret->id, &ignored);
	}
	return rc;
}

static void remove_one(struct pool *p, struct engine *e, const char *id)
{
	struct brig_error err = BRIG_ERROR_INIT;

	engine_set_deadline(e, clock_now_ns() + ENGINE_GRACE_MS * NS_PER_MS);
	if (engine_remove(e, id, &err) == 0)
		pool_record_remove(p->place, id);
}

/* The kind with the largest deficit; NULL: none. */
static struct kind *next_kind(struct pool *p)
{
	struct kind *best = NULL;

	for (size_t i = 0; i < p->n_kinds; i++) {
		struct kind *k = &p->kind[i];

		if (k->ready + k->coming < p->want->size &&
		    (!best || k->ready + k->coming < best->ready + best->coming))
			best = k;
	}
	return p->n_warm < WARM_MAX ? best : NULL;
}

/* The kind of which to create a container now; NULL: none, or not before *ret_ns. */
static struct kind *due_kind(struct pool *p, uint64_t not_before_ns, uint64_t *ret_ns)
{
	struct kind *k = next_kind(p);

	*ret_ns = k ? max_u64(not_before_ns, p->calm_ns) : 0;
	return clock_now_ns() >= *ret_ns ? k : NULL;
}

static void await_work(struct pool *p, uint64_t not_before_ns)
{
	uint64_t at;

	while (!p->stopping && p->n_used == 0 && !due_kind(p, not_before_ns, &at)) {
		struct timespec until = { .tv_sec = (time_t)(at / NS_PER_SEC), .tv_nsec = (long)(at % NS_PER_SEC) };

		if (at == 0) {
			(void)pthread_cond_wait(&p->work, &p->mutex);
			continue;
		}
		(void)pthread_cond_timedwait(&p->work, &p->mutex, &until);
	}
}

static void wake_keeper(struct pool *p)
{
	const uint64_t one = 1;

	(void)!write(p->wake, &one, sizeof(one));
}

/* Called and returns with the mutex held. */
static bool fill_one(struct pool *p, struct engine *e, struct kind *k)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct warm w;
	int rc;

	k->coming++;
	(void)pthread_mutex_unlock(&p->mutex);
	rc = make_warm(p, e, k, &w, &err);
	(void)pthread_mutex_lock(&p->mutex);
	k->coming--;
	if (rc < 0) {
		if (!str_eq(p->trouble, err.msg))
			p->told = false;
		(void)str_copy(p->trouble, sizeof(p->trouble), err.msg);
	} else if (p->stopping) { /* the pool is being stopped */
		http_stream_close(w.stream);
		(void)str_copy(p->used[p->n_used++], sizeof(p->used[0]), w.id);
	} else {
		w.kind = (size_t)(k - p->kind);
		p->warm[p->n_warm++] = w;
		k->ready++;
		p->trouble[0] = '\0';
	}
	wake_keeper(p);
	return rc == 0;
}

static void *fill(void *arg)
{
	struct pool *p = arg;
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;
	uint64_t pause = 0, not_before = 0, at;
	struct kind *k;

	(void)pthread_mutex_lock(&p->mutex);
	if (engine_open(p->host->set, clock_now_ns() + ENGINE_GRACE_MS * NS_PER_MS, &e, &err) < 0) {
		(void)str_copy(p->trouble, sizeof(p->trouble), err.msg);
		p->stopping = true;
		wake_keeper(p);
	}
	while (e && !(p->stopping && p->n_used == 0)) {
		await_work(p, not_before);
		if (p->n_used > 0) {
			char id[ENGINE_ID_LEN + 1];

			(void)str_copy(id, sizeof(id), p->used[--p->n_used]);
			(void)pthread_mutex_unlock(&p->mutex);
			remove_one(p, e, id);
			(void)pthread_mutex_lock(&p->mutex);
		} else if (!p->stopping && (k = due_kind(p, not_before, &at))) {
			pause = fill_one(p, e, k) ? 0 : min_u64(max_u64(2 * pause, FIRST_PAUSE), LONGEST_PAUSE);
			not_before = clock_now_ns() + pause;
		}
	}
	(void)pthread_mutex_unlock(&p->mutex);
	engine_close(e);
	return NULL;
}

/* ---- keeper ------------------------------------------------------------------------------------------ */

/* Call with the mutex held. */
static void queue_removal(struct pool *p, const char *id)
{
	if (p->n_used < ARRAY_LEN(p->used))
		(void)str_copy(p->used[p->n_used++], sizeof(p->used[0]), id);
	(void)pthread_cond_signal(&p->work);
}

static void forget_warm(struct pool *p, size_t i)
{
	p->kind[p->warm[i].kind].ready--;
	p->warm[i] = p->warm[--p->n_warm];
	(void)pthread_cond_signal(&p->work);
}

/* Its init sends nothing before it has a job, so if anything can be read it is dead. */
static bool is_dead(const struct warm *w)
{
	struct pollfd f = { .fd = http_stream_fd(w->stream), .events = POLLIN };

	return http_stream_pending(w->stream) || poll(&f, 1, 0) != 0;
}

static void drop_warm(struct pool *p, size_t i)
{
	http_stream_close(p->warm[i].stream);
	queue_removal(p, p->warm[i].id);
	forget_warm(p, i);
}

static void drop_stale(struct pool *p)
{
	uint64_t now = clock_now_ns();

	for (size_t i = p->n_warm; i-- > 0;)
		if (is_dead(&p->warm[i]) || now - p->warm[i].born_ns > AGE_MAX_SECS * NS_PER_SEC)
			drop_warm(p, i);
}

static bool send_reply(int sock, const struct pool_reply *r, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	char bytes[POOL_REPLY_BYTES];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	pool_reply_encode(r, bytes);
	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(bytes);
}

/* The youngest live container of the kind: the older ones will be replaced soon anyway. */
static bool find_warm(struct pool *p, size_t kind, size_t *ret)
{
	for (size_t i = p->n_warm; i-- > 0;) {
		if (p->warm[i].kind != kind)
			continue;
		if (!is_dead(&p->warm[i])) {
			*ret = i;
			return true;
		}
		drop_warm(p, i);
	}
	return false;
}

/*
 * Call with the mutex held.  A claim does not prolong the delay of an earlier one, so containers are created however
 * many claims arrive.
 */
static void begin_calm(struct pool *p)
{
	uint64_t now = clock_now_ns();

	if (p->calm_ns <= now)
		p->calm_ns = now + CALM_MS * NS_PER_MS;
}

static void end_calm(struct pool *p)
{
	p->calm_ns = 0;
	(void)pthread_cond_signal(&p->work);
}

/* Writes the record first: once the claimer has the container, reap must not take it for the pool's. */
static bool hand_out(struct pool *p, struct claimer *c, size_t i, pid_t pid)
{
	struct pool_reply reply = { .answer = POOL_HERE };
	struct warm w = p->warm[i];
	bool sent;

	(void)str_copy(reply.container, sizeof(reply.container), w.id);
	if (pool_record_write(p->place, w.id, pid) < 0)
		return false;
	sent = send_reply(c->sock, &reply, http_stream_fd(w.stream));
	http_stream_close(w.stream); /* the claimer has its own descriptor now, or the send has failed */
	begin_calm(p);
	forget_warm(p, i);
	if (sent)
		(void)str_copy(c->container, sizeof(c->container), w.id);
	else
		queue_removal(p, w.id);
	return sent;
}

static bool answer_claim(struct pool *p, struct claimer *c, const struct pool_claim *claim, pid_t pid)
{
	struct pool_reply none = { .answer = POOL_UNKNOWN };
	bool done = false;
	size_t i;

	(void)pthread_mutex_lock(&p->mutex);
	for (size_t k = 0; k < p->n_kinds; k++)
		if (crypto_same(p->kind[k].key, claim->key, SHA256_LEN)) {
			none.answer = POOL_EMPTY;
			done = find_warm(p, k, &i) && hand_out(p, c, i, pid);
			if (!done)
				end_calm(p);
			break;
		}
	(void)pthread_mutex_unlock(&p->mutex);
	if (!done)
		(void)send_reply(c->sock, &none, FD_NONE);
	return done;
}

/* Handles one message of a claimer; false: close the connection. */
static bool hear(struct pool *p, struct claimer *c)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct pool_claim claim;
	char bytes[POOL_CLAIM_BYTES + 1];
	ssize_t n = recv(c->sock, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	/* One claim per connection, and only from the same user, whoever opened the socket. */
	if (n <= 0 || c->container[0] || !pool_claim_decode(bytes, (size_t)n, &claim) ||
	    getsockopt(c->sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid())
		return false;
	return answer_claim(p, c, &claim, peer.pid);
}

/* The run has ended or died: removes its container if it has not done so. */
static void end_claimer(struct pool *p, size_t i)
{
	struct claimer *c = &p->claimer[i];

	if (c->container[0]) {
		(void)pthread_mutex_lock(&p->mutex);
		queue_removal(p, c->container);
		end_calm(p);
		(void)pthread_mutex_unlock(&p->mutex);
	}
	(void)close(c->sock);
	*c = p->claimer[--p->n_claimers];
}

static void take_claimer(struct pool *p)
{
	int sock = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (sock < 0)
		return;
	if (p->n_claimers == CLAIMS_MAX) {
		(void)close(sock);
		return;
	}
	p->claimer[p->n_claimers++] = (struct claimer){ .sock = sock, .since_ns = clock_now_ns() };
}

static void serve_claimers(struct pool *p, const struct pollfd *slot)
{
	uint64_t now = clock_now_ns();

	for (size_t i = p->n_claimers; i-- > 0;) {
		struct claimer *c = &p->claimer[i];
		bool quiet = !c->container[0] && now - c->since_ns > QUIET_MS * NS_PER_MS;

		if (quiet || (slot[i].revents && !hear(p, c)))
			end_claimer(p, i);
	}
}

static void note_filler(struct pool *p, bool *told_ready)
{
	uint64_t count;
	unsigned lacking = 0;

	(void)!read(p->wake, &count, sizeof(count));
	(void)pthread_mutex_lock(&p->mutex);
	for (size_t i = 0; i < p->n_kinds; i++)
		lacking += p->kind[i].ready < p->want->size;
	if (p->trouble[0] && !p->told) {
		p->told = true;
		notify(p, "a container could not be made, the next try follows: %s", p->trouble);
	} else if (!lacking && !*told_ready) {
		*told_ready = true;
		notify(p, "ready: %zu containers wait", p->n_warm);
	}
	(void)pthread_mutex_unlock(&p->mutex);
}

/* Serves until it is told to stop. */
static void keep(struct pool *p)
{
	enum { LISTEN, STOP, WAKE, FIXED };
	static struct pollfd slot[FIXED + CLAIMS_MAX];
	bool told_ready = false;

	for (;;) {
		size_t n = p->n_claimers;
		bool stopping;

		slot[LISTEN] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
		slot[STOP] = (struct pollfd){ .fd = p->want->stop_fd, .events = POLLIN };
		slot[WAKE] = (struct pollfd){ .fd = p->wake, .events = POLLIN };
		for (size_t i = 0; i < n; i++)
			slot[FIXED + i] = (struct pollfd){ .fd = p->claimer[i].sock, .events = POLLIN };
		if (poll(slot, FIXED + n, 1000) < 0 && errno != EINTR)
			return;
		serve_claimers(p, slot + FIXED);
		if (slot[LISTEN].revents)
			take_claimer(p);
		if (slot[WAKE].revents)
			note_filler(p, &told_ready);
		(void)pthread_mutex_lock(&p->mutex);
		drop_stale(p);
		stopping = p->stopping;
		(void)pthread_mutex_unlock(&p->mutex);
		if (slot[STOP].revents || stopping)
			return;
	}
}

/* ---- start and stop ------------------------------------------------------------------------------------ */

static int add_kind(struct pool *p, const struct plan *plan, struct brig_error *err)
{
	const struct settings *set = p->host->set;
	const struct image_options options = { .image = set->docker_image,
					       .may_build = set->docker_build,
					       .requirements = &set->docker_requirements };
	uint64_t deadline = clock_now_ns() + ENGINE_GRACE_MS * NS_PER_MS;
	struct kind *k = &p->kind[p->n_kinds];
	int rc;

	if (p->n_kinds == KINDS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "a pool keeps at most %d kinds of containers", KINDS_MAX);
	k->cell.host = p->host;
	k->cell.plan = plan;
	rc = image_ensure(p->host->engine, plan->language, &options, deadline, k->cell.image, err);
	if (rc == 0 && !(k->cell.asked = map_plan_body(&k->cell, err)))
		rc = -err->code;
	if (rc < 0)
		return rc;
	if (!pool_key(&k->cell, k->key))
		return err_nomem(err);
	for (size_t i = 0; i < p->n_kinds; i++)
		if (crypto_same(p->kind[i].key, k->key, SHA256_LEN)) { /* shared with another language */
			json_decref(k->cell.asked);
			return 0;
		}
	p->n_kinds++;
	return 0;
}

static int open_place(struct pool *p, struct brig_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int rc = pool_place(p->path);

	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, -rc,
			       "a pool needs a folder of this user's: set XDG_RUNTIME_DIR, or run as root (/run/brig)");
	p->place = pool_place_open(p->path, /* make= */ true);
	if (p->place < 0)
		return err_set(err, BRIG_E_REFUSED, -p->place, "the folder %s must be yours alone (mode 0700)",
			       p->path);
	p->lock = openat(p->place, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (p->lock < 0 || flock(p->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, BRIG_E_REFUSED, errno, "another pool of this user is running (%s/lock)", p->path);
	(void)unlinkat(p->place, "pool", 0); /* of a pool that was killed: we have its lock */
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/pool", p->path);
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->listener < 0 || p->wake < 0 || bind(p->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(p->listener, 128) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot open the pool's socket %s", at.sun_path);
	return 0;
}

static int start(struct pool *p, struct brig_error *err)
{
	pthread_condattr_t attr;
	int rc;

	for (size_t i = 0; i < p->want->n_plans; i++) {
		rc = add_kind(p, p->want->plans[i], err);
		if (rc < 0)
			return rc;
	}
	rc = open_place(p, err);
	if (rc < 0)
		return rc;
	(void)pthread_mutex_init(&p->mutex, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->work, &attr);
	rc = pthread_create(&p->filler, NULL, fill, p);
	if (rc != 0)
		return err_set(err, BRIG_E_SYSTEM, rc, "cannot start the pool's second thread");
	p->has_filler = true;
	notify(p, "keeping %u containers of each of %zu kinds; socket %s/pool", p->want->size, p->n_kinds, p->path);
	return 0;
}

/* Removes unclaimed containers; claimed ones stay with their runs. */
static void stop(struct pool *p)
{
	if (p->has_filler) {
		(void)pthread_mutex_lock(&p->mutex);
		p->stopping = true;
		while (p->n_warm > 0)
			drop_warm(p, p->n_warm - 1);
		(void)pthread_cond_signal(&p->work);
		(void)pthread_mutex_unlock(&p->mutex);
		(void)pthread_join(p->filler, NULL);
	}
	if (p->listener >= 0)
		(void)unlinkat(p->place, "pool", 0);
	for (size_t i = 0; i < p->n_claimers; i++)
		(void)close(p->claimer[i].sock);
	for (size_t i = 0; i < p->n_kinds; i++)
		json_decref(p->kind[i].cell.asked);
	fd_closep(&p->listener);
	fd_closep(&p->wake);
	fd_closep(&p->lock);
	fd_closep(&p->place);
}

int pool_serve(struct backend_host *h, const struct backend_pool *want, struct brig_error *err)
{
	AUTO_FREE struct pool *p = NULL;
	struct brig_error ignored = BRIG_ERROR_INIT;
	int rc;

	if (!engine_about(h->engine)->local)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"a pool hands connections from process to process, which works with an engine on a unix socket "
			"only, not with %s",
			engine_about(h->engine)->address);
	if (engine_about(h->engine)->podman)
		return err_set(err, BRIG_E_REFUSED, 0, "Podman's containers are not kept warm; use a Docker Engine");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err);
	p->want = want;
	p->host = h;
	p->place = p->lock = p->listener = p->wake = FD_NONE;
	(void)owner_reap(h->set, NULL, NULL, &ignored); /* containers of a pool that was killed */
	rc = start(p, err);
	if (rc == 0)
		keep(p);
	stop(p);
	return rc;
}
