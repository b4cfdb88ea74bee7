/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished request is recorded in this order: audit log first, because the others may refer to its entry, then
 * history, then metrics. Each may be disabled, and the failure of one does not prevent the others.
 *
 * Work that needs only the request (hashing code and policy, opening files) is done in record_prepare(), which the
 * executor calls while another process builds the cell, so it adds no latency.
 */
#include "executor/record.h"

#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "executor/record_link.h"
#include "executor/subject.h"
#include "history/history.h"
#include "metrics/metrics.h"
#include "policy/policy.h"

/* ---- the folder -------------------------------------------------------------------------------- */

static void forget_files(struct recorder *r)
{
	audit_close(r->audit);
	r->audit = NULL;
	statedir_close(&r->dir);
}

void recorder_release(struct recorder *r)
{
	forget_files(r);
	link_pair_release(&r->ahead.pair);
	link_pair_release(&r->ahead.spare);
	link_pair_release(&r->pair);
	fd_closep(&r->link);
}

int recorder_dir(struct recorder *r, const struct statedir **ret, struct brig_error *err)
{
	pid_t me = getpid();
	int rc;

	if (r->dir.fd >= 0 && r->opened_by != me)
		forget_files(r);
	if (r->dir.fd < 0) {
		rc = statedir_open(r->state, true, &r->dir, err);
		if (rc < 0)
			return rc;
		r->opened_by = me;
	}
	*ret = &r->dir;
	return 0;
}

/* ---- one request ------------------------------------------------------------------------------- */

static bool wants_record(const struct recording *rg)
{
	const struct settings *set = rg->rec.set;

	return set->audit != AUDIT_OFF || set->history || set->metrics || rg->wants_receipt;
}

void record_begin(struct recording *rg, const struct subject *what, const struct settings *set)
{
	const struct brig_request *req = what->req;
	struct record *rec = &rg->rec;
	bool hashed = set->audit != AUDIT_OFF || set->history || req->flags & BRIG_RUN_RECEIPT;

	rg->wants_receipt = req->flags & BRIG_RUN_RECEIPT;
	rec->uid = getuid();
	rec->who = req->who ? req->who : "";
	rec->door = req->door ? req->door : "";
	rec->set = set;
	rec->code = what->text ? what->text : "";
	rec->code_len = what->len;
	rec->file_name = req->file_name;
	rec->args = req->args;
	rec->n_args = req->n_args;
	rec->env = req->env;
	rec->n_env = req->n_env;
	rec->policy_origin = "";
	record_stream_begin(&rec->out, hashed, history_head_max(set));
	record_stream_begin(&rec->err, hashed, history_head_max(set));
}

/* Hashes every effective setting in the policy file's spelling: runs with equal digests ran under the same policy. */
static void hash_policy(struct record *rec, struct policy_digest *known)
{
	char text[SETTING_LIST_BYTES + 2 * SETTING_LIST_MAX];
	struct sha256 h;

	if (known && known->known) {
		memcpy(rec->policy_sha256, known->sha256, sizeof(known->sha256));
		return;
	}
	sha256_begin(&h);
	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		const char *value = policy_value_text(rec->set, k, text, sizeof(text));

		sha256_add(&h, setting_info[k].name, strlen(setting_info[k].name) + 1);
		sha256_add(&h, value, strlen(value) + 1);
	}
	sha256_end(&h, rec->policy_sha256);
	if (!known)
		return;
	memcpy(known->sha256, rec->policy_sha256, sizeof(known->sha256));
	known->known = true;
}

static int open_audit(struct recorder *r, const struct settings *set, const char *id, struct brig_error *err)
{
	const struct statedir *dir;
	int rc;

	if (r->link >= 0)
		return link_audit_ready(r->link, id, err);
	rc = recorder_dir(r, &dir, err);
	if (rc == 0 && !r->audit)
		rc = audit_open(dir, &r->audit, err);
	return rc < 0 ? rc : audit_ready(r->audit, set, err);
}

static int prepare_audit(struct recorder *r, struct recording *rg, struct result *res, struct brig_error *err)
{
	const struct settings *set = rg->rec.set;
	struct brig_error why = BRIG_ERROR_INIT;

	if (set->audit == AUDIT_OFF)
		return 0;
	rg->audited = rg->announced || open_audit(r, set, res->id, &why) == 0;
	if (rg->audited)
		return 0;
	if (set->audit == AUDIT_REQUIRED)
		return err_set(err, BRIG_E_REFUSED, 0, "policy demands an audit entry, and none can be written: %s",
			       why.msg);
	result_warn(res, "this run has no audit entry: %s", why.msg);
	return 0;
}

