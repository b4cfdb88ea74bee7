/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_show.c - `brig show ID`: everything about one execution, from the history. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "cli/chart.h"
#include "cli/check_output.h"
#include "cli/commands.h"
#include "cli/history_text.h"
#include "cli/report.h"
#include "cli/rows.h"

struct show_values {
	const char *policy, *state;
	bool json, no_color, ascii;
};

#define AT(member) offsetof(struct show_values, member)
static const struct option_row show_options[] = {
	{ "state", 0, OPTION_TEXT, "DIR", AT(state), NULL,
	  "folder of the history; without it $BRIG_STATE, then the usual place" },
	ROW_POLICY,
	{ "ascii", 0, OPTION_FLAG, NULL, AT(ascii), NULL, "draw with plain characters" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document" },
	ROW_NO_COLOR,
};

/* The page being composed. */
struct page {
	const json_t *doc;
	struct buf out;
	bool has_color, ascii;
};

static void add_title(struct page *p, const char *title)
{
	buf_adds(&p->out, "\n");
	ui_paint(&p->out, p->has_color, UI_BOLD, title);
	buf_adds(&p->out, "\n");
}

static void add_safe(struct page *p, const char *text)
{
	ui_line(text, &p->out);
}

static uint64_t number_of(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 ? (uint64_t)n : 0;
}

/* ---- the head ------------------------------------------------------------------------------------ */

static void add_line(struct page *p, const char *label, const char *text)
{
	if (!*text)
		return;
	buf_addf(&p->out, "  %-10s", label);
	add_safe(p, text);
	buf_adds(&p->out, "\n");
}

static void add_member(struct page *p, const char *label, const char *name)
{
	char text[4096];

	add_line(p, label, document_text(p->doc, name, text, sizeof(text)));
}

static void add_verdict(struct page *p)
{
	char verdict[32], detail[64];

	(void)document_text(p->doc, "verdict", verdict, sizeof(verdict));
	buf_addf(&p->out, "  %-10s", "verdict");
	ui_paint(&p->out, p->has_color, report_verdict_color(verdict), verdict);
	if (json_is_integer(json_object_get(p->doc, "exit_code")))
		buf_addf(&p->out, ", exit code %s", document_text(p->doc, "exit_code", detail, sizeof(detail)));
	if (json_is_string(json_object_get(p->doc, "signal")))
		buf_addf(&p->out, ", %s", document_text(p->doc, "signal", detail, sizeof(detail)));
	buf_adds(&p->out, "\n");
}

static void add_time(struct page *p)
{
	char time[64], local[64];
	uint64_t at_ns;

	(void)document_text(p->doc, "time", time, sizeof(time));
	if (when_parse(time, 0, &at_ns))
		buf_addf(&p->out, "  %-10s%s (%s)\n", "time", when_local(local, sizeof(local), at_ns), time);
}

static void add_audit(struct page *p)
{
	char seq[32], hash[80], line[160];

	if (!json_is_integer(json_object_get(p->doc, "audit_seq")))
		return;
	(void)snprintf(line, sizeof(line), "entry %s, %s", document_text(p->doc, "audit_seq", seq, sizeof(seq)),
		       document_text(p->doc, "audit_sha256", hash, sizeof(hash)));
	add_line(p, "audit", line);
}

/* Records of older versions do not say where the trust level came from. */
static void add_trust(struct page *p)
{
	char trust[32], source[32], line[96];

	(void)document_text(p->doc, "trust", trust, sizeof(trust));
	(void)document_text(p->doc, "trust_source", source, sizeof(source));
	(void)snprintf(line, sizeof(line), "%s%s%s", trust, *source ? ", chosen by: " : "", source);
	add_line(p, "trust", line);
}

static void add_head(struct page *p)
{
	static const struct {
		const char *label, *name;
	} members[] = {
		{ "reason", "reason" },
		{ "step", "step" },
		{ "language", "language" },
		{ "backend", "backend" },
		{ "file", "file_name" },
		{ "uid", "uid" },
		{ "who", "who" },
		{ "cache", "cache" },
		{ "policy", "policy_origin" },
		{ "environment", "environment" },
	};
	char id[64];

	ui_paint(&p->out, p->has_color, UI_BOLD, document_text(p->doc, "id", id, sizeof(id)));
	buf_adds(&p->out, "\n");
	add_time(p);
	add_verdict(p);
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		add_member(p, members[i].label, members[i].name);
	add_trust(p);
	add_member(p, "settings", "policy_sha256");
	add_audit(p);
}

/* ---- usage -------------------------------------------------------------------------------------- */

static const char *plain_number(char *dst, size_t size, uint64_t v)
{
	(void)snprintf(dst, size, "%llu", (unsigned long long)v);
	return dst;
}

static const char *percent(char *dst, size_t size, uint64_t v)
{
	(void)snprintf(dst, size, "%llu %%", (unsigned long long)v);
	return dst;
}

static void add_count(struct ui_table *table, const json_t *object, const char *name,
		      const char *(*text)(char *dst, size_t size, uint64_t v))
{
	char dst[32];

	if (name && json_is_integer(json_object_get(object, name)))
		ui_table_add(table, text(dst, sizeof(dst), number_of(object, name)), UI_PLAIN);
	else
		ui_table_add(table, "-", UI_DIM);
}

static void add_usage(struct page *p)
{
	static const struct {
		const char *what, *used, *allowed;
		const char *(*text)(char *dst, size_t size, uint64_t v);
	} rows[] = {
		{ "  wall clock", "wall_ms", "wall_ms", ui_millis },
		{ "  cpu time", "cpu_ms", "cpu_time_ms", ui_millis },
		{ "  cpu share", NULL, "cpu_percent", percent },
		{ "  memory", "memory_peak_bytes", "memory_bytes", str_bytes },
		{ "  processes", "pids_peak", "pids", plain_number },
		{ "  output", "output_bytes", "output_bytes", str_bytes },
		{ "  disk", NULL, "disk_bytes", str_bytes },
		{ "  files", NULL, "inodes", plain_number },
		{ "  open files", NULL, "open_files", plain_number },
	};
	const json_t *usage = json_object_get(p->doc, "usage"), *limits = json_object_get(p->doc, "limits");
	struct ui_table table = { .n_columns = 3 };

	if (!json_is_object(limits)) /* nothing ran */
		return;
	add_title(p, "Used and allowed");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ui_table_add(&table, rows[i].what, UI_PLAIN);
		add_count(&table, usage, rows[i].used, rows[i].text);
		add_count(&table, limits, rows[i].allowed, rows[i].text);
	}
	ui_table_show(&table, p->has_color, &p->out);
	ui_table_release(&table);
}

