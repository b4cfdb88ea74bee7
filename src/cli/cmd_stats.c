/* SPDX-License-Identifier: Apache-2.0 */
/* `brig stats`: shows metrics as text, for Prometheus, or as the document. */
#include <stdio.h>

#include "base/str.h"
#include "base/when.h"
#include "cli/chart.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/report.h"
#include "cli/rows.h"

#define BAR_WIDTH   30
#define RULES_SHOWN 10

struct stats_values {
	const char *state;
	bool prometheus, json, no_color;
};

#define AT(member) offsetof(struct stats_values, member)
static const struct option_row stats_options[] = {
	{ "prometheus", 0, OPTION_FLAG, NULL, AT(prometheus), NULL, "print the text format that Prometheus reads" },
	ROW_STATE,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of tables" },
	ROW_NO_COLOR,
};

struct look {
	bool has_color, ascii;
};

/* ---- numbers ---------------------------------------------------------------------------------- */

static const char *count_text(char *dst, size_t size, json_int_t n)
{
	(void)snprintf(dst, size, "%lld", (long long)n);
	return dst;
}

static const char *share_text(char *dst, size_t size, double share)
{
	(void)snprintf(dst, size, "%.1f %%", 100 * share);
	return dst;
}

/* Values above 0 get at least a minimal bar. */
static const char *bar_text(char *dst, size_t size, double share, const struct look *look)
{
	AUTO_BUF bar = BUF_INIT(size - 1);
	size_t n = (size_t)(share * BAR_WIDTH + 0.5);

	if (n == 0 && share > 0)
		n = 1;
	for (size_t i = 0; i < n && i < BAR_WIDTH; i++)
		buf_adds(&bar, look->ascii ? "#" : "█");
	(void)str_copy(dst, size, buf_str(&bar));
	return dst;
}

static const char *seconds_text(char *dst, size_t size, double s)
{
	if (s < 1e-3)
		(void)snprintf(dst, size, "%.0f us", s * 1e6);
	else if (s < 1)
		(void)snprintf(dst, size, "%.1f ms", s * 1e3);
	else
		(void)snprintf(dst, size, "%.2f s", s);
	return dst;
}

static const char *bytes_text(char *dst, size_t size, double n)
{
	return str_bytes(dst, size, (uint64_t)n);
}

/* Estimates the value below which this share of the observations is, assuming that each bucket is filled evenly. */
static double quantile(const json_t *sample, double share)
{
	double want = share * (double)json_integer_value(json_object_get(sample, "count")), low = 0, below = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(sample, "buckets"), i, row)
	{
		const json_t *le = json_object_get(row, "le");
		double n = (double)json_integer_value(json_object_get(row, "count"));

		if (!json_is_number(le))
			break; /* above the last bound nothing more is known */
		if (n >= want && n > below)
			return low + (json_number_value(le) - low) * (want - below) / (n - below);
		low = json_number_value(le);
		below = n;
	}
	return low;
}

static double mean(const json_t *sample)
{
	json_int_t n = json_integer_value(json_object_get(sample, "count"));

	return n ? json_number_value(json_object_get(sample, "sum")) / (double)n : 0;
}

static const json_t *samples_of(const json_t *doc, const char *metric)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "metrics"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));

		if (name && str_eq(name, metric))
			return json_object_get(row, "samples");
	}
	return NULL;
}

/* ---- tables ----------------------------------------------------------------------------------- */

static void finish_table(struct ui_table *table, const struct look *look, struct buf *out)
{
	buf_adds(out, "\n");
	ui_table_show(table, look->has_color, out);
	ui_table_release(table);
}

static void add_titles(struct ui_table *table, const char *const *titles)
{
	for (size_t i = 0; i < table->n_columns; i++)
		ui_table_add(table, titles[i], UI_BOLD);
}

