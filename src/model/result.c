/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.c - the outcome of a request and its one JSON form (data/schemas/result.json, docs/RESULT.md).
 *
 * The document must be valid whatever the program printed:
 *  - output that is UTF-8 is a JSON string ("…_encoding": "utf-8"; a NUL is \u0000 like any control);
 *  - output that is not is base64, whole and byte-exact;
 *  - output cut by the limit in the middle of a character loses that piece of a character, so that the
 *    cut alone never turns readable text into base64 (OU-05);
 *  - every other text is repaired: bytes that are not UTF-8 become U+FFFD.
 * Nothing is written by hand: jansson quotes, and a member that cannot be made fails the whole call.
 */
#include "model/result.h"

#include <assert.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/json.h"
#include "model/work_json.h"

const struct verdict_info verdict_info[] = {
#define VERDICT(name, status, meaning) { #name, status, meaning },
#include "model/verdicts.def"
};
static_assert(ARRAY_LEN(verdict_info) == VERDICT_COUNT, "verdict_info[] misses a verdict");

const char *const run_phase_name[] = {
	[PHASE_RESOLVE] = "resolve", [PHASE_INSPECT] = "inspect", [PHASE_CACHE] = "cache",
	[PHASE_CREATE] = "create",   [PHASE_RUN] = "run",         [PHASE_VERIFY] = "verify",
	[PHASE_RELEASE] = "release",
};
static_assert(ARRAY_LEN(run_phase_name) == PHASE_COUNT, "run_phase_name[] misses a phase");

const char *const cached_name[] = {
	[CACHED_NONE] = "",   [CACHED_MISS] = "miss",         [CACHED_STORED] = "stored",
	[CACHED_HIT] = "hit", [CACHED_RECEIVED] = "received",
};
static_assert(ARRAY_LEN(cached_name) == CACHED_COUNT, "cached_name[] misses a name");

#define STATUS_OWN    (-1) /* verdicts.def: the program's own exit code */
#define STATUS_SIGNAL (-2) /* verdicts.def: 128 + the signal, or an own status */

void result_init(struct result *r)
{
	memset(r, 0, sizeof(*r));
	result_init_zeroed(r);
}

void result_init_zeroed(struct result *r)
{
	r->verdict = VERDICT_failed;
	r->exit_code = -1;
	r->trust = TRUST_UNKNOWN;
	r->inspection = INSPECTION_GUARD;
	(void)str_copy(r->trust_source, sizeof(r->trust_source), "built-in");
}

void result_release(struct result *r)
{
	buf_release(&r->out);
	buf_release(&r->err);
	findings_release(&r->findings);
	changes_release(&r->changes);
	buf_release(&r->diff);
	artifacts_release(&r->artifacts);
	artifacts_release(&r->left);
	denied_release(&r->denied);
	network_release(&r->network);
	test_report_release(&r->tests);
	free(r->receipt);
	r->receipt = NULL;
}

void result_warn(struct result *r, const char *fmt, ...)
{
	va_list ap;

	if (r->n_warnings == RESULT_WARNINGS_MAX) {
		(void)str_copy(r->warning[RESULT_WARNINGS_MAX - 1], RESULT_TEXT_MAX, "there were more warnings");
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(r->warning[r->n_warnings++], RESULT_TEXT_MAX, fmt, ap);
	va_end(ap);
}

void result_left_behind(struct result *r, const char *what)
{
	size_t len = strlen(r->leftovers);

	(void)snprintf(r->leftovers + len, sizeof(r->leftovers) - len, "%s%s", len ? ", " : "", what);
	result_warn(r, "clean-up left behind: %s", what);
}

int result_status(const struct result *r)
{
	int status = verdict_info[r->verdict].status;

	if (status == STATUS_SIGNAL && r->signal > 0)
		return 128 + r->signal;
	if (status == STATUS_OWN || status == STATUS_SIGNAL)
		return r->exit_code >= 0 ? r->exit_code : verdict_info[VERDICT_failed].status;
	return status;
}

const char *result_signal_name(int sig, char *dst, size_t size)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		(void)snprintf(dst, size, "SIG%s", name);
	else if (sig >= SIGRTMIN && sig <= SIGRTMAX)
		(void)snprintf(dst, size, "SIGRTMIN+%d", sig - SIGRTMIN);
	else
		(void)snprintf(dst, size, "SIG%d", sig);
	return dst;
}

