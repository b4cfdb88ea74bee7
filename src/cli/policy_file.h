/* SPDX-License-Identifier: Apache-2.0 */
/* Policy files that brig itself writes: `brig init`, `brig doctor --write-policy`. */
#ifndef CLI_POLICY_FILE_H
#define CLI_POLICY_FILE_H

#include <sys/types.h>

#include "cli/ui.h"

struct policy_file {
	const char *path;   /* missing directories on the way are created */
	mode_t mode;        /* of the file; created directories are also searchable for whoever may read */
	bool replace;       /* an existing file; otherwise that is an error */
	const char *advice; /* shown if a file exists */
	const char *next;   /* printed after the name when it is written, such as "; --policy names it" */
};

/* Writes the file, and prints success or failure; returns the exit status. */
int policy_file_write(const struct policy_file *file, const struct buf *text);

#endif