/* Executions by one label, with bars. */
static void add_shares(const json_t *doc, const char *label, const char *title, const struct look *look,
		       struct buf *out)
{
	const char *const titles[] = { title, "COUNT", "SHARE", "" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	json_t *by = json_object_get(json_object_get(doc, "by"), label), *value;
	double total = (double)json_integer_value(json_object_get(doc, "executions"));
	const char *name;

	add_titles(&table, titles);
	json_object_foreach(by, name, value)
	{
		double share = (double)json_integer_value(value) / total;
		enum ui_color color = str_eq(label, "verdict") ? report_verdict_color(name) : UI_PLAIN;
		char text[8 * BAR_WIDTH];

		ui_table_add(&table, name, color);
		ui_table_add(&table, count_text(text, sizeof(text), json_integer_value(value)), UI_PLAIN);
		ui_table_add(&table, share_text(text, sizeof(text), share), UI_PLAIN);
		ui_table_add(&table, bar_text(text, sizeof(text), share, look), color);
	}
	finish_table(&table, look, out);
}

static void add_distribution(struct ui_table *table, const json_t *sample, const char *name,
			     const char *(*text)(char *dst, size_t size, double v))
{
	char dst[64];

	ui_table_add(table, name, UI_PLAIN);
	ui_table_add(table, count_text(dst, sizeof(dst), json_integer_value(json_object_get(sample, "count"))),
		     UI_PLAIN);
	ui_table_add(table, text(dst, sizeof(dst), mean(sample)), UI_PLAIN);
	ui_table_add(table, text(dst, sizeof(dst), quantile(sample, 0.5)), UI_PLAIN);
	ui_table_add(table, text(dst, sizeof(dst), quantile(sample, 0.95)), UI_PLAIN);
	ui_table_add(table, text(dst, sizeof(dst), quantile(sample, 0.99)), UI_PLAIN);
}

/* Time of each step of a request. */
static void add_steps(const json_t *doc, const struct look *look, struct buf *out)
{
	static const char *const titles[] = { "STEP", "TIMES", "MEAN", "P50", "P95", "P99" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	const json_t *sample;
	char name[64];
	size_t i;

	add_titles(&table, titles);
	json_array_foreach(samples_of(doc, "brig_step_duration_seconds"), i, sample) add_distribution(
		&table, sample, document_text(json_object_get(sample, "labels"), "step", name, sizeof(name)),
		seconds_text);
	json_array_foreach(samples_of(doc, "brig_request_duration_seconds"), i, sample)
		add_distribution(&table, sample, "all of it", seconds_text);
	finish_table(&table, look, out);
}

/* Resource usage by language. */
static void add_usage(const json_t *doc, const struct look *look, struct buf *out)
{
	static const struct {
		const char *metric, *name;
		const char *(*text)(char *dst, size_t size, double v);
	} rows[] = {
		{ "brig_wall_seconds", "wall", seconds_text },
		{ "brig_cpu_seconds", "cpu", seconds_text },
		{ "brig_memory_peak_bytes", "memory", bytes_text },
	};
	static const char *const titles[] = { "PROGRAMS", "RUNS", "MEAN", "P50", "P95", "P99" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	const json_t *sample;
	size_t i;

	add_titles(&table, titles);
	for (size_t k = 0; k < ARRAY_LEN(rows); k++)
		json_array_foreach(samples_of(doc, rows[k].metric), i, sample)
		{
			char language[64], name[96];

			(void)document_text(json_object_get(sample, "labels"), "language", language, sizeof(language));
			(void)snprintf(name, sizeof(name), "%s %s", language, rows[k].name);
			add_distribution(&table, sample, name, rows[k].text);
		}
	if (table.n_cells > ARRAY_LEN(titles))
		finish_table(&table, look, out);
	else
		ui_table_release(&table);
}

static json_int_t sample_value(const json_t *sample)
{
	return json_integer_value(json_object_get(sample, "value"));
}

/* The rules with the most findings. */
static void add_rules(const json_t *doc, const struct look *look, struct buf *out)
{
	static const char *const titles[] = { "RULE", "FINDINGS", "" };
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	const json_t *samples = samples_of(doc, "brig_findings_total");
	json_int_t limit = INT64_MAX, most = 0;
	size_t shown = 0, i;
	const json_t *sample;

	add_titles(&table, titles);
	while (shown < RULES_SHOWN) {
		json_int_t next = 0;

		json_array_foreach(samples, i, sample) if (sample_value(sample) < limit && sample_value(sample) > next)
			next = sample_value(sample);
		if (next == 0)
			break;
		most = most ? most : next;
		json_array_foreach(samples, i, sample)
		{
			char text[8 * BAR_WIDTH];

			if (sample_value(sample) != next || shown++ >= RULES_SHOWN)
				continue;
			ui_table_add(&table,
				     document_text(json_object_get(sample, "labels"), "rule", text, sizeof(text)),
				     UI_PLAIN);
			ui_table_add(&table, count_text(text, sizeof(text), next), UI_PLAIN);
			ui_table_add(&table, bar_text(text, sizeof(text), (double)next / (double)most, look), UI_PLAIN);
		}
		limit = next;
	}
	if (shown)
		finish_table(&table, look, out);
	else
		ui_table_release(&table);
}

static void add_cache(const json_t *doc, struct buf *out)
{
	const json_t *cache = json_object_get(doc, "cache"), *rate = json_object_get(cache, "hit_rate");
	char hits[32], stored[32], dropped[32], share[32];

	if (!json_is_number(rate))
		return;
	buf_addf(out, "\ncompile cache: %s of requests found their program there (%s), %s stored, %s damaged\n",
		 share_text(share, sizeof(share), json_number_value(rate)),
		 document_text(cache, "hit", hits, sizeof(hits)),
		 document_text(cache, "stored", stored, sizeof(stored)),
		 document_text(cache, "damaged", dropped, sizeof(dropped)));
}

static void add_failures(const json_t *doc, struct buf *out)
{
	const json_t *first = json_array_get(samples_of(doc, "brig_audit_failures_total"), 0);

	if (sample_value(first) > 0)
		buf_addf(out, "\n%lld requests should be in the audit log and are not\n",
			 (long long)sample_value(first));
}

static void add_rates(const json_t *doc, struct buf *out)
{
	static const char *const shown[] = { "success", "failure", "timeout", "blocked" };
	const json_t *rates = json_object_get(doc, "rates");
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		buf_addf(out, "%s%s %s", i > 0 ? ", " : "", shown[i],
			 share_text(text, sizeof(text), json_number_value(json_object_get(rates, shown[i]))));
	buf_adds(out, "\n");
}

static int stats_text(const json_t *doc, const void *values, int status)
{
	const struct stats_values *v = values;
	const struct look look = { .has_color = ui_has_color(STDOUT_FILENO, v->no_color),
				   .ascii = !chart_has_unicode() };
	AUTO_BUF out = BUF_INIT(UI_TEXT_MAX);
	json_int_t total = json_integer_value(json_object_get(doc, "executions"));
	char since[WHEN_TEXT_MAX];

	if (total == 0) {
		buf_adds(&out, "nothing has been counted yet\n");
		return ui_finish(&out, status);
	}
	buf_addf(&out, "%lld executions since %s: ", (long long)total,
		 when_local(since, sizeof(since),
			    (uint64_t)json_integer_value(json_object_get(doc, "since_ms")) * NS_PER_MS));
	add_rates(doc, &out);
	add_shares(doc, "verdict", "VERDICT", &look, &out);
	add_shares(doc, "language", "LANGUAGE", &look, &out);
	add_shares(doc, "backend", "BACKEND", &look, &out);
	add_shares(doc, "trust", "TRUST", &look, &out);
	add_steps(doc, &look, &out);
	add_usage(doc, &look, &out);
	add_rules(doc, &look, &out);
	add_cache(doc, &out);
	add_failures(doc, &out);
	return ui_finish(&out, status);
}

/* ---- the command ------------------------------------------------------------------------------ */

static int show_stats(const struct command *self, const struct stats_values *v)
{
	/* The numbers need no policy. */
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = "", .state_dir = v->state };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF out = BUF_INIT(UI_TEXT_MAX);
	struct brig *b = NULL;
	AUTO_TEXT text = NULL;
	int rc;

	if (v->prometheus && v->json) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "--prometheus and --json exclude each other");
		return ui_usage(self->name, &err);
	}
	rc = brig_open(&opts, &b, &err);
	if (rc == 0)
		rc = brig_metrics(b, v->prometheus ? BRIG_METRICS_PROMETHEUS : BRIG_METRICS_JSON, &text, &err);
	brig_close(b);
	if (rc < 0)
		return ui_fail(&err);
	if (!v->prometheus)
		return document_show(&(struct document_view){ .show = stats_text, .values = v, .json = v->json }, text,
				     EXIT_SUCCESS);
	buf_adds(&out, text);
	return ui_finish(&out, EXIT_SUCCESS);
}

static int stats_main(const struct command *self, int argc, char **argv)
{
	struct stats_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = show_stats(self, &v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_stats = {
	.name = "stats",
	.synopsis = "[OPTIONS]",
	.summary = "show what was counted: outcomes, times, findings, cache",
	.examples = "  brig stats\n",
	.options = stats_options,
	.n_options = ARRAY_LEN(stats_options),
	.run = stats_main,
};
