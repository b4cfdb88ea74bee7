/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/batches.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/runner/answer.h"

/* ---- the list ------------------------------------------------------------------------------------------- */

void batches_init(struct batches *b)
{
	TAILQ_INIT(&b->all);
	b->dir = (struct statedir)STATEDIR_INIT;
}

int batches_open(struct service *s, struct brig_error *err)
{
	int rc = statedir_open_sub(&s->ledger.dir, "batches", true, &s->batches.dir, err);

	return rc < 0 ? rc : batches_read(s, err);
}

void batches_close(struct service *s)
{
	struct batch *b;

	while ((b = TAILQ_FIRST(&s->batches.all))) {
		TAILQ_REMOVE(&s->batches.all, b, in_age);
		batch_free(b);
	}
	statedir_close(&s->batches.dir);
}

struct batch *batches_find(const struct batches *all, const char *id)
{
	struct batch *b;

	TAILQ_FOREACH(b, &all->all, in_age)
	if (str_eq(b->id, id))
		return b;
	return NULL;
}

struct batch *batch_new(size_t n, const char *owner)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->job = calloc(n, sizeof(*b->job));
	b->created_ns = clock_wall_ns();
	if (!b->job || id_random(b->id, EXECUTION_ID_LEN) < 0 || !str_copy(b->owner, sizeof(b->owner), owner)) {
		batch_free(b);
		return NULL;
	}
	return b;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; b->job && i < b->n; i++) {
		free(b->job[i].name);
		free(b->job[i].result);
	}
	free(b->job);
	free(b);
}

bool batch_is_over(const struct batch *b)
{
	return b->n_held == 0 && b->n_entered == 0;
}

bool batches_make_room(struct service *s)
{
	struct batches *all = &s->batches;
	struct batch *b;

	if (all->n < BATCHES_MAX)
		return true;
	TAILQ_FOREACH(b, &all->all, in_age)
	if (batch_is_over(b) && b->n_watches == 0) {
		TAILQ_REMOVE(&all->all, b, in_age);
		all->n--;
		batch_unlink(all, b);
		batch_free(b);
		return true;
	}
	return false;
}

void batches_add(struct service *s, struct batch *b)
{
	TAILQ_INSERT_TAIL(&s->batches.all, b, in_age);
	s->batches.n++;
	s->batches.n_held += b->n_held;
}

/* ---- admission ------------------------------------------------------------------------------------------------ */

static void leave_held(struct service *s, struct batch *b, struct batch_job *j, enum batch_job_state state)
{
	if (j->state == JOB_HELD) {
		b->n_held--;
		s->batches.n_held--;
	} else if (j->state == JOB_ENTERED) {
		b->n_entered--;
	}
	j->state = state;
	b->n_entered += state == JOB_ENTERED;
}

/* False: the quota or the queue refuses it for now. */
static bool let_in(struct service *s, struct batch *b, struct batch_job *j, uint64_t now_ns)
{
	struct execution *x = executions_find(&s->executions, j->id);
	const struct admission_ask entry = {
		.token = b->owner, .quota = &b->quota, .priority = x ? x->priority : 0, .memory = j->memory
	};
	uint32_t retry_after = 1;
	enum admission_answer how;

	if (!x) { /* unreachable: batch_on_drop() is called for every dropped execution */
		leave_held(s, b, j, JOB_LOST);
		return true;
	}
	how = admission_enter(s->admission, &entry, now_ns, &x->ticket, &retry_after);
	if (how != ADMISSION_RUN && how != ADMISSION_WAIT) {
		b->again_ns = now_ns + max_u64(retry_after, 1) * NS_PER_SEC;
		return false;
	}
	leave_held(s, b, j, JOB_ENTERED);
	if (how == ADMISSION_RUN)
		execution_start(s, x);
	else
		events_queued(x, admission_position(s->admission, &x->ticket));
	return true;
}

