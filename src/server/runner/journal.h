/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An append-only file of lines in STATE/serve, for state that must survive the runner.
 *
 * Committed lines have been handed to the kernel: only a crash of the host can lose them, and with to_disk not even
 * that.  A crash may truncate the last line, which then has no newline and is ignored.  Any other line that the reader
 * does not know means that something else wrote to the file: the file is refused as a whole, with advice, instead of
 * being used in part.  A file that has grown too large is replaced atomically by one with the lines still needed.
 */
#ifndef SERVER_RUNNER_JOURNAL_H
#define SERVER_RUNNER_JOURNAL_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/statedir.h"

#define JOURNAL_LINE_MAX 512
#define JOURNAL_FILE_MAX (16 * MiB) /* rewritten when larger */

struct journal {
	const struct statedir *dir; /* borrowed from the caller while the journal is open */
	const char *name;
	int fd;
	uint64_t bytes;     /* size of the file */
	struct buf pending; /* lines not written yet; users append to it */
};
#define JOURNAL_INIT                                        \
	{                                                   \
		.fd = FD_NONE, .pending = BUF_INIT(4 * MiB) \
	}

/*
 * Passes each line, without its newline, to take(), which returns false for an invalid line.  loss: the consequence of
 * removing the file, for the error message.  A missing file is empty.  Must be followed by journal_replace().
 */
int journal_open(struct journal *j, const struct statedir *dir, const char *name, const char *loss,
		 bool (*take)(void *arg, const char *line), void *arg, struct brig_error *err);
/* Opens such a file for reading; *ret is unchanged if there is none.  The caller closes it. */
int journal_open_file(const struct statedir *dir, const char *name, FILE **ret, struct brig_error *err);
/* Replaces the file by these lines; later commits append to it. */
int journal_replace(struct journal *j, const struct buf *lines, struct brig_error *err);
bool journal_has_grown(const struct journal *j);
/* Writes pending lines; with to_disk they are on disk on return.  After a failure they are lost. */
int journal_commit(struct journal *j, bool to_disk, struct brig_error *err);
void journal_close(struct journal *j);

#endif
