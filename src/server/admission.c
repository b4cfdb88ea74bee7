/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission.c - theory of operation
 *
 * Every recently active token has an account, found by name in a small hash table.  An account has ten lines of waiting
 * tickets, one per priority.  Accounts with waiting tickets form a ring, `turns`: the first account whose best ticket
 * may run gets its turn and moves to the end.  An account held up by its quota keeps its place.
 *
 *   RULE A1  An account is in the ring if and only if n_waiting > 0.
 *   RULE A2  A ticket is linked if and only if it is TICKET_WAITING; its account exists as long as it is not
 *   TICKET_IDLE.
 *   RULE A3  a->n_running and a->n_waiting are the sums over all accounts.
 *   RULE A4  An account is in `metered` if and only if is_metered.
 *
 * Meters are leaky buckets measured in time: until_ns is the moment at which the bucket is empty.  A charge moves it
 * forward by the time in which that amount drains; a charge that would move it further than one window beyond now has
 * to wait for the difference.  So a meter is a single number and needs no timer.
 */
#include "server/admission.h"

#include <assert.h>
#include <string.h>

#define BUCKETS         256
#define RUNNING_CEILING 100000
#define MINUTE_NS       (60 * NS_PER_SEC)
#define HOUR_NS         (3600 * NS_PER_SEC)
#define DAY_NS          (24 * HOUR_NS)
#define RETRY_MAX_S     60 /* upper bound of estimates; meters are exact */

TAILQ_HEAD(line, ticket);

struct meter {
	uint64_t until_ns;
};

struct admission_account {
	char name[ADMISSION_NAME_MAX + 1];
	struct quota quota;
	struct meter runs, cpu;
	struct line line[ADMISSION_PRIORITIES];
	size_t n_waiting, n_running;
	uint64_t memory; /* of running executions */
	bool is_metered; /* charged since admission_each_metered() */
	TAILQ_ENTRY(admission_account) in_turns;
	LIST_ENTRY(admission_account) in_bucket, in_metered;
};

struct admission {
	struct admission_opts opts;
	size_t n_running, n_waiting, n_accounts;
	uint64_t mean_run_ns; /* moving average of recent executions, for estimates */
	TAILQ_HEAD(turns, admission_account) turns;
	LIST_HEAD(bucket, admission_account) bucket[BUCKETS];
	struct bucket metered; /* RULE A4 */
};

/* ---- meters ------------------------------------------------------------------------------------ */

static uint64_t meter_level(const struct meter *m, uint64_t now_ns)
{
	return m->until_ns > now_ns ? m->until_ns - now_ns : 0;
}

/* Time until cost fits below the window; 0: it fits now. */
static uint64_t meter_wait(const struct meter *m, uint64_t cost_ns, uint64_t window_ns, uint64_t now_ns)
{
	uint64_t after = meter_level(m, now_ns) + cost_ns;

	return after > window_ns ? after - window_ns : 0;
}

/* Debt is bounded, so that one run under a tiny quota does not lock a token out for years. */
static void meter_add(struct meter *m, uint64_t cost_ns, uint64_t now_ns)
{
	m->until_ns = now_ns + min_u64(meter_level(m, now_ns) + min_u64(cost_ns, DAY_NS), DAY_NS);
}

/* The time in which one run drains. */
static uint64_t run_cost(const struct quota *q)
{
	return MINUTE_NS / q->runs_per_minute;
}

static uint64_t rate_wait(const struct admission_account *acc, uint64_t now_ns)
{
	uint32_t runs = acc->quota.runs_per_minute;

	return runs ? meter_wait(&acc->runs, run_cost(&acc->quota), runs * run_cost(&acc->quota), now_ns) : 0;
}

static uint64_t cpu_wait(const struct admission_account *acc, uint64_t now_ns)
{
	return acc->quota.cpu_seconds_per_hour ? meter_wait(&acc->cpu, 1, HOUR_NS, now_ns) : 0;
}

static void set_metered(struct admission *a, struct admission_account *acc)
{
	if (!acc->is_metered)
		LIST_INSERT_HEAD(&a->metered, acc, in_metered);
	acc->is_metered = true;
}

static void charge_run(struct admission *a, struct admission_account *acc, uint64_t now_ns)
{
	if (!acc->quota.runs_per_minute)
		return;
	meter_add(&acc->runs, run_cost(&acc->quota), now_ns);
	set_metered(a, acc);
}

