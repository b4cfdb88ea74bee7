/* SPDX-License-Identifier: Apache-2.0 */
/* Who may run next and who may at all: turns, priorities, quotas, refusals, and thousands of random steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/admission.h"

#define S NS_PER_SEC

static const struct quota no_bounds;

static struct admission *make(uint32_t running, uint32_t waiting, uint32_t per_token)
{
	struct admission *a = admission_new(&(struct admission_opts){ .running_max = running,
								      .waiting_max = waiting,
								      .waiting_per_token_max = per_token,
								      .accounts_max = 100 });

	assert_non_null(a);
	return a;
}

/* One that has priority 5 and no memory, at the moment 0. */
static enum admission_answer come(struct admission *a, const char *token, const struct quota *q, struct ticket *t)
{
	uint32_t retry;

	return admission_enter(a, &(struct admission_ask){ .token = token, .quota = q, .priority = 5 }, 0, t, &retry);
}

static enum admission_answer come_at(struct admission *a, const struct quota *q, uint64_t now, struct ticket *t,
				     uint32_t *retry)
{
	return admission_enter(a, &(struct admission_ask){ .token = "one", .quota = q, .priority = 5 }, now, t, retry);
}

static struct ticket *next(struct admission *a)
{
	return admission_next(a, 0, NULL);
}

/* ---- order ------------------------------------------------------------------------------------- */

static void runs_then_waits(void **state UNUSED)
{
	struct admission *a = make(2, 10, 0);
	struct ticket t[4] = { 0 };

	assert_int_equal(come(a, "one", &no_bounds, &t[0]), ADMISSION_RUN);
	assert_int_equal(come(a, "one", &no_bounds, &t[1]), ADMISSION_RUN);
	assert_int_equal(come(a, "one", &no_bounds, &t[2]), ADMISSION_WAIT);
	assert_int_equal(come(a, "one", &no_bounds, &t[3]), ADMISSION_WAIT);
	assert_int_equal(t[1].state, TICKET_RUNNING);
	assert_int_equal(t[2].state, TICKET_WAITING);
	assert_int_equal(admission_position(a, &t[1]), 0);
	assert_int_equal(admission_position(a, &t[2]), 1);
	assert_int_equal(admission_position(a, &t[3]), 2);
	assert_null(next(a));
	admission_leave(a, &t[0], 0, 0);
	assert_int_equal(t[0].state, TICKET_IDLE);
	assert_ptr_equal(next(a), &t[2]);
	assert_null(next(a));
	assert_int_equal(admission_running(a), 2);
	assert_int_equal(admission_waiting(a), 1);
	admission_leave(a, &t[3], 0, 0); /* gave up */
	assert_int_equal(admission_waiting(a), 0);
	admission_leave(a, &t[3], 0, 0); /* and once more: nothing */
	admission_leave(a, &t[1], 0, 0);
	assert_null(next(a));
	assert_int_equal(admission_running(a), 1);
	admission_free(a);
}

static void many_of_one_delay_another_by_one_turn(void **state UNUSED)
{
	struct admission *a = make(1, 1000, 0);
	struct ticket busy = { 0 }, many[100] = { 0 }, single = { 0 };

	assert_int_equal(come(a, "one", &no_bounds, &busy), ADMISSION_RUN);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		assert_int_equal(come(a, "one", &no_bounds, &many[i]), ADMISSION_WAIT);
	assert_int_equal(come(a, "two", &no_bounds, &single), ADMISSION_WAIT);
	assert_int_equal(admission_position(a, &single), 2);
	assert_int_equal(admission_position(a, &many[0]), 1);
	assert_int_equal(admission_position(a, &many[1]), 3);
	assert_int_equal(admission_position(a, &many[99]), 101);
	admission_leave(a, &busy, 0, 0);
	assert_ptr_equal(next(a), &many[0]);
	admission_leave(a, &many[0], 0, 0);
	assert_ptr_equal(next(a), &single);
	admission_leave(a, &single, 0, 0);
	assert_ptr_equal(next(a), &many[1]);
	admission_free(a);
}

static enum admission_answer come_first(struct admission *a, const char *token, uint32_t priority, struct ticket *t)
{
	uint32_t retry;

	return admission_enter(a, &(struct admission_ask){ .token = token, .quota = &no_bounds, .priority = priority },
			       0, t, &retry);
}

