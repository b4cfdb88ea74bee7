/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.c - the spool becomes rows of the database.
 *
 *	1. lock        one at a time; the lock is its own file, so that runs do not wait for it
 *	2. take        the spool is renamed; runs begin another
 *	3. commit      all its records, in one transaction
 *	4. remove      the taken spool
 *	5. retain      what is too old or too much goes
 *
 * Being killed before 3 is over leaves the taken spool, which the next one brings in; between 3 and 4 it leaves it too,
 * and then every execution in it already exists and is skipped by its id.  So nothing is lost or duplicated.  What
 * cannot be read, a damaged spool or database, is renamed and reported.
 */
#include "history/ingest.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "history/spool.h"
#include "history/packed.h"

#define LOCK_NAME  "history.lock"
#define TAKES_MAX  4 /* spools brought in by one call: one that was left, one that is there, and what came meanwhile */
#define INSERT_MAX 2048

struct ingest {
	const struct history_place *place;
	struct db db;
	sqlite3_stmt *insert[TABLE_COUNT];
	size_t unreadable; /* records that say something we do not understand */
	struct brig_error *err;
};

void history_note(struct history_notes *notes, const char *fmt, ...)
{
	va_list ap;

	if (notes->n == HISTORY_NOTES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(notes->text[notes->n++], RESULT_TEXT_MAX, fmt, ap);
	va_end(ap);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* How many parameters come before the columns: the execution, and its row's number. */
static int keys_of(enum history_table t)
{
	return t == TABLE_executions ? 0 : table_info[t].many ? 2 : 1;
}

static int prepare_insert(struct ingest *in, enum history_table t)
{
	static const char *const keys[] = { "", "execution, ", "execution, seq, " };
	AUTO_BUF sql = BUF_INIT(INSERT_MAX);
	size_t n = table_columns(t);

	buf_addf(&sql, "INSERT OR IGNORE INTO \"%s\" (%s", table_info[t].name, keys[keys_of(t)]);
	for (size_t i = 0; i < n; i++)
		buf_addf(&sql, "%s\"%s\"", i > 0 ? ", " : "", column_info[table_info[t].first + i].name);
	buf_adds(&sql, ") VALUES (");
	for (size_t i = 0; i < n + (size_t)keys_of(t); i++)
		buf_adds(&sql, i > 0 ? ", ?" : "?");
	buf_adds(&sql, ")");
	if (sql.full || sql.no_memory)
		return err_nomem(in->err);
	return db_prepare(&in->db, buf_str(&sql), &in->insert[t], in->err);
}

/* Text that is not UTF-8 would be a puzzle for every other reader of the database: it is kept as bytes. */
static int bind_bytes(struct ingest *in, sqlite3_stmt *st, int at, enum column_kind kind, const struct packed_value *v)
{
	if (kind == KIND_OF_TEXT && str_is_utf8(v->data, v->len))
		return in->db.api.bind_text(st, at, v->data, (int)v->len, SQLITE_STATIC);
	return in->db.api.bind_blob(st, at, v->len ? v->data : "", (int)v->len, SQLITE_STATIC);
}

static int bind_value(struct ingest *in, sqlite3_stmt *st, int at, enum column_kind kind, const struct packed_value *v)
{
	switch (v->kind) {
	case PACKED_NUM:
		return in->db.api.bind_int64(st, at, v->num);
	case PACKED_REAL:
		return in->db.api.bind_double(st, at, v->real);
	case PACKED_BYTES:
		return bind_bytes(in, st, at, kind, v);
	case PACKED_NULL:
		break;
	}
	return in->db.api.bind_null(st, at);
}

/* 1: it is a new one; 0: there was such a row already. */
static int insert_row(struct ingest *in, const struct packed_row *row, int64_t execution, size_t seq)
{
	enum history_table t = row->table;
	int first = keys_of(t) + 1, rc = 0;
	sqlite3_stmt *st;

	if (!in->insert[t] && prepare_insert(in, t) < 0)
		return -1;
	st = in->insert[t];
	(void)in->db.api.reset(st);
	(void)in->db.api.clear_bindings(st); /* columns of which the record says nothing are null */
	if (first > 1)
		rc |= in->db.api.bind_int64(st, 1, execution);
	if (first > 2)
		rc |= in->db.api.bind_int64(st, 2, (int64_t)seq);
	for (size_t i = 0; i < row->n && i < table_columns(t); i++)
		rc |= bind_value(in, st, first + (int)i, column_info[table_info[t].first + i].kind, &row->value[i]);
	if (rc != SQLITE_OK)
		return db_trouble(&in->db, "write", in->err);
	rc = db_step(&in->db, st, in->err);
	(void)in->db.api.reset(st); /* lets go of the record's bytes */
	return rc < 0 ? rc : in->db.api.changes(in->db.handle) > 0;
}

/* One record of the spool. */
static int insert_record(void *arg, const void *data, size_t len)
{
	struct ingest *in = arg;
	size_t seq[TABLE_COUNT] = { 0 };
	char id[RUN_ID_LEN + 1];
	struct packed_reader r;
	struct packed_row row;
	int64_t execution;
	int rc;

	if (!packed_check(data, len, id)) {
		in->unreadable++;
		return 0;
	}
	(void)packed_open(&r, data, len);
	(void)packed_next(&r, &row);
	rc = insert_row(in, &row, 0, 0);
	if (rc <= 0)
		return rc; /* it was brought in before */
	execution = in->db.api.last_insert_rowid(in->db.handle);
	while (rc >= 0 && packed_next(&r, &row) == 1)
		if (row.table < TABLE_COUNT)
			rc = insert_row(in, &row, execution, seq[row.table]++);
	history_point(in->place, "record");
	return rc < 0 ? rc : 0;
}

/* ---- a spool -------------------------------------------------------------------------------------- */

/* The whole file, on the heap. */
static int read_taken(const struct statedir *d, char **ret, size_t *ret_len, struct brig_error *err)
{
	AUTO_FD fd = statedir_open_file(d, SPOOL_TAKEN_NAME, O_RDONLY, err);
	AUTO_FREE char *data = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return statedir_trouble(err, errno, "cannot look at", d->path, SPOOL_TAKEN_NAME);
	/* None of our writers makes it larger.  The rest is left unread, and the file is set aside. */
	*ret_len = (size_t)min_u64((uint64_t)st.st_size, SPOOL_MAX + 1);
	data = malloc(*ret_len + 1);
	if (!data)
		return err_nomem(err);
	n = fd_read_all(fd, data, *ret_len);
	if (n < 0)
		return statedir_trouble(err, (int)-n, "cannot read", d->path, SPOOL_TAKEN_NAME);
	*ret_len = (size_t)n;
	*ret = MOVE_PTR(data);
	return 0;
}

static int remove_taken(struct ingest *in, const struct spool_report *report, size_t len, struct history_notes *notes)
{
	const struct statedir *d = in->place->dir;
	char aside[NAME_MAX];
	int rc;

	if (report->damaged_bytes == 0 && in->unreadable == 0 && len <= SPOOL_MAX) {
		if (unlinkat(d->fd, SPOOL_TAKEN_NAME, 0) < 0)
			return statedir_trouble(in->err, errno, "cannot remove", d->path, SPOOL_TAKEN_NAME);
		return 0;
	}
	rc = spool_set_aside(d, SPOOL_TAKEN_NAME, aside, sizeof(aside), in->err);
	if (rc < 0)
		return rc;
	history_note(
		notes,
		"the history lost what could not be read: %zu bytes of the spool are damaged and %zu records are not "
		"understood; the file is kept as '%.200s/%s'",
		report->damaged_bytes, in->unreadable, d->path, aside);
	return 0;
}

static int bring_in(struct ingest *in, struct history_notes *notes)
{
	struct spool_report report;
	AUTO_FREE char *data = NULL;
	size_t len = 0;
	int rc = read_taken(in->place->dir, &data, &len, in->err);

	if (rc < 0)
		return rc;
	in->unreadable = 0;
	rc = db_exec(&in->db, "BEGIN IMMEDIATE;", in->err);
	if (rc < 0)
		return rc;
	rc = spool_scan(data, len, insert_record, in, &report);
	history_point(in->place, "inserted");
	if (rc == 0)
		rc = db_exec(&in->db, "COMMIT;", in->err);
	if (rc < 0) {
		bool damaged = in->db.damaged;

		(void)db_exec(&in->db, "ROLLBACK;", NULL);
		in->db.damaged = damaged;
		return rc;
	}
	history_point(in->place, "committed");
	rc = remove_taken(in, &report, len, notes);
	history_point(in->place, "removed");
	return rc;
}

/* ---- the database --------------------------------------------------------------------------------- */

static void close_ingest(struct ingest *in)
{
	for (size_t t = 0; t < TABLE_COUNT; t++)
		if (in->insert[t])
			(void)in->db.api.finalize(MOVE_PTR(in->insert[t]));
	db_close(&in->db);
}

int history_set_db_aside(const struct history_place *place, struct history_notes *notes, struct brig_error *err)
{
	const struct statedir *d = place->dir;
	char aside[NAME_MAX], wal[NAME_MAX + 8];
	int rc = spool_set_aside(d, DB_NAME, aside, sizeof(aside), err);

	if (rc < 0)
		return rc;
	/* Its log goes with it; without the database it would be taken for the new one's. */
	(void)snprintf(wal, sizeof(wal), "%s-wal", aside);
	(void)renameat(d->fd, DB_NAME "-wal", d->fd, wal);
	(void)unlinkat(d->fd, DB_NAME "-shm", 0);
	history_note(notes, "the history was damaged and begins anew; what there was is kept as '%.200s/%s'", d->path,
		     aside);
	return 0;
}

/* Once more with a new database, if this one is no good. */
static int bring_in_somehow(struct ingest *in, bool taken, struct history_notes *notes)
{
	int rc = -1;

	for (int tries = 0; tries < 2; tries++) {
		rc = in->db.handle ? 0 : db_open(&in->db, in->place->dir, DB_WRITE, in->err);
		if (rc == 0 && taken)
			rc = bring_in(in, notes);
		if (rc == 0 || !in->db.damaged)
			return rc;
		close_ingest(in);
		rc = history_set_db_aside(in->place, notes, in->err);
		if (rc < 0)
			return rc;
	}
	return rc;
}

bool history_has_database(const struct history_place *place)
{
	struct stat st;

	return fstatat(place->dir->fd, DB_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int ingest_locked(struct ingest *in, const struct history_retention *keep, struct history_notes *notes)
{
	bool taken = true;
	int rc = 0;

	for (int i = 0; rc == 0 && taken && i < TAKES_MAX; i++) {
		rc = spool_take(in->place->dir, &taken, in->err);
		history_point(in->place, "taken");
		if (rc == 0 && (taken || (i == 0 && history_has_database(in->place))))
			rc = bring_in_somehow(in, taken, notes);
	}
	if (rc == 0 && in->db.handle)
		rc = history_retain(&in->db, keep, clock_wall_ns(), in->err);
	return rc;
}

int history_lock(const struct history_place *place, uint64_t patience_ns, struct brig_error *err)
{
	AUTO_FD lock = statedir_open_file(place->dir, LOCK_NAME, O_RDWR | O_CREAT, err);
	int rc;

	if (lock < 0)
		return lock;
	rc = fd_lock(lock, LOCK_EX, patience_ns);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot lock", place->dir->path, LOCK_NAME);
	return fd_move(&lock);
}

int history_ingest(const struct history_place *place, const struct history_retention *keep, uint64_t patience_ns,
		   struct history_notes *notes, struct brig_error *err)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	struct ingest in = { .place = place, .err = err ? err : &ignored };
	AUTO_FD lock = history_lock(place, patience_ns, in.err);
	int rc;

	if (lock < 0)
		return lock;
	rc = ingest_locked(&in, keep, notes);
	close_ingest(&in);
	return rc;
}
