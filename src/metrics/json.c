/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers as a document: what people ask first (totals, rates), then every metric as it is.
 *
 * Rates are shares of all requests.  Each verdict belongs to one of them.
 */
#include <assert.h>
#include <jansson.h>

#include "metrics/snapshot.h"

enum rate {
	RATE_success,
	RATE_failure,
	RATE_timeout,
	RATE_limit,
	RATE_blocked,
	RATE_refused,
	RATE_fault,
	RATE_cancelled,
	RATE_COUNT
};

static const char *const rate_name[] = {
	[RATE_success] = "success", [RATE_failure] = "failure",     [RATE_timeout] = "timeout",
	[RATE_limit] = "limit",     [RATE_blocked] = "blocked",     [RATE_refused] = "refused",
	[RATE_fault] = "fault",     [RATE_cancelled] = "cancelled",
};
static_assert(ARRAY_LEN(rate_name) == RATE_COUNT, "rate_name[] misses a name");

static const enum rate rate_of[] = {
	[VERDICT_ok] = RATE_success,         [VERDICT_error] = RATE_failure,       [VERDICT_crash] = RATE_failure,
	[VERDICT_timeout] = RATE_timeout,    [VERDICT_cpu_limit] = RATE_timeout,   [VERDICT_memory_limit] = RATE_limit,
	[VERDICT_output_limit] = RATE_limit, [VERDICT_disk_limit] = RATE_limit,    [VERDICT_pids_limit] = RATE_limit,
	[VERDICT_blocked] = RATE_blocked,    [VERDICT_refused] = RATE_refused,     [VERDICT_violated] = RATE_fault,
	[VERDICT_failed] = RATE_fault,       [VERDICT_cancelled] = RATE_cancelled,
};
static_assert(ARRAY_LEN(rate_of) == VERDICT_COUNT, "rate_of[] misses a verdict");

static const char *const type_name[] = { [TYPE_COUNTER] = "counter", [TYPE_HISTOGRAM] = "histogram" };
static const char *const unit_name[] = {
	[METRIC_UNIT_NONE] = "", [METRIC_UNIT_SECONDS] = "seconds", [METRIC_UNIT_BYTES] = "bytes"
};

static json_t *json_number(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* A list that could not be made whole is none. */
static json_t *whole(json_t *value, int failed)
{
	if (!failed)
		return value;
	json_decref(value);
	return NULL;
}

/* ---- metrics ---------------------------------------------------------------------------------- */

static json_t *json_labels(const struct metric_info *info, const struct metric_sample *sample)
{
	json_t *labels = json_object();
	int failed = 0;

	for (size_t i = 0; i < METRIC_LABELS_MAX && info->label[i] != LABELS_NONE; i++)
		failed |= json_object_set_new(labels, label_info[info->label[i]].name, json_string(sample->label[i]));
	return whole(labels, failed);
}

/* [ { "le": bound or null for none, "count": that many at most that large } ] */
static json_t *json_buckets(const struct metric_info *info, const struct metric_sample *sample)
{
	const struct metric_bounds *b = &metric_bounds[info->unit];
	json_t *buckets = json_array();
	uint64_t below = 0;
	int failed = 0;

	for (size_t i = 0; i <= b->n; i++) {
		below = metric_add(below, sample->number[i]);
		failed |= json_array_append_new(
			buckets,
			json_pack("{s:o, s:o}", "le", i < b->n ? json_real((double)b->at[i] * b->scale) : json_null(),
				  "count", json_number(below)));
	}
	return whole(buckets, failed);
}

static json_t *json_sample(const struct metric_info *info, const struct metric_sample *sample)
{
	if (info->type == TYPE_COUNTER)
		return json_pack("{s:o, s:o}", "labels", json_labels(info, sample), "value",
				 json_number(sample->value));
	return json_pack("{s:o, s:o, s:f, s:o}", "labels", json_labels(info, sample), "count",
			 json_number(sample->value), "sum", (double)sample->sum * metric_bounds[info->unit].scale,
			 "buckets", json_buckets(info, sample));
}

static json_t *json_metric(const struct metrics_snapshot *s, enum metric m)
{
	const struct metric_info *info = &metric_info[m];
	json_t *samples = json_array();
	struct metric_sample sample;
	size_t row = 0;
	int failed = 0;

	while (metric_sample_next(s, m, &row, &sample))
		failed |= json_array_append_new(samples, json_sample(info, &sample));
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", info->name, "type", type_name[info->type], "unit",
			 unit_name[info->unit], "help", info->help, "samples", whole(samples, failed));
}

