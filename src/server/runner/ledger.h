/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of asynchronous executions that were promised (STATE/serve/ledger), so that each of them ends or is known
 * to be lost, whatever happens to this process.
 *
 * One line is appended for each promise and for each end:
 *
 *	a ID SECONDS TOKEN      accepted; on disk before the client is answered (ledger_commit)
 *	e ID SECONDS VERDICT    ended; handed to the kernel, so only a crash of the host could lose it
 *
 * At startup, promises without an end are looked up in the history and otherwise marked lost; then the file is
 * rewritten with the promises of the last week, at most LEDGER_PAST_MAX.
 */
#ifndef SERVER_RUNNER_LEDGER_H
#define SERVER_RUNNER_LEDGER_H

#include "base/buf.h"
#include "base/err.h"
#include "server/runner/executions.h"
#include "server/runner/journal.h"
#include "sys/statedir.h"

#define LEDGER_NAME     "ledger"
#define LEDGER_PAST_MAX 10000
#define LEDGER_PAST_S   (7 * 24 * 3600)
#define LEDGER_FILE_MAX (64 * MiB) /* rewritten when larger */
#define LEDGER_LOST     "lost"

/* A promise made by an earlier process. */
struct ledger_past {
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	char verdict[TOKEN_WORD_MAX + 1]; /* LEDGER_LOST: it never ended */
	uint64_t accepted_s, ended_s;
};

struct ledger {
	struct statedir dir;
	struct journal journal; /* for writing only; the file is read in two passes, and invalid lines are ignored */
	struct ledger_past *past;
	size_t n_past;
};
#define LEDGER_INIT                                           \
	{                                                     \
		.dir = STATEDIR_INIT, .journal = JOURNAL_INIT \
	}

/* Reads the file, looks up promises without an end in the history, rewrites the file. */
int ledger_open(struct ledger *l, const char *state_dir, struct brig *b, struct brig_error *err);
void ledger_close(struct ledger *l);
const struct ledger_past *ledger_find(const struct ledger *l, const char *id);

void ledger_accept(struct ledger *l, const char *id, const char *owner);
void ledger_end(struct ledger *l, const char *id, const char *verdict);
/* Writes pending lines; with to_disk they are on disk on return. */
int ledger_commit(struct ledger *l, bool to_disk, struct brig_error *err);

#endif
