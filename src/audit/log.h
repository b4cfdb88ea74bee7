/* SPDX-License-Identifier: Apache-2.0 */
/* An open log. */
#ifndef AUDIT_LOG_H
#define AUDIT_LOG_H

#include "audit/internal.h"

struct audit_log {
	struct statedir state, dir;
	int head_fd, file_fd;
	uint32_t file_no; /* of file_fd */
	bool has_key;
	struct log_key key;
	struct head head; /* as it was when the lock was last held */
	struct line line;
	char text[AUDIT_ENTRY_MAX];
};

/* The highest number of a log file; 0: there is none. */
int log_last_file(const struct statedir *dir, uint32_t *ret, struct brig_error *err);

#endif