static void add_timing(struct page *p)
{
	const json_t *timing = json_object_get(p->doc, "timing"), *value;
	struct ui_table table = { .n_columns = 2 };
	const char *name;
	char text[32];

	add_title(p, "Time per step");
	json_object_foreach((json_t *)(uintptr_t)timing, name, value)
	{
		if (json_real_value(value) <= 0)
			continue;
		(void)snprintf(text, sizeof(text), "  %.*s", (int)strcspn(name, "_"), name);
		ui_table_add(&table, text, UI_PLAIN);
		(void)snprintf(text, sizeof(text), "%9.3f ms", json_real_value(value));
		ui_table_add(&table, text, UI_PLAIN);
	}
	ui_table_show(&table, p->has_color, &p->out);
	ui_table_release(&table);
}

#define POINTS_MAX 256

/* CPU usage since the previous sample, in percent of one CPU. */
static uint64_t cpu_share(const json_t *row, const json_t *before)
{
	uint64_t at = number_of(row, "at_ms"), cpu = number_of(row, "cpu_ms");
	uint64_t at0 = number_of(before, "at_ms"), cpu0 = number_of(before, "cpu_ms");

	return at > at0 && cpu > cpu0 ? 100 * (cpu - cpu0) / (at - at0) : 0;
}

static void add_charts(struct page *p)
{
	const json_t *rows = json_object_get(p->doc, "samples"), *row, *before = NULL;
	const struct chart_look look = { .width = chart_screen_width(), .ascii = p->ascii, .has_color = p->has_color };
	struct chart_point cpu[POINTS_MAX], memory[POINTS_MAX];
	AUTO_BUF charts = BUF_INIT(64 * KiB);
	size_t i, n = 0;

	json_array_foreach(rows, i, row)
	{
		if (n == POINTS_MAX)
			break;
		cpu[n] = (struct chart_point){ number_of(row, "at_ms"), cpu_share(row, before) };
		memory[n] = (struct chart_point){ number_of(row, "at_ms"), number_of(row, "memory_bytes") };
		before = row;
		n++;
	}
	chart_add(&(struct chart){ "cpu", cpu, n, percent, UI_GREEN }, &look, &charts);
	chart_add(&(struct chart){ "memory", memory, n, str_bytes, UI_YELLOW }, &look, &charts);
	if (charts.len > 0)
		add_title(p, "While it ran");
	buf_add(&p->out, buf_str(&charts), charts.len);
}

