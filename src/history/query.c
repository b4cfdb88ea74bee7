/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - what is in the database, as documents.  Objects have the names of the columns of tables.def; values that
 * the database does not have are null.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "base/when.h"
#include "history/ingest.h"
#include "model/json.h"

#define ROWS_MAX 100000 /* of one answer */

struct query {
	struct db db;
	sqlite3_stmt *st;
	struct brig_error *err;
};

/* ---- values -------------------------------------------------------------------------------------- */

/* Text is UTF-8 unless another program wrote it. */
static json_t *json_string_of(struct query *q, int at)
{
	const void *blob = q->db.api.column_blob(q->st, at);
	const char *data = blob ? blob : "";
	size_t len = (size_t)q->db.api.column_bytes(q->st, at);
	AUTO_FREE char *copy = NULL;

	if (str_is_utf8(data, len))
		return json_stringn_nocheck(data, len);
	copy = strndup(data, len);
	return copy ? json_text(copy) : NULL;
}

static json_t *json_value(struct query *q, int at, enum column_kind kind)
{
	switch (q->db.api.column_type(q->st, at)) {
	case SQLITE_INTEGER:
		return kind == KIND_OF_BOOL ? json_boolean(q->db.api.column_int64(q->st, at) != 0)
					    : json_integer(q->db.api.column_int64(q->st, at));
	case SQLITE_FLOAT:
		return json_real(q->db.api.column_double(q->st, at));
	case SQLITE_NULL:
		return json_null();
	default:
		return json_string_of(q, at);
	}
}

/* NULL: no memory, as it is for every json_t * here. */
static json_t *json_time(int64_t at_ns)
{
	char text[WHEN_TEXT_MAX];

	return json_string(when_utc(text, sizeof(text), (uint64_t)at_ns));
}

/* The present row, with the names that the query gives its columns. */
static json_t *json_named_row(struct query *q)
{
	json_t *row = json_object();
	int failed = 0;

	for (int i = 0; i < q->db.api.column_count(q->st); i++) {
		const char *name = q->db.api.column_name(q->st, i);

		if (str_eq(name, "at_ns"))
			failed |= json_object_set_new(row, "time", json_time(q->db.api.column_int64(q->st, i)));
		else
			failed |= json_object_set_new(row, name, json_value(q, i, KIND_OF_TEXT));
	}
	if (failed) {
		json_decref(row);
		return NULL;
	}
	return row;
}

/* The present row of SELECT of a table's columns, in their order. */
static json_t *json_table_row(struct query *q, enum history_table t)
{
	json_t *row = json_object();
	int failed = 0;

	for (size_t i = 0; i < table_columns(t); i++) {
		const struct column_info *c = &column_info[table_info[t].first + i];

		failed |= json_object_set_new(row, c->name, json_value(q, (int)i, c->kind));
	}
	if (failed) {
		json_decref(row);
		return NULL;
	}
	return row;
}

static int add_notes(json_t *doc, const struct history_notes *notes)
{
	json_t *array = json_array();
	int failed = 0;

	for (size_t i = 0; i < notes->n; i++)
		failed |= json_array_append_new(array, json_text(notes->text[i]));
	return failed | json_object_set_new(doc, "history_warnings", array);
}

