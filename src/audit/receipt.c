/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.c - a statement about one request that can be checked on any machine, without brig's state and without network.
 *
 *	{ "statement": { ... }, "signature": "<128 hex digits>" }
 *
 * The signature is Ed25519 over "brig receipt\n" and the statement in its canonical form: members sorted by name, no
 * white space, whole numbers only.  So the file may be reformatted, but no value changed, added or removed.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/keys.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "model/json.h"

#define RECEIPT_FORMAT 1
#define RECEIPT_MAX    (1 * MiB)
#define RECEIPT_PREFIX "brig receipt\n"

/* A member of a member as text; "" if it is not there or no string. */
static const char *word(const json_t *object, const char *group, const char *name)
{
	const char *s = json_string_value(json_object_get(group ? json_object_get(object, group) : object, name));

	return s ? s : "";
}

/* ---- making ------------------------------------------------------------------------------------------ */

static json_t *json_hash(const uint8_t hash[SHA256_LEN])
{
	char hex[SHA256_HEX + 1];

	return json_string(hex_put(hex, hash, SHA256_LEN));
}

static json_t *request_json(const struct record *rec)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "id", rec->res->id, "uid",
			 json_count(rec->uid), "who", json_text(rec->who), "language", json_text(rec->res->language),
			 "file_name", json_text(rec->file_name ? rec->file_name : ""), "trust",
			 trust_name[rec->res->trust], "trust_source", json_text(rec->res->trust_source), "code_sha256",
			 json_hash(rec->code_sha256), "code_bytes", json_count(rec->code_len), "args_sha256",
			 json_hash(rec->args_sha256), "env_sha256", json_hash(rec->env_sha256));
}

static json_t *limits_json(const struct result *res)
{
	const struct limits *l = &res->limits;

	if (!res->has_limits)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cpu_percent", json_count(l->cpu_percent),
			 "cpu_time_ms", json_count(l->cpu_time_ms), "wall_ms", json_count(l->wall_ms), "memory_bytes",
			 json_count(l->memory_bytes), "pids", json_count(l->pids), "disk_bytes",
			 json_count(l->disk_bytes), "inodes", json_count(l->inodes), "output_bytes",
			 json_count(l->output_bytes), "open_files", json_count(l->open_files));
}

static json_t *plan_json(const struct record *rec)
{
	json_t *degraded = json_array();

	for (size_t p = 0; p < PROT_COUNT; p++)
		if (rec->res->degraded & PROT_BIT(p))
			(void)json_array_append_new(degraded, json_string(protection_info[p].name));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "backend", json_text(rec->res->backend), "policy_sha256",
			 json_hash(rec->policy_sha256), "policy_file", json_text(rec->policy_origin), "limits",
			 limits_json(rec->res), "degraded", degraded);
}

static json_t *evidence_json(const struct record *rec)
{
	const struct evidence *e = &rec->res->evidence;
	json_t *rows = json_array();

	for (size_t i = 0; i < e->n; i++)
		(void)json_array_append_new(rows, json_pack("{s:s, s:o, s:o, s:b}", "check", e->row[i].check,
							    "declared", json_text(e->row[i].declared), "enforced",
							    json_text(e->row[i].enforced), "kept", e->row[i].kept));
	return json_pack("{s:o, s:o, s:o, s:o}", "sha256", json_hash(rec->evidence_sha256), "kept", json_count(e->kept),
			 "total", json_count(e->n), "rows", rows);
}

static json_t *findings_json(const struct findings *f)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < f->n; i++)
		(void)json_array_append_new(rows, json_pack("{s:o, s:s, s:o}", "rule", json_text(f->row[i].rule),
							    "severity", severity_name[f->row[i].severity], "line",
							    json_count(f->row[i].line)));
	return rows;
}

static json_t *outcome_json(const struct result *res)
{
	return json_pack("{s:s, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o}", "verdict", verdict_info[res->verdict].name,
			 "reason", json_text(res->reason), "step", json_text(res->step), "exit_code", res->exit_code,
			 "signal", res->signal, "wall_ms", json_count(res->usage.wall_ms), "cpu_ms",
			 json_count(res->usage.cpu_ms), "memory_peak_bytes", json_count(res->usage.memory_peak_bytes),
			 "pids_peak", json_count(res->usage.pids_peak));
}

static json_t *stream_json(const struct record_stream *s)
{
	return json_pack("{s:o, s:o}", "bytes", json_count(s->len), "sha256",
			 s->hashed && s->ended ? json_hash(s->sha256) : json_null());
}

/* The members of a statement that tell of the run; the others are the signer's own. */
static const struct {
	const char *name;
	json_type type;
} claim[] = {
	{ "began", JSON_STRING },    { "request", JSON_OBJECT }, { "plan", JSON_OBJECT },   { "findings", JSON_ARRAY },
	{ "evidence", JSON_OBJECT }, { "outcome", JSON_OBJECT }, { "stdout", JSON_OBJECT }, { "stderr", JSON_OBJECT },
};

