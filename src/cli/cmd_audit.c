/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_audit.c - `brig audit show`, `verify` and `export`.
 *
 * Entries are written as they are read, in columns of fixed width: a log of a million entries needs no more memory than
 * one of ten.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/report.h"
#include "cli/rows.h"

#define FLUSH_BYTES 65536

struct audit_values {
	const char *state, *since, *until, *verdict, *lang, *trust, *rule, *last, *format;
	bool json, all, no_color;
};

#define AT(member) offsetof(struct audit_values, member)
#define STATE_ROW                                                                    \
	{                                                                            \
		"state", 0, OPTION_TEXT, "DIR", AT(state), NULL,                     \
			"state folder; without it $BRIG_STATE, then the usual place" \
	}
#define TIME_ROWS                                                                   \
	{ "since",                                                                  \
	  0,                                                                        \
	  OPTION_TEXT,                                                              \
	  "TIME",                                                                   \
	  AT(since),                                                                \
	  NULL,                                                                     \
	  "only these and younger ones: 2h, 7d, 2026-11-16, 2026-11-16T08:30" },    \
	{                                                                           \
		"until", 0, OPTION_TEXT, "TIME", AT(until), NULL, "only older ones" \
	}

static const struct option_row show_options[] = {
	TIME_ROWS,
	{ "verdict", 'v', OPTION_TEXT, "VERDICT", AT(verdict), NULL,
	  "only runs that ended so: ok, timeout, blocked ..." },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", AT(lang), NULL, "only programs in this language" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL, "only at this trust level" },
	{ "rule", 'r', OPTION_TEXT, "RULE", AT(rule), NULL, "only code in which this rule found something" },
	{ "last", 'n', OPTION_TEXT, "COUNT", AT(last), NULL, "only the last so many" },
	{ "all", 'a', OPTION_FLAG, NULL, AT(all), NULL,
	  "also what the log notes besides: leftovers of runs, checkpoints, new files, keys" },
	STATE_ROW,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the entries as they are, one per line" },
	ROW_NO_COLOR,
};

static const struct option_row verify_options[] = {
	STATE_ROW,
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of words" },
	ROW_NO_COLOR,
};

static const struct option_row export_options[] = {
	TIME_ROWS,
	{ "format", 'f', OPTION_TEXT, "FORMAT", AT(format), NULL,
	  "jsonl: one entry per line (the default), or json: one array" },
	STATE_ROW,
};

/* ---- writing entries ---------------------------------------------------------------------------- */

struct writer {
	struct buf text;
	bool color, array;
	bool raw; /* entries unchanged: their seals cover these bytes */
	size_t n;
	int error;
};

static void flush_writer(struct writer *w)
{
	if (w->error == 0)
		w->error = w->raw ? ui_put_bytes(STDOUT_FILENO, &w->text, true) : ui_put(STDOUT_FILENO, &w->text);
	w->text.len = 0;
}

/* A nonzero value ends the walk: the reader is gone. */
static int after_line(struct writer *w)
{
	w->n++;
	if (w->text.len >= FLUSH_BYTES)
		flush_writer(w);
	return w->error;
}

static int put_raw(void *user, const char *line, size_t len)
{
	struct writer *w = user;

	if (w->array)
		buf_adds(&w->text, w->n ? ",\n" : "[\n");
	buf_add(&w->text, line, len);
	if (!w->array)
		buf_adds(&w->text, "\n");
	return after_line(w);
}

/* ---- show ------------------------------------------------------------------------------------------- */

static void put_column(struct writer *w, const char *text, int width, enum ui_color color)
{
	char padded[64];

	(void)snprintf(padded, sizeof(padded), "%-*s", width, text);
	ui_paint(&w->text, w->color, color, padded);
	buf_adds(&w->text, "  ");
}

/* The last column: a sentence, made safe for terminals. */
static void put_sentence(struct writer *w, const char *text)
{
	ui_line(text, &w->text);
	buf_adds(&w->text, "\n");
}

/*
 * A member of an entry, as far as it fits.  Not a parser, since a log of a million entries must be shown in seconds.
 * It relies on the form of the log's lines, in which the bytes `"name":` can only be a member's name; any other form
 * leads at worst to a wrong word in a table.
 */