static void charge_cpu(struct admission *a, struct admission_account *acc, uint64_t cpu_ns, uint64_t now_ns)
{
	if (!acc->quota.cpu_seconds_per_hour)
		return;
	meter_add(&acc->cpu, min_u64(cpu_ns, 30 * DAY_NS) * 3600 / acc->quota.cpu_seconds_per_hour, now_ns);
	set_metered(a, acc);
}

/* ---- accounts ---------------------------------------------------------------------------------- */

static struct bucket *bucket_of(struct admission *a, const char *name)
{
	/* FNV-1a suffices: the operator chooses the names, so collisions cannot be forced */
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < ADMISSION_NAME_MAX && name[i]; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	return &a->bucket[hash % BUCKETS];
}

/* Whether the account can be dropped without losing state. */
static bool is_idle(const struct admission_account *acc, uint64_t now_ns)
{
	return !acc->n_running && !acc->n_waiting && !meter_level(&acc->runs, now_ns) &&
	       !meter_level(&acc->cpu, now_ns);
}

static void account_drop(struct admission *a, struct admission_account *acc)
{
	LIST_REMOVE(acc, in_bucket);
	if (acc->is_metered)
		LIST_REMOVE(acc, in_metered);
	a->n_accounts--;
	free(acc);
}

static void drop_idle(struct admission *a, uint64_t now_ns)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct admission_account *acc = LIST_FIRST(&a->bucket[i]), *next;

		for (; acc; acc = next) {
			next = LIST_NEXT(acc, in_bucket);
			if (is_idle(acc, now_ns))
				account_drop(a, acc);
		}
	}
}

static struct admission_account *account_add(struct admission *a, struct bucket *bucket, const char *name,
					     uint64_t now_ns)
{
	struct admission_account *acc;

	if (a->n_accounts >= a->opts.accounts_max)
		drop_idle(a, now_ns);
	acc = a->n_accounts < a->opts.accounts_max ? calloc(1, sizeof(*acc)) : NULL;
	if (!acc)
		return NULL;
	memcpy(acc->name, name, strnlen(name, ADMISSION_NAME_MAX));
	for (size_t i = 0; i < ADMISSION_PRIORITIES; i++)
		TAILQ_INIT(&acc->line[i]);
	LIST_INSERT_HEAD(bucket, acc, in_bucket);
	a->n_accounts++;
	return acc;
}

/* NULL: too many accounts, or out of memory. */
static struct admission_account *account_named(struct admission *a, const char *token, uint64_t now_ns)
{
	struct bucket *bucket = bucket_of(a, token);
	struct admission_account *acc;

	for (acc = LIST_FIRST(bucket); acc; acc = LIST_NEXT(acc, in_bucket))
		if (strncmp(acc->name, token, ADMISSION_NAME_MAX) == 0)
			return acc;
	return account_add(a, bucket, token, now_ns);
}

/* The account of a token, with its quota updated. */
static struct admission_account *account_of(struct admission *a, const struct admission_ask *ask, uint64_t now_ns)
{
	struct admission_account *acc = account_named(a, ask->token, now_ns);

	if (acc)
		acc->quota = *ask->quota;
	return acc;
}

/* ---- lines and turns --------------------------------------------------------------------------- */

static struct ticket *best_ticket(const struct admission_account *acc)
{
	for (size_t i = ADMISSION_PRIORITIES; i-- > 0;)
		if (!TAILQ_EMPTY(&acc->line[i]))
			return TAILQ_FIRST(&acc->line[i]);
	return NULL;
}

static void line_up(struct admission *a, struct ticket *t)
{
	struct admission_account *acc = t->account;

	TAILQ_INSERT_TAIL(&acc->line[t->priority], t, in_line);
	t->state = TICKET_WAITING;
	if (acc->n_waiting++ == 0)
		TAILQ_INSERT_TAIL(&a->turns, acc, in_turns);
	a->n_waiting++;
}

static void step_out(struct admission *a, struct ticket *t)
{
	struct admission_account *acc = t->account;

	assert(t->state == TICKET_WAITING && acc->n_waiting > 0); /* RULE A1, RULE A2 */
	TAILQ_REMOVE(&acc->line[t->priority], t, in_line);
	t->state = TICKET_IDLE;
	if (--acc->n_waiting == 0)
		TAILQ_REMOVE(&a->turns, acc, in_turns);
	a->n_waiting--;
}