static void priority_counts_within_a_token_only(void **state UNUSED)
{
	struct admission *a = make(1, 100, 0);
	struct ticket busy = { 0 }, low = { 0 }, high[3] = { 0 }, other[2] = { 0 };

	assert_int_equal(come(a, "one", &no_bounds, &busy), ADMISSION_RUN);
	assert_int_equal(come_first(a, "two", 0, &other[0]), ADMISSION_WAIT);
	assert_int_equal(come_first(a, "two", 0, &other[1]), ADMISSION_WAIT);
	assert_int_equal(come_first(a, "one", 3, &low), ADMISSION_WAIT);
	assert_int_equal(come_first(a, "one", 9, &high[0]), ADMISSION_WAIT);
	assert_int_equal(come_first(a, "one", 77, &high[1]), ADMISSION_WAIT); /* as 9 */
	assert_int_equal(admission_position(a, &low), 5);
	admission_leave(a, &busy, 0, 0);
	{
		const struct ticket *const order[] = { &other[0], &high[0], &other[1], &high[1], &low };

		for (size_t i = 0; i < ARRAY_LEN(order); i++) {
			struct ticket *t = next(a);

			assert_ptr_equal(t, order[i]);
			admission_leave(a, t, 0, 0);
		}
	}
	admission_free(a);
}

/* ---- quotas ------------------------------------------------------------------------------------ */

static void concurrent_ones_are_bounded(void **state UNUSED)
{
	static const struct quota two = { .concurrent = 2 };
	struct admission *a = make(10, 100, 0);
	struct ticket t[4] = { 0 }, other = { 0 };

	assert_int_equal(come(a, "one", &two, &t[0]), ADMISSION_RUN);
	assert_int_equal(come(a, "one", &two, &t[1]), ADMISSION_RUN);
	assert_int_equal(come(a, "one", &two, &t[2]), ADMISSION_WAIT);
	assert_int_equal(come(a, "other", &no_bounds, &other), ADMISSION_RUN); /* passes */
	assert_null(next(a));
	admission_leave(a, &t[1], 0, 0);
	assert_ptr_equal(next(a), &t[2]);
	assert_null(next(a));
	/* A larger quota counts from the next request on, for those that wait, too. */
	assert_int_equal(come(a, "one", &two, &t[3]), ADMISSION_WAIT);
	assert_int_equal(come(a, "one", &no_bounds, &t[1]), ADMISSION_WAIT); /* the earlier one goes first */
	assert_ptr_equal(next(a), &t[3]);
	assert_ptr_equal(next(a), &t[1]);
	admission_free(a);
}

static enum admission_answer come_with(struct admission *a, const struct quota *q, uint64_t memory, struct ticket *t)
{
	uint32_t retry;

	return admission_enter(a,
			       &(struct admission_ask){ .token = "one", .quota = q, .priority = 5, .memory = memory },
			       0, t, &retry);
}

static void memory_of_all_that_run_is_bounded(void **state UNUSED)
{
	static const struct quota ten = { .memory = 10 }, five = { .memory = 5 };
	struct admission *a = make(10, 100, 0);
	struct ticket t[5] = { 0 };

	assert_int_equal(come_with(a, &ten, 11, &t[0]), ADMISSION_TOO_LARGE);
	assert_int_equal(t[0].state, TICKET_IDLE);
	assert_int_equal(come_with(a, &ten, UINT64_MAX, &t[0]), ADMISSION_TOO_LARGE);
	assert_int_equal(come_with(a, &ten, 6, &t[0]), ADMISSION_RUN);
	assert_int_equal(come_with(a, &ten, 5, &t[1]), ADMISSION_WAIT);
	assert_int_equal(come_with(a, &ten, 1, &t[2]), ADMISSION_WAIT); /* would fit, but does not pass the large one */
	assert_int_equal(come_with(a, &ten, 8, &t[3]), ADMISSION_WAIT);
	assert_null(next(a));
	admission_leave(a, &t[0], 0, 0);
	assert_ptr_equal(next(a), &t[1]);
	assert_ptr_equal(next(a), &t[2]);
	assert_null(next(a));
	/* The quota shrinks below one that was accepted: it runs alone. */
	assert_int_equal(come_with(a, &five, 1, &t[4]), ADMISSION_WAIT);
	admission_leave(a, &t[1], 0, 0);
	assert_null(next(a));
	admission_leave(a, &t[2], 0, 0);
	assert_ptr_equal(next(a), &t[3]);
	assert_null(next(a));
	admission_leave(a, &t[3], 0, 0);
	assert_ptr_equal(next(a), &t[4]);
	admission_free(a);
}

