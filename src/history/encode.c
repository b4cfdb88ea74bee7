/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.c - a record is put into the rows of tables.def, in their order.  What the policy does not keep is left out
 * here, and the `redact` list is applied here: neither reaches the disk.
 */
#include "history/encode.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "history/history.h"
#include "history/redact.h"
#include "history/packed.h"

struct encoder {
	struct packed_writer w;
	const struct record *r;
	const struct setting_list *patterns;
};

static void put_hash(struct encoder *e, const uint8_t hash[SHA256_LEN])
{
	char text[SHA256_HEX + 1];

	packed_text(&e->w, hex_put(text, hash, SHA256_LEN));
}

/* A text that may quote code or output: the list holds for it too. */
static void put_quoting(struct encoder *e, const char *s)
{
	size_t len = strlen(s);
	AUTO_BUF clean = BUF_INIT(4 * len + 1);

	if (e->patterns->n == 0) {
		packed_bytes(&e->w, s, len);
		return;
	}
	(void)redact(e->patterns, &(struct redact_text){ .data = s, .len = len, .keep = len }, &clean);
	packed_bytes(&e->w, buf_str(&clean), clean.len);
}

static void put_quoting_or_null(struct encoder *e, const char *s)
{
	if (s && *s)
		put_quoting(e, s);
	else
		packed_null(&e->w);
}

/* ---- one row each -------------------------------------------------------------------------------- */

static void put_audit(struct encoder *e)
{
	if (e->r->audit_seq > 0) {
		packed_num(&e->w, e->r->audit_seq);
		put_hash(e, e->r->audit_hash);
	} else {
		packed_null(&e->w);
		packed_null(&e->w);
	}
}

static void put_execution(struct encoder *e)
{
	const struct result *res = e->r->res;
	char name[32];

	packed_row(&e->w, TABLE_executions);
	packed_text(&e->w, res->id);
	packed_num(&e->w, e->r->wall_ns);
	packed_text(&e->w, verdict_info[res->verdict].name);
	put_quoting_or_null(e, res->reason);
	if (res->exit_code < 0)
		packed_null(&e->w);
	else
		packed_num(&e->w, (uint64_t)res->exit_code);
	packed_text_or_null(&e->w, res->signal ? result_signal_name(res->signal, name, sizeof(name)) : "");
	packed_text_or_null(&e->w, res->step);
	packed_text_or_null(&e->w, res->language);
	packed_text_or_null(&e->w, res->backend);
	packed_text(&e->w, trust_name[res->trust]);
	packed_num(&e->w, e->r->uid);
	put_quoting_or_null(e, e->r->file_name);
	put_hash(e, e->r->policy_sha256);
	packed_text_or_null(&e->w, e->r->policy_origin ? e->r->policy_origin : "");
	packed_text_or_null(&e->w, e->r->who ? e->r->who : "");
	packed_text_or_null(&e->w, cached_name[res->cache.compile]);
	put_audit(e);
	packed_text_or_null(&e->w, res->trust_source);
	packed_text_or_null(&e->w, res->environment);
	packed_text_or_null(&e->w, e->r->door ? e->r->door : "");
}

static void put_usage(struct encoder *e)
{
	const struct result *res = e->r->res;

	packed_row(&e->w, TABLE_usage);
	packed_num(&e->w, res->usage.wall_ms);
	packed_num(&e->w, res->usage.cpu_ms);
	packed_num(&e->w, res->usage.memory_peak_bytes);
	packed_num(&e->w, res->usage.pids_peak);
	packed_num(&e->w, res->usage.output_bytes);
}

static_assert(COLUMN_END == COLUMN_texts_data + 1 && PHASE_COUNT == COLUMN_timing_total_ms - FIRST_timing,
	      "the table timing misses a step");
static_assert(sizeof(struct limits) / sizeof(uint64_t) == COLUMN_limits_cleanup_ms - FIRST_limits + 1,
	      "the table limits misses a limit");
static_assert(sizeof(struct sample) / sizeof(uint64_t) == COLUMN_samples_output_bytes - FIRST_samples + 1,
	      "the table samples misses a reading");

static void put_timing(struct encoder *e)
{
	const struct result *res = e->r->res;

	packed_row(&e->w, TABLE_timing);
	for (size_t i = 0; i < PHASE_COUNT; i++)
		packed_real(&e->w, (double)(res->phase_ns[i] / 1000) / 1e3);
	packed_real(&e->w, (double)(res->total_ns / 1000) / 1e3);
}

/* Structs of numbers only, in the order of their table's columns. */
static void put_counts(struct encoder *e, enum history_table table, const void *counts, size_t size)
{
	const char *at = counts;
	uint64_t v;

	packed_row(&e->w, table);
	for (; size >= sizeof(v); size -= sizeof(v), at += sizeof(v)) {
		memcpy(&v, at, sizeof(v));
		packed_num(&e->w, v);
	}
}

/* ---- lists ---------------------------------------------------------------------------------------- */

static void put_findings(struct encoder *e)
{
	const struct findings *all = &e->r->res->findings;

	for (size_t i = 0; i < all->n; i++) {
		const struct finding *f = &all->row[i];

		packed_row(&e->w, TABLE_findings);
		packed_text(&e->w, f->rule);
		packed_text(&e->w, severity_name[f->severity]);
		packed_num(&e->w, f->line);
		packed_num(&e->w, f->column);
		packed_num(&e->w, f->end_line);
		packed_num(&e->w, f->end_column);
		put_quoting(e, f->name);
		put_quoting(e, f->message);
		put_quoting(e, f->remedy);
	}
}