static json_t *claims_json(const struct record *rec)
{
	char began[WHEN_TEXT_MAX];

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "began",
			 when_utc(began, sizeof(began), rec->wall_ns), "request", request_json(rec), "plan",
			 plan_json(rec), "findings", findings_json(&rec->res->findings), "evidence", evidence_json(rec),
			 "outcome", outcome_json(rec->res), "stdout", stream_json(&rec->out), "stderr",
			 stream_json(&rec->err));
}

static json_t *audit_json(const char *log_id, const struct audit_place *where)
{
	if (!where->seq)
		return json_null();
	return json_pack("{s:s, s:o, s:o}", "log", log_id, "entry", json_count(where->seq), "hash",
			 json_hash(where->hash));
}

/* Where the run is in the log, and what is stated of it. */
struct statement {
	const char *log_id;
	const struct audit_place *where;
	const json_t *claims;
};

static json_t *statement_json(const struct public_key *key, const struct statement *what)
{
	char hex[2 * SIGN_PUB_LEN + 1], issued[WHEN_TEXT_MAX];
	json_t *claims[ARRAY_LEN(claim)];

	for (size_t i = 0; i < ARRAY_LEN(claim); i++)
		claims[i] = json_object_get(what->claims, claim[i].name);
	return json_pack("{s:i, s:s, s:O, s:s, s:{s:s, s:s}, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:o}", "brig_receipt",
			 RECEIPT_FORMAT, "brig", BRIG_VERSION, "began", claims[0], "issued",
			 when_utc(issued, sizeof(issued), clock_wall_ns()), "key", "id", key->id, "public",
			 hex_put(hex, key->pub, SIGN_PUB_LEN), "request", claims[1], "plan", claims[2], "findings",
			 claims[3], "evidence", claims[4], "outcome", claims[5], "stdout", claims[6], "stderr",
			 claims[7], "audit", audit_json(what->log_id, what->where));
}

/* What is signed, on the heap; NULL: no memory. */
static char *canonical(const json_t *statement, size_t *ret_len)
{
	AUTO_FREE char *body = json_dumps(statement, JSON_COMPACT | JSON_SORT_KEYS);
	char *text = NULL;
	int len;

	if (!body)
		return NULL;
	len = asprintf(&text, RECEIPT_PREFIX "%s", body);
	if (len < 0)
		return NULL;
	*ret_len = (size_t)len;
	return text;
}

int receipt_ready(const struct statedir *state, struct brig_error *err)
{
	AUTO_FREE struct keyring *ring = calloc(1, sizeof(*ring));

	return ring ? keyring_load(state, true, ring, err) : err_nomem(err);
}

/* The key must be named in what it signs: it is asked for first. */
static int signed_statement(const struct statedir *state, const struct statement *what, json_t **ret,
			    uint8_t sig[SIGN_LEN], struct brig_error *err)
{
	AUTO_FREE struct keyring *ring = calloc(1, sizeof(*ring));
	AUTO_FREE char *text = NULL;
	struct public_key used;
	size_t len;
	int rc;

	if (!ring)
		return err_nomem(err);
	rc = keyring_load(state, true, ring, err);
	if (rc < 0)
		return rc;
	*ret = statement_json(&ring->key[ring->n - 1], what);
	text = *ret ? canonical(*ret, &len) : NULL;
	if (!text)
		return err_nomem(err);
	rc = keys_sign(state, text, len, sig, &used, err);
	if (rc == 0 && !str_eq(used.id, word(*ret, "key", "id")))
		rc = err_set(err, BRIG_E_REFUSED, 0, "the signing key was replaced at this very moment; run it again");
	return rc;
}

static int sign_document(const struct statedir *state, const struct statement *what, char **ret, struct brig_error *err)
{
	char hex[SIGN_HEX + 1];
	uint8_t sig[SIGN_LEN];
	json_t *statement = NULL, *doc = NULL;
	int rc = signed_statement(state, what, &statement, sig, err);

	if (rc < 0) {
		json_decref(statement);
		return rc;
	}
	doc = json_pack("{s:o, s:s}", "statement", statement, "signature", hex_put(hex, sig, SIGN_LEN));
	*ret = doc ? json_dumps(doc, JSON_INDENT(1)) : NULL;
	json_decref(doc);
	return *ret ? 0 : err_nomem(err);
}

int receipt_make(const struct statedir *state, const char *log_id, const struct record *rec, char **ret,
		 struct brig_error *err)
{
	struct audit_place where = { .seq = rec->audit_seq };
	json_t *claims = claims_json(rec);
	int rc;