static const char *member(const char *line, size_t len, const char *name, char *dst, size_t size)
{
	char quoted[32];
	int n = snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	const char *at = memmem(line, len, quoted, (size_t)n), *end = line + len;
	size_t used = 0;
	bool text;

	dst[0] = '\0';
	if (!at)
		return dst;
	at += n;
	text = at < end && *at == '"';
	for (at += text; at < end && used + 1 < size; at++) {
		if (text ? *at == '"' : *at < '0' || *at > '9')
			break;
		if (*at == '\\' && at + 1 < end && *++at == 'u') { /* control characters, bytes that were not UTF-8 */
			at += end - at > 4 ? 4 : 0;
			dst[used++] = '?';
		} else {
			dst[used++] = *at;
		}
	}
	dst[used] = '\0';
	return dst;
}

static void put_time(struct writer *w, const char *line, size_t len)
{
	char utc[64], local[WHEN_TEXT_MAX];
	uint64_t ns;

	(void)member(line, len, "time", utc, sizeof(utc));
	put_column(w, when_parse(utc, 0, &ns) ? when_local(local, sizeof(local), ns) : utc, 19, UI_PLAIN);
}

static void put_run(struct writer *w, const char *line, size_t len)
{
	char verdict[16], text[16], reason[1024];
	const char *usage = memmem(line, len, "\"usage\":", 8);
	size_t rest = usage ? (size_t)(line + len - usage) : 0;
	uint64_t wall = 0;

	(void)member(line, len, "verdict", verdict, sizeof(verdict));
	put_column(w, verdict, 12, report_verdict_color(verdict));
	put_column(w, member(line, len, "language", text, sizeof(text)), 10, UI_PLAIN);
	put_column(w, member(line, len, "trust", text, sizeof(text)), 9, UI_PLAIN);
	put_column(w, member(line, len, "backend", text, sizeof(text)), 7, UI_PLAIN);
	if (usage)
		(void)str_to_u64(member(usage, rest, "wall_ms", text, sizeof(text)), &wall);
	put_column(w, ui_millis(text, sizeof(text), wall), 8, UI_PLAIN);
	put_column(w, member(line, len, "id", reason, 32), 16, UI_BOLD);
	put_sentence(w, member(line, len, "reason", reason, sizeof(reason)));
}

static int put_row(void *user, const char *line, size_t len)
{
	struct writer *w = user;
	char event[16], seq[24];

	put_time(w, line, len);
	if (str_eq(member(line, len, "event", event, sizeof(event)), "run")) {
		put_run(w, line, len);
	} else {
		put_column(w, event, 12, UI_DIM);
		buf_addf(&w->text, "entry %s\n", member(line, len, "seq", seq, sizeof(seq)));
	}
	return after_line(w);
}

static bool has_condition(const struct audit_values *v)
{
	return v->verdict || v->lang || v->trust || v->rule;
}

static int read_entries(const struct audit_values *v, const struct brig_audit *req, brig_line_fn fn, struct writer *w)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = "", .state_dir = v->state };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	int rc = brig_open(&opts, &b, &err);

	w->text.max = UI_TEXT_MAX;
	if (rc == 0)
		rc = brig_audit_read(b, req, fn, w, &err);
	brig_close(b);
	if (rc < 0 && err.code == BRIG_E_USAGE)
		return ui_usage("audit show", &err);
	return rc < 0 ? ui_fail(&err) : EXIT_SUCCESS;
}

static int finish_writer(struct writer *w, int status)
{
	flush_writer(w);
	buf_release(&w->text);
	if (w->error && w->error != -EPIPE) {
		ui_say("cannot write: %s", strerrordesc_np(-w->error));
		return EXIT_FAILED;
	}
	return status;
}

static int show_entries(const struct audit_values *v)
{
	struct brig_audit req = BRIG_AUDIT_INIT;
	struct writer w = { .color = ui_has_color(STDOUT_FILENO, v->no_color), .raw = v->json };
	struct brig_error err = BRIG_ERROR_INIT;
	int status;

	req.since = v->since;
	req.until = v->until;
	req.verdict = v->verdict;
	req.language = v->lang;
	req.trust = v->trust;
	req.rule = v->rule;
	req.flags = v->all && !has_condition(v) ? 0 : BRIG_AUDIT_RUNS;
	if (v->last && !str_to_u64(v->last, &req.last)) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "--last '%.40s' is no number", v->last);
		return ui_usage("audit show", &err);
	}
	status = read_entries(v, &req, v->json ? put_raw : put_row, &w);
	status = finish_writer(&w, status);
	if (status == EXIT_SUCCESS && w.n == 0)
		ui_say("no such entries are in the log");
	return status;
}

static int show_main(const struct command *self, int argc, char **argv)
{
	struct audit_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = show_entries(&v);
	options_release(self, &v, &ops);
	return status;
}

