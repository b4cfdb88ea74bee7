/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kinds of cells are filled by forks of an interpreter (the zygote), and how long each zygote serves.
 *
 * A kind gets a zygote at its second request: for a single run it would only be an additional start.  Until it is
 * ready, or if there is none, interpreters are started in their cells.  All children of a zygote share its memory
 * layout and hash seed, so it serves at most ceilings.forks of them and at most AGE_MAX_SECONDS.  Its successor is
 * started before that, and replaces it when it is ready.  A zygote ends with its kind.
 *
 * A kind gives up after LOST_MAX failed starts, and after LOST_MAX failed children.  The reason does not matter, since
 * nothing depends on zygotes.
 */
#include <poll.h>

#include "base/clock.h"
#include "keeper/inside.h"

#define ASKED_BEFORE    2
#define AGE_MAX_SECONDS 600
#define LOST_MAX        3

static bool is_spent(const struct keeper *k, const struct zygote_slot *a)
{
	return zygote_children(a->zygote) >= k->ceilings.forks ||
	       clock_now_ns() - zygote_since_ns(a->zygote) >= AGE_MAX_SECONDS * NS_PER_SEC;
}

/* Early enough for the successor to be ready when this one is used up. */
static bool is_nearly_spent(const struct keeper *k, const struct zygote_slot *a)
{
	return zygote_children(a->zygote) >= k->ceilings.forks - k->ceilings.forks / 4 ||
	       clock_now_ns() - zygote_since_ns(a->zygote) >= AGE_MAX_SECONDS / 4 * 3 * NS_PER_SEC;
}

struct zygote *zygotes_of(const struct keeper *k, const struct kind *kind)
{
	const struct zygote_slot *a = &kind->zygote;

	return a->zygote && a->ready && kind->forks_lost < LOST_MAX && !is_spent(k, a) ? a->zygote : NULL;
}

static void end(struct keeper *k, struct zygote_slot *a)
{
	if (!a->zygote)
		return;
	keeper_unwatch(k, &a->source);
	zygote_end(a->zygote);
	*a = (struct zygote_slot){ .source = { .fd = FD_NONE } };
}

void zygotes_end(struct keeper *k, struct kind *kind)
{
	end(k, &kind->zygote);
	end(k, &kind->next);
}

static void pump(struct keeper *k, struct kind *kind, struct zygote_slot *a)
{
	struct brig_error err = BRIG_ERROR_INIT;

	switch (a->zygote ? zygote_pump(a->zygote, &err) : ZYGOTE_STARTS) {
	case ZYGOTE_STARTS:
		return;
	case ZYGOTE_READY:
		if (a->ready)
			return;
		a->ready = true;
		a->bytes = zygote_bytes(a->zygote);
		kind->zygotes_lost = 0;
		return;
	case ZYGOTE_LOST:
		kind->zygotes_lost++;
		end(k, a);
		return;
	}
}

static void serve(struct keeper *k, struct kept *c);

/* The epoll set has the address of the source, so the source is registered again at its new place. */
static void take_over(struct keeper *k, struct kind *kind)
{
	if (kind->zygote.zygote) {
		keeper_unwatch(k, &kind->zygote.source);
		zygote_retire(kind->zygote.zygote);
	}
	keeper_unwatch(k, &kind->next.source);
	kind->zygote = kind->next;
	kind->next = (struct zygote_slot){ .source = { .fd = FD_NONE } };
	if (keeper_watch(k, &kind->zygote.source, zygote_fd(kind->zygote.zygote), NULL, serve) < 0)
		end(k, &kind->zygote);
}

static void serve(struct keeper *k, struct kept *c)
{
	(void)c;
	for (size_t i = 0; i < KINDS_MAX; i++) {
		struct kind *kind = &k->kinds[i];

		pump(k, kind, &kind->zygote);
		pump(k, kind, &kind->next);
		if (kind->next.ready)
			take_over(k, kind);
	}
}

static void begin(struct keeper *k, struct kind *kind)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct zygote_slot *a = &kind->next;

	if (zygote_begin(k->host, &kind->job->plan, &a->zygote, &err) < 0) {
		kind->zygotes_lost++;
		return;
	}
	if (keeper_watch(k, &a->source, zygote_fd(a->zygote), NULL, serve) < 0) {
		a->source.fd = FD_NONE;
		end(k, a);
	}
}

static bool lacks(const struct keeper *k, const struct kind *kind)
{
	if (!kind->job || !kind->job->plan.forks || k->ceilings.forks == 0 || kind->never_waits || kind->wanted == 0 ||
	    kind->asked < ASKED_BEFORE || kind->zygotes_lost >= LOST_MAX || kind->forks_lost >= LOST_MAX ||
	    kind->next.zygote)
		return false;
	return !kind->zygote.zygote || is_nearly_spent(k, &kind->zygote);
}

#ifdef BRIG_FAULTS
/* For suites that need forks in every run: with $BRIG_TEST_FORKS the first request waits until the zygote is ready. */
void zygotes_await(struct keeper *k, struct kind *kind)
{
	if (!getenv("BRIG_TEST_FORKS") || !kind->job->plan.forks || k->ceilings.forks == 0 || !zygote_possible(k->host))
		return;
	if (!kind->zygote.zygote && kind->zygotes_lost == 0)
		begin(k, kind);
	while (!kind->zygote.ready && kind->next.zygote) {
		struct pollfd p = { .fd = zygote_fd(kind->next.zygote), .events = POLLIN };

		(void)poll(&p, 1, -1);
		serve(k, NULL);
	}
}
#endif

/*
 * Gives up on a zygote that does not get ready in time, for instance because the import of a configured module hangs.
 */
static void give_up_late(struct keeper *k, struct kind *kind)
{
	struct zygote_slot *a = &kind->next;

	if (!a->zygote || clock_now_ns() - zygote_since_ns(a->zygote) < kind->job->plan.limits.startup_ms * NS_PER_MS)
		return;
	kind->zygotes_lost++;
	end(k, a);
}

void zygotes_tend(struct keeper *k)
{
	for (size_t i = 0; i < KINDS_MAX; i++)
		give_up_late(k, &k->kinds[i]);
	for (size_t i = 0; i < KINDS_MAX; i++)
		if (lacks(k, &k->kinds[i]) && zygote_possible(k->host))
			begin(k, &k->kinds[i]);
}
