/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution as bytes, on its way from a run to the database.
 *
 *	version (1 byte), then rows: table (1 byte), number of values (1 byte), values
 *	value: '0' null | 'n' 8 bytes | 'r' 8 bytes | 's' length (4 bytes) and as many bytes
 *
 * Numbers are in the byte order of the machine: a spool never leaves it.  The first row is the execution's own.  Values
 * stand for the columns of tables.def by position; what a reader does not know, a table or a column of a later version,
 * it passes over.
 */
#ifndef HISTORY_PACKED_H
#define HISTORY_PACKED_H

#include "base/buf.h"
#include "history/tables.h"

#define PACKED_VERSION 1

struct packed_writer {
	struct buf *out;
	size_t count_at; /* place of the present row's number of values; 0: there is none */
};

void packed_begin(struct packed_writer *w, struct buf *out);
void packed_row(struct packed_writer *w, enum history_table table);
void packed_null(struct packed_writer *w);
/* More than 63 bits, "unlimited", becomes the largest number. */
void packed_num(struct packed_writer *w, uint64_t v);
void packed_real(struct packed_writer *w, double v);
void packed_bytes(struct packed_writer *w, const void *data, size_t len);
void packed_text(struct packed_writer *w, const char *s);
/* "" becomes null. */
void packed_text_or_null(struct packed_writer *w, const char *s);

enum packed_kind { PACKED_NULL, PACKED_NUM, PACKED_REAL, PACKED_BYTES };

struct packed_value {
	enum packed_kind kind;
	int64_t num;
	double real;
	const char *data; /* into the record */
	size_t len;
};

struct packed_row {
	unsigned table; /* enum history_table, or beyond it */
	size_t n;
	struct packed_value value[TABLE_COLUMNS_MAX];
};

struct packed_reader {
	const char *at;
	size_t left;
};

/* False: not a record that we can read. */
bool packed_open(struct packed_reader *r, const void *data, size_t len);
/* 1: there was a row; 0: that was all; -1: malformed. */
int packed_next(struct packed_reader *r, struct packed_row *ret);
/* Where the value of this column begins, counted from the execution's own first, in a record that was checked; 0: there is none. */
size_t packed_place(const void *data, size_t len, unsigned column);
/* Whether the whole record can be read and says whose it is.  ret_id has room for RUN_ID_LEN + 1. */
bool packed_check(const void *data, size_t len, char *ret_id);

#endif