/* ---- small values --------------------------------------------------------------------------- */

/* Milliseconds, to the microsecond. */
static json_t *json_millis(uint64_t ns)
{
	return json_real((double)((ns + 500) / 1000) / 1e3);
}

/* ---- members --------------------------------------------------------------------------------- */

struct count_member {
	const char *name;
	size_t offset;
};

/* An object of numbers that are members of one struct. */
static json_t *json_counts(const void *base, const struct count_member *members, size_t n)
{
	json_t *object = json_object();
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t *v = (const void *)((const char *)base + members[i].offset);

		failed |= json_object_set_new(object, members[i].name, json_count(*v));
	}
	if (failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

#define MEMBER(type, name)                  \
	{                                   \
#name, offsetof(type, name) \
	}
#define USAGE(name)                                        \
	{                                                  \
#name, offsetof(struct result, usage.name) \
	}
static const struct count_member usage_members[] = {
	USAGE(wall_ms), USAGE(cpu_ms), USAGE(memory_peak_bytes), USAGE(pids_peak), USAGE(output_bytes),
};
static const struct count_member limit_members[] = {
	MEMBER(struct limits, cpu_percent),  MEMBER(struct limits, cpu_time_ms), MEMBER(struct limits, memory_bytes),
	MEMBER(struct limits, pids),         MEMBER(struct limits, disk_bytes),  MEMBER(struct limits, inodes),
	MEMBER(struct limits, output_bytes), MEMBER(struct limits, open_files),  MEMBER(struct limits, startup_ms),
	MEMBER(struct limits, wall_ms),      MEMBER(struct limits, cleanup_ms),
};
static_assert(ARRAY_LEN(limit_members) * sizeof(uint64_t) == sizeof(struct limits), "a limit is missing");
static const struct count_member sample_members[] = {
	MEMBER(struct sample, at_ms), MEMBER(struct sample, cpu_ms),       MEMBER(struct sample, memory_bytes),
	MEMBER(struct sample, pids),  MEMBER(struct sample, output_bytes),
};
static_assert(ARRAY_LEN(sample_members) * sizeof(uint64_t) == sizeof(struct sample), "a reading is missing");

static json_t *json_timing(const struct result *r)
{
	json_t *timing = json_object();
	int failed = 0;

	for (size_t i = 0; i < PHASE_COUNT; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%s_ms", run_phase_name[i]);
		failed |= json_object_set_new(timing, name, json_millis(r->phase_ns[i]));
	}
	failed |= json_object_set_new(timing, "total_ms", json_millis(r->total_ns));
	if (failed) {
		json_decref(timing);
		return NULL;
	}
	return timing;
}

/* Fills an array with n rows; a row that cannot be made fails the array. */
static json_t *json_rows(const struct result *r, size_t n, json_t *(*row)(const struct result *r, size_t i))
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(array, row(r, i)) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *json_evidence_row(const struct result *r, size_t i)
{
	const struct evidence_row *e = &r->evidence.row[i];

	return json_pack("{s:s, s:o, s:o, s:b, s:o}", "check", e->check, "declared", json_text(e->declared), "enforced",
			 json_text(e->enforced), "kept", e->kept, "source", json_text(e->source));
}

static json_t *json_sample_row(const struct result *r, size_t i)
{
	return json_counts(&r->samples.row[i], sample_members, ARRAY_LEN(sample_members));
}

static json_t *json_warning_row(const struct result *r, size_t i)
{
	return json_text(r->warning[i]);
}

static json_t *json_degraded(protection_set degraded)
{
	json_t *array = json_array();

	for (size_t p = 0; p < PROT_COUNT; p++) {
		const struct protection_info *info = &protection_info[p];

		if ((degraded & PROT_BIT(p)) == 0)
			continue;
		if (json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "protection", info->name, "lost",
							   info->lost, "fix", info->fix)) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

/* ---- the document ---------------------------------------------------------------------------- */

static int add_identity(json_t *doc, const struct result *r)
{
	char signal_name[32];
	int failed = 0;

	failed |= json_object_set_new(doc, "id", json_text(r->id));
	failed |= json_object_set_new(doc, "verdict", json_string(verdict_info[r->verdict].name));
	failed |= json_object_set_new(doc, "reason", json_text(r->reason));
	failed |= json_object_set_new(doc, "hint", json_text_or_null(r->hint));
	failed |= json_object_set_new(doc, "exit_code", r->exit_code < 0 ? json_null() : json_integer(r->exit_code));
	failed |= json_object_set_new(
		doc, "signal",
		r->signal ? json_string(result_signal_name(r->signal, signal_name, sizeof(signal_name))) : json_null());
	failed |= json_object_set_new(doc, "step", json_text_or_null(r->step));
	failed |= json_object_set_new(doc, "language", json_text_or_null(r->language));
	failed |= json_object_set_new(doc, "backend", json_text_or_null(r->backend));
	failed |= json_object_set_new(doc, "trust", json_string(trust_name[r->trust]));
	failed |= json_object_set_new(doc, "inspection", json_string(inspection_name[r->inspection]));
	failed |= json_object_set_new(doc, "trust_source", json_text(r->trust_source));
	return failed;
}

static int add_output(json_t *doc, const struct result *r)
{
	const char *out_encoding, *err_encoding;
	int failed = 0;

	failed |= json_object_set_new(doc, "stdout",
				      json_bytes(buf_str(&r->out), r->out.len, r->out_truncated, &out_encoding));
	failed |= json_object_set_new(doc, "stderr",
				      json_bytes(buf_str(&r->err), r->err.len, r->err_truncated, &err_encoding));
	failed |= json_object_set_new(doc, "stdout_encoding", json_string(out_encoding));
	failed |= json_object_set_new(doc, "stderr_encoding", json_string(err_encoding));
	failed |= json_object_set_new(doc, "stdout_truncated", json_boolean(r->out_truncated));
	failed |= json_object_set_new(doc, "stderr_truncated", json_boolean(r->err_truncated));
	return failed;
}

/* null: nothing was looked for.  A hit has no compile cell, and so no evidence of one. */
static json_t *json_audit(const struct result *r)
{
	if (!r->audit_seq)
		return json_null();
	return json_pack("{s:o, s:s}", "entry", json_count(r->audit_seq), "hash", r->audit_hash);
}

static json_t *json_cache(const struct result_cache *c)
{
	if (c->compile == CACHED_NONE)
		return json_null();
	return json_pack("{s:s, s:s?, s:o}", "compile", cached_name[c->compile], "content",
			 *c->content ? c->content : NULL, "age_ms",
			 c->compile == CACHED_HIT ? json_count(c->age_ms) : json_null());
}

static int add_measurements(json_t *doc, const struct result *r)
{
	size_t n_limits = r->has_limits ? ARRAY_LEN(limit_members) : 0;
	int failed = 0;

	failed |= json_object_set_new(doc, "usage", json_counts(r, usage_members, ARRAY_LEN(usage_members)));
	failed |= json_object_set_new(doc, "timing", json_timing(r));
	failed |= json_object_set_new(doc, "limits", json_counts(&r->limits, limit_members, n_limits));
	failed |= json_object_set_new(doc, "cache", json_cache(&r->cache));
	failed |= json_object_set_new(doc, "warm", json_boolean(r->warm));
	failed |= json_object_set_new(doc, "forked", json_boolean(r->forked));
	return failed;
}

static int add_lists(json_t *doc, const struct result *r)
{
	int failed = 0;

	failed |= json_object_set_new(doc, "findings", json_findings(&r->findings));
	failed |= json_object_set_new(doc, "evidence", json_rows(r, r->evidence.n, json_evidence_row));
	failed |= json_object_set_new(doc, "denied", json_denied(&r->denied));
	failed |= json_object_set_new(doc, "network", json_network(&r->network));
	failed |= json_object_set_new(doc, "workspace", json_workspace(r));
	failed |= json_object_set_new(doc, "changes", json_changes(&r->changes));
	if (r->has_diff)
		failed |= json_object_set_new(doc, "diff", json_diff(r));
	failed |= json_object_set_new(doc, "artifacts", json_artifacts(&r->artifacts));
	if (r->artifacts.lost)
		failed |= json_object_set_new(doc, "artifacts_lost", json_count(r->artifacts.lost));
	failed |= json_object_set_new(doc, "left", json_left(&r->left));
	failed |= json_object_set_new(doc, "tests", json_tests(&r->tests));
	failed |= json_object_set_new(doc, "packages", json_packages(&r->packages));
	failed |= json_object_set_new(doc, "environment", json_text_or_null(r->environment));
	failed |= json_object_set_new(doc, "samples", json_rows(r, r->samples.n, json_sample_row));
	failed |= json_object_set_new(doc, "degraded", json_degraded(r->degraded));
	failed |= json_object_set_new(doc, "warnings", json_rows(r, r->n_warnings, json_warning_row));
	return failed;
}

/* Each member is made of checked text, so that memory is the only thing that can be missing.  Takes the document. */
static char *text_of(json_t *doc, int failed)
{
	char *text = failed ? NULL : json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(15));

	json_decref(doc);
	return text;
}

int result_text_make(const struct result *r, struct result_text *ret, struct brig_error *err)
{
	json_t *before = json_object(), *behind = json_object();

	*ret = (struct result_text){ .verdict = r->verdict, .n_warnings = r->n_warnings };
	ret->before = text_of(before, add_identity(before, r) | add_output(before, r) | add_measurements(before, r));
	ret->behind = text_of(behind, add_lists(behind, r));
	if (ret->before && ret->behind)
		return 0;
	result_text_release(ret);
	return err_nomem(err);
}

bool result_text_is_current(const struct result_text *t, const struct result *r)
{
	return t->before && t->verdict == r->verdict && t->n_warnings == r->n_warnings;
}

/* The members of three objects as one: none of them is empty. */
int result_text_join(const struct result_text *t, const struct result *r, char **ret, struct brig_error *err)
{
	static const char name[] = ",\"audit\":";
	json_t *audit = json_audit(r);
	AUTO_FREE char *entry = audit ? json_dumps(audit, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	size_t before = strlen(t->before) - 1; /* without its bracket */
	char *text = entry ? malloc(before + strlen(name) + strlen(entry) + strlen(t->behind) + 1) : NULL;
	char *at = text;

	json_decref(audit);
	if (!text)
		return err_nomem(err);
	memcpy(at, t->before, before);
	at = stpcpy(stpcpy(at + before, name), entry);
	*at = ',';
	(void)stpcpy(at + 1, t->behind + 1);
	*ret = text;
	return 0;
}

void result_text_release(struct result_text *t)
{
	free(t->before);
	free(t->behind);
	t->before = t->behind = NULL;
}

int result_to_json(const struct result *r, char **ret, struct brig_error *err)
{
	struct result_text text;
	int rc = result_text_make(r, &text, err);

	if (rc < 0)
		return rc;
	rc = result_text_join(&text, r, ret, err);
	result_text_release(&text);
	return rc;
}