/* Starts the ticket; its account moves to the end of the ring. */
static void start(struct admission *a, struct ticket *t, uint64_t now_ns)
{
	struct admission_account *acc = t->account;

	step_out(a, t);
	if (acc->n_waiting > 0) {
		TAILQ_REMOVE(&a->turns, acc, in_turns);
		TAILQ_INSERT_TAIL(&a->turns, acc, in_turns);
	}
	t->state = TICKET_RUNNING;
	t->started_ns = now_ns;
	acc->memory += t->memory;
	acc->n_running++;
	a->n_running++;
}

/*
 * Whether the best ticket of an account may run.  If it waits only for time to pass, *again_ns is lowered to that
 * moment.  If the token's memory quota was reduced while the ticket waited and it can never fit, it runs when no other
 * of the token runs: it had been accepted.
 */
static bool may_run(const struct admission_account *acc, const struct ticket *t, uint64_t now_ns, uint64_t *again_ns)
{
	const struct quota *q = &acc->quota;
	uint64_t wait_ns;

	if (q->concurrent && acc->n_running >= q->concurrent)
		return false;
	if (q->memory && acc->n_running && t->memory > q->memory - min_u64(acc->memory, q->memory))
		return false;
	wait_ns = cpu_wait(acc, now_ns);
	if (wait_ns)
		*again_ns = min_u64(*again_ns, now_ns + wait_ns);
	return wait_ns == 0;
}

/* The ticket to run next; NULL: none may. */
static struct ticket *whose_turn(const struct admission *a, uint64_t now_ns, uint64_t *again_ns)
{
	const struct admission_account *acc;

	*again_ns = ADMISSION_NEVER_NS;
	if (a->n_running >= a->opts.running_max)
		return NULL;
	for (acc = TAILQ_FIRST(&a->turns); acc; acc = TAILQ_NEXT(acc, in_turns)) {
		struct ticket *t = best_ticket(acc);

		if (may_run(acc, t, now_ns, again_ns))
			return t;
	}
	return NULL;
}

/* ---- entering, waiting, leaving ------------------------------------------------------------------ */

static uint32_t seconds_up(uint64_t ns)
{
	uint64_t s = ns / NS_PER_SEC + (ns % NS_PER_SEC != 0);

	return (uint32_t)max_u64(min_u64(s, UINT32_MAX), 1);
}

/* Estimates when the queue has room, from the duration of recent executions. */
static uint32_t guess_retry(const struct admission *a, size_t ahead)
{
	uint64_t rounds = ahead / a->opts.running_max + 1;

	return (uint32_t)min_u64(seconds_up(min_u64(a->mean_run_ns, MINUTE_NS) * min_u64(rounds, RETRY_MAX_S)),
				 RETRY_MAX_S);
}

/* Checks one more execution against the token's quota alone. */
static enum admission_answer check_quota(const struct admission_account *acc, uint64_t memory, uint64_t now_ns,
					 uint32_t *ret_retry_after_s)
{
	uint64_t rate = rate_wait(acc, now_ns), cpu = cpu_wait(acc, now_ns);

	if (acc->quota.memory && memory > acc->quota.memory)
		return ADMISSION_TOO_LARGE;
	if (!rate && !cpu)
		return ADMISSION_RUN;
	*ret_retry_after_s = seconds_up(max_u64(rate, cpu));
	return cpu >= rate ? ADMISSION_CPU : ADMISSION_RATE;
}

/* The ticket is queued already; checks whether the queue exceeds its bounds. */
static enum admission_answer check_room(const struct admission *a, const struct admission_account *acc,
					uint32_t *ret_retry_after_s)
{
	if (a->n_waiting > a->opts.waiting_max) {
		*ret_retry_after_s = guess_retry(a, a->n_waiting);
		return ADMISSION_FULL;
	}
	if (acc->n_waiting > a->opts.waiting_per_token_max) {
		*ret_retry_after_s = guess_retry(a, acc->n_waiting);
		return ADMISSION_CROWDED;
	}
	return ADMISSION_WAIT;
}

