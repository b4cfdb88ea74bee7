/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting cells, by kind.  Jobs that differ only in the run id are of one kind and can use each other's cells.
 *
 * The number of waiting cells follows demand: the first request of a kind sets the target to one, and each request that
 * finds none waiting raises it by one, up to waiting_of_kind.  All kinds together have at most `waiting` cells; beyond
 * that the kind whose last request is oldest is emptied.  A kind without a request for waiting_seconds is emptied too.
 * No cell is built that would take the total above waiting_bytes of memory (INV-7).
 *
 * Cells are built when the keeper is idle: building one takes most of a millisecond, in which the end of a short
 * program would go unnoticed, and CPU time that the process assembling a result needs.  So a refill waits until nothing
 * has happened for PAUSE_MS, or, if no cell of the kind is left, for ANSWER_MS, in which the previous result reaches
 * its client.
 */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "keeper/inside.h"

#define LOST_MAX 3
#define PAUSE_MS 4
#define LOOK_MS  500 /* interval of the check for kinds without requests */

static struct kind *oldest(struct keeper *k)
{
	struct kind *found = NULL;

	for (size_t i = 0; i < KINDS_MAX; i++) {
		struct kind *kind = &k->kinds[i];

		if (kind->job && (!found || kind->asked_ns < found->asked_ns))
			found = kind;
	}
	return found;
}

static bool is_used(const struct keeper *k, const struct kind *kind)
{
	for (const struct kept *c = k->cells; c; c = c->next)
		if (c->kind == kind)
			return true;
	return false;
}

/* Kills its unclaimed cells. */
static void empty(struct keeper *k, struct kind *kind)
{
	kind->wanted = 0;
	zygotes_end(k, kind);
	for (struct kept *c = k->cells; c; c = c->next)
		if (c->kind == kind && !c->tied && c->state != KEPT_DYING)
			kept_kill(c);
}

static struct kind *find(struct keeper *k, const struct job *job)
{
	for (size_t i = 0; i < KINDS_MAX; i++)
		if (k->kinds[i].job && job_same_kind(k->kinds[i].job, job))
			return &k->kinds[i];
	return NULL;
}

/* A free slot, or that of the kind without cells whose last request is oldest. */
static struct kind *find_place(struct keeper *k)
{
	struct kind *place = NULL;

	for (size_t i = 0; i < KINDS_MAX; i++) {
		struct kind *kind = &k->kinds[i];

		if (!kind->job)
			return kind;
		if (!is_used(k, kind) && (!place || kind->asked_ns < place->asked_ns))
			place = kind;
	}
	if (place) {
		zygotes_end(k, place);
		job_destroy(place->job);
		*place = (struct kind){ .job = NULL };
	}
	return place;
}

struct kind *kind_of(struct keeper *k, struct job *job)
{
	struct kind *kind = find(k, job);

	if (kind) {
		job_destroy(job);
	} else {
		kind = find_place(k);
		if (!kind) {
			job_destroy(job);
			empty(k, oldest(k)); /* which frees a slot for a later request */
			return NULL;
		}
		*kind = (struct kind){ .job = job };
	}
	kind->asked_ns = clock_now_ns();
	kind->asked++;
	return kind;
}

struct kept *kind_take(struct keeper *k, struct kind *kind)
{
	struct kept *found = NULL;

	for (struct kept *c = k->cells; c; c = c->next)
		if (c->kind == kind && !c->tied && c->state == KEPT_WAITING)
			found = c; /* the list is newest first: the oldest cell's memory has settled */
	kind->hits += found != NULL;
	if ((!found || kind->wanted == 0) && kind->wanted < k->ceilings.waiting_of_kind)
		kind->wanted++;
	return found;
}

void kind_never_waits(struct kind *kind, const struct brig_error *why)
{
	kind->never_waits = true;
	kind->wanted = 0;
	(void)str_copy(kind->why, sizeof(kind->why), why->msg);
}

/* Building one cell after another does not help if they all fail: the next request may try again. */
void kind_lost(struct kind *kind)
{
	if (++kind->lost >= LOST_MAX)
		kind->wanted = 0;
}

static bool has_running(const struct keeper *k)
{
	for (const struct kept *c = k->cells; c; c = c->next)
		if (c->tied && (c->state == KEPT_CLAIMED || c->state == KEPT_RUNNING))
			return true;
	return false;
}

static unsigned ahead(const struct keeper *k)
{
	unsigned n = 0;

	for (size_t i = 0; i < KINDS_MAX; i++)
		n += k->kinds[i].waiting + k->kinds[i].building;
	return n;
}

