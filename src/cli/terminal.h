/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's terminal while a program of a session has it: each key goes to the program, and what the program prints steers
 * the terminal.
 *
 * A terminal left in raw mode is unusable, so its state is restored whatever happens to this process: a small helper
 * process waits on a pipe for our death, and restores it if we could not (kill -9, a crash).
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <sys/types.h>
#include <termios.h>

#include "base/err.h"

struct terminal {
	int fd;
	struct termios before;
	int word; /* to the guardian */
	pid_t guardian;
	bool is_raw;
};
#define TERMINAL_INIT                                          \
	{                                                      \
		.fd = FD_NONE, .word = FD_NONE, .guardian = -1 \
	}

/* Raw from now on; 0 or -code. */
int terminal_begin(struct terminal *t, int fd, struct brig_error *err);
/* As it was.  Both may be called any number of times. */
void terminal_restore(struct terminal *t);
void terminal_raw_again(struct terminal *t);
/* Restores it, and the guardian goes. */
void terminal_end(struct terminal *t);
/* False: it does not know. */
bool terminal_size(int fd, uint64_t *ret_rows, uint64_t *ret_columns);

#endif