enum admission_answer admission_enter(struct admission *a, const struct admission_ask *ask, uint64_t now_ns,
				      struct ticket *t, uint32_t *ret_retry_after_s)
{
	struct admission_account *acc = account_of(a, ask, now_ns);
	enum admission_answer answer;
	uint64_t again_ns;

	assert(t->state == TICKET_IDLE);
	if (!acc) {
		*ret_retry_after_s = guess_retry(a, a->n_waiting);
		return ADMISSION_FULL;
	}
	answer = check_quota(acc, ask->memory, now_ns, ret_retry_after_s);
	if (answer != ADMISSION_RUN)
		return answer;
	*t = (struct ticket){ .priority = (uint32_t)min_u64(ask->priority, ADMISSION_PRIORITIES - 1),
			      .account = acc,
			      .memory = min_u64(ask->memory, QUOTA_MEMORY_MAX) };
	line_up(a, t);
	if (whose_turn(a, now_ns, &again_ns) == t) {
		start(a, t, now_ns);
	} else {
		answer = check_room(a, acc, ret_retry_after_s);
		if (answer != ADMISSION_WAIT) {
			step_out(a, t);
			return answer;
		}
	}
	charge_run(a, acc, now_ns);
	return answer;
}

struct ticket *admission_next(struct admission *a, uint64_t now_ns, uint64_t *ret_again_ns)
{
	uint64_t again_ns;
	struct ticket *t = whose_turn(a, now_ns, &again_ns);

	if (t)
		start(a, t, now_ns);
	else if (ret_again_ns)
		*ret_again_ns = again_ns;
	return t;
}

void admission_leave(struct admission *a, struct ticket *t, uint64_t cpu_ns, uint64_t now_ns)
{
	struct admission_account *acc = t->account;

	if (t->state == TICKET_WAITING) {
		step_out(a, t);
	} else if (t->state == TICKET_RUNNING) {
		uint64_t took_ns = now_ns > t->started_ns ? now_ns - t->started_ns : 0;

		a->mean_run_ns = a->mean_run_ns / 8 * 7 + min_u64(took_ns, HOUR_NS) / 8;
		acc->memory -= t->memory;
		acc->n_running--;
		a->n_running--;
		charge_cpu(a, acc, cpu_ns, now_ns);
	}
	t->state = TICKET_IDLE;
	t->account = NULL;
}

enum admission_answer admission_charge_run(struct admission *a, const struct admission_ask *ask, uint64_t now_ns,
					   uint32_t *ret_retry_after_s)
{
	struct admission_account *acc = account_of(a, ask, now_ns);
	enum admission_answer answer;

	if (!acc) {
		*ret_retry_after_s = guess_retry(a, a->n_waiting);
		return ADMISSION_FULL;
	}
	answer = check_quota(acc, 0, now_ns, ret_retry_after_s);
	if (answer == ADMISSION_RUN)
		charge_run(a, acc, now_ns);
	return answer;
}

void admission_charge_cpu(struct admission *a, const struct admission_ask *ask, uint64_t cpu_ns, uint64_t now_ns)
{
	struct admission_account *acc = account_of(a, ask, now_ns);

	if (acc)
		charge_cpu(a, acc, cpu_ns, now_ns);
}

/* ---- inspection -------------------------------------------------------------------------------- */

/* Tickets of the same token that go first. */
static size_t own_ahead(const struct ticket *t)
{
	const struct ticket *other;
	size_t ahead = 0;

	for (size_t i = t->priority + 1; i < ADMISSION_PRIORITIES; i++)
		for (other = TAILQ_FIRST(&t->account->line[i]); other; other = TAILQ_NEXT(other, in_line))
			ahead++;
	for (other = TAILQ_PREV(t, line, in_line); other; other = TAILQ_PREV(other, line, in_line))
		ahead++;
	return ahead;
}

/*
 * While the tickets ahead of it and of its token get their turns, each other token gets as many; a token before it in
 * the ring gets one more.
 */
size_t admission_position(const struct admission *a, const struct ticket *t)
{
	const struct admission_account *acc;
	size_t own, position;
	bool before = true;

	if (t->state != TICKET_WAITING)
		return 0;
	own = own_ahead(t);
	position = own + 1;
	for (acc = TAILQ_FIRST(&a->turns); acc; acc = TAILQ_NEXT(acc, in_turns))
		if (acc == t->account)
			before = false;
		else
			position += min_u64(acc->n_waiting, own + before);
	return position;
}

