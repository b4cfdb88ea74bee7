/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CANCEL_H
#define CLI_CANCEL_H

/*
 * A descriptor that turns readable, and stays so, at Ctrl-C, SIGTERM or SIGHUP; for brig_request.cancel_fd.
 * Signals that are ignored from outside (nohup, background jobs) stay ignored.  -errno on failure.
 */
int cancel_open(void);
/* The same as a signal, for reasons of our own. */
void cancel_now(void);

#endif
