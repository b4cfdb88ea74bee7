/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CANCEL_H
#define CLI_CANCEL_H

/*
 * A descriptor that becomes readable, and stays so, on Ctrl-C, SIGTERM or SIGHUP; for brig_request.cancel_fd. Signals
 * that are ignored from outside (nohup, background jobs) stay ignored.  -errno on failure.
 */
int cancel_open(void);
/*
 * The same, and also when the reader of fd, a pipe or a socket, closes it: for answers to other programs, so that
 * nothing goes on running if the reader is killed.  Other types of files have no reader.
 */
int cancel_open_for_reader(int fd);
/* Has the effect of a signal. */
void cancel_now(void);

#endif