/* It comes and ends at once. */
static enum admission_answer pass(struct admission *a, const struct quota *q, uint64_t now, uint64_t cpu,
				  uint32_t *retry)
{
	struct ticket t = { 0 };
	enum admission_answer answer = come_at(a, q, now, &t, retry);

	admission_leave(a, &t, cpu, now);
	return answer;
}

static void runs_of_a_minute_are_bounded(void **state UNUSED)
{
	static const struct quota six = { .runs_per_minute = 6 };
	struct admission *a = make(10, 100, 0);
	const uint64_t start = 5000 * S;
	uint32_t retry = 0;
	size_t taken = 0;

	for (int i = 0; i < 6; i++)
		assert_int_equal(pass(a, &six, start, 0, &retry), ADMISSION_RUN);
	assert_int_equal(pass(a, &six, start, 0, &retry), ADMISSION_RATE);
	assert_int_equal(retry, 10);
	assert_int_equal(pass(a, &six, start + 9 * S, 0, &retry), ADMISSION_RATE);
	assert_int_equal(retry, 1);
	assert_int_equal(pass(a, &six, start + 10 * S, 0, &retry), ADMISSION_RUN);
	assert_int_equal(pass(a, &six, start + 10 * S, 0, &retry), ADMISSION_RATE);
	/* Whoever asks ten times a second gets six in each minute, and no window's edge gives more. */
	for (uint64_t tick = 0; tick < 36000; tick++)
		taken += pass(a, &six, start + 20 * S + tick * S / 10, 0, &retry) == ADMISSION_RUN;
	assert_in_range(taken, 360, 361);
	admission_free(a);
}

static void processor_time_of_an_hour_is_bounded(void **state UNUSED)
{
	static const struct quota hundred = { .cpu_seconds_per_hour = 100 };
	struct admission *a = make(1, 100, 0);
	struct ticket t[3] = { 0 };
	uint64_t again = 0;
	uint32_t retry = 0;

	assert_int_equal(come_at(a, &hundred, 0, &t[0], &retry), ADMISSION_RUN);
	assert_int_equal(come_at(a, &hundred, 0, &t[1], &retry), ADMISSION_WAIT);
	admission_leave(a, &t[0], 90 * S, 0);
	assert_ptr_equal(admission_next(a, 0, &again), &t[1]); /* ten are left: it may begin, and may go over */
	assert_int_equal(come_at(a, &hundred, 0, &t[2], &retry), ADMISSION_WAIT);
	admission_leave(a, &t[1], 20 * S, 0);
	/* Ten over: they flow out in 360 s. */
	assert_int_equal(pass(a, &hundred, 0, 0, &retry), ADMISSION_CPU);
	assert_in_range(retry, 360, 361);
	assert_null(admission_next(a, 0, &again));
	assert_in_range(again, 360 * S, 360 * S + 1);
	assert_null(admission_next(a, again - 1, NULL));
	assert_ptr_equal(admission_next(a, again, &again), &t[2]);
	admission_leave(a, &t[2], 0, 360 * S + 1);
	assert_int_equal(pass(a, &hundred, 361 * S, 1000000 * S, &retry), ADMISSION_RUN); /* far more than it may */
	assert_int_equal(pass(a, &hundred, 361 * S, 0, &retry), ADMISSION_CPU);
	assert_in_range(retry, 3600, 24 * 3600);
	assert_int_equal(pass(a, &hundred, 361 * S + retry * S, 0, &retry), ADMISSION_RUN);
	assert_int_equal(pass(a, &(struct quota){ .cpu_seconds_per_hour = 1 }, 90000 * S, UINT64_MAX, &retry),
			 ADMISSION_RUN);
	assert_int_equal(pass(a, &hundred, 90000 * S, 0, &retry), ADMISSION_CPU);
	admission_free(a);
}

