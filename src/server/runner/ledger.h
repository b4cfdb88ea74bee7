/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which asynchronous executions were promised (STATE/serve/ledger): so that each of them is finished or known to be lost,
 * whatever happens to this process.
 *
 * One line for each promise and one for each end, appended:
 *
 *	a ID SECONDS TOKEN      accepted; on disk before the client is told (ledger_commit)
 *	e ID SECONDS VERDICT    ended; the kernel has it, so that only the host's own end could lose it
 *
 * When the service starts, whoever has no end and is not in the history is lost, and the file is written anew with what is
 * worth remembering: the youngest, for a week.
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
#define LEDGER_FILE_MAX (64 * MiB) /* then it is written anew */
#define LEDGER_LOST     "lost"

/* A promise of an earlier life of the service. */
struct ledger_past {
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	char verdict[TOKEN_WORD_MAX + 1]; /* LEDGER_LOST: it never ended */
	uint64_t accepted_s, ended_s;
};

struct ledger {
	struct statedir dir;
	struct journal
		journal; /* how it is written; it is read in two passes, and what is no line of ours says nothing */
	struct ledger_past *past;
	size_t n_past;
};
#define LEDGER_INIT                                           \
	{                                                     \
		.dir = STATEDIR_INIT, .journal = JOURNAL_INIT \
	}

/* Reads the file, asks the history for those without an end, writes it anew. */
int ledger_open(struct ledger *l, const char *state_dir, struct brig *b, struct brig_error *err);
void ledger_close(struct ledger *l);
const struct ledger_past *ledger_find(const struct ledger *l, const char *id);

void ledger_accept(struct ledger *l, const char *id, const char *owner);
void ledger_end(struct ledger *l, const char *id, const char *verdict);
/* Writes what is pending; with to_disk it is on disk when this returns. */
int ledger_commit(struct ledger *l, bool to_disk, struct brig_error *err);

#endif
