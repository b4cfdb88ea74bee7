/* SPDX-License-Identifier: Apache-2.0 */
/* Policy files that brig itself writes: `brig init`, `brig doctor --write-policy`. */
#ifndef CLI_POLICY_FILE_H
#define CLI_POLICY_FILE_H

#include <sys/types.h>

#include "cli/ui.h"

struct policy_file {
	const char *path;   /* the folders on the way to it are made */
	mode_t mode;        /* of the file; its folders get execution where it has reading */
	bool replace;       /* one that is there already; else that is an error */
	const char *advice; /* how to get over one that is there */
	const char *next;   /* what follows the name when it is written, such as "; --policy names it" */
};

/* Writes it, and says so or why not; the exit status. */
int policy_file_write(const struct policy_file *file, const struct buf *text);

#endif
