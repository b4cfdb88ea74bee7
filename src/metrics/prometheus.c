/* SPDX-License-Identifier: Apache-2.0 */
/* The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include <stdio.h>

#include "metrics/snapshot.h"

static const char *const type_name[] = { [TYPE_COUNTER] = "counter", [TYPE_HISTOGRAM] = "histogram" };

static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			(void)buf_adds(out, "\\");
		(void)buf_add(out, text, 1);
	}
}

/* {name="value",...}, with le as the last one if there is any. */
static void add_labels(struct buf *out, const struct metric_info *info, const struct metric_sample *sample,
		       const char *le)
{
	const char *between = "{";

	for (size_t i = 0; i < METRIC_LABELS_MAX && info->label[i] != LABELS_NONE; i++) {
		buf_addf(out, "%s%s=\"", between, label_info[info->label[i]].name);
		add_escaped(out, sample->label[i]);
		(void)buf_adds(out, "\"");
		between = ",";
	}
	if (le)
		buf_addf(out, "%sle=\"%s\"", between, le);
	if (le || *between == ',')
		(void)buf_adds(out, "}");
}

static void add_histogram(struct buf *out, const struct metric_info *info, const struct metric_sample *sample)
{
	const struct metric_bounds *b = &metric_bounds[info->unit];
	uint64_t below = 0;

	for (size_t i = 0; i <= b->n; i++) {
		char le[32] = "+Inf";

		below = metric_add(below, sample->number[i]);
		if (i < b->n)
			(void)snprintf(le, sizeof(le), "%.10g", (double)b->at[i] * b->scale);
		buf_addf(out, "%s_bucket", info->name);
		add_labels(out, info, sample, le);
		buf_addf(out, " %llu\n", (unsigned long long)below);
	}
	buf_addf(out, "%s_sum", info->name);
	add_labels(out, info, sample, NULL);
	buf_addf(out, " %.17g\n%s_count", (double)sample->sum * b->scale, info->name);
	add_labels(out, info, sample, NULL);
	buf_addf(out, " %llu\n", (unsigned long long)sample->value);
}

static void add_metric(struct buf *out, const struct metrics_snapshot *s, enum metric m)
{
	const struct metric_info *info = &metric_info[m];
	struct metric_sample sample;
	size_t row = 0;

	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", info->name, info->help, info->name, type_name[info->type]);
	while (metric_sample_next(s, m, &row, &sample)) {
		if (info->type == TYPE_HISTOGRAM) {
			add_histogram(out, info, &sample);
			continue;
		}
		(void)buf_adds(out, info->name);
		add_labels(out, info, &sample, NULL);
		buf_addf(out, " %llu\n", (unsigned long long)sample.value);
	}
}

void metrics_to_prometheus(const struct metrics_snapshot *s, struct buf *out)
{
	for (enum metric m = 0; m < METRIC_COUNT; m++)
		add_metric(out, s, m);
	buf_addf(out,
		 "# HELP brig_metrics_start_time_seconds When counting began, since 1970.\n"
		 "# TYPE brig_metrics_start_time_seconds gauge\nbrig_metrics_start_time_seconds %.17g\n",
		 (double)s->created_ns / (double)NS_PER_SEC);
	buf_addf(out,
		 "# HELP brig_build_info The version of brig that wrote this.\n"
		 "# TYPE brig_build_info gauge\nbrig_build_info{version=\"%s\"} 1\n",
		 BRIG_VERSION);
}
