/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CANCEL_H
#define CLI_CANCEL_H

/*
 * A descriptor that becomes readable, and stays so, on Ctrl-C, SIGTERM or SIGHUP; for brig_request.cancel_fd. Signals
 * that are ignored from outside (nohup, background jobs) stay ignored.  -errno on failure.
 */
int cancel_open(void);
/*
 * The same, and when the reader of fd, a pipe or a socket, closes it: for answers to programs, so that a killed one
 * leaves nothing running.  Other kinds of files have no reader.
 */
int cancel_open_for_reader(int fd);
/* The same as a signal, for reasons of our own. */
void cancel_now(void);

#endif