static int key_ready(struct recorder *r, const char *id, struct brig_error *err)
{
	const struct statedir *dir;
	int rc;

	if (r->link >= 0)
		return link_receipt_ready(r->link, id, err);
	rc = recorder_dir(r, &dir, err);
	return rc < 0 ? rc : receipt_ready(dir, err);
}

static int prepare_receipt(struct recorder *r, const struct recording *rg, const struct result *res,
			   struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;

	if (!rg->wants_receipt || key_ready(r, res->id, &why) == 0)
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0, "no receipt can be signed: %s", why.msg);
}

int record_prepare(struct recorder *r, struct recording *rg, struct result *res, struct brig_error *err)
{
	int rc;

	if (rg->prepared || !wants_record(rg))
		return 0;
	rg->prepared = true;
	record_hash_request(&rg->rec);
	hash_policy(&rg->rec, rg->digest);
	rc = prepare_audit(r, rg, res, err);
	return rc < 0 ? rc : prepare_receipt(r, rg, res, err);
}

/* ---- runs that follow each other ------------------------------------------------------------------ */

static void announce_next(struct recorder *r, const struct settings *set, uint64_t now)
{
	struct record_ahead *a = &r->ahead;
	struct link_pair used = a->pair;

	if (r->link < 0 || set->audit == AUDIT_OFF || (a->asked_ns && a->asked_ns + RECORD_FRESH_NS > now))
		return;
	a->pair = a->spare;
	a->spare = used;
	a->asked_ns = now;
	if (id_random(a->id, RUN_ID_LEN) < 0 || link_announce(r->link, a->id, &a->pair, NULL) < 0)
		a->asked_ns = 0;
}

void record_expect(struct recorder *r, const struct settings *set)
{
	uint64_t now = clock_now_ns();

	if (r->ended_ns + RECORD_AHEAD_NS >= now)
		announce_next(r, set, now);
}

void record_announce(struct recorder *r, const struct settings *set)
{
	uint64_t now = clock_now_ns(), before = r->ended_ns;

	r->ended_ns = now;
	if (r->link >= 0) {
		link_pair_renew(&r->pair);
		link_pair_renew(&r->ahead.spare);
	}
	if (before + RECORD_AHEAD_NS >= now) /* else the next run is not expected soon */
		announce_next(r, set, now);
}

bool record_take_announced(struct recorder *r, char ret_id[RUN_ID_LEN + 1])
{
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	struct record_ahead *a = &r->ahead;
	bool is_ready = a->asked_ns && a->asked_ns + RECORD_AHEAD_NS > clock_now_ns() &&
			link_answer(a->pair.ours, &answer, NULL) == 1;

	if (is_ready)
		(void)str_copy(ret_id, RUN_ID_LEN + 1, a->id);
	a->asked_ns = 0;
	return is_ready;
}

/* ---- writing --------------------------------------------------------------------------------------- */

/* The entry required by the policy could not be written: the run fails, whatever the program did. */
static void fail_unrecorded(struct result *res, const struct brig_error *err)
{
	char was[sizeof(res->reason)];

	(void)snprintf(
		was, sizeof(was),
		"it ended with verdict '%s', but policy demands an audit entry, and it could not be written: %.300s",
		verdict_info[res->verdict].name, err->msg);
	(void)str_copy(res->reason, sizeof(res->reason), was);
	res->verdict = VERDICT_failed;
}

static bool nothing_ran(const struct result *res)
{
	return res->verdict == VERDICT_refused || res->verdict == VERDICT_blocked || res->verdict == VERDICT_failed;
}

/* history: NULL, or receives the outcome for the history. */
static int append_entry(struct recorder *r, struct recording *rg, struct link_history *history, struct brig_error *err)
{
	return r->link >= 0 ? link_audit_append(r->link, &r->pair, &rg->rec, history, &rg->meanwhile, err)
			    : audit_append(r->audit, &rg->rec, err);
}

static void write_audit(struct recorder *r, struct recording *rg, struct link_history *history, struct result *res)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!rg->audited)
		return;
	if (append_entry(r, rg, history, &err) == 0) {
		rg->in_history = history != NULL;
		res->audit_seq = rg->rec.audit_seq;
		(void)hex_put(res->audit_hash, rg->rec.audit_hash, SHA256_LEN);
	} else if (rg->rec.set->audit == AUDIT_REQUIRED && !nothing_ran(res)) {
		fail_unrecorded(res, &err);
	} else {
		result_warn(res, "this run has no audit entry: %s", err.msg);
	}
}

static int make_receipt(struct recorder *r, const struct record *rec, char **ret, struct brig_error *err)
{
	const struct statedir *dir;
	int rc;

	if (r->link >= 0)
		return link_receipt_make(r->link, rec, ret, err);
	rc = recorder_dir(r, &dir, err);
	return rc < 0 ? rc : receipt_make(dir, r->audit ? audit_id(r->audit) : "", rec, ret, err);
}

