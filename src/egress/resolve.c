/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two bounded rings under one lock: questions for the threads, answers for the loop, and an eventfd that wakes it.  A
 * server that does not answer occupies a thread for as long as the system's resolver waits; the loop gives up earlier
 * and drops the ticket.
 *
 * Only the name itself is looked up: the host's search domains would turn a whitelisted name into others.
 */
#include "egress/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/str.h"

#define THREADS     4
#define RING        256
#define STACK_BYTES (256 * KiB)

struct question {
	uint64_t ticket;
	char name[HOST_TEXT_MAX];
};

struct resolver {
	pthread_mutex_t lock;
	pthread_cond_t asked, begun;
	struct question question[RING];
	struct answer answer[RING];
	size_t q_first, q_n, a_first, a_n;
	int wake;
	int (*confine)(void);
	unsigned threads_begun;
	int trouble; /* of confine in some thread */
};

static void add_addresses(const struct addrinfo *found, struct answer *ret)
{
	for (; found && ret->n < RESOLVE_ADDRESSES_MAX; found = found->ai_next)
		if (found->ai_addr && address_from_sockaddr(found->ai_addr, &ret->address[ret->n]))
			ret->n++;
}

static void look_up(const struct question *q, struct answer *ret)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(q->name, NULL, &hints, &found);

	*ret = (struct answer){ .ticket = q->ticket };
	if (rc == 0)
		add_addresses(found, ret);
	if (found)
		freeaddrinfo(found);
	if (rc != 0)
		(void)str_copy(ret->why, sizeof(ret->why), gai_strerror(rc));
	else if (ret->n == 0)
		(void)str_copy(ret->why, sizeof(ret->why), "it has no address");
}

static void no_search_domains(void)
{
	if (res_init() == 0) {
		_res.options &= ~((unsigned long)RES_DEFNAMES | RES_DNSRCH);
#ifdef RES_NORELOAD
		_res.options |= RES_NORELOAD; /* a changed file would bring them back */
#endif
	}
}

static void begin(struct resolver *r)
{
	int rc = r->confine();

	no_search_domains();
	(void)pthread_mutex_lock(&r->lock);
	r->threads_begun++;
	if (rc < 0)
		r->trouble = rc;
	(void)pthread_cond_broadcast(&r->begun);
	(void)pthread_mutex_unlock(&r->lock);
}

static void *serve(void *arg)
{
	struct resolver *r = arg;
	struct question q;
	struct answer a;
	uint64_t one = 1;

	begin(r);
	for (;;) {
		(void)pthread_mutex_lock(&r->lock);
		while (r->q_n == 0 || r->a_n == RING)
			(void)pthread_cond_wait(&r->asked, &r->lock);
		q = r->question[r->q_first];
		r->q_first = (r->q_first + 1) % RING;
		r->q_n--;
		(void)pthread_mutex_unlock(&r->lock);
		look_up(&q, &a);
		(void)pthread_mutex_lock(&r->lock);
		if (r->a_n < RING) {
			r->answer[(r->a_first + r->a_n) % RING] = a;
			r->a_n++;
		}
		(void)pthread_mutex_unlock(&r->lock);
		if (write(r->wake, &one, sizeof(one)) < 0)
			return NULL; /* no listener */
	}
}

static int start_threads(struct resolver *r)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return -rc;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (unsigned i = 0; i < THREADS && rc == 0; i++) {
		pthread_t thread;

		rc = pthread_create(&thread, &attr, serve, r);
	}
	(void)pthread_attr_destroy(&attr);
	return -rc;
}

int resolver_start(int (*confine)(void), struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->asked, NULL);
	(void)pthread_cond_init(&r->begun, NULL);
	r->confine = confine;
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = r->wake < 0 ? -errno : start_threads(r);
	if (rc < 0)
		return rc; /* the process ends with it */
	(void)pthread_mutex_lock(&r->lock);
	while (r->threads_begun < THREADS)
		(void)pthread_cond_wait(&r->begun, &r->lock);
	rc = r->trouble;
	(void)pthread_mutex_unlock(&r->lock);
	*ret = r;
	return rc;
}

int resolver_fd(const struct resolver *r)
{
	return r->wake;
}

bool resolver_ask(struct resolver *r, uint64_t ticket, const char *name)
{
	bool room;

	(void)pthread_mutex_lock(&r->lock);
	room = r->q_n < RING;
	if (room) {
		struct question *q = &r->question[(r->q_first + r->q_n) % RING];

		q->ticket = ticket;
		(void)str_copy(q->name, sizeof(q->name), name);
		r->q_n++;
		(void)pthread_cond_signal(&r->asked);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return room;
}

bool resolver_take(struct resolver *r, struct answer *ret)
{
	bool any;

	(void)pthread_mutex_lock(&r->lock);
	any = r->a_n > 0;
	if (any) {
		*ret = r->answer[r->a_first];
		r->a_first = (r->a_first + 1) % RING;
		r->a_n--;
		(void)pthread_cond_broadcast(&r->asked); /* there is room again */
	}
	(void)pthread_mutex_unlock(&r->lock);
	return any;
}
