/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process of the service says of itself on standard error, beside the lines of requests (front/log.c): that a child was
 * started again, that a policy could not be read.  In the form that --log asked for, so that who reads the log as JSON finds
 * nothing else in it; the first token and its address, which are for a person's eyes, are no log.
 */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/util.h"

/* Once for each process, before it says anything.  process: NULL is the first one. */
void report_begin(const char *process, bool is_json);
void report(const char *fmt, ...) PRINTF(1, 2);

/* For lines of others: the time of the wall, and what stands between the quotes of a string of JSON. */
void report_add_time(struct buf *out);
void report_add_json(struct buf *out, const char *text);
/* One line that says this, with its end. */
void report_add_line(struct buf *out, const char *text);

#endif