static void without_bounds_nothing_is_counted(void **state UNUSED)
{
	struct admission *a = make(1, 0, 0);
	uint32_t retry;

	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(pass(a, &no_bounds, i, 1000 * S, &retry), ADMISSION_RUN);
	admission_free(a);
}

/* ---- ceilings ---------------------------------------------------------------------------------- */

static void what_waits_has_ceilings(void **state UNUSED)
{
	static const struct quota rate = { .runs_per_minute = 4 };
	struct admission *a = make(1, 3, 2);
	struct ticket t[6] = { 0 };
	uint32_t retry = 0;

	assert_int_equal(come(a, "one", &rate, &t[0]), ADMISSION_RUN);
	assert_int_equal(come(a, "one", &rate, &t[1]), ADMISSION_WAIT);
	assert_int_equal(come(a, "one", &rate, &t[2]), ADMISSION_WAIT);
	assert_int_equal(come_at(a, &rate, 0, &t[3], &retry), ADMISSION_CROWDED);
	assert_in_range(retry, 1, 60);
	assert_int_equal(t[3].state, TICKET_IDLE);
	assert_int_equal(come(a, "two", &no_bounds, &t[3]), ADMISSION_WAIT);
	retry = 0;
	assert_int_equal(come(a, "three", &no_bounds, &t[4]), ADMISSION_FULL);
	assert_int_equal(come_at(a, &rate, 0, &t[4], &retry), ADMISSION_FULL);
	assert_in_range(retry, 1, 60);
	assert_int_equal(admission_waiting(a), 3);
	/* Whoever was refused has not used up a run: one of four is left. */
	admission_leave(a, &t[1], 0, 0);
	assert_int_equal(come(a, "one", &rate, &t[4]), ADMISSION_WAIT);
	admission_leave(a, &t[4], 0, 0);
	assert_int_equal(come_at(a, &rate, 0, &t[5], &retry), ADMISSION_RATE);
	assert_int_equal(retry, 15);
	admission_free(a);
}

static void nobody_waits_where_nobody_may(void **state UNUSED)
{
	struct admission *a = make(1, 0, 0);
	struct ticket t[2] = { 0 };

	assert_int_equal(come(a, "one", &no_bounds, &t[0]), ADMISSION_RUN);
	assert_int_equal(come(a, "one", &no_bounds, &t[1]), ADMISSION_FULL);
	admission_leave(a, &t[0], 0, 0);
	assert_int_equal(come(a, "one", &no_bounds, &t[1]), ADMISSION_RUN);
	admission_free(a);
}

static void retry_grows_with_the_queue(void **state UNUSED)
{
	struct admission *a = make(1, 1, 0);
	struct ticket t[3] = { 0 };
	uint32_t quick = 0, slow = 0;

	for (uint64_t i = 0; i < 50; i++) { /* runs of 20 s */
		assert_int_equal(come_at(a, &no_bounds, i * 20 * S, &t[0], &quick), ADMISSION_RUN);
		if (i == 0) {
			assert_int_equal(come_at(a, &no_bounds, 0, &t[1], &quick), ADMISSION_WAIT);
			assert_int_equal(come_at(a, &no_bounds, 0, &t[2], &quick), ADMISSION_FULL);
			admission_leave(a, &t[1], 0, 0);
		}
		admission_leave(a, &t[0], 0, (i + 1) * 20 * S);
	}
	assert_int_equal(come_at(a, &no_bounds, 1000 * S, &t[0], &slow), ADMISSION_RUN);
	assert_int_equal(come_at(a, &no_bounds, 1000 * S, &t[1], &slow), ADMISSION_WAIT);
	assert_int_equal(come_at(a, &no_bounds, 1000 * S, &t[2], &slow), ADMISSION_FULL);
	assert_int_equal(quick, 1);
	assert_in_range(slow, 20, 60);
	admission_free(a);
}

