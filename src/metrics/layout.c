/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: a header, the names of each OPEN label set, then 64-bit numbers.  A metric has one run of numbers per
 * combination of its labels, in the order of its labels, so that a place is found by arithmetic.  All of it follows
 * from metrics.def and the fixed names; a hash of these in the header tells a file of another build apart.
 */
#include "metrics/layout.h"

#include <pthread.h>
#include <assert.h>
#include <string.h>

#include "base/clock.h"

static const char header_magic[8] = { 'b', 'r', 'i', 'g', 'm', 't', 'r', METRICS_FORMAT };
static_assert(sizeof(struct metrics_header) == 128, "the header has gaps");
static_assert(sizeof(struct metrics_name) == 64, "a name's place has gaps");

/* ---- fixed names ------------------------------------------------------------------------------ */

static const char *name_of_verdict(size_t i)
{
	return verdict_info[i].name;
}

static const char *name_of_trust(size_t i)
{
	return trust_name[i];
}

static const char *name_of_step(size_t i)
{
	return run_phase_name[i];
}

static const char *name_of_protection(size_t i)
{
	return protection_info[i].name;
}

static const char *name_of_event(size_t i)
{
	static const char *const names[] = {
#define X(name, help) #name,
		CACHE_EVENTS(X)
#undef X
	};

	return names[i];
}

#define FIXED(set, n)                                                            \
	{                                                                        \
		.name = #set, .open = false, .size = (n), .fixed = name_of_##set \
	}
#define OPEN(set, n)                                    \
	{                                               \
		.name = #set, .open = true, .size = (n) \
	}

const struct label_info label_info[] = {
	[LABELS_NONE] = { .name = "", .size = 1 },
#define METRIC(...)
#define LABELS(set, kind, n, help) [LABELS_##set] = kind(set, n),
#include "metrics/metrics.def"
};
static_assert(ARRAY_LEN(label_info) == LABELS_COUNT, "label_info[] misses a set");

const struct metric_info metric_info[] = {
#define LABELS(...)
#define METRIC(id, kind, title, of, l1, l2, l3, l4, text) \
	[METRIC_##id] = { .name = (title),                \
			  .help = (text),                 \
			  .type = TYPE_##kind,            \
			  .unit = METRIC_UNIT_##of,       \
			  .label = { LABELS_##l1, LABELS_##l2, LABELS_##l3, LABELS_##l4 } },
#include "metrics/metrics.def"
};

#define US (1000ull)
#define MS (1000 * US)
#define S  (1000 * MS)

const struct metric_bounds metric_bounds[] = {
	[METRIC_UNIT_NONE] = { .scale = 1 },
	[METRIC_UNIT_SECONDS] = { .at = { 100 * US, 250 * US, 500 * US, 1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS,
					  50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * S, 2500 * MS, 5 * S, 10 * S,
					  30 * S, 60 * S, 300 * S },
				  .n = 19,
				  .scale = 1e-9 },
	[METRIC_UNIT_BYTES] = { .at = { 1 * MiB, 4 * MiB, 16 * MiB, 32 * MiB, 64 * MiB, 128 * MiB, 256 * MiB, 512 * MiB,
					1 * GiB, 2 * GiB, 4 * GiB },
				.n = 11,
				.scale = 1 },
};
static_assert(ARRAY_LEN(metric_bounds) == METRIC_UNIT_COUNT, "metric_bounds[] misses a unit");

/* ---- places ----------------------------------------------------------------------------------- */

size_t metric_width(enum metric m)
{
	return metric_info[m].type == TYPE_HISTOGRAM ? metric_bounds[metric_info[m].unit].n + 2 : 1;
}

size_t metric_rows(enum metric m)
{
	size_t n = 1;

	for (size_t i = 0; i < METRIC_LABELS_MAX; i++)
		n *= label_info[metric_info[m].label[i]].size;
	return n;
}

size_t metric_row(enum metric m, const size_t index[METRIC_LABELS_MAX])
{
	size_t row = 0;

	for (size_t i = 0; i < METRIC_LABELS_MAX; i++)
		row = row * label_info[metric_info[m].label[i]].size + index[i];
	return row;
}

/* Of everything that places and meanings follow from. */
static uint64_t layout_hash(void)
{
	uint64_t h = METRICS_HASH_BEGIN;

	for (size_t i = 0; i < LABELS_COUNT; i++) {
		const struct label_info *l = &label_info[i];

		h = metrics_hash(h, l->name, strlen(l->name) + 1);
		h = metrics_hash(h, &l->size, sizeof(l->size));
		for (size_t k = 0; l->fixed && k < l->size; k++)
			h = metrics_hash(h, l->fixed(k), strlen(l->fixed(k)) + 1);
	}
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		const struct metric_info *m = &metric_info[i];

		h = metrics_hash(h, m->name, strlen(m->name) + 1);
		h = metrics_hash(h, &m->type, sizeof(m->type));
		h = metrics_hash(h, &m->unit, sizeof(m->unit));
		h = metrics_hash(h, m->label, sizeof(m->label));
	}
	for (size_t i = 0; i < METRIC_UNIT_COUNT; i++)
		h = metrics_hash(h, metric_bounds[i].at, metric_bounds[i].n * sizeof(metric_bounds[i].at[0]));
	return h;
}

static struct metrics_layout the_layout;

/* Every name of every label goes into its hash: worth doing once in a process that counts all its life. */
static void make_layout(void)
{
	struct metrics_layout *l = &the_layout;

	*l = (struct metrics_layout){ .size = sizeof(struct metrics_header) };
	for (size_t i = 0; i < LABELS_COUNT; i++) {
		l->names[i] = l->size;
		if (label_info[i].open)
			l->size += label_info[i].size * sizeof(struct metrics_name);
	}
	for (enum metric m = 0; m < METRIC_COUNT; m++) {
		l->numbers[m] = l->size;
		l->size += metric_rows(m) * metric_width(m) * sizeof(uint64_t);
	}
	l->hash = layout_hash();
}

void metrics_layout_make(struct metrics_layout *l)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_layout);
	*l = the_layout;
}

/* ---- the header ------------------------------------------------------------------------------- */

static void header_sum(const struct metrics_header *h, uint8_t ret[SHA256_LEN])
{
	sha256(h, offsetof(struct metrics_header, sum), ret);
}

void metrics_header_make(const struct metrics_layout *l, struct metrics_header *ret)
{
	*ret = (struct metrics_header){ .size = l->size, .created_ns = clock_wall_ns(), .layout = l->hash };
	memcpy(ret->magic, header_magic, sizeof(ret->magic));
	header_sum(ret, ret->sum);
}

const char *metrics_header_check(const struct metrics_layout *l, const struct metrics_header *h, uint64_t file_size)
{
	uint8_t sum[SHA256_LEN];

	header_sum(h, sum);
	if (memcmp(h->magic, header_magic, sizeof(h->magic)) != 0 || memcmp(h->sum, sum, sizeof(sum)) != 0)
		return "damaged";
	if (h->layout != l->hash)
		return "of another version of brig";
	return h->size == file_size && file_size == l->size ? NULL : "cut or grown";
}
