/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was tried, in memory that the proxy process shares with the supervisor.  The proxy reads bytes of the program,
 * so the supervisor believes nothing in here: it looks when that process is dead, copies what is in bounds and drops
 * the rest. The refused have one half of the rows and the others the other one: filling the first hides nothing in the
 * second.
 */
#ifndef EGRESS_TABLE_H
#define EGRESS_TABLE_H

#include "egress/rules.h"
#include "egress/why.h"
#include "model/attempts.h"

#define TABLE_ROWS       (NETWORK_MAX / 2)
#define TABLE_DETAIL_MAX 72

struct table_row {
	char host[HOST_TEXT_MAX];
	uint16_t port;
	uint8_t why; /* enum why */
	char detail[TABLE_DETAIL_MAX];
	uint64_t count, sent, received;
};

struct table_half {
	uint32_t n;
	struct table_row row[TABLE_ROWS];
};

struct table {
	struct table_half half[2]; /* let through, refused */
	uint64_t dropped;
};

/* Counts one more attempt.  Its row; NULL if there was no room. */
struct table_row *table_note(struct table *t, const char *host, uint16_t port, enum why why, const char *detail);
/* Everything that makes sense, into the result. */
void table_read(const struct table *t, struct network *net, struct denied *denied);
/* Bytes that have come so far; may be asked while the proxy runs, and is only for people to see. */
uint64_t table_received(const struct table *t);
/* What no row of the table can tell. */
void table_report(enum why why, struct network *net, struct denied *denied);

#endif