static void accounts_are_forgotten_when_they_are_empty(void **state UNUSED)
{
	static const struct quota rate = { .runs_per_minute = 60 };
	struct admission *a =
		admission_new(&(struct admission_opts){ .running_max = 5, .waiting_max = 5, .accounts_max = 2 });
	struct ticket t[4] = { 0 };
	uint32_t retry;

	assert_int_equal(come(a, "one", &rate, &t[0]), ADMISSION_RUN);
	assert_int_equal(come(a, "two", &rate, &t[1]), ADMISSION_RUN);
	assert_int_equal(come(a, "three", &rate, &t[2]), ADMISSION_FULL);
	admission_leave(a, &t[0], 0, 0);
	assert_int_equal(come(a, "three", &rate, &t[2]), ADMISSION_FULL); /* its meter is not empty yet */
	assert_int_equal(
		admission_enter(a, &(struct admission_ask){ .token = "three", .quota = &rate }, S, &t[2], &retry),
		ADMISSION_RUN);
	assert_int_equal(
		admission_enter(a, &(struct admission_ask){ .token = "one", .quota = &rate }, 3600 * S, &t[3], &retry),
		ADMISSION_FULL); /* two and three run */
	admission_free(a);
	admission_free(NULL);
}

struct seen {
	size_t n, running, waiting;
	uint64_t memory;
};

static void see(const struct admission_count *count, void *arg)
{
	struct seen *seen = arg;

	assert_true(strcmp(count->token, "one") == 0 || strcmp(count->token, "two") == 0);
	seen->n++;
	seen->running += count->running;
	seen->waiting += count->waiting;
	seen->memory += count->memory;
}

static void tokens_are_counted(void **state UNUSED)
{
	struct admission *a = make(2, 10, 0);
	struct ticket t[4] = { 0 };
	struct seen seen = { 0 };

	assert_int_equal(come(a, "gone", &no_bounds, &t[0]), ADMISSION_RUN);
	admission_leave(a, &t[0], 0, 0);
	assert_int_equal(come_with(a, &no_bounds, 7, &t[0]), ADMISSION_RUN);
	assert_int_equal(come(a, "two", &no_bounds, &t[1]), ADMISSION_RUN);
	assert_int_equal(come(a, "two", &no_bounds, &t[2]), ADMISSION_WAIT);
	admission_each(a, see, &seen);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.running, 2);
	assert_int_equal(seen.waiting, 1);
	assert_int_equal(seen.memory, 7);
	admission_free(a);
}

static void refusals_say_why(void **state UNUSED)
{
	assert_null(admission_why(ADMISSION_RUN));
	assert_null(admission_why(ADMISSION_WAIT));
	assert_non_null(strstr(admission_why(ADMISSION_RATE), "runs_per_minute"));
	assert_non_null(strstr(admission_why(ADMISSION_CPU), "cpu_seconds_per_hour"));
	for (int i = ADMISSION_RATE; i <= ADMISSION_TOO_LARGE; i++)
		assert_non_null(admission_why((enum admission_answer)i));
}

/* ---- random steps ------------------------------------------------------------------------------ */

#define TOKENS  6
#define TICKETS 200

struct model {
	struct admission *a;
	struct quota quota[TOKENS];
	struct ticket ticket[TICKETS];
	size_t owner[TICKETS];
	uint64_t memory[TICKETS];
	uint64_t now, random;
	size_t running[TOKENS], waiting[TOKENS], started[TOKENS];
	uint64_t used[TOKENS];
	size_t since[TOKENS][TOKENS]; /* [x][y]: starts of y since x could have started */
	uint32_t running_max;
};

static uint64_t roll(struct model *m, uint64_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return m->random % below;
}

static const char *name_of(size_t token)
{
	static const char *const names[TOKENS] = { "a", "b", "c", "d", "e", "f" };

	return names[token];
}

/* The ticket of a token that is to go first, found the long way: the highest priority, of these the first in line. */
static const struct ticket *best_of(const struct model *m, size_t token)
{
	const struct ticket *best = NULL;
	size_t place = SIZE_MAX;

	for (size_t i = 0; i < TICKETS; i++)
		if (m->ticket[i].state == TICKET_WAITING && m->owner[i] == token &&
		    admission_position(m->a, &m->ticket[i]) < place) {
			best = &m->ticket[i];
			place = admission_position(m->a, best);
		}
	return best;
}

static bool is_ready(const struct model *m, size_t token)
{
	const struct quota *q = &m->quota[token];
	const struct ticket *best = best_of(m, token);

	if (!best || (q->concurrent && m->running[token] >= q->concurrent))
		return false;
	return !q->memory || m->used[token] + m->memory[best - m->ticket] <= q->memory;
}