static void write_receipt(struct recorder *r, const struct recording *rg, struct result *res)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (rg->wants_receipt && make_receipt(r, &rg->rec, &res->receipt, &err) < 0)
		result_warn(res, "this run has no receipt: %s", err.msg);
}

static int add_history(struct recorder *r, const struct record *rec, struct history_notes *notes,
		       struct brig_error *err)
{
	struct history_place place = { .dir = NULL };
	int rc;

	if (r->link >= 0)
		return link_history_add(r->link, rec, notes, err);
	rc = recorder_dir(r, &place.dir, err);
	return rc < 0 ? rc : history_add(&place, rec, notes, err);
}

/* The history is no proof: a run that it cannot store is valid, with a warning. */
static void warn_of_history(struct result *res, const struct brig_error *err, const struct history_notes *notes)
{
	if (err->code)
		result_warn(res, "the history will not show this run: %s", err->msg);
	for (size_t i = 0; i < notes->n; i++)
		result_warn(res, "%s", notes->text[i]);
}

static void write_history(struct recorder *r, const struct recording *rg, struct result *res)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct history_notes notes = { .n = 0 };

	if (!rg->rec.set->history || rg->in_history)
		return;
	(void)add_history(r, &rg->rec, &notes, &err);
	warn_of_history(res, &err, &notes);
}

/* As metrics_count(). */
static int count(struct recorder *r, const struct record *rec, struct brig_error *err)
{
	const struct statedir *dir;
	int rc;

	if (!rec->set->metrics)
		return 0;
	rc = recorder_dir(r, &dir, err);
	return rc < 0 ? rc : metrics_count(dir, rec, err);
}

static void write_metrics(struct recorder *r, const struct record *rec, struct result *res)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = count(r, rec, &err);

	if (rc != 0)
		result_warn(res, "%s%s", rc < 0 ? "this run is not in the metrics: " : "", err.msg);
}

/* Rare, and known only after the run's own entry, which is written during the clean-up. */
static void write_leftover(struct recorder *r, const struct recording *rg, struct result *res)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!rg->audited || !res->leftovers[0])
		return;
	if ((r->link >= 0 ? link_audit_append_leftover(r->link, res->id, res->leftovers, &err)
			  : audit_append_leftover(r->audit, rg->rec.set, res->id, res->leftovers, &err)) < 0)
		result_warn(res, "what was left behind is not in the audit log: %s", err.msg);
}

/* Fills in everything but the entry. */
static void complete(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res)
{
	struct record *rec = &rg->rec;
	struct brig_error err = BRIG_ERROR_INIT;

	/* The run ended before anything could run: there is nothing to refuse. */
	if (record_prepare(r, rg, res, &err) < 0)
		result_warn(res, "%s", err.msg);
	rec->res = res;
	rec->policy_origin = policy_file;
	if (res->cache.compile != CACHED_NONE)
		rec->cache = res->cache.compile == CACHED_HIT ? CACHE_HIT : CACHE_MISS;
	record_stream_end(&rec->out);
	record_stream_end(&rec->err);
	record_hash_evidence(rec);
}

void record_end(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res)
{
	if (!wants_record(rg))
		return;
	complete(r, rg, policy_file, res);
	write_audit(r, rg, NULL, res);
}

static void release(struct recording *rg)
{
	record_stream_release(&rg->rec.out);
	record_stream_release(&rg->rec.err);
}

/* Writes what must wait for the end of the clean-up. */
static void write_rest(struct recorder *r, struct recording *rg, struct result *res)
{
	write_leftover(r, rg, res);
	write_history(r, rg, res);
	write_receipt(r, rg, res);
}

void record_finish(struct recorder *r, struct recording *rg, struct result *res)
{
	if (wants_record(rg)) {
		write_rest(r, rg, res);
		write_metrics(r, &rg->rec, res);
	}
	release(rg);
}

void record_whole(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res)
{
	AUTO_FREE struct link_history *history =
		r->link >= 0 && rg->rec.set->history ? calloc(1, sizeof(*history)) : NULL;

	if (!wants_record(rg))
		return;
	if (r->uncounted[0])
		result_warn(res, "%s", r->uncounted);
	r->uncounted[0] = '\0';
	complete(r, rg, policy_file, res);
	write_audit(r, rg, history, res);
	if (history && rg->in_history)
		warn_of_history(res, &history->err, &history->notes);
	write_rest(r, rg, res);
}

void record_count(struct recorder *r, struct recording *rg)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = wants_record(rg) ? count(r, &rg->rec, &err) : 0;

	if (rc != 0)
		(void)snprintf(r->uncounted, sizeof(r->uncounted), "%s%.400s",
			       rc < 0 ? "an earlier run is not in the metrics: " : "", err.msg);
	release(rg);
}
