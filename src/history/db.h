/* SPDX-License-Identifier: Apache-2.0 */
/* The database of the history: opening it, its schema, statements. */
#ifndef HISTORY_DB_H
#define HISTORY_DB_H

#include "history/sqlite.h"
#include "history/tables.h"
#include "sys/statedir.h"

#define DB_NAME "history.db"

struct db {
	struct sqlite api;
	sqlite3 *handle;
	char path[STATEDIR_PATH_MAX + 32];
	uint64_t device, inode; /* of the file that was opened */
	bool damaged;           /* the last failure was that the file is no good: not a database, or a broken one */
};

enum db_mode {
	DB_WRITE, /* made if it is not there, brought up to the present schema */
	DB_READ,  /* as it is; -BRIG_E_SYSTEM with err->sys ENOENT if it is not there */
};

int db_open(struct db *db, const struct statedir *d, enum db_mode mode, struct brig_error *err);
void db_close(struct db *db);
#define AUTO_DB           \
	CLEANUP(db_close) \
	struct db

/* Whether the name still stands for the file that was opened. */
bool db_is_in_place(const struct db *db, const struct statedir *d);

/* Fills *err with what SQLite says. */
int db_trouble(struct db *db, const char *what, struct brig_error *err);
int db_exec(struct db *db, const char *sql, struct brig_error *err);
/* The statement is the caller's to finalize. */
int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret, struct brig_error *err);
/* 1: there is a row; 0: that was all. */
int db_step(struct db *db, sqlite3_stmt *st, struct brig_error *err);
/* The one number that a query gives. */
int db_number(struct db *db, const char *sql, int64_t *ret, struct brig_error *err);

#endif
