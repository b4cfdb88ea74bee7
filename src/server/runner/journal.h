/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of lines in STATE/serve that the runner appends to, so that what it knows outlives it.
 *
 * Lines that were committed are the kernel's: only the host's own end could lose them, and not even that with to_disk.  That
 * may tear the last line, which then has no end and says nothing.  Any other line that its reader does not know means that
 * somebody else wrote in the file: it is refused as a whole, with what to do about it, rather than believed in part.  A file
 * that has grown is written anew with what is worth remembering, in one piece.
 */
#ifndef SERVER_RUNNER_JOURNAL_H
#define SERVER_RUNNER_JOURNAL_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/statedir.h"

#define JOURNAL_LINE_MAX 512
#define JOURNAL_FILE_MAX (16 * MiB) /* then it is written anew */

struct journal {
	const struct statedir *dir; /* the caller's, as long as the journal is open */
	const char *name;
	int fd;
	uint64_t bytes;     /* of the file */
	struct buf pending; /* lines that are not written yet: whoever uses the journal puts them here */
};
#define JOURNAL_INIT                                        \
	{                                                   \
		.fd = FD_NONE, .pending = BUF_INIT(4 * MiB) \
	}

/*
 * Hands each line, without its end, to take(), which gives false if it is none that it knows.  loss: what is forgotten if
 * the file is moved away, for the complaint.  No file is no lines.  journal_replace() must come next.
 */
int journal_open(struct journal *j, const struct statedir *dir, const char *name, const char *loss,
		 bool (*take)(void *arg, const char *line), void *arg, struct brig_error *err);
/* A file of lines, to be read; *ret stays what it is if there is none.  The caller's to fclose(). */
int journal_open_file(const struct statedir *dir, const char *name, FILE **ret, struct brig_error *err);
/* The file has these lines from now on, and whatever is committed behind them. */
int journal_replace(struct journal *j, const struct buf *lines, struct brig_error *err);
bool journal_has_grown(const struct journal *j);
/* Writes what is pending; with to_disk it is on disk when this returns.  After a failure what was pending is lost. */
int journal_commit(struct journal *j, bool to_disk, struct brig_error *err);
void journal_close(struct journal *j);

#endif
