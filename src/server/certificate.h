/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the files of --tls-cert and --tls-key, as sealed files in memory.
 *
 * The master reads the files at startup and at SIGHUP, because the front cannot open any; only the front parses them.
 * The master keeps the pair that a front last accepted, for the next front.
 */
#ifndef SERVER_CERTIFICATE_H
#define SERVER_CERTIFICATE_H

#include "base/err.h"

#define CERTIFICATE_FILE_MAX ((size_t)MiB)

enum { CERTIFICATE_CHAIN, CERTIFICATE_KEY, CERTIFICATE_FILES };

struct certificate {
	int fd[CERTIFICATE_FILES]; /* FD_NONE: no TLS */
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
/* Closes *to, moves *from there and leaves *from empty. */
void certificate_move(struct certificate *to, struct certificate *from);

#endif
