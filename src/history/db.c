/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.c - the schema is made from tables.def.  executions has a number of its own, n; every other table names it in its
 * column execution and, where an execution has several rows, counts them in seq.  Both are the key, so that what
 * belongs to one execution lies together and goes with it.
 */
#include "history/db.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "history/history.h"

#define APPLICATION_ID 0x62726967 /* "brig" */
#define BUSY_MS        10000
#define SCHEMA_MAX     (32 * KiB)
#define FAILURES_DAMAGE                                      \
	{                                                    \
		SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT \
	}

/*
 * What brings a database of version i + 1 to version i + 2; a new one is made from tables.def as it is now.  To change
 * the schema: append the statements here.
 */
static const char *const migrations[] = {
	"ALTER TABLE executions ADD COLUMN trust_source TEXT;",
	"ALTER TABLE executions ADD COLUMN environment TEXT;",
	"ALTER TABLE executions ADD COLUMN door TEXT;",
	NULL,
};
#define SCHEMA_VERSION HISTORY_VERSION
static_assert(SCHEMA_VERSION == ARRAY_LEN(migrations), "each version but the first has its migration, and a NULL");

/* ---- failures ------------------------------------------------------------------------------------ */

static int code_of(struct db *db)
{
	return db->handle ? db->api.extended_errcode(db->handle) & 0xff : SQLITE_NOMEM;
}

int db_trouble(struct db *db, const char *what, struct brig_error *err)
{
	static const struct {
		int code, sys;
		const char *advice;
	} known[] = {
		{ SQLITE_FULL, ENOSPC, "; make room on that disk" },
		{ SQLITE_READONLY, EROFS, "; make it writable for this user" },
		{ SQLITE_CANTOPEN, EACCES, "; see who may read and write it" },
		{ SQLITE_PERM, EACCES, "; see who may read and write it" },
		{ SQLITE_BUSY, EBUSY, "; another process holds it: see what it is doing, and try again" },
		{ SQLITE_NOMEM, ENOMEM, "" },
	};
	static const int damage[] = FAILURES_DAMAGE;
	const char *why = db->handle ? db->api.errmsg(db->handle) : "no memory", *advice = "";
	int code = code_of(db), sys = EIO;

	db->damaged = false;
	for (size_t i = 0; i < ARRAY_LEN(damage); i++)
		db->damaged |= damage[i] == code;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].code == code) {
			sys = known[i].sys;
			advice = known[i].advice;
		}
	(void)err_set(err, BRIG_E_SYSTEM, 0, "cannot %s '%.200s': %.120s%s", what, db->path, why, advice);
	if (err)
		err->sys = sys;
	return -BRIG_E_SYSTEM;
}

/* ---- statements ---------------------------------------------------------------------------------- */

int db_exec(struct db *db, const char *sql, struct brig_error *err)
{
	return db->api.exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_trouble(db, "write", err);
}

int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret, struct brig_error *err)
{
	return db->api.prepare_v2(db->handle, sql, -1, ret, NULL) == SQLITE_OK ? 0 : db_trouble(db, "read", err);
}

int db_step(struct db *db, sqlite3_stmt *st, struct brig_error *err)
{
	int rc = db->api.step(st);

	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return rc == SQLITE_ROW;
	return db_trouble(db, "use", err);
}

int db_number(struct db *db, const char *sql, int64_t *ret, struct brig_error *err)
{
	sqlite3_stmt *st = NULL;
	int rc = db_prepare(db, sql, &st, err);

	if (rc == 0)
		rc = db_step(db, st, err);
	if (rc == 1)
		*ret = db->api.column_int64(st, 0);
	else if (rc == 0)
		*ret = 0;
	db->api.finalize(st);
	return rc < 0 ? rc : 0;
}

/* ---- the schema ---------------------------------------------------------------------------------- */

static const char *column_type(enum column_kind kind)
{
	static const char *const type[] = {
		[KIND_OF_NUM] = "INTEGER", [KIND_OF_REAL] = "REAL",  [KIND_OF_BOOL] = "INTEGER",
		[KIND_OF_TEXT] = "TEXT",   [KIND_OF_BYTES] = "BLOB",
	};

	return type[kind];
}