static size_t skip_to_held(struct batch *b)
{
	while (b->next < b->n && b->job[b->next].state != JOB_HELD)
		b->next++;
	return b->next;
}

static void feed(struct service *s, struct batch *b, uint64_t now_ns)
{
	size_t ahead = max_u64(BATCH_AHEAD_MIN, 2 * (uint64_t)s->jobs);

	while (skip_to_held(b) < b->n && b->n_entered < ahead && b->again_ns <= now_ns)
		if (!let_in(s, b, &b->job[b->next], now_ns))
			return;
}

/* A few per turn, so that the loop can serve others. */
static void cancel_held(struct service *s, struct batch *b)
{
	for (size_t i = 0; i < BATCH_CANCELS && skip_to_held(b) < b->n; i++) {
		struct batch_job *j = &b->job[b->next];
		struct execution *x = executions_find(&s->executions, j->id);

		leave_held(s, b, j, JOB_ENTERED);
		if (x)
			execution_cancel(s, x);
		else
			leave_held(s, b, j, JOB_LOST);
	}
}

void batches_feed(struct service *s)
{
	uint64_t now_ns = clock_now_ns();
	struct batch *b;

	if (s->batches.n_held == 0)
		return;
	TAILQ_FOREACH(b, &s->batches.all, in_age)
	if (b->n_held > 0 && b->is_cancelled)
		cancel_held(s, b);
	else if (b->n_held > 0)
		feed(s, b, now_ns);
}

int batches_patience(const struct service *s, int others_ms)
{
	uint64_t now_ns = clock_now_ns(), first_ns = UINT64_MAX;
	const struct batch *b;
	int ms;

	TAILQ_FOREACH(b, &s->batches.all, in_age)
	if (b->n_held > 0 && b->is_cancelled)
		return 0;
	else if (b->n_held > 0 && b->again_ns > now_ns)
		first_ns = min_u64(first_ns, b->again_ns);
	if (first_ns == UINT64_MAX)
		return others_ms;
	ms = (int)min_u64((first_ns - now_ns) / NS_PER_MS + 1, 60000);
	return others_ms >= 0 && others_ms < ms ? others_ms : ms;
}

void batch_cancel(struct service *s, struct batch *b)
{
	b->is_cancelled = true;
	for (size_t i = 0; i < b->n; i++) {
		struct execution *x =
			b->job[i].state == JOB_ENTERED ? executions_find(&s->executions, b->job[i].id) : NULL;

		if (x)
			execution_cancel(s, x);
	}
}

/* ---- notifications from executions --------------------------------------------------------------------------- */

static void on_over(struct service *s, struct execution *x, enum batch_job_state state)
{
	struct batch *b = x->batch;
	struct batch_job *j = &b->job[x->batch_job];

	x->batch = NULL;
	leave_held(s, b, j, state);
	(void)str_copy(j->verdict, sizeof(j->verdict), state == JOB_ENDED ? x->verdict : "");
	if (batch_is_over(b)) {
		b->ended_ns = clock_wall_ns();
		batch_share_end(s, b);
	}
	batch_tell(s, b, (size_t)(j - b->job));
}

void batch_on_end(struct service *s, struct execution *x)
{
	on_over(s, x, JOB_ENDED);
}

void batch_on_drop(struct service *s, struct execution *x)
{
	on_over(s, x, JOB_LOST);
}

bool batches_gone(struct service *s, uint32_t tag)
{
	struct batch *b;

	TAILQ_FOREACH(b, &s->batches.all, in_age)
	for (size_t i = 0; i < b->n_watches; i++)
		if (b->watch[i] == tag) {
			b->watch[i] = b->watch[--b->n_watches];
			answer_send(s, tag, &(struct answer){ .status = 503, .who = b->owner });
			return true;
		}
	return false;
}

void batches_all_gone(struct service *s)
{
	struct batch *b;

	TAILQ_FOREACH(b, &s->batches.all, in_age)
	b->n_watches = 0;
}
