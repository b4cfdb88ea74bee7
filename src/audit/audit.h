/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: one entry per request, in the order in which they ended, that cannot be changed unnoticed.
 *
 *	<state>/audit/000001.jsonl ...   the entries, one JSON object per line; a number that only grows
 *	<state>/audit/head               where the log ends: file, size, last entry; also the lock of all writers
 *	<state>/audit/log.key            key of the entries' codes, 0600
 *	<state>/keys/                    the signing key and the public keys of all times (keys.h)
 *
 * Each entry holds its number, the hash of the one before it, its own hash, and a MAC (HMAC) that only the log's key
 * can produce: editing, inserting, deleting or reordering breaks one of them.  Every CHECKPOINT_ENTRIES entries, after
 * CHECKPOINT_NS, and at the end of each file a checkpoint signs the chain with the host's Ed25519 key.  The head, with
 * its own MAC, says where the log ends: truncation is detected too.  What is not: restoring an old copy of the whole
 * directory, and anything done by someone who can read the keys (docs/AUDIT.md).
 *
 * Writing, under the head's lock: read the head, append the line with one write(), rewrite the head.  A writer that is
 * killed in between leaves a complete line after the head's end, which the next one adopts, or a partial line, which
 * the next one cuts off and records in an entry.  The cost does not depend on the log's length.
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include "base/buf.h"
#include "model/record.h"
#include "sys/statedir.h"

#define AUDIT_FORMAT    1     /* of the entries; each file begins with it */
#define AUDIT_ENTRY_MAX 32768 /* bytes of a line, with its newline */

struct audit_log;

/* Opens the log for writing, and makes it if there is none. */
int audit_open(const struct statedir *state, struct audit_log **ret, struct brig_error *err);
void audit_close(struct audit_log *log); /* NULL is fine */
/* Before a run: whether there is room for its entry; reserves it where the file system allows.  New files and
 * checkpoints are made here when they are due. */
int audit_ready(struct audit_log *log, const struct settings *set, struct brig_error *err);
/* Appends the request's entry and fills rec->audit_*. */
int audit_append(struct audit_log *log, struct record *rec, struct brig_error *err);
/* Behind the entry of a run: what its clean-up left behind, which is known only later. */
int audit_append_leftover(struct audit_log *log, const struct settings *set, const char *id, const char *what,
			  struct brig_error *err);

/*
 * audit_append() in two halves, because the run and its record may be handled by two processes.  The body is what an
 * entry says about a run, between its time and its hashes; the writer only relies on its form, which it validates.
 */
#define AUDIT_BODY_MAX (AUDIT_ENTRY_MAX - 1024)
int audit_body(const struct record *rec, struct buf *out, struct brig_error *err);
/* NULL, or why these bytes are no body of the run with this id. */
const char *audit_body_fault(const char *body, size_t len, const char *id);

struct audit_place {
	uint64_t seq; /* 0: nowhere */
	uint8_t hash[SHA256_LEN];
};
struct audit_said {
	const char *id, *body; /* which audit_body_fault() has found in order */
	size_t len;
	uint64_t wall_ns;
	bool may_be_there; /* another process may have written it and died: then it is not written again */
};
int audit_append_body(struct audit_log *log, const struct settings *set, const struct audit_said *said,
		      struct audit_place *ret, struct brig_error *err);
/* The run's entry, if it is among the last ones: 1; 0: it is not; negative. */
int audit_find_recent(struct audit_log *log, const char *id, struct audit_place *ret, struct brig_error *err);
/* Eight bytes that name this log, in hex. */
#define AUDIT_ID_LEN 16
const char *audit_id(const struct audit_log *log);

/* ---- keys ------------------------------------------------------------------------------------- */

/* {"keys": [{"id", "public", "from", "until", "current"}]}; with make, the first key is made. */
int audit_keys_json(const struct statedir *state, bool make, char **ret, struct brig_error *err);
/* Makes a new signing key; an entry of the log, signed with the old one, names it. */
int audit_key_rotate(struct audit_log *log, char **ret_json, struct brig_error *err);

/* ---- reading ---------------------------------------------------------------------------------- */

/* Entries of runs are shown if every given condition holds; entries of other events only without conditions but time. */
struct audit_filter {
	uint64_t since_ns, until_ns;                   /* 0: open; until is excluded */
	const char *verdict, *language, *trust, *rule; /* NULL: any */
	bool runs_only;
	size_t last; /* only the last ones; 0: all */
};
#define AUDIT_LAST_MAX 100000

/* One line, without its newline, not NUL-terminated; negative stops and is handed on. */
typedef int (*audit_line_fn)(void *arg, const char *line, size_t len);
/* Reads what was there when it began, oldest first, in little memory.  Checks nothing: that is audit_verify(). */
int audit_read(const struct statedir *state, const struct audit_filter *f, audit_line_fn fn, void *arg,
	       struct brig_error *err);

/*
 * Checks every entry.  0: the log is whole; 1: it is not; negative: it could not be checked.
 * *ret_json: { "ok", "entries", "runs", "checkpoints", "files", "first", "last", "problem": null | { "kind", "file", "line",
 * "seq", "message" }, "notes": [text] }
 */
int audit_verify(const struct statedir *state, char **ret_json, struct brig_error *err);

/* What can be wrong with a log, in the word that audit_verify() uses. */
enum audit_problem {
#define PROBLEM(name, meaning) AUDIT_##name,
#include "audit/problems.def"
	AUDIT_PROBLEM_COUNT
};
extern const char *const audit_problem_name[AUDIT_PROBLEM_COUNT];

/* ---- receipts ---------------------------------------------------------------------------------- */

/* A signed statement over the request; audit_append() comes before it.  On the heap. */
int receipt_make(const struct statedir *state, const char *log_id, const struct record *rec, char **ret,
		 struct brig_error *err);
/* The same in two halves: what is stated of the run, a JSON object; and the rest, which the signer knows by itself. */
#define RECEIPT_CLAIMS_MAX (512 * KiB)
int receipt_claims(const struct record *rec, char **ret, struct brig_error *err);
/* id: of the run that the claims must be about; where: its entry, whose seq may be 0. */
int receipt_sign(const struct statedir *state, const char *log_id, const struct audit_place *where, const char *id,
		 const struct bytes *claims, char **ret, struct brig_error *err);
/* Whether receipts can be signed here: makes the key if there is none. */
int receipt_ready(const struct statedir *state, struct brig_error *err);
/*
 * Checks a receipt, offline.  public_key: hex, or NULL for the one that the receipt names, which then proves only
 * that nothing was changed.  0: it holds; 1: it does not; negative: not checked.
 * *ret_json: { "ok", "problem", "key": { "id", "public", "expected" }, "proven": [text], "not_proven": [text], "statement" }
 */
int receipt_verify(const char *text, size_t len, const char *public_key, char **ret_json, struct brig_error *err);

#endif