bool kinds_have_room(const struct keeper *k, uint64_t bytes)
{
	for (const struct kept *c = k->cells; c; c = c->next)
		if (!c->tied && c->state == KEPT_WAITING)
			bytes += c->bytes;
	for (size_t i = 0; i < KINDS_MAX; i++)
		bytes += k->kinds[i].zygote.bytes + k->kinds[i].next.bytes;
	return bytes <= k->ceilings.waiting_bytes;
}

static bool lacks(const struct keeper *k, const struct kind *kind)
{
	return kind->job && !kind->never_waits && kind->waiting + kind->building < kind->wanted &&
	       k->n_cells < k->ceilings.cells && kinds_have_room(k, kind->bytes);
}

/* The kind with the most recent request comes first. */
static struct kind *neediest(struct keeper *k)
{
	struct kind *found = NULL;

	for (size_t i = 0; i < KINDS_MAX; i++)
		if (lacks(k, &k->kinds[i]) && (!found || k->kinds[i].asked_ns > found->asked_ns))
			found = &k->kinds[i];
	return found;
}

/* How long the keeper must have been idle before another cell of the kind is built. */
static int rest_ms(const struct keeper *k, const struct kind *kind)
{
	bool none_left = kind->waiting + kind->building == 0 && !has_running(k);

	return none_left ? ANSWER_MS : PAUSE_MS;
}

static bool may_refill(const struct keeper *k, const struct kind *kind)
{
	return clock_now_ns() - k->busy_ns >= (uint64_t)rest_ms(k, kind) * NS_PER_MS;
}

static void forget_unwanted(struct keeper *k)
{
	const uint64_t age = (uint64_t)k->ceilings.waiting_seconds * NS_PER_SEC, now = clock_now_ns();

	for (size_t i = 0; i < KINDS_MAX; i++)
		if (k->kinds[i].job && k->kinds[i].wanted > 0 && now - k->kinds[i].asked_ns > age)
			empty(k, &k->kinds[i]);
}

/* Builds at most one cell per call, so that the loop handles events in between. */
void kinds_refill(struct keeper *k)
{
	struct kind *kind;
	struct brig_error err = BRIG_ERROR_INIT;

	forget_unwanted(k);
	zygotes_tend(k);
	kind = neediest(k);
	if (!kind || !may_refill(k, kind))
		return;
	if (ahead(k) >= k->ceilings.waiting) {
		struct kind *least = oldest(k);

		if (least != kind && least->waiting > 0)
			empty(k, least);
		return;
	}
	if (!kept_begin(k, kind, &err))
		kind->wanted = 0; /* the next request tries again, or is told why */
}

int kinds_pause_ms(const struct keeper *k)
{
	bool any = false, room = ahead(k) < k->ceilings.waiting;

	for (size_t i = 0; i < KINDS_MAX; i++) {
		if (room && lacks(k, &k->kinds[i]))
			return may_refill(k, &k->kinds[i]) ? 0 : rest_ms(k, &k->kinds[i]);
		any = any || k->kinds[i].wanted > 0;
	}
	return any ? LOOK_MS : -1;
}

/* ---- statistics ---------------------------------------------------------------------------------- */

static void describe(const struct keeper *k, const struct kind *kind, struct keep_pool *ret)
{
	const struct plan *plan = &kind->job->plan;

	*ret = (struct keep_pool){ .trust = plan->trust,
				   .ready = kind->waiting,
				   .building = kind->building,
				   .wanted = kind->wanted,
				   .forks = plan->forks && k->ceilings.forks > 0 && zygote_possible(k->host),
				   .fork_ready = kind->zygote.zygote && kind->zygote.ready,
				   .is_given_up = kind->never_waits,
				   .asked = kind->asked,
				   .hits = kind->hits,
				   .made = kind->made,
				   .bytes = kind->zygote.bytes + kind->next.bytes,
				   .memory_limit = plan->limits.memory_bytes };
	(void)str_copy(ret->language, sizeof(ret->language), plan->language);
	(void)str_copy(ret->step, sizeof(ret->step), plan->step);
	(void)str_copy(ret->environment, sizeof(ret->environment), plan->environment ? plan->environment : "");
	for (const struct kept *c = k->cells; c; c = c->next) {
		if (c->kind == kind && c->tied)
			ret->in_use++;
		else if (c->kind == kind && c->state == KEPT_WAITING)
			ret->bytes += c->bytes;
	}
}

void kinds_tell(const struct keeper *k, int channel)
{
	struct keep_pool rows[KINDS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < KINDS_MAX; i++)
		if (k->kinds[i].job)
			describe(k, &k->kinds[i], &rows[n++]);
	(void)keep_send(channel, KEEP_POOLS, rows, n * sizeof(*rows), NULL, 0, NULL, 0);
}
