/* SPDX-License-Identifier: Apache-2.0 */
/* Output of grades: a table, CSV for spreadsheets, a JSON document.  Names are untrusted. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/grade.h"
#include "cli/ui.h"

struct grade_sum grade_sum(const struct grade *g, size_t submission)
{
	struct grade_sum sum = { .first_failure = g->cases.n, .overall = JUDGED_accepted };
	double points = 0;

	for (size_t c = 0; c < g->cases.n; c++) {
		const struct grade_mark *m = &g->mark[submission * g->cases.n + c];

		if (m->judgement == JUDGED_accepted) {
			sum.passed++;
			points += g->cases.item[c].points;
		} else if (sum.first_failure == g->cases.n) {
			sum.first_failure = c;
			sum.overall = m->judgement;
		}
		sum.longest_ms = max_u64(sum.longest_ms, m->usage.wall_ms);
	}
	sum.score = g->cases.points > 0 ? 100 * points / g->cases.points : 0;
	return sum;
}

static const char *failed_case(const struct grade *g, const struct grade_sum *sum)
{
	return sum->first_failure < g->cases.n ? g->cases.name[sum->first_failure] : "";
}

static const char *failed_message(const struct grade *g, size_t s, const struct grade_sum *sum)
{
	const char *m = sum->first_failure < g->cases.n ? g->mark[s * g->cases.n + sum->first_failure].message : NULL;

	return m ? m : "";
}

/* Here JUDGED_NOT means that the run was cancelled. */
static const char *word_of(enum judgement j)
{
	return j == JUDGED_NOT ? "not_run" : judgement_name(j);
}

/* ---- table ------------------------------------------------------------------------------------------- */

void grade_table(const struct grade *g, bool has_color, struct buf *out)
{
	static const char *const heads[] = { "SUBMISSION", "LANGUAGE", "SCORE",         "PASSED",
					     "JUDGEMENT",  "LONGEST",  "FIRST FAILURE", "WHY" };
	struct ui_table table = { .n_columns = ARRAY_LEN(heads) };

	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		ui_table_add(&table, heads[i], UI_BOLD);
	for (size_t s = 0; s < g->submissions.n; s++) {
		const struct grade_submission *who = &g->submissions.item[s];
		struct grade_sum sum = grade_sum(g, s);
		bool is_good = sum.overall == JUDGED_accepted;
		char text[64];

		ui_table_add(&table, who->name, UI_PLAIN);
		ui_table_add(&table, who->language, UI_PLAIN);
		(void)snprintf(text, sizeof(text), "%.1f", sum.score);
		ui_table_add(&table, text, UI_PLAIN);
		(void)snprintf(text, sizeof(text), "%zu/%zu", sum.passed, g->cases.n);
		ui_table_add(&table, text, UI_PLAIN);
		ui_table_add(&table, word_of(sum.overall), is_good ? UI_GREEN : UI_RED);
		ui_table_add(&table, ui_millis(text, sizeof(text), sum.longest_ms), UI_PLAIN);
		ui_table_add(&table, failed_case(g, &sum), UI_PLAIN);
		(void)str_copy(text, sizeof(text), failed_message(g, s, &sum));
		text[str_utf8_prefix(text, strlen(text))] = '\0';
		ui_table_add(&table, text, UI_DIM);
	}
	ui_table_show(&table, has_color, out);
	ui_table_release(&table);
}

/* ---- CSV --------------------------------------------------------------------------------------------- */

/*
 * A quoted field, made safe as for a terminal.  Spreadsheets evaluate fields that look like formulas: an apostrophe
 * makes them text.
 */
static void add_field(struct buf *out, const char *text, bool is_last)
{
	AUTO_BUF safe = BUF_INIT(64 * KiB);

	ui_line(text, &safe);
	buf_adds(out, "\"");
	if (*text && strchr("=+-@|%\t\r", *text))
		buf_adds(out, "'");
	for (const char *c = buf_str(&safe); *c; c++) {
		buf_add(out, c, 1);
		if (*c == '"')
			buf_adds(out, "\"");
	}
	buf_adds(out, is_last ? "\"\r\n" : "\",");
}

void grade_csv(const struct grade *g, struct buf *out)
{
	buf_adds(out, "submission,language,judgement,score,passed,total,first_failure,why,longest_ms,");
	for (size_t c = 0; c < g->cases.n; c++)
		add_field(out, g->cases.name[c], c + 1 == g->cases.n);
	for (size_t s = 0; s < g->submissions.n; s++) {
		struct grade_sum sum = grade_sum(g, s);

		add_field(out, g->submissions.item[s].name, false);
		add_field(out, g->submissions.item[s].language, false);
		buf_addf(out, "%s,%.2f,%zu,%zu,", word_of(sum.overall), sum.score, sum.passed, g->cases.n);
		add_field(out, failed_case(g, &sum), false);
		add_field(out, failed_message(g, s, &sum), false);
		buf_addf(out, "%llu", (unsigned long long)sum.longest_ms);
		for (size_t c = 0; c < g->cases.n; c++)
			buf_addf(out, ",%s", word_of(g->mark[s * g->cases.n + c].judgement));
		buf_adds(out, "\r\n");
	}
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

/* Names may be any bytes. */
static json_t *text_value(const char *text)
{
	AUTO_BUF safe = BUF_INIT(64 * KiB);

	if (str_is_utf8(text, strlen(text)))
		return json_string(text);
	ui_line(text, &safe);
	return json_string(buf_str(&safe));
}

static json_t *marks_value(const struct grade *g, size_t s)
{
	json_t *list = json_array();

	for (size_t c = 0; c < g->cases.n; c++) {
		const struct grade_mark *m = &g->mark[s * g->cases.n + c];

		(void)json_array_append_new(
			list,
			json_pack("{s:o, s:s, s:s, s:s, s:I, s:I, s:I}", "case", text_value(g->cases.name[c]),
				  "judgement", word_of(m->judgement), "message", m->message ? m->message : "", "id",
				  m->id, "wall_ms", (json_int_t)m->usage.wall_ms, "cpu_ms", (json_int_t)m->usage.cpu_ms,
				  "memory_peak_bytes", (json_int_t)m->usage.memory_peak_bytes));
	}
	return list;
}

char *grade_json(const struct grade *g)
{
	json_t *list = json_array(), *doc;
	char *text;

	for (size_t s = 0; s < g->submissions.n; s++) {
		const struct grade_submission *who = &g->submissions.item[s];
		struct grade_sum sum = grade_sum(g, s);
		json_t *first = *failed_case(g, &sum) ? text_value(failed_case(g, &sum)) : json_null();

		(void)json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:f, s:I, s:I, s:o, s:s, s:I, s:o}",
							    "submission", text_value(who->name), "language",
							    who->language, "judgement", word_of(sum.overall), "score",
							    sum.score, "passed", (json_int_t)sum.passed, "total",
							    (json_int_t)g->cases.n, "first_failure", first, "message",
							    failed_message(g, s, &sum), "longest_ms",
							    (json_int_t)sum.longest_ms, "cases", marks_value(g, s)));
	}
	doc = json_pack("{s:o, s:I}", "submissions", list, "cases", (json_int_t)g->cases.n);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return text;
}
