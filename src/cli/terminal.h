/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's terminal while a session's program uses it: each key goes to the program, and the program's output
 * controls the terminal.
 *
 * A terminal left in raw mode is unusable, so its state is restored whatever happens to this process: a small helper
 * process (the guardian) waits on a pipe for our exit, and restores the state if we could not (kill -9, a crash).
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <sys/types.h>
#include <termios.h>

#include "base/err.h"

struct terminal {
	int fd;
	struct termios before;
	int word; /* pipe to the guardian */
	pid_t guardian;
	bool is_raw;
};
#define TERMINAL_INIT                                          \
	{                                                      \
		.fd = FD_NONE, .word = FD_NONE, .guardian = -1 \
	}

/* Switches to raw mode; 0 or -code. */
int terminal_begin(struct terminal *t, int fd, struct brig_error *err);
/* Restores the state; raw again.  Both are idempotent. */
void terminal_restore(struct terminal *t);
void terminal_raw_again(struct terminal *t);
/* Restores the state, and ends the guardian. */
void terminal_end(struct terminal *t);
/* False: unknown. */
bool terminal_size(int fd, uint64_t *ret_rows, uint64_t *ret_columns);

#endif