static void add_table(struct buf *sql, enum history_table t)
{
	const struct table_info *info = &table_info[t];

	buf_addf(sql, "CREATE TABLE \"%s\" (", info->name);
	if (t == TABLE_executions)
		buf_adds(sql, "n INTEGER PRIMARY KEY");
	else
		buf_addf(sql, "execution INTEGER NOT NULL REFERENCES executions(n) ON DELETE CASCADE%s",
			 info->many ? ", seq INTEGER NOT NULL" : "");
	for (size_t i = 0; i < table_columns(t); i++) {
		const struct column_info *c = &column_info[info->first + i];

		buf_addf(sql, ", \"%s\" %s", c->name, column_type(c->kind));
	}
	if (t == TABLE_executions)
		buf_adds(sql, ");\nCREATE UNIQUE INDEX executions_id ON executions(id);\n"
			      "CREATE INDEX executions_at ON executions(at_ns);\n");
	else
		buf_addf(sql, ", PRIMARY KEY (execution%s)) WITHOUT ROWID;\n", info->many ? ", seq" : "");
}

static int make_schema(struct db *db, struct brig_error *err)
{
	AUTO_BUF sql = BUF_INIT(SCHEMA_MAX);

	for (enum history_table t = 0; t < TABLE_COUNT; t++)
		add_table(&sql, t);
	buf_addf(&sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID, SCHEMA_VERSION);
	if (sql.no_memory || sql.full)
		return err_nomem(err);
	return db_exec(db, buf_str(&sql), err);
}

static int migrate(struct db *db, int64_t version, struct brig_error *err)
{
	char pragma[64];
	int rc = 0;

	for (; rc == 0 && version < SCHEMA_VERSION; version++) {
		rc = db_exec(db, migrations[version - 1], err);
		(void)snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %lld;", (long long)version + 1);
		if (rc == 0)
			rc = db_exec(db, pragma, err);
	}
	return rc;
}

/* Inside a transaction, so that two processes cannot both find it missing. */
static int bring_up(struct db *db, struct brig_error *err)
{
	int64_t version = 0, id = 0;
	int rc = db_number(db, "PRAGMA user_version", &version, err);

	if (rc == 0)
		rc = db_number(db, "PRAGMA application_id", &id, err);
	if (rc < 0)
		return rc;
	if (version > SCHEMA_VERSION)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "'%.200s' was written by a newer brig (schema %lld, known here is %d): use that one",
			       db->path, (long long)version, SCHEMA_VERSION);
	if (version == 0)
		return make_schema(db, err);
	if (id != APPLICATION_ID) {
		db->damaged = true; /* a foreign database */
		return err_set(err, BRIG_E_SYSTEM, 0, "'%.200s' is not a history of brig", db->path);
	}
	return migrate(db, version, err);
}

static int bring_up_locked(struct db *db, struct brig_error *err)
{
	int64_t version = 0;
	int rc = db_number(db, "PRAGMA user_version", &version, err);

	if (rc < 0)
		return rc;
	if (version == 0) {
		/* Only before the first table: what goes must be able to give its pages back. */
		rc = db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL;", err);
		if (rc < 0)
			return rc;
	}
	rc = db_exec(db, "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE;", err);
	if (rc < 0)
		return rc;
	rc = bring_up(db, err);
	if (rc == 0)
		return db_exec(db, "COMMIT;", err);
	(void)db_exec(db, "ROLLBACK;", NULL);
	return rc;
}

/* ---- opening ------------------------------------------------------------------------------------- */