static void put_evidence(struct encoder *e)
{
	const struct evidence *all = &e->r->res->evidence;

	for (size_t i = 0; i < all->n; i++) {
		const struct evidence_row *row = &all->row[i];

		packed_row(&e->w, TABLE_evidence);
		packed_text(&e->w, row->check);
		packed_text(&e->w, row->declared);
		packed_text(&e->w, row->enforced);
		packed_num(&e->w, row->kept);
		packed_num(&e->w, row->degraded);
		packed_text(&e->w, row->source);
	}
}

/* Several readings as one: the last one's clocks and counters, the highest memory and number of processes. */
static struct sample merge_samples(const struct sample *row, size_t n)
{
	struct sample one = row[n - 1];

	for (size_t i = 0; i < n; i++) {
		one.memory_bytes = max_u64(one.memory_bytes, row[i].memory_bytes);
		one.pids = max_u64(one.pids, row[i].pids);
	}
	return one;
}

static void put_samples(struct encoder *e)
{
	const struct sample_series *all = &e->r->res->samples;
	size_t rows = all->n < HISTORY_SAMPLES_MAX ? all->n : HISTORY_SAMPLES_MAX;

	for (size_t i = 0; i < rows; i++) {
		size_t from = i * all->n / rows, to = (i + 1) * all->n / rows;
		const struct sample one = merge_samples(&all->row[from], to - from);

		put_counts(e, TABLE_samples, &one, sizeof(one));
	}
}

static void put_remarks(struct encoder *e)
{
	const struct result *res = e->r->res;

	for (size_t i = 0; i < res->n_warnings; i++) {
		packed_row(&e->w, TABLE_warnings);
		put_quoting(e, res->warning[i]);
	}
	for (size_t p = 0; p < PROT_COUNT; p++) {
		if ((res->degraded & PROT_BIT(p)) == 0)
			continue;
		packed_row(&e->w, TABLE_degraded);
		packed_text(&e->w, protection_info[p].name);
		packed_text(&e->w, protection_info[p].lost);
		packed_text(&e->w, protection_info[p].fix);
	}
}

/* ---- code and output ------------------------------------------------------------------------------ */

struct kept_text {
	const char *stream;
	enum keep keep;
	const char *data; /* what of it is at hand */
	size_t len;
	uint64_t total;
	const uint8_t *sha256; /* NULL: unknown */
};

static size_t keep_max(enum keep k)
{
	return k == KEEP_NONE ? 0 : k == KEEP_HEAD ? RECORD_HEAD_MAX : HISTORY_TEXT_MAX;
}

size_t history_head_max(const struct settings *set)
{
	size_t most = set->history ? keep_max((enum keep)set->keep_output) : 0;

	return most > 0 && set->redact.n > 0 ? most + REDACT_SLACK : most;
}

static void put_kept(struct encoder *e, const struct kept_text *t)
{
	AUTO_BUF clean = BUF_INIT(4 * t->len + 1); /* a byte may turn into a mark */
	struct redact_text what = {
		.data = t->data,
		.len = (size_t)min_u64(t->len, keep_max(t->keep) + REDACT_SLACK),
		.keep = keep_max(t->keep),
	};
	bool redacted;

	what.cut = what.len < t->total;
	redacted = redact(e->patterns, &what, &clean);
	packed_num(&e->w, what.len > what.keep || what.cut);
	packed_num(&e->w, redacted);
	if (clean.no_memory)
		packed_null(&e->w);
	else
		packed_bytes(&e->w, buf_str(&clean), clean.len);
}

static void put_text(struct encoder *e, const struct kept_text *t)
{
	packed_row(&e->w, TABLE_texts);
	packed_text(&e->w, t->stream);
	if (t->sha256)
		put_hash(e, t->sha256);
	else
		packed_null(&e->w);
	packed_num(&e->w, t->total);
	if (t->keep != KEEP_NONE) {
		put_kept(e, t);
		return;
	}
	packed_num(&e->w, t->total > 0);
	packed_num(&e->w, false);
	packed_null(&e->w);
}

static void put_stream(struct encoder *e, const char *name, const struct record_stream *s)
{
	put_text(e, &(struct kept_text){ .stream = name,
					 .keep = (enum keep)e->r->set->keep_output,
					 .data = buf_str(&s->head),
					 .len = s->head.len,
					 .total = s->len,
					 .sha256 = s->hashed && s->ended ? s->sha256 : NULL });
}

static void put_texts(struct encoder *e)
{
	put_text(e, &(struct kept_text){ .stream = "code",
					 .keep = (enum keep)e->r->set->keep_code,
					 .data = e->r->code ? e->r->code : "",
					 .len = e->r->code_len,
					 .total = e->r->code_len,
					 .sha256 = e->r->code_sha256 });
	put_stream(e, "stdout", &e->r->out);
	put_stream(e, "stderr", &e->r->err);
}

void history_encode(const struct record *r, struct buf *out)
{
	struct encoder e = { .r = r, .patterns = &r->set->redact };

	packed_begin(&e.w, out);
	put_execution(&e);
	put_usage(&e);
	put_timing(&e);
	if (r->res->has_limits)
		put_counts(&e, TABLE_limits, &r->res->limits, sizeof(r->res->limits));
	put_findings(&e);
	put_evidence(&e);
	put_samples(&e);
	put_remarks(&e);
	put_texts(&e);
}