	memcpy(where.hash, rec->audit_hash, sizeof(where.hash));
	rc = claims ? sign_document(state, &(struct statement){ .log_id = log_id, .where = &where, .claims = claims },
				    ret, err)
		    : err_nomem(err);
	json_decref(claims);
	return rc;
}

int receipt_claims(const struct record *rec, char **ret, struct brig_error *err)
{
	json_t *claims = claims_json(rec);

	*ret = claims ? json_dumps(claims, JSON_COMPACT) : NULL;
	json_decref(claims);
	return *ret ? 0 : err_nomem(err);
}

/* ---- checking ------------------------------------------------------------------------------------------- */

struct verdict_text {
	json_t *proven, *not_proven;
	char problem[240];
};

static void say(json_t *list, const char *fmt, ...) PRINTF(2, 3);
static void say(json_t *list, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)json_array_append_new(list, json_text(text));
}

static long long count(const json_t *object, const char *group, const char *name)
{
	return (long long)json_integer_value(json_object_get(json_object_get(object, group), name));
}

/* Numbers with a point have no canonical form. */
static bool has_real(const json_t *v)
{
	const char *name;
	json_t *member;
	size_t i;

	if (json_is_real(v))
		return true;
	if (json_is_array(v))
		json_array_foreach(v, i, member) if (has_real(member)) return true;
	if (json_is_object(v))
		json_object_foreach((json_t *)(uintptr_t)v, name, member) if (has_real(member)) return true;
	return false;
}

static const char *claims_fault(const json_t *claims, const char *id)
{
	if (!json_is_object(claims) || json_object_size(claims) != ARRAY_LEN(claim))
		return "these are not the claims of a receipt";
	for (size_t i = 0; i < ARRAY_LEN(claim); i++) {
		const json_t *member = json_object_get(claims, claim[i].name);

		if (!member || json_typeof(member) != claim[i].type)
			return "these are not the claims of a receipt";
	}
	if (!str_eq(word(claims, "request", "id"), id))
		return "the claims are about another run";
	return has_real(claims) ? "a claim has a number with a point, which no receipt has" : NULL;
}

int receipt_sign(const struct statedir *state, const char *log_id, const struct audit_place *where, const char *id,
		 const struct bytes *claims, char **ret, struct brig_error *err)
{
	json_t *doc = claims->len <= RECEIPT_CLAIMS_MAX
			      ? json_loadb(claims->data, claims->len, JSON_REJECT_DUPLICATES, NULL)
			      : NULL;
	const char *fault = claims_fault(doc, id);
	int rc;

	rc = fault ? err_set(err, BRIG_E_REFUSED, 0, "no receipt is signed: %s", fault)
		   : sign_document(state, &(struct statement){ .log_id = log_id, .where = where, .claims = doc }, ret,
				   err);
	json_decref(doc);
	return rc;
}

/* The document's two parts; false: it is no receipt. */
static bool take_apart(const json_t *doc, const json_t **ret_statement, uint8_t sig[SIGN_LEN],
		       uint8_t pub[SIGN_PUB_LEN], struct verdict_text *v)
{
	const json_t *statement = json_object_get(doc, "statement");
	const char *hex = word(doc, NULL, "signature"), *named = word(statement, "key", "public");
	char id[KEY_ID_LEN + 1];
	const char *why = NULL;

	if (!json_is_object(doc) || json_object_size(doc) != 2 || !json_is_object(statement))
		why = "it is not { \"statement\", \"signature\" }";
	else if (json_integer_value(json_object_get(statement, "brig_receipt")) != RECEIPT_FORMAT)
		why = "it has not the form of a receipt that this brig knows";
	else if (strlen(hex) != SIGN_HEX || !hex_get(hex, sig, SIGN_LEN))
		why = "its signature is no signature";
	else if (strlen(named) != 2 * SIGN_PUB_LEN || !hex_get(named, pub, SIGN_PUB_LEN))
		why = "it names no public key";
	else if (has_real(statement))
		why = "it has a number with a point, which no receipt has";
	if (!why) {
		key_id(pub, id);
		if (!str_eq(id, word(statement, "key", "id")))
			why = "the key's id is not that of the key";
	}
	if (why)
		(void)snprintf(v->problem, sizeof(v->problem), "%s", why);
	*ret_statement = statement;
	return !why;
}

static bool signature_holds(const json_t *statement, const uint8_t sig[SIGN_LEN], const uint8_t pub[SIGN_PUB_LEN])
{
	size_t len = 0;
	AUTO_FREE char *text = canonical(statement, &len);

	return text && sign_check(pub, text, len, sig);
}