/* SQLite goes by path: by the folder's real one, and never over a link in its place. */
static int find_path(struct db *db, const struct statedir *d, bool *ret_there, struct brig_error *err)
{
	char proc[64], folder[STATEDIR_PATH_MAX];
	struct stat st;
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", d->fd);
	n = readlink(proc, folder, sizeof(folder) - 1);
	if (n < 0)
		return statedir_trouble(err, errno, "cannot find the folder of", d->path, DB_NAME);
	folder[n] = '\0';
	(void)snprintf(db->path, sizeof(db->path), "%s/%s", folder, DB_NAME);
	db->inode = 0;
	*ret_there = fstatat(d->fd, DB_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!*ret_there)
		return errno == ENOENT ? 0 : statedir_trouble(err, errno, "cannot look at", d->path, DB_NAME);
	db->device = st.st_dev;
	db->inode = st.st_ino;
	if (S_ISLNK(st.st_mode))
		return statedir_trouble(err, ELOOP, "cannot open", d->path, DB_NAME);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s' is not a regular file of this user: find out who put it there, then remove it",
			       db->path);
	return 0;
}

static int open_handle(struct db *db, const char *path, int flags, struct brig_error *err)
{
	int rc = db->api.open_v2(path, &db->handle, flags | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc != SQLITE_OK)
		return db_trouble(db, "open", err);
	(void)db->api.busy_timeout(db->handle, BUSY_MS);
	/* Every commit is on disk before the spool that it came from goes. */
	return db_exec(db, "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;", err);
}

static int open_to_write(struct db *db, const struct statedir *d, bool there, struct brig_error *err)
{
	int rc;

	if (!there) {
		/* Made here rather than by SQLite: no one else may read it, whatever the umask says. */
		AUTO_FD fd = statedir_open_file(d, DB_NAME, O_RDWR | O_CREAT, err);

		if (fd < 0)
			return fd;
	}
	rc = open_handle(db, db->path, SQLITE_OPEN_READWRITE, err);
	return rc < 0 ? rc : bring_up_locked(db, err);
}

/* As a URI, for a folder in which SQLite cannot make the files that it shares with writers: there are none then. */
static int open_unchanging(struct db *db, struct brig_error *err)
{
	AUTO_BUF uri = BUF_INIT(4 * sizeof(db->path));

	buf_adds(&uri, "file:");
	for (const char *c = db->path; *c; c++)
		if (*c == '?' || *c == '#' || *c == '%')
			buf_addf(&uri, "%%%02x", (unsigned)(unsigned char)*c);
		else
			buf_add(&uri, c, 1);
	buf_adds(&uri, "?immutable=1");
	return open_handle(db, buf_str(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
}

static int open_to_read(struct db *db, struct brig_error *err)
{
	int64_t version = 0;
	int rc = open_handle(db, db->path, SQLITE_OPEN_READONLY, err);

	if (rc == 0)
		rc = db_number(db, "PRAGMA user_version", &version, err);
	if (rc < 0 && !db->damaged) {
		db_close(db);
		rc = open_unchanging(db, err);
		if (rc == 0)
			rc = db_number(db, "PRAGMA user_version", &version, err);
	}
	if (rc == 0 && version == 0) /* it is just being created */
		return err_set(err, BRIG_E_SYSTEM, ENOENT, "there is nothing in '%.200s' yet", db->path);
	return rc;
}

int db_open(struct db *db, const struct statedir *d, enum db_mode mode, struct brig_error *err)
{
	bool there = false;
	int rc;

	*db = (struct db){ .handle = NULL };
	rc = find_path(db, d, &there, err);
	if (rc < 0)
		return rc;
	if (mode == DB_READ && !there)
		return err_set(err, BRIG_E_SYSTEM, ENOENT, "there is no history in '%.200s'", d->path);
	rc = sqlite_load(&db->api, err);
	if (rc < 0)
		return rc;
	rc = mode == DB_WRITE ? open_to_write(db, d, there, err) : open_to_read(db, err);
	if (rc < 0)
		db_close(db);
	return rc;
}

bool db_is_in_place(const struct db *db, const struct statedir *d)
{
	struct stat st;

	return fstatat(d->fd, DB_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == db->device &&
	       st.st_ino == db->inode;
}

void db_close(struct db *db)
{
	if (db->handle)
		(void)db->api.close_v2(db->handle);
	db->handle = NULL;
}