size_t admission_running(const struct admission *a)
{
	return a->n_running;
}

size_t admission_waiting(const struct admission *a)
{
	return a->n_waiting;
}

void admission_each(const struct admission *a, void (*fn)(const struct admission_count *count, void *arg), void *arg)
{
	const struct admission_account *acc;

	for (size_t i = 0; i < BUCKETS; i++)
		for (acc = LIST_FIRST(&a->bucket[i]); acc; acc = LIST_NEXT(acc, in_bucket))
			if (acc->n_running || acc->n_waiting)
				fn(&(struct admission_count){ acc->name, acc->n_running, acc->n_waiting, acc->memory },
				   arg);
}

/* ---- meters across restarts --------------------------------------------------------------------- */

static struct admission_meters meters_of(const struct admission_account *acc, uint64_t now_ns)
{
	return (struct admission_meters){ acc->name, meter_level(&acc->runs, now_ns), meter_level(&acc->cpu, now_ns) };
}

void admission_each_metered(struct admission *a, uint64_t now_ns,
			    void (*fn)(const struct admission_meters *m, void *arg), void *arg)
{
	struct admission_account *acc;

	while ((acc = LIST_FIRST(&a->metered))) {
		struct admission_meters m = meters_of(acc, now_ns);

		LIST_REMOVE(acc, in_metered);
		acc->is_metered = false;
		fn(&m, arg);
	}
}

bool admission_is_metered(const struct admission *a)
{
	return !LIST_EMPTY(&a->metered);
}

void admission_each_meter(const struct admission *a, uint64_t now_ns,
			  void (*fn)(const struct admission_meters *m, void *arg), void *arg)
{
	const struct admission_account *acc;

	for (size_t i = 0; i < BUCKETS; i++)
		for (acc = LIST_FIRST(&a->bucket[i]); acc; acc = LIST_NEXT(acc, in_bucket)) {
			struct admission_meters m = meters_of(acc, now_ns);

			if (m.runs_ns || m.cpu_ns)
				fn(&m, arg);
		}
}

bool admission_restore(struct admission *a, const struct admission_meters *m, uint64_t now_ns)
{
	struct admission_account *acc = account_named(a, m->token, now_ns);

	if (!acc)
		return false;
	acc->runs.until_ns = now_ns + min_u64(m->runs_ns, DAY_NS);
	acc->cpu.until_ns = now_ns + min_u64(m->cpu_ns, DAY_NS);
	return true;
}

const char *admission_why(enum admission_answer answer)
{
	static const char *const why[] = {
		[ADMISSION_RATE] =
			"sent as many requests as its runs_per_minute allows: wait, or ask for a larger quota",
		[ADMISSION_CPU] =
			"used as much processor time as its cpu_seconds_per_hour allows: wait, or ask for a larger "
			"quota",
		[ADMISSION_CROWDED] = "has as many requests waiting as one token may: wait until some of them are done",
		[ADMISSION_FULL] = "came when as many requests waited as may, of all tokens: try again later",
		[ADMISSION_TOO_LARGE] = "asks for more memory than its quota of memory: ask for less, with mem_limit",
	};

	return (size_t)answer < ARRAY_LEN(why) ? why[answer] : NULL;
}

/* ---- life cycle -------------------------------------------------------------------------------- */

struct admission *admission_new(const struct admission_opts *opts)
{
	struct admission *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->opts = *opts;
	a->opts.running_max = (uint32_t)min_u64(max_u64(opts->running_max, 1), RUNNING_CEILING);
	a->opts.accounts_max = (uint32_t)max_u64(opts->accounts_max, 1);
	if (!opts->waiting_per_token_max)
		a->opts.waiting_per_token_max = opts->waiting_max;
	TAILQ_INIT(&a->turns);
	LIST_INIT(&a->metered);
	for (size_t i = 0; i < BUCKETS; i++)
		LIST_INIT(&a->bucket[i]);
	return a;
}

void admission_free(struct admission *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (!LIST_EMPTY(&a->bucket[i]))
			account_drop(a, LIST_FIRST(&a->bucket[i]));
	free(a);
}
