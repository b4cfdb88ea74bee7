/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of the service's processes on standard error, besides the access log (front/log.c): that a child was
 * restarted, that a policy could not be read.  In the format that --log selected, so that a JSON log has only JSON
 * lines.  The first token and its address are meant for a person and are not logged this way.
 */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/util.h"

/* Called once in each process before its first line.  process: NULL is the master. */
void report_begin(const char *process, bool is_json);
void report(const char *fmt, ...) PRINTF(1, 2);

/* Building blocks for other log lines: wall-clock time, and the escaped contents of a JSON string. */
void report_add_time(struct buf *out);
void report_add_json(struct buf *out, const char *text);
/* A complete log line with this message. */
void report_add_line(struct buf *out, const char *text);

#endif
