/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes bytes unchanged.  Only for code that makes them safe itself (ui.c, live.c) and for files: a command composes
 * its text and passes it to cli/ui.h.
 */
#ifndef CLI_WRITE_H
#define CLI_WRITE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes what the descriptor accepts: handles short writes, non-blocking pipes, slow readers.  Waits for room at most
 * wait_ms at a time (-1: forever), or until cancel_fd (or -1) is readable.  Returns the number of bytes written, or
 * -errno; -ECANCELED if cancel_fd ended the wait.
 */
ssize_t write_part(int fd, const void *data, size_t len, int cancel_fd, int wait_ms);
/* Writes everything.  0 or -errno. */
int write_all(int fd, const void *data, size_t len, int cancel_fd);

#endif
