/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finished request into numbers.
 *
 * Names of an OPEN label set get their places on first use, without a lock: a free place is claimed by putting the
 * name's hash there with one compare-and-swap.  Places are tried in order and never given back, so two processes with
 * the same name end at the same place.  A process that finds its hash there but the name not yet ready writes the name
 * as well: both write the same bytes, and a process that was killed in between leaves nothing undone for long.
 */
#include <string.h>

#include "base/str.h"
#include "metrics/file.h"

/* Never 0, which means free. */
static uint64_t name_hash(const char *text)
{
	uint64_t h = metrics_hash(METRICS_HASH_BEGIN, text, strlen(text));

	return h ? h : 1;
}

static void write_name(struct metrics_name *place, const char *text)
{
	char name[METRIC_NAME_MAX + 1] = "";

	(void)str_copy(name, sizeof(name), text);
	memcpy(place->text, name, sizeof(name));
	__atomic_store_n(&place->ready, 1, __ATOMIC_RELEASE);
}

/* The place of a name in an OPEN set; the last one is shared by all that do not fit. */
static size_t name_place(const struct metrics_map *m, enum label_set set, const char *text)
{
	struct metrics_name *place = (void *)(m->at + m->layout.names[set]);
	size_t last = label_info[set].size - 1;
	uint64_t want = name_hash(text);

	for (size_t i = 0; i < last; i++) {
		uint64_t seen = __atomic_load_n(&place[i].hash, __ATOMIC_ACQUIRE);

		if (seen == 0 &&
		    __atomic_compare_exchange_n(&place[i].hash, &seen, want, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			seen = want;
		if (seen != want)
			continue;
		if (!__atomic_load_n(&place[i].ready, __ATOMIC_ACQUIRE))
			write_name(&place[i], text);
		return i;
	}
	return last;
}

static uint64_t *numbers(const struct metrics_map *m, enum metric id, const size_t index[METRIC_LABELS_MAX])
{
	uint64_t *first = (void *)(m->at + m->layout.numbers[id]);

	return first + metric_row(id, index) * metric_width(id);
}

static void add(uint64_t *number, uint64_t by)
{
	(void)__atomic_fetch_add(number, by, __ATOMIC_RELAXED);
}

#define AT(...) ((const size_t[METRIC_LABELS_MAX]){ __VA_ARGS__ })

static void count(const struct metrics_map *m, enum metric id, const size_t index[METRIC_LABELS_MAX], uint64_t by)
{
	if (by)
		add(numbers(m, id, index), by);
}

static void observe(const struct metrics_map *m, enum metric id, const size_t index[METRIC_LABELS_MAX], uint64_t value)
{
	const struct metric_bounds *b = &metric_bounds[metric_info[id].unit];
	uint64_t *n = numbers(m, id, index);
	size_t i = 0;

	while (i < b->n && value > b->at[i])
		i++;
	add(&n[i], 1);
	add(&n[b->n + 1], value);
}

static void count_times(const struct metrics_map *m, const struct result *r)
{
	observe(m, METRIC_request, AT(0), r->total_ns);
	for (size_t i = 0; i < PHASE_COUNT; i++)
		if (r->phase_ns[i])
			observe(m, METRIC_step, AT(i), r->phase_ns[i]);
}

/* What only programs have that ran. */
static void count_usage(const struct metrics_map *m, const struct result *r, size_t language)
{
	observe(m, METRIC_wall, AT(language), r->usage.wall_ms * NS_PER_MS);
	observe(m, METRIC_cpu, AT(language), r->usage.cpu_ms * NS_PER_MS);
	observe(m, METRIC_memory, AT(language), r->usage.memory_peak_bytes);
	count(m, METRIC_output, AT(0), r->usage.output_bytes);
	for (size_t i = 0; i < PROT_COUNT; i++)
		count(m, METRIC_degraded, AT(i), (r->degraded & PROT_BIT(i)) != 0);
}

static void count_cache(const struct metrics_map *m, const struct cache_events *e)
{
#define X(name, help) count(m, METRIC_cache, AT(CACHE_EVENT_##name), e->name);
	CACHE_EVENTS(X)
#undef X
}

static void count_request(const struct metrics_map *m, const struct record *rec)
{
	const struct result *r = rec->res;
	size_t language = name_place(m, LABELS_language, *r->language ? r->language : "none");
	size_t backend = name_place(m, LABELS_backend, *r->backend ? r->backend : "none");

	count(m, METRIC_executions, AT(r->verdict, language, backend, r->trust), 1);
	count_times(m, r);
	if (r->evidence.n > 0)
		count_usage(m, r, language);
	for (size_t i = 0; i < r->findings.n; i++)
		count(m, METRIC_findings, AT(name_place(m, LABELS_rule, r->findings.row[i].rule)), 1);
	count_cache(m, &r->cache.events);
	count(m, METRIC_warm_hits, AT(0), r->kept && r->warm);
	count(m, METRIC_warm_misses, AT(0), r->kept && !r->warm);
	count(m, METRIC_unaudited, AT(0), rec->set->audit != AUDIT_OFF && rec->audit_seq == 0);
	count(m, METRIC_leftovers, AT(0), r->leftovers[0] != 0);
}

int metrics_count(const struct statedir *dir, const struct record *rec, struct brig_error *err)
{
	struct metrics_map m;
	int rc = metrics_map_open(dir, &m, err);

	if (rc < 0)
		return rc;
	count_request(&m, rec);
	metrics_map_close(&m);
	return rc;
}
