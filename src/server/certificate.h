/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of --tls-cert and --tls-key, as they were when they were read: two files in memory that nobody can change.
 *
 * The master reads them, at the start and whenever it is told to, since the front cannot open anything; what is in them only
 * the front looks at.  The master keeps those that a front has accepted, for the next front.
 */
#ifndef SERVER_CERTIFICATE_H
#define SERVER_CERTIFICATE_H

#include "base/err.h"

#define CERTIFICATE_FILE_MAX ((size_t)MiB)

enum { CERTIFICATE_CHAIN, CERTIFICATE_KEY, CERTIFICATE_FILES };

struct certificate {
	int fd[CERTIFICATE_FILES]; /* FD_NONE: there is none */
};
#define CERTIFICATE_NONE                 \
	{                                \
		{                        \
			FD_NONE, FD_NONE \
		}                        \
	}

/* 0 or -code; the message names the option and the file. */
int certificate_read(const char *chain_path, const char *key_path, struct certificate *ret, struct brig_error *err);
bool certificate_is_there(const struct certificate *c);
void certificate_close(struct certificate *c);
/* *to is closed, and is *from then, which is none. */
void certificate_move(struct certificate *to, struct certificate *from);

#endif
