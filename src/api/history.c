/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - queries of past runs: brig_history_json() and brig_show_json(). */
#include "history/history.h"

#include <string.h>

#include "api/handle.h"
#include "api/recorder.h"
#include "api/request.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "lang/lang.h"

/* ---- filters ------------------------------------------------------------------------------------- */

static int unknown_word(const char *what, const char *word, const char *const *names, size_t n, struct brig_error *err)
{
	const char *near = str_nearest(word, names, n);

	return err_set(err, BRIG_E_USAGE, 0, "there is no %s '%.40s'%s%s%s", what, word, near ? "; did you mean '" : "",
		       near ? near : "", near ? "'?" : "");
}

static int check_word(const char *what, const char *word, const char *const *names, size_t n, struct brig_error *err)
{
	if (!word)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], word))
			return 0;
	return unknown_word(what, word, names, n, err);
}

static int check_verdict(const char *word, struct brig_error *err)
{
	static const char *const names[] = {
#define VERDICT(name, status, meaning) #name,
#include "model/verdicts.def"
	};

	return check_word("verdict", word, names, ARRAY_LEN(names), err);
}

static int read_moment(const char *member, const char *text, uint64_t now_ns, uint64_t *ret, struct brig_error *err)
{
	if (!text || when_parse(text, now_ns, ret))
		return 0;
	return err_set(err, BRIG_E_USAGE, 0, "%s '%.40s' is no time: " WHEN_FORMS, member, text);
}

static int understand(const struct brig_history *req, struct history_query *ret, struct brig_error *err)
{
	uint64_t now_ns = clock_wall_ns();
	int rc = 0;

	if (req->flags != 0)
		return err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", req->flags);
	*ret = (struct history_query){
		.verdict = req->verdict, .trust = req->trust, .who = req->who, .door = req->door, .limit = req->limit
	};
	if (req->language && !(ret->language = lang_label(req->language)))
		return err_set(err, BRIG_E_USAGE, 0, "there is no language '%.40s'; 'brig languages' lists them",
			       req->language);
	if ((rc = check_verdict(req->verdict, err)) < 0 ||
	    (rc = check_word("trust level", req->trust, trust_name, TRUST_COUNT, err)) < 0 ||
	    (rc = read_moment("since", req->since, now_ns, &ret->since_ns, err)) < 0)
		return rc;
	return read_moment("until", req->until, now_ns, &ret->until_ns, err);
}

/* ---- answers ------------------------------------------------------------------------------------- */

/* 1: there is a state folder, and its spool has been imported as far as possible. */
static int open_history(struct brig *b, struct statedir *dir, struct history_notes *notes, struct brig_error *err)
{
	const struct settings *set = policy_base(b->policy);
	const struct history_retention keep = { .days = set->history_days, .bytes = set->history_size };
	const struct history_place place = { .dir = dir };
	struct brig_error why = BRIG_ERROR_INIT;
	int rc = statedir_open(b->recorder.state, false, dir, &why);

	if (rc < 0) {
		if (err)
			*err = why;
		return why.sys == ENOENT ? 0 : rc;
	}
	rc = history_ingest(&place, &keep, HISTORY_PATIENCE, notes, &why);
	if (rc < 0 && !history_has_database(&place)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc < 0)
		history_note(notes, "the newest executions are missing: %s", why.msg);
	return 1;
}

int brig_history_json(struct brig *b, const struct brig_history *req, char **ret, struct brig_error *err)
{
	struct brig_history known = BRIG_HISTORY_INIT;
	AUTO_FREE struct history_notes *notes = calloc(1, sizeof(*notes));
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct history_query query;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_history_json needs a handle and a place for the text");
	if (!notes)
		return err_nomem(err);
	if (req && (rc = versioned_read(&known, sizeof(known), req, "brig_history", err)) < 0)
		return rc;
	rc = understand(&known, &query, err);
	if (rc < 0)
		return rc;
	if (b->recorder.link >= 0)
		return handle_ask(b, &(struct brig_question){ .kind = BRIG_ASK_HISTORY, .history = &known }, ret, err);
	rc = open_history(b, &dir, notes, err);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		*ret = strdup("{\"executions\":[],\"total\":0,\"history_warnings\":[]}");
		return *ret ? 0 : err_nomem(err);
	}
	return history_list_json(&(struct history_place){ .dir = &dir }, &query, notes, ret, err);
}

int brig_show_json(struct brig *b, const char *id, char **ret, struct brig_error *err)
{
	AUTO_FREE struct history_notes *notes = calloc(1, sizeof(*notes));
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_show_json needs a handle and a place for the text");
	if (!notes)
		return err_nomem(err);
	if (b->recorder.link >= 0)
		return handle_ask(b, &(struct brig_question){ .kind = BRIG_ASK_SHOW, .id = id }, ret, err);
	rc = open_history(b, &dir, notes, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(err, BRIG_E_USAGE, ENOENT, "nothing was recorded yet");
	return history_show_json(&(struct history_place){ .dir = &dir }, id, notes, ret, err);
}
