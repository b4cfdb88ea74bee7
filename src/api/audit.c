/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - the audit log, keys and receipts of brig.h. */
#include "audit/audit.h"

#include <string.h>

#include "api/handle.h"
#include "api/request.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "lang/lang.h"

const char *brig_result_receipt(const struct brig_result *r)
{
	return r->r.receipt;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int read_moment(const char *name, const char *text, uint64_t now, uint64_t *ret, struct brig_error *err)
{
	if (!text || when_parse(text, now, ret))
		return 0;
	return err_set(err, BRIG_E_USAGE, 0, "%s '%.40s' is no time: " WHEN_FORMS, name, text);
}

/* Rejects invalid names: such a filter would silently match nothing. */
static int check_names(const struct brig_audit *req, struct brig_error *err)
{
	bool known = !req->verdict;

	for (size_t i = 0; i < VERDICT_COUNT && !known; i++)
		known = str_eq(verdict_info[i].name, req->verdict);
	if (!known)
		return err_set(err, BRIG_E_USAGE, 0, "there is no verdict '%.40s'", req->verdict);
	known = !req->trust;
	for (size_t i = 0; i < TRUST_COUNT && !known; i++)
		known = str_eq(trust_name[i], req->trust);
	if (!known)
		return err_set(err, BRIG_E_USAGE, 0, "there is no trust level '%.40s'", req->trust);
	return 0;
}

static int make_filter(const struct brig_audit *req, struct audit_filter *ret, struct brig_error *err)
{
	uint64_t now = clock_wall_ns();
	int rc;

	*ret = (struct audit_filter){ .verdict = req->verdict,
				      .language = req->language,
				      .trust = req->trust,
				      .rule = req->rule,
				      .runs_only = req->flags & BRIG_AUDIT_RUNS,
				      .last = req->last };
	if (req->flags & ~BRIG_AUDIT_RUNS)
		return err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", req->flags);
	if (req->last > AUDIT_LAST_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "at most the last %d entries can be asked for", AUDIT_LAST_MAX);
	if ((rc = check_names(req, err)) < 0 || (rc = read_moment("since", req->since, now, &ret->since_ns, err)) < 0)
		return rc;
	if (req->language) {
		ret->language = lang_label(req->language);
		if (!ret->language)
			return err_set(err, BRIG_E_USAGE, 0, "there is no language '%.40s'", req->language);
	}
	return read_moment("until", req->until, now, &ret->until_ns, err);
}

/* The library stops at negative values; callers' functions return non-zero to stop. */
struct line_user {
	brig_line_fn fn;
	void *user;
	bool stopped;
};

static int hand_out(void *arg, const char *line, size_t len)
{
	struct line_user *u = arg;

	u->stopped = u->fn(u->user, line, len) != 0;
	return u->stopped ? -1 : 0;
}

int brig_audit_read(struct brig *b, const struct brig_audit *req, brig_line_fn fn, void *user, struct brig_error *err)
{
	struct brig_audit known = BRIG_AUDIT_INIT;
	struct line_user u = { .fn = fn, .user = user };
	AUTO_STATEDIR state = STATEDIR_INIT;
	struct audit_filter filter;
	int rc;

	if (!b || !fn)
		return err_set(err, BRIG_E_USAGE, 0, "brig_audit_read needs a handle and a function");
	if (req) {
		rc = versioned_read(&known, sizeof(known), req, "brig_audit", err);
		if (rc < 0)
			return rc;
	}
	rc = make_filter(&known, &filter, err);
	if (rc == 0)
		rc = statedir_open(b->recorder.state, false, &state, err);
	if (rc == 0)
		rc = audit_read(&state, &filter, hand_out, &u, err);
	return u.stopped ? 0 : rc;
}

int brig_audit_verify(struct brig *b, char **ret, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_audit_verify needs a handle and a place for the text");
	rc = statedir_open(b->recorder.state, false, &state, err);
	return rc < 0 ? rc : audit_verify(&state, ret, err);
}

/* ---- keys and receipts ----------------------------------------------------------------------------- */

int brig_keys_json(struct brig *b, char **ret, struct brig_error *err)
{
	const struct statedir *state;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_keys_json needs a handle and a place for the text");
	rc = recorder_dir(&b->recorder, &state, err);
	return rc < 0 ? rc : audit_keys_json(state, true, ret, err);
}

int brig_key_rotate(struct brig *b, char **ret, struct brig_error *err)
{
	struct audit_log *log = NULL;
	const struct statedir *state;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_key_rotate needs a handle and a place for the text");
	rc = recorder_dir(&b->recorder, &state, err);
	if (rc == 0)
		rc = audit_open(state, &log, err);
	if (rc == 0)
		rc = audit_key_rotate(log, ret, err);
	audit_close(log);
	return rc;
}

int brig_receipt_verify(const char *text, size_t len, const char *public_key, char **ret, struct brig_error *err)
{
	if (!text || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_receipt_verify needs a text and a place for the answer");
	return receipt_verify(text, len, public_key, ret, err);
}