/* ---- findings and protections ---------------------------------------------------------------------- */

/* The stored code if it is readable; otherwise "", and findings are shown without a frame. */
static const char *kept_code(const struct page *p)
{
	const json_t *code = json_object_get(p->doc, "code");
	const char *encoding = json_string_value(json_object_get(code, "encoding"));

	return encoding && str_eq(encoding, "utf-8") ? json_string_value(json_object_get(code, "text")) : "";
}

static void add_findings(struct page *p)
{
	const json_t *rows = json_object_get(p->doc, "findings"), *row;
	struct check_output o;
	char name[256];
	struct checked c = { .name = name, .text = kept_code(p) };
	size_t i;

	if (json_array_size(rows) == 0)
		return;
	c.len = strlen(c.text);
	if (!*document_text(p->doc, "file_name", name, sizeof(name)))
		(void)str_copy(name, sizeof(name), "code");
	check_output_init(&o, NULL, p->has_color);
	add_title(p, "Findings");
	if (document_true(json_object_get(p->doc, "code"), "redacted"))
		buf_adds(&p->out, "  (parts of the code were replaced by ***: places may be shifted)\n");
	json_array_foreach(rows, i, row) check_output_finding(&o, &c, row);
	buf_add(&p->out, buf_str(&o.out), o.out.len);
	check_output_release(&o);
}

static void add_evidence(struct page *p)
{
	static const char *const titles[] = { "  PROMISE", "DECLARED", "ENFORCED", "KEPT", "READ FROM" };
	const json_t *rows = json_object_get(p->doc, "evidence"), *row;
	struct ui_table table = { .n_columns = ARRAY_LEN(titles) };
	char check[80], text[512];
	size_t i;

	if (json_array_size(rows) == 0)
		return;
	add_title(p, "Evidence");
	for (i = 0; i < ARRAY_LEN(titles); i++)
		ui_table_add(&table, titles[i], UI_BOLD);
	json_array_foreach(rows, i, row)
	{
		bool kept = document_true(row, "kept"), degraded = document_true(row, "degraded");

		(void)snprintf(check, sizeof(check), "  %s", document_text(row, "check", text, sizeof(text)));
		ui_table_add(&table, check, UI_PLAIN);
		ui_table_add(&table, document_text(row, "declared", text, sizeof(text)), UI_PLAIN);
		ui_table_add(&table, document_text(row, "enforced", text, sizeof(text)), UI_PLAIN);
		ui_table_add(&table,
			     kept       ? "yes"
			     : degraded ? "degraded"
					: "NO",
			     kept       ? UI_GREEN
			     : degraded ? UI_YELLOW
					: UI_RED);
		ui_table_add(&table, document_text(row, "source", text, sizeof(text)), UI_DIM);
	}
	ui_table_show(&table, p->has_color, &p->out);
	ui_table_release(&table);
}

static void add_degraded(struct page *p)
{
	const json_t *rows = json_object_get(p->doc, "degraded"), *row;
	char name[64], lost[512], fix[512];
	size_t i;

	if (json_array_size(rows) > 0)
		add_title(p, "Ran without");
	json_array_foreach(rows, i, row)
	{
		buf_addf(&p->out, "  %s: ", document_text(row, "protection", name, sizeof(name)));
		add_safe(p, document_text(row, "lost", lost, sizeof(lost)));
		buf_adds(&p->out, ". To have it: ");
		add_safe(p, document_text(row, "fix", fix, sizeof(fix)));
		buf_adds(&p->out, "\n");
	}
}