/* Takes doc, which may be NULL. */
static int finish(json_t *doc, const struct history_notes *notes, char **ret, struct brig_error *err)
{
	char *text = NULL;

	if (doc && !add_notes(doc, notes))
		text = json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

static int begin(struct query *q, const char *sql)
{
	if (q->st)
		(void)q->db.api.finalize(q->st);
	q->st = NULL;
	return db_prepare(&q->db, sql, &q->st, q->err);
}

static void close_query(struct query *q)
{
	if (q->st)
		(void)q->db.api.finalize(q->st);
	db_close(&q->db);
}

/* A database that turns out to be no good is set aside: 0, with a note.  Else what happened stands. */
static int after_failure(struct query *q, const struct history_place *place, struct history_notes *notes, int rc)
{
	AUTO_FD lock = FD_NONE;

	if (!q->db.damaged)
		return rc;
	lock = history_lock(place, HISTORY_PATIENCE, q->err);
	if (lock < 0)
		return lock;
	if (db_is_in_place(&q->db, place->dir)) /* otherwise another process was faster */
		rc = history_set_db_aside(place, notes, q->err);
	else
		rc = 0;
	close_query(q);
	*q = (struct query){ .err = q->err };
	return rc;
}

/* ---- the list ------------------------------------------------------------------------------------ */

#define LIST_WHERE                                                                                                   \
	" FROM executions e LEFT JOIN usage u ON u.execution = e.n"                                                  \
	" WHERE (?1 IS NULL OR e.verdict = ?1) AND (?2 IS NULL OR e.language = ?2) AND (?3 IS NULL OR e.trust = ?3)" \
	" AND e.at_ns >= ?4 AND e.at_ns < ?5 AND (?7 IS NULL OR e.who = ?7)"                                         \
	" AND (?8 IS NULL OR e.door = ?8 OR (?8 = 'none' AND e.door IS NULL))"

static const char list_sql[] =
	"SELECT e.id, e.at_ns, e.verdict, e.reason, e.exit_code, e.signal, e.step, e.language, e.backend, e.trust, "
	"e.uid, e.who, e.door,"
	" e.file_name, e.environment, u.wall_ms, u.cpu_ms, u.memory_peak_bytes,"
	" (SELECT count(*) FROM findings f WHERE f.execution = e.n) AS findings,"
	" (SELECT count(*) FROM evidence v WHERE v.execution = e.n AND NOT v.kept) AS broken,"
	" (SELECT x.sha256 FROM texts x WHERE x.execution = e.n AND x.stream = 'code') AS code_sha256" LIST_WHERE
	" ORDER BY e.at_ns DESC, e.n DESC LIMIT ?6";
static const char count_sql[] = "SELECT count(*)" LIST_WHERE;

static void bind_word(struct query *q, int at, const char *word)
{
	if (word && *word)
		(void)q->db.api.bind_text(q->st, at, word, -1, SQLITE_STATIC);
	else
		(void)q->db.api.bind_null(q->st, at);
}

static void bind_filter(struct query *q, const struct history_query *what)
{
	uint64_t until = what->until_ns ? what->until_ns : INT64_MAX;

	bind_word(q, 1, what->verdict);
	bind_word(q, 2, what->language);
	bind_word(q, 3, what->trust);
	bind_word(q, 7, what->who);
	bind_word(q, 8, what->door);
	(void)q->db.api.bind_int64(q->st, 4, (int64_t)min_u64(what->since_ns, INT64_MAX));
	(void)q->db.api.bind_int64(q->st, 5, (int64_t)min_u64(until, INT64_MAX));
}

static int list_rows(struct query *q, const struct history_query *what, json_t *rows)
{
	int rc = begin(q, list_sql);

	if (rc < 0)
		return rc;
	bind_filter(q, what);
	(void)q->db.api.bind_int64(q->st, 6, (int64_t)min_u64(what->limit ? what->limit : ROWS_MAX, ROWS_MAX));
	while ((rc = db_step(&q->db, q->st, q->err)) == 1)
		if (json_array_append_new(rows, json_named_row(q)) < 0)
			return err_nomem(q->err);
	return rc;
}

static int count_rows(struct query *q, const struct history_query *what, int64_t *ret)
{
	int rc = begin(q, count_sql);

	if (rc < 0)
		return rc;
	bind_filter(q, what);
	rc = db_step(&q->db, q->st, q->err);
	*ret = rc == 1 ? q->db.api.column_int64(q->st, 0) : 0;
	return rc < 0 ? rc : 0;
}

int history_list_json(const struct history_place *place, const struct history_query *what, struct history_notes *notes,
		      char **ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	struct query q = { .err = &why };
	json_t *rows = json_array();
	int64_t total = 0;
	int rc = db_open(&q.db, place->dir, DB_READ, &why);

	if (rc == 0)
		rc = list_rows(&q, what, rows);
	if (rc == 0)
		rc = count_rows(&q, what, &total);
	if (rc < 0 && why.sys == ENOENT)
		rc = 0; /* nothing was recorded yet */
	if (rc < 0)
		rc = after_failure(&q, place, notes, rc);
	close_query(&q);
	if (rc < 0) {
		json_decref(rows);
		if (err)
			*err = why;
		return rc;
	}
	return finish(json_pack("{s:o, s:I}", "executions", rows, "total", (json_int_t)total), notes, ret, err);
}

/* ---- one execution -------------------------------------------------------------------------------- */

static int select_table(struct query *q, enum history_table t, int64_t n)
{
	AUTO_BUF sql = BUF_INIT(2048);
	int rc;

	buf_adds(&sql, "SELECT ");
	for (size_t i = 0; i < table_columns(t); i++)
		buf_addf(&sql, "%s\"%s\"", i > 0 ? ", " : "", column_info[table_info[t].first + i].name);
	buf_addf(&sql, " FROM \"%s\" WHERE %s = ?1%s", table_info[t].name, t == TABLE_executions ? "n" : "execution",
		 table_info[t].many ? " ORDER BY seq" : "");
	if (sql.full || sql.no_memory)
		return err_nomem(q->err);
	rc = begin(q, buf_str(&sql));
	if (rc == 0)
		(void)q->db.api.bind_int64(q->st, 1, n);
	return rc;
}

/* code, stdout, stderr: objects of their own, with what is kept as text or base64. */
static json_t *json_kept(struct query *q, json_t *row)
{
	const void *data = q->db.api.column_blob(q->st, COLUMN_texts_data - FIRST_texts);
	size_t len = (size_t)q->db.api.column_bytes(q->st, COLUMN_texts_data - FIRST_texts);
	bool kept = q->db.api.column_type(q->st, COLUMN_texts_data - FIRST_texts) != SQLITE_NULL;
	const char *encoding = NULL;
	int failed = json_object_del(row, "data");
	json_t *text =
		kept ? json_bytes(data ? data : "", len, json_is_true(json_object_get(row, "truncated")), &encoding)
		     : json_null();

	failed |= json_object_del(row, "stream");
	failed |= json_object_set_new(row, "kept", json_boolean(kept));
	failed |= json_object_set_new(row, "text", text);
	failed |= json_object_set_new(row, "encoding", encoding ? json_string(encoding) : json_null());
	if (failed) {
		json_decref(row);
		return NULL;
	}
	return row;
}

static int add_text(struct query *q, json_t *doc, json_t *row)
{
	static const char *const streams[] = { "code", "stdout", "stderr" };
	const char *stream = json_string_value(json_object_get(row, "stream"));

	for (size_t i = 0; stream && i < ARRAY_LEN(streams); i++)
		if (str_eq(stream, streams[i]))
			return json_object_set_new(doc, streams[i], json_kept(q, row));
	json_decref(row); /* a later version's */
	return 0;
}

static int add_row(struct query *q, json_t *doc, enum history_table t)
{
	json_t *row = json_table_row(q, t);

	if (!row)
		return -1;
	switch (t) {
	case TABLE_executions: {
		int failed =
			json_object_set_new(doc, "time", json_time(json_integer_value(json_object_get(row, "at_ns"))));

		failed |= json_object_del(row, "at_ns") | json_object_update(doc, row);
		json_decref(row);
		return failed;
	}
	case TABLE_texts:
		return add_text(q, doc, row);
	case TABLE_warnings: {
		int failed = json_array_append(json_object_get(doc, "warnings"), json_object_get(row, "text"));

		json_decref(row);
		return failed;
	}
	default:
		return table_info[t].many ? json_array_append_new(json_object_get(doc, table_info[t].name), row)
					  : json_object_set_new(doc, table_info[t].name, row);
	}
}

static int add_table(struct query *q, json_t *doc, enum history_table t, int64_t n)
{
	bool is_part = t != TABLE_executions && t != TABLE_texts;
	int rc;

	if (is_part &&
	    json_object_set_new(doc, table_info[t].name, table_info[t].many ? json_array() : json_null()) < 0)
		return err_nomem(q->err);
	rc = select_table(q, t, n);
	if (rc < 0)
		return rc;
	while ((rc = db_step(&q->db, q->st, q->err)) == 1)
		if (add_row(q, doc, t) != 0)
			return err_nomem(q->err);
	return rc;
}

static int is_ambiguous(struct query *q, const char *prefix, const char *first)
{
	AUTO_BUF names = BUF_INIT(400);

	buf_adds(&names, first);
	do
		buf_addf(&names, ", %s", q->db.api.column_text(q->st, 1));
	while (db_step(&q->db, q->st, q->err) == 1);
	return err_set(q->err, BRIG_E_USAGE, 0, "more than one execution begins with '%s': %s; give more of the id",
		       prefix, buf_str(&names));
}

/* The newest one. */
static int find_youngest(struct query *q, int64_t *ret)
{
	int rc = begin(q, "SELECT n FROM executions ORDER BY at_ns DESC, n DESC LIMIT 1");

	if (rc == 0)
		rc = db_step(&q->db, q->st, q->err);
	if (rc == 0)
		return err_set(q->err, BRIG_E_USAGE, ENOENT, "nothing was recorded yet");
	if (rc == 1)
		*ret = q->db.api.column_int64(q->st, 0);
	return rc < 0 ? rc : 0;
}

/* The number of the one execution whose id begins so. */
static int find_execution(struct query *q, const char *prefix, int64_t *ret)
{
	char first[RUN_ID_LEN + 1];
	int rc = begin(q, "SELECT n, id FROM executions WHERE id >= ?1 AND id < ?1 || '~' ORDER BY at_ns DESC, n DESC "
			  "LIMIT 4");

	if (rc < 0)
		return rc;
	bind_word(q, 1, prefix);
	rc = db_step(&q->db, q->st, q->err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(q->err, BRIG_E_USAGE, ENOENT, "no execution begins with '%s'; 'brig history' lists them",
			       prefix);
	*ret = q->db.api.column_int64(q->st, 0);
	(void)snprintf(first, sizeof(first), "%s", (const char *)q->db.api.column_text(q->st, 1));
	rc = db_step(&q->db, q->st, q->err);
	return rc == 1 ? is_ambiguous(q, prefix, first) : rc;
}

static int check_prefix(const char *prefix, struct brig_error *err)
{
	size_t len = prefix ? strlen(prefix) : 0;

	if (!prefix)
		return 0;
	if (len == 0 || len > RUN_ID_LEN || strspn(prefix, ID_ALPHABET) != len)
		return err_set(
			err, BRIG_E_USAGE, 0,
			"'%.40s' is no id and no beginning of one: ids have %d letters and digits; 'brig history' "
			"lists them",
			prefix, RUN_ID_LEN);
	return 0;
}

static int show(struct query *q, const char *prefix, json_t *doc)
{
	int64_t n = 0;
	int rc = prefix ? find_execution(q, prefix, &n) : find_youngest(q, &n);

	for (enum history_table t = 0; rc == 0 && t < TABLE_COUNT; t++)
		rc = add_table(q, doc, t, n);
	return rc;
}

int history_show_json(const struct history_place *place, const char *prefix, struct history_notes *notes, char **ret,
		      struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	struct query q = { .err = &why };
	json_t *doc;
	int rc = check_prefix(prefix, err);

	if (rc < 0)
		return rc;
	doc = json_object();
	rc = doc ? db_open(&q.db, place->dir, DB_READ, &why) : err_nomem(&why);
	if (rc == 0)
		rc = show(&q, prefix, doc);
	if (rc < 0 && q.db.damaged && after_failure(&q, place, notes, rc) == 0)
		rc = err_set(&why, BRIG_E_SYSTEM, 0, "%s",
			     notes->n ? notes->text[notes->n - 1] : "the history is damaged");
	close_query(&q);
	if (rc < 0) {
		json_decref(doc);
		if (err)
			*err = why;
		return rc;
	}
	return finish(doc, notes, ret, err);
}