/* A token that could have started sees each other one start at most once before it does. */
static void note_start(struct model *m, const struct ticket *t, const bool ready[TOKENS])
{
	size_t i = (size_t)(t - m->ticket), y = m->owner[i];

	for (size_t x = 0; x < TOKENS; x++) {
		m->since[x][y] = ready[x] && x != y ? m->since[x][y] + 1 : 0;
		if (m->since[x][y] > 1)
			fail_msg("token %s started %zu times while %s was kept waiting", name_of(y), m->since[x][y],
				 name_of(x));
	}
	for (size_t x = 0; x < TOKENS; x++)
		if (!ready[x] || x == y)
			memset(m->since[x], 0, sizeof(m->since[x]));
	m->running[y]++;
	m->started[y]++;
	m->used[y] += m->memory[i];
}

static void check_bounds(const struct model *m)
{
	size_t running = 0, waiting = 0;

	for (size_t x = 0; x < TOKENS; x++) {
		running += m->running[x];
		waiting += m->waiting[x];
		assert_true(!m->quota[x].concurrent || m->running[x] <= m->quota[x].concurrent);
		assert_true(!m->quota[x].memory || m->used[x] <= m->quota[x].memory);
	}
	assert_int_equal(admission_running(m->a), running);
	assert_int_equal(admission_waiting(m->a), waiting);
	assert_true(running <= m->running_max);
}

static void all_ready(const struct model *m, bool ready[TOKENS])
{
	for (size_t x = 0; x < TOKENS; x++)
		ready[x] = is_ready(m, x);
}

static void start_all(struct model *m)
{
	bool ready[TOKENS];
	struct ticket *t;

	for (all_ready(m, ready); (t = admission_next(m->a, m->now, NULL)); all_ready(m, ready)) {
		m->waiting[m->owner[t - m->ticket]]--;
		note_start(m, t, ready);
		check_bounds(m);
	}
	/* No place stays empty while somebody could have it. */
	for (size_t x = 0; admission_running(m->a) < m->running_max && x < TOKENS; x++)
		assert_false(ready[x]);
}

static void step_enter(struct model *m, size_t i)
{
	size_t x = m->owner[i] = roll(m, 4) ? 0 : roll(m, TOKENS); /* one of them asks far more than the others */
	struct admission_ask ask = { .token = name_of(x), .quota = &m->quota[x], .priority = (uint32_t)roll(m, 10) };
	enum admission_answer answer;
	bool ready[TOKENS];
	uint32_t retry = 0;

	ask.memory = m->memory[i] = roll(m, 50);
	all_ready(m, ready);
	answer = admission_enter(m->a, &ask, m->now, &m->ticket[i], &retry);
	if (answer == ADMISSION_RUN) {
		ready[x] = true;
		note_start(m, &m->ticket[i], ready);
	} else {
		m->waiting[x] += answer == ADMISSION_WAIT;
		assert_true(answer == ADMISSION_WAIT || retry >= 1);
	}
}

static void step_leave(struct model *m, size_t i)
{
	size_t x = m->owner[i];

	if (m->ticket[i].state == TICKET_WAITING) {
		if (roll(m, 10))
			return;           /* they seldom give up */
		if (--m->waiting[x] == 0) /* whoever comes again stands at the end */
			memset(m->since[x], 0, sizeof(m->since[x]));
	} else {
		m->running[x]--;
		m->used[x] -= m->memory[i];
	}
	admission_leave(m->a, &m->ticket[i], roll(m, S), m->now);
}

static void random_steps(void **state UNUSED)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct model *m = calloc(1, sizeof(*m));

		assert_non_null(m);
		m->random = seed * 0x9e3779b97f4a7c15;
		m->running_max = 1 + (uint32_t)roll(m, 6);
		m->a = make(m->running_max, 60, 40);
		for (size_t x = 0; x < TOKENS; x++)
			m->quota[x] = (struct quota){ .concurrent = (uint32_t)roll(m, 4), .memory = roll(m, 2) * 100 };
		for (size_t steps = 0; steps < 3000; steps++) {
			size_t i = roll(m, TICKETS);

			m->now += roll(m, S);
			if (m->ticket[i].state == TICKET_IDLE)
				step_enter(m, i);
			else
				step_leave(m, i);
			check_bounds(m);
			start_all(m);
		}
		for (size_t x = 0; x < TOKENS; x++)
			if (m->started[x] == 0)
				fail_msg("seed %llu: token %s never ran", (unsigned long long)seed, name_of(x));
		admission_free(m->a);
		free(m);
	}
}