static void tell_proven(const json_t *s, json_t *list)
{
	say(list, "nothing in this receipt was changed since the holder of key %s signed it on %s",
	    word(s, "key", "id"), word(s, NULL, "issued"));
	say(list,
	    "the holder of that key states that code of %lld bytes with SHA-256 %s was given to brig %s as %s, with "
	    "trust '%s'",
	    count(s, "request", "code_bytes"), word(s, "request", "code_sha256"), word(s, NULL, "brig"),
	    *word(s, "request", "language") ? word(s, "request", "language") : "no known language",
	    word(s, "request", "trust"));
	say(list, "that its verdict was '%s'%s%s", word(s, "outcome", "verdict"),
	    *word(s, "outcome", "reason") ? ": " : "", word(s, "outcome", "reason"));
	say(list, "that %lld of %lld promises about its cell were read back from the system and kept, on backend '%s'",
	    count(s, "evidence", "kept"), count(s, "evidence", "total"), word(s, "plan", "backend"));
	say(list, "that it wrote %lld bytes to stdout and %lld to stderr, with the hashes given",
	    count(s, "stdout", "bytes"), count(s, "stderr", "bytes"));
	if (json_is_object(json_object_get(s, "audit")))
		say(list, "that this is entry %lld of audit log %s, with hash %s", count(s, "audit", "entry"),
		    word(s, "audit", "log"), word(s, "audit", "hash"));
}

static void tell_not_proven(const json_t *s, bool expected, json_t *list)
{
	if (!expected)
		say(list,
		    "whose key %s is: compare it with what 'brig key show' says on that host, or give it with --key",
		    word(s, "key", "id"));
	say(list, "that the host was honest: whoever has its key, its administrator above all, can sign anything");
	say(list, "that its clock was right");
	say(list, "what the code does when it runs again");
	if (json_is_null(json_object_get(s, "audit")))
		say(list, "that the run is in an audit log: it was not recorded");
	else
		say(list, "that the audit log still holds that entry: 'brig audit verify' on that host tells");
}

static int make_answer(const struct verdict_text *v, const json_t *statement, bool expected, char **ret,
		       struct brig_error *err)
{
	bool ok = !v->problem[0];
	json_t *doc = json_pack("{s:b, s:o, s:{s:s, s:s, s:b}, s:O, s:O, s:O?}", "ok", ok, "problem",
				json_text_or_null(v->problem), "key", "id", word(statement, "key", "id"), "public",
				word(statement, "key", "public"), "expected", expected, "proven", v->proven,
				"not_proven", v->not_proven, "statement", ok ? statement : NULL);

	*ret = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return *ret ? !ok : err_nomem(err);
}

static int check_document(const json_t *doc, const char *public_key, struct verdict_text *v, char **ret,
			  struct brig_error *err)
{
	uint8_t sig[SIGN_LEN], pub[SIGN_PUB_LEN], wanted[SIGN_PUB_LEN];
	const json_t *statement = NULL;
	bool expected = false;

	if (public_key && (strlen(public_key) != 2 * SIGN_PUB_LEN || !hex_get(public_key, wanted, SIGN_PUB_LEN)))
		return err_set(err, BRIG_E_USAGE, 0,
			       "a public key is %d lower-case hex digits, as 'brig key show' prints", 2 * SIGN_PUB_LEN);
	if (take_apart(doc, &statement, sig, pub, v)) {
		expected = public_key && memcmp(wanted, pub, sizeof(pub)) == 0;
		if (public_key && !expected)
			(void)snprintf(v->problem, sizeof(v->problem),
				       "it is signed with key %s, not with the one given",
				       word(statement, "key", "id"));
		else if (!signature_holds(statement, sig, pub))
			(void)snprintf(v->problem, sizeof(v->problem),
				       "the signature is wrong: something in it was changed after it was signed");
	}
	if (!v->problem[0]) {
		tell_proven(statement, v->proven);
		tell_not_proven(statement, expected, v->not_proven);
	}
	return make_answer(v, statement, expected, ret, err);
}

int receipt_verify(const char *text, size_t len, const char *public_key, char **ret_json, struct brig_error *err)
{
	struct verdict_text v = { .problem = "" };
	json_error_t why = { .text = "" };
	json_t *doc = NULL;
	int rc;

	if (len > RECEIPT_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "it has %zu bytes; a receipt has at most %llu", len,
			       (unsigned long long)RECEIPT_MAX);
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	v.proven = json_array();
	v.not_proven = json_array();
	if (!v.proven || !v.not_proven) {
		rc = err_nomem(err);
	} else if (!doc) {
		(void)snprintf(v.problem, sizeof(v.problem), "it is not JSON: line %d: %.160s", why.line, why.text);
		rc = make_answer(&v, NULL, false, ret_json, err);
	} else {
		rc = check_document(doc, public_key, &v, ret_json, err);
	}
	json_decref(v.proven);
	json_decref(v.not_proven);
	json_decref(doc);
	return rc;
}
