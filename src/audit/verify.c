/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - is the log whole, and if not, what was done to it?
 *
 * One pass over every line.  A line is authentic if its hash and its MAC are right; such a line was written by brig,
 * unchanged, with this number.  So the numbers of authentic lines show what happened:
 *
 *	a line that is not true        inserted, if the next true one has the number that was expected here; else edited
 *	a number too high              deleted, unless the missing ones turn up later: reordered.  One missing entry, and
 *	                               the count of checkpoints has grown by one: that checkpoint was removed
 *	a number too low               a copy of an entry, inserted
 *	too few in the end             truncated: the head, which nobody else can write, knows the last number
 *
 * The first problem is the one that is named: what comes after a broken link proves nothing more.
 */
#include <assert.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/internal.h"
#include "base/str.h"

const char *const audit_problem_name[] = {
#define PROBLEM(name, meaning) #name,
#include "audit/problems.def"
};
static_assert(ARRAY_LEN(audit_problem_name) == AUDIT_PROBLEM_COUNT, "audit_problem_name[] misses a problem");

#define NOTES_MAX 8

/* What cannot be named until more has been read. */
enum doubt { DOUBT_NONE, DOUBT_UNTRUE, DOUBT_GAP };

struct check {
	struct reader reader;
	struct log_key key;
	struct keyring ring;
	struct head head;
	enum head_state head_state;
	uint64_t expect; /* number of the next entry */
	uint64_t cp;
	uint8_t prev[SHA256_LEN];
	uint64_t entries, runs, checkpoints;
	char first[ENTRY_TIME_LEN + 1], last[ENTRY_TIME_LEN + 1];
	enum doubt doubt;
	uint64_t untrue;           /* lines in a row that are not true */
	bool torn;                 /* the first of them has no end */
	uint64_t gap_from, gap_to; /* numbers that are missing; the last one excluded */
	bool bad;
	enum audit_problem kind;
	uint32_t file;
	uint64_t line, seq;
	char message[320];
	char note[NOTES_MAX][160];
	size_t n_notes;
};

/* ---- findings ------------------------------------------------------------------------------------- */

/* Remembers where: what it was may become clear later. */
static void mark_place(struct check *c, uint64_t seq)
{
	c->file = reader_file(&c->reader);
	c->line = c->reader.line_no;
	c->seq = seq;
}