/* Without quotas a position is exact: nobody comes, and everybody starts at the place that was told. */
static void positions_are_true(void **state UNUSED)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct model *m = calloc(1, sizeof(*m));
		size_t told[TICKETS] = { 0 }, place = 0, n = 0;
		struct ticket *t;

		assert_non_null(m);
		m->random = seed * 0x9e3779b97f4a7c15;
		m->running_max = 1;
		m->a = make(1, TICKETS, 0);
		for (size_t i = 0; i < TICKETS; i++)
			step_enter(m, i);
		for (size_t i = 0; i < TICKETS; i++)
			if (roll(m, 3) == 0 && m->ticket[i].state == TICKET_WAITING)
				admission_leave(m->a, &m->ticket[i], 0, 0);
		for (size_t i = 0; i < TICKETS; i++)
			told[i] = admission_position(m->a, &m->ticket[i]);
		n = admission_waiting(m->a);
		admission_leave(m->a, &m->ticket[0], 0, 0); /* the one that ran */
		while ((t = next(m->a))) {
			assert_int_equal(told[t - m->ticket], ++place);
			admission_leave(m->a, t, 0, 0);
		}
		assert_int_equal(place, n);
		assert_true(n > 50);
		admission_free(m->a);
		free(m);
	}
}

/* ---- meters ------------------------------------------------------------------------------------------ */

struct told {
	struct admission_meters last;
	size_t n;
};

static void tell(const struct admission_meters *m, void *arg)
{
	struct told *t = arg;

	t->last = *m;
	t->n++;
}

static void meters_go_on_in_another_process(void **state UNUSED)
{
	const struct quota q = { .runs_per_minute = 2, .cpu_seconds_per_hour = 1 };
	struct admission *a = make(10, 10, 0), *b = make(10, 10, 0);
	struct ticket t[4] = { 0 };
	struct told told = { 0 }, all = { 0 };
	uint32_t retry = 0, again = 0;

	assert_int_equal(come(a, "two", &no_bounds, &t[0]), ADMISSION_RUN);
	assert_false(admission_is_metered(a));
	assert_int_equal(come_at(a, &q, 0, &t[1], &retry), ADMISSION_RUN);
	admission_leave(a, &t[1], 2 * S, S); /* an hour more than it may */
	admission_each_metered(a, 2 * S, tell, &told);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.last.token, "one");
	assert_int_equal(told.last.runs_ns, 28 * S);
	assert_int_equal(told.last.cpu_ns, 7199 * S);
	assert_false(admission_is_metered(a));
	admission_each_metered(a, 2 * S, tell, &told);
	assert_int_equal(told.n, 1);
	assert_true(admission_restore(b, &told.last, 100 * S));
	admission_each_meter(b, 100 * S, tell, &all);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.last.cpu_ns, 7199 * S);
	assert_int_equal(come_at(a, &q, 2 * S, &t[2], &retry), ADMISSION_CPU);
	assert_int_equal(come_at(b, &q, 100 * S, &t[3], &again), ADMISSION_CPU);
	assert_int_equal(retry, again);
	admission_leave(a, &t[0], 0, 2 * S);
	admission_free(a);
	admission_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_then_waits),
		cmocka_unit_test(many_of_one_delay_another_by_one_turn),
		cmocka_unit_test(priority_counts_within_a_token_only),
		cmocka_unit_test(concurrent_ones_are_bounded),
		cmocka_unit_test(memory_of_all_that_run_is_bounded),
		cmocka_unit_test(runs_of_a_minute_are_bounded),
		cmocka_unit_test(processor_time_of_an_hour_is_bounded),
		cmocka_unit_test(without_bounds_nothing_is_counted),
		cmocka_unit_test(what_waits_has_ceilings),
		cmocka_unit_test(nobody_waits_where_nobody_may),
		cmocka_unit_test(retry_grows_with_the_queue),
		cmocka_unit_test(accounts_are_forgotten_when_they_are_empty),
		cmocka_unit_test(tokens_are_counted),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(random_steps),
		cmocka_unit_test(positions_are_true),
		cmocka_unit_test(meters_go_on_in_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