static void add_warnings(struct page *p)
{
	const json_t *rows = json_object_get(p->doc, "warnings"), *text;
	size_t i;

	if (json_array_size(rows) > 0)
		add_title(p, "Warnings");
	json_array_foreach(rows, i, text)
	{
		buf_adds(&p->out, "  ");
		add_safe(p, json_string_value(text));
		buf_adds(&p->out, "\n");
	}
}

/* ---- code and output ------------------------------------------------------------------------------- */

/* Hostile text, with a bar before each line so that it cannot be mistaken for ours. */
static void add_quoted(struct page *p, const char *text)
{
	AUTO_BUF safe = BUF_INIT(UI_TEXT_MAX);
	const char *at;

	ui_lines(text, strlen(text), &safe);
	for (at = buf_str(&safe); *at;) {
		size_t len = strcspn(at, "\n");

		ui_paint(&p->out, p->has_color, UI_DIM, "  | ");
		buf_add(&p->out, at, len);
		buf_adds(&p->out, "\n");
		at += len + (at[len] == '\n');
	}
}

static void add_text(struct page *p, const char *title, const char *name)
{
	const json_t *part = json_object_get(p->doc, name);
	const char *text = json_string_value(json_object_get(part, "text"));
	const char *encoding = json_string_value(json_object_get(part, "encoding"));
	char hash[80], size[32];

	if (!json_is_object(part) || number_of(part, "bytes") == 0)
		return;
	add_title(p, title);
	buf_addf(&p->out, "  %s, sha256 %s%s%s\n", str_bytes(size, sizeof(size), number_of(part, "bytes")),
		 document_text(part, "sha256", hash, sizeof(hash)),
		 document_true(part, "redacted") ? ", parts replaced by ***" : "",
		 !text                              ? "; none of it is kept"
		 : document_true(part, "truncated") ? "; its beginning:"
						    : "");
	if (text && encoding && str_eq(encoding, "base64"))
		buf_addf(&p->out, "  (no text; --json has it in base64)\n");
	else if (text)
		add_quoted(p, text);
}

struct show_question {
	const struct show_values *v;
	const char *id;
};

static int show_page(const json_t *doc, const void *values, int status)
{
	const struct show_values *v = ((const struct show_question *)values)->v;
	struct page p = { .doc = doc, .out = BUF_INIT(UI_TEXT_MAX) };

	p.has_color = ui_has_color(STDOUT_FILENO, v->no_color);
	p.ascii = v->ascii || !chart_has_unicode();
	add_head(&p);
	add_usage(&p);
	add_timing(&p);
	add_charts(&p);
	add_findings(&p);
	add_evidence(&p);
	add_degraded(&p);
	add_warnings(&p);
	add_text(&p, "Code", "code");
	add_text(&p, "Standard output", "stdout");
	add_text(&p, "Standard error", "stderr");
	history_say_warnings(doc);
	status = ui_finish(&p.out, status);
	buf_release(&p.out);
	return status;
}

static int ask_execution(struct brig *b, const void *values, char **ret, struct brig_error *err)
{
	return brig_show_json(b, ((const struct show_question *)values)->id, ret, err);
}

static int show_execution(const struct show_values *v, const char *id)
{
	return document_view(&(struct document_view){
		.opts = { .size = sizeof(struct brig_open_opts), .policy_file = v->policy, .state_dir = v->state },
		.ask = ask_execution,
		.show = show_page,
		.values = &(struct show_question){ .v = v, .id = id },
		.json = v->json });
}

static int show_main(const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct show_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (!command_begin(self, argc, argv, &v, &ops, &status)) {
		/* reported by command_begin() */
	} else if (ops.words.n > 1 || ops.rest.n > 0) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "give one execution by its id; 'brig history' lists them");
		status = ui_usage(self->name, &err);
	} else {
		status = show_execution(&v, ops.words.n ? ops.words.item[0] : NULL);
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_show = {
	.name = "show",
	.synopsis = "[OPTIONS] [ID]",
	.summary = "show everything about one execution",
	.examples = "  brig show rmyxk2gbdxnyh6po\n",
	.details = "The beginning of an ID is enough if no other one begins so; 'brig history' lists them.\n"
		   "Without an ID it is the youngest execution.\n",
	.options = show_options,
	.n_options = ARRAY_LEN(show_options),
	.run = show_main,
};