static void settle(struct check *c, enum audit_problem kind, const char *fmt, ...) PRINTF(3, 4);
static void settle(struct check *c, enum audit_problem kind, const char *fmt, ...)
{
	va_list ap;

	c->bad = true;
	c->doubt = DOUBT_NONE;
	c->kind = kind;
	va_start(ap, fmt);
	(void)vsnprintf(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
}

static void note(struct check *c, const char *fmt, ...) PRINTF(2, 3);
static void note(struct check *c, const char *fmt, ...)
{
	va_list ap;

	if (c->n_notes == NOTES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(c->note[c->n_notes++], sizeof(c->note[0]), fmt, ap);
	va_end(ap);
}

typedef unsigned long long llu;

static void settle_untrue(struct check *c, bool inserted)
{
	if (inserted)
		settle(c, AUDIT_inserted, "%llu line%s that brig did not write stand%s before entry %llu",
		       (llu)c->untrue, c->untrue == 1 ? "" : "s", c->untrue == 1 ? "s" : "", (llu)c->expect);
	else
		settle(c, AUDIT_edited, "entry %llu was changed: its hash or its code is not that of its text",
		       (llu)c->expect);
}

static void settle_gap(struct check *c)
{
	settle(c, AUDIT_deleted, "entries %llu to %llu are missing", (llu)c->gap_from, (llu)c->gap_to - 1);
}

/* ---- one true entry ---------------------------------------------------------------------------------- */

static uint64_t member_number(const struct entry *e, const char *name)
{
	char text[24];
	uint64_t v = 0;

	return entry_member(e, name, text, sizeof(text)) && str_to_u64(text, &v) ? v : 0;
}

static void check_signature(struct check *c, const struct entry *e)
{
	char id[KEY_ID_LEN + 1] = "", hex[SIGN_HEX + 1], text[CHECKPOINT_TEXT_MAX];
	const struct public_key *key;
	uint8_t sig[SIGN_LEN];
	size_t len = checkpoint_text(text, c->key.id, e->seq, e->cp, e->prev);

	c->checkpoints++;
	key = entry_member(e, "key", id, sizeof(id)) ? keyring_find(&c->ring, id) : NULL;
	if (!key)
		settle(c, AUDIT_bad_signature,
		       "checkpoint %llu is signed with key '%s', which is not among the public keys", (llu)e->cp, id);
	else if (!entry_member(e, "sig", hex, sizeof(hex)) || strlen(hex) != SIGN_HEX || !hex_get(hex, sig, SIGN_LEN) ||
		 !sign_check(key->pub, text, len, sig))
		settle(c, AUDIT_bad_signature, "the signature of checkpoint %llu is wrong", (llu)e->cp);
}

static void check_rotation(struct check *c, const struct entry *e)
{
	char old[KEY_ID_LEN + 1] = "", hex[SIGN_HEX + 1], text[KEY_ROTATION_TEXT_MAX];
	uint8_t pub[SIGN_PUB_LEN], sig[SIGN_LEN];
	const struct public_key *key = entry_member(e, "old", old, sizeof(old)) ? keyring_find(&c->ring, old) : NULL;

	if (!key || !entry_member(e, "public", hex, sizeof(hex)) || strlen(hex) != 2 * SIGN_PUB_LEN ||
	    !hex_get(hex, pub, SIGN_PUB_LEN) || !entry_member(e, "sig", hex, sizeof(hex)) || strlen(hex) != SIGN_HEX ||
	    !hex_get(hex, sig, SIGN_LEN) || !sign_check(key->pub, text, key_rotation_text(text, old, pub), sig))
		settle(c, AUDIT_bad_signature, "entry %llu names a new signing key, but is not signed with the old one",
		       (llu)e->seq);
}

static void check_recovered(struct check *c, const struct entry *e)
{
	char why[16] = "";

	(void)entry_member(e, "why", why, sizeof(why));
	if (str_eq(why, "head"))
		settle(c, AUDIT_lost_head,
		       "when brig wrote entry %llu the head was missing or changed: whether entries are missing before "
		       "it cannot "
		       "be told",
		       (llu)e->seq);
	else if (str_eq(why, "torn"))
		note(c, "before entry %llu a piece of %llu bytes was cut off: its writer was killed or found no room",
		     (llu)e->seq, (llu)member_number(e, "cut"));
}

static void accept(struct check *c, const struct entry *e)
{
	if (memcmp(e->prev, c->prev, sizeof(c->prev)) != 0) {
		settle(c, AUDIT_inserted,
		       "entry %llu continues another history: it comes from an older copy of this log", (llu)e->seq);
		return;
	}
	if (e->event == EVENT_begin && member_number(e, "file") != reader_file(&c->reader))
		settle(c, AUDIT_swapped_files, "this file was written as file %llu", (llu)member_number(e, "file"));
	if (e->event == EVENT_checkpoint)
		check_signature(c, e);
	if (e->event == EVENT_key)
		check_rotation(c, e);
	if (e->event == EVENT_recovered)
		check_recovered(c, e);
	if (c->entries == 0)
		memcpy(c->first, e->time, ENTRY_TIME_LEN);
	memcpy(c->last, e->time, ENTRY_TIME_LEN);
	c->entries++;
	c->runs += e->event == EVENT_run;
	c->expect = e->seq + 1;
	c->cp = e->cp;
	memcpy(c->prev, e->hash, sizeof(c->prev));
}

static void jump_ahead(struct check *c, const struct entry *e)
{
	char why[16] = "", name[LOG_NAME_MAX];
	uint32_t file = reader_file(&c->reader), before;
	bool first_line = c->reader.line_no == 1;

	before = c->reader.at > 1 ? c->reader.file[c->reader.at - 2] : 0;
	c->gap_from = c->expect;
	c->gap_to = e->seq;
	(void)entry_member(e, "why", why, sizeof(why));
	if (first_line && e->event == EVENT_begin && member_number(e, "file") != file) {
		settle(c, AUDIT_swapped_files, "this file was written as file %llu", (llu)member_number(e, "file"));
	} else if (first_line && file != before + 1) {
		log_name(name, before + 1);
		settle(c, AUDIT_deleted_file, "the file %s is missing, with entries %llu to %llu", name,
		       (llu)c->gap_from, (llu)c->gap_to - 1);
	} else if (e->event == EVENT_recovered && str_eq(why, "lost") && member_number(e, "expected") == e->seq - 1) {
		settle(c, AUDIT_truncated,
		       "entries %llu to %llu were cut off before brig wrote entry %llu, which notes it",
		       (llu)c->gap_from, (llu)c->gap_to - 1, (llu)e->seq);
	} else if (e->seq == c->expect + 1 && e->cp == c->cp + 1 && e->event != EVENT_checkpoint) {
		settle(c, AUDIT_removed_checkpoint, "checkpoint %llu, which was entry %llu, is missing", (llu)e->cp,
		       (llu)c->expect);
	} else {
		c->doubt = DOUBT_GAP;
	}
}

static void take_true(struct check *c, const struct entry *e)
{
	if (c->doubt == DOUBT_UNTRUE) {
		settle_untrue(c, e->seq <= c->expect);
	} else if (c->doubt == DOUBT_GAP) {
		if (e->seq >= c->gap_from && e->seq < c->gap_to)
			settle(c, AUDIT_reordered, "entry %llu stands before entry %llu, which was written first",
			       (llu)c->gap_to, (llu)e->seq);
	} else if (e->seq == c->expect) {
		mark_place(c, e->seq);
		accept(c, e);
	} else if (e->seq > c->expect) {
		mark_place(c, e->seq);
		jump_ahead(c, e);
	} else {
		mark_place(c, e->seq);
		settle(c, AUDIT_inserted, "a copy of entry %llu stands where entry %llu is expected", (llu)e->seq,
		       (llu)c->expect);
	}
}

/* ---- the whole log --------------------------------------------------------------------------------- */

/* A piece at the very end, with every entry that the head knows before it: a writer was killed a moment ago. */
static bool is_unfinished(const struct check *c)
{
	return c->reader.torn && c->reader.at == c->reader.n_files && c->head_state == HEAD_GOOD &&
	       c->head.seq < c->expect && c->doubt == DOUBT_NONE;
}

static void take_line(struct check *c, const char *line, size_t len)
{
	struct entry e;

	if (!c->reader.torn && !c->reader.oversized && entry_read(line, len, &e) && entry_is_true(&e, &c->key)) {
		take_true(c, &e);
	} else if (is_unfinished(c)) {
		note(c, "the log ends with a piece of an entry: its writer was killed; the next run cuts it off");
	} else if (c->doubt == DOUBT_NONE) {
		mark_place(c, c->expect);
		c->doubt = DOUBT_UNTRUE;
		c->untrue = 1;
		c->torn = c->reader.torn;
	} else if (c->doubt == DOUBT_UNTRUE) {
		c->untrue++;
	}
}

static void take_end(struct check *c)
{
	uint64_t last = c->expect - 1;
	bool knows = c->head_state == HEAD_GOOD;

	if (c->doubt == DOUBT_GAP) {
		settle_gap(c);
	} else if (c->doubt == DOUBT_UNTRUE && c->torn && knows && c->head.seq >= c->expect) {
		settle(c, AUDIT_truncated,
		       "the log is cut off within entry %llu; the head says that it ends with entry %llu",
		       (llu)c->expect, (llu)c->head.seq);
	} else if (c->doubt == DOUBT_UNTRUE) {
		settle_untrue(c, knows && c->head.seq < c->expect);
	} else if (knows && last < c->head.seq) {
		settle(c, AUDIT_truncated, "the log ends with entry %llu; the head says that it ends with entry %llu",
		       (llu)last, (llu)c->head.seq);
		c->seq = last;
	} else if (!knows && (c->entries > 0 || c->head_state == HEAD_BAD)) {
		settle(c, AUDIT_lost_head, "the head is %s: whether entries are missing at the end cannot be told",
		       c->head_state == HEAD_BAD ? "not one that brig wrote" : "missing");
	}
}

static int walk(struct check *c, struct brig_error *err)
{
	const char *line;
	size_t len;
	int rc = 1;

	c->expect = 1;
	while (!c->bad && (rc = reader_next(&c->reader, &line, &len, err)) > 0)
		take_line(c, line, len);
	if (rc < 0)
		return rc;
	if (!c->bad)
		take_end(c);
	return 0;
}

/* ---- the answer --------------------------------------------------------------------------------------- */

static json_t *problem_json(const struct check *c)
{
	char name[LOG_NAME_MAX] = AUDIT_HEAD;

	if (!c->bad)
		return json_null();
	if (c->file)
		log_name(name, c->file);
	return json_pack("{s:s, s:s, s:I, s:I, s:s}", "kind", audit_problem_name[c->kind], "file", name, "line",
			 (json_int_t)c->line, "seq", (json_int_t)c->seq, "message", c->message);
}

static int answer(const struct check *c, char **ret, struct brig_error *err)
{
	json_t *notes = json_array(), *doc;
	int failed = 0;

	for (size_t i = 0; i < c->n_notes; i++)
		failed |= json_array_append_new(notes, json_string(c->note[i]));
	doc = json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:o, s:o}", "ok", !c->bad, "log", c->key.id,
			"entries", (json_int_t)c->entries, "runs", (json_int_t)c->runs, "checkpoints",
			(json_int_t)c->checkpoints, "files", (json_int_t)c->reader.n_files, "first", c->first, "last",
			c->last, "problem", problem_json(c), "notes", notes);
	*ret = failed || !doc ? NULL : json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return *ret ? 0 : err_nomem(err);
}

int audit_verify(const struct statedir *state, char **ret_json, struct brig_error *err)
{
	struct check *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(err);
	rc = reader_open(state, &c->reader, err);
	if (rc == 0) {
		rc = log_key_load(&c->reader.dir, false, &c->key, err);
		if (rc == 0)
			rc = keyring_load(state, false, &c->ring, err);
		if (rc == 0)
			rc = reader_snapshot(&c->reader, &c->key, &c->head, &c->head_state, err);
		if (rc == 0)
			rc = walk(c, err);
		if (rc == 0)
			rc = answer(c, ret_json, err);
		if (rc == 0)
			rc = c->bad;
		reader_close(&c->reader);
	}
	crypto_wipe(&c->key, sizeof(c->key));
	free(c);
	return rc;
}