/* ---- export ----------------------------------------------------------------------------------------- */

static int export_entries(const struct audit_values *v)
{
	struct brig_audit req = BRIG_AUDIT_INIT;
	struct writer w = { .array = v->format && str_eq(v->format, "json"), .raw = true };
	struct brig_error err = BRIG_ERROR_INIT;
	int status;

	if (v->format && !w.array && !str_eq(v->format, "jsonl")) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "--format '%.40s' is neither json nor jsonl", v->format);
		return ui_usage("audit export", &err);
	}
	req.since = v->since;
	req.until = v->until;
	status = read_entries(v, &req, put_raw, &w);
	if (w.array && status == EXIT_SUCCESS)
		buf_adds(&w.text, w.n ? "\n]\n" : "[]\n");
	return finish_writer(&w, status);
}

static int export_main(const struct command *self, int argc, char **argv)
{
	struct audit_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = export_entries(&v);
	options_release(self, &v, &ops);
	return status;
}

/* ---- verify ------------------------------------------------------------------------------------------ */

static void add_problem(const json_t *problem, bool color, struct buf *text)
{
	char kind[64], file[64], message[512];

	ui_paint(text, color, UI_RED, document_text(problem, "kind", kind, sizeof(kind)));
	buf_addf(text, " at %s:%" JSON_INTEGER_FORMAT ": %s\n", document_text(problem, "file", file, sizeof(file)),
		 json_integer_value(json_object_get(problem, "line")),
		 document_text(problem, "message", message, sizeof(message)));
}

static int verify_words(const json_t *doc, const void *values, int status)
{
	const struct audit_values *v = values;
	bool color = ui_has_color(STDOUT_FILENO, v->no_color);
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	const json_t *note;
	char first[64], last[64];
	size_t i;

	if (status == EXIT_SUCCESS)
		ui_paint(&text, color, UI_GREEN, "whole");
	else
		add_problem(json_object_get(doc, "problem"), color, &text);
	buf_addf(&text,
		 "%s%" JSON_INTEGER_FORMAT " entries%s, %" JSON_INTEGER_FORMAT " of them runs, in %" JSON_INTEGER_FORMAT
		 " files; %" JSON_INTEGER_FORMAT " signed checkpoints; from %s to %s\n",
		 status == EXIT_SUCCESS ? ": " : "before that: ", json_integer_value(json_object_get(doc, "entries")),
		 status == EXIT_SUCCESS ? "" : " that are whole", json_integer_value(json_object_get(doc, "runs")),
		 json_integer_value(json_object_get(doc, "files")),
		 json_integer_value(json_object_get(doc, "checkpoints")),
		 document_text(doc, "first", first, sizeof(first)), document_text(doc, "last", last, sizeof(last)));
	json_array_foreach(json_object_get(doc, "notes"), i, note)
	{
		buf_adds(&text, "note: ");
		ui_line(json_string_value(note), &text);
		buf_adds(&text, "\n");
	}
	return ui_finish(&text, status);
}

static int verify_log(struct brig *b, const void *values UNUSED, char **ret, struct brig_error *err)
{
	return brig_audit_verify(b, ret, err);
}

static int verify_main(const struct command *self, int argc, char **argv)
{
	struct audit_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .policy_file = "", .state_dir = v.state },
			.ask = verify_log,
			.show = verify_words,
			.values = &v,
			.json = v.json });
	options_release(self, &v, &ops);
	return status;
}

const struct command command_audit_show = {
	.name = "audit show",
	.synopsis = "[OPTIONS]",
	.summary = "list what the audit log says of past runs, the youngest last",
	.examples = "  brig audit show\n",
	.options = show_options,
	.n_options = ARRAY_LEN(show_options),
	.run = show_main,
};

const struct command command_audit_verify = {
	.name = "audit verify",
	.synopsis = "[OPTIONS]",
	.summary = "check that nobody changed the audit log, and say what was done if so",
	.examples = "  brig audit verify\n",
	.details = "Exit status: 0 the log is whole, 1 it is not, 121 it could not be checked.\n",
	.options = verify_options,
	.n_options = ARRAY_LEN(verify_options),
	.run = verify_main,
};

const struct command command_audit_export = {
	.name = "audit export",
	.synopsis = "[OPTIONS]",
	.summary = "write the audit log's entries to standard output, as they are",
	.examples = "  brig audit export > log.jsonl\n",
	.options = export_options,
	.n_options = ARRAY_LEN(export_options),
	.run = export_main,
};