static json_t *json_metrics(const struct metrics_snapshot *s)
{
	json_t *rows = json_array();
	int failed = 0;

	for (enum metric m = 0; m < METRIC_COUNT; m++)
		failed |= json_array_append_new(rows, json_metric(s, m));
	return whole(rows, failed);
}

/* ---- what people ask first -------------------------------------------------------------------- */

/* Executions added up by one label of theirs: { value: count }. */
static json_t *json_by(const struct metrics_snapshot *s, size_t label)
{
	json_t *sums = json_object();
	struct metric_sample sample;
	size_t row = 0;
	int failed = 0;

	while (metric_sample_next(s, METRIC_executions, &row, &sample)) {
		json_t *old = json_object_get(sums, sample.label[label]);
		uint64_t before = (uint64_t)json_integer_value(old);

		failed |= json_object_set_new(sums, sample.label[label], json_number(metric_add(before, sample.value)));
	}
	return whole(sums, failed);
}

static json_t *json_rates(const struct metrics_snapshot *s, uint64_t *ret_total)
{
	uint64_t n[RATE_COUNT] = { 0 };
	json_t *rates = json_object();
	struct metric_sample sample;
	size_t row = 0;
	int failed = 0;

	*ret_total = 0;
	while (metric_sample_next(s, METRIC_executions, &row, &sample)) {
		enum rate of = rate_of[sample.index[0]];

		n[of] = metric_add(n[of], sample.value);
		*ret_total = metric_add(*ret_total, sample.value);
	}
	for (size_t i = 0; i < RATE_COUNT; i++)
		failed |= json_object_set_new(rates, rate_name[i],
					      *ret_total ? json_real((double)n[i] / (double)*ret_total) : json_null());
	return whole(rates, failed);
}

static json_t *json_cache(const struct metrics_snapshot *s)
{
	const uint64_t *n = (const void *)(s->bytes + s->layout.numbers[METRIC_cache]);
	json_t *cache = json_object();
	/* What was there but could not be used had to be made as well. */
	uint64_t asked = metric_add(metric_add(n[CACHE_EVENT_hit], n[CACHE_EVENT_miss]),
				    metric_add(n[CACHE_EVENT_damaged], n[CACHE_EVENT_expired]));
	int failed = 0;

#define X(name, help) failed |= json_object_set_new(cache, #name, json_number(n[CACHE_EVENT_##name]));
	CACHE_EVENTS(X)
#undef X
	failed |= json_object_set_new(cache, "hit_rate",
				      asked ? json_real((double)n[CACHE_EVENT_hit] / (double)asked) : json_null());
	return whole(cache, failed);
}

json_t *metrics_to_json(const struct metrics_snapshot *s)
{
	uint64_t total;
	json_t *rates = json_rates(s, &total);

	return json_pack("{s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o}", "since_ms",
			 s->created_ns ? json_number(s->created_ns / NS_PER_MS) : json_null(), "executions",
			 json_number(total), "rates", rates, "by", "verdict", json_by(s, 0), "language", json_by(s, 1),
			 "backend", json_by(s, 2), "trust", json_by(s, 3), "cache", json_cache(s), "metrics",
			 json_metrics(s));
}
