/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of a user that an image knows by name.  Both files come from the image and are untrusted: they are bounded and
 * parsed strictly, and a name that occurs twice with different numbers, or that is root, is refused.
 */
#ifndef DOCKER_ACCOUNTS_H
#define DOCKER_ACCOUNTS_H

#include "base/err.h"

#define ACCOUNTS_MAX (256 * KiB) /* of each file */

struct accounts {
	const char *passwd, *group; /* contents of /etc/passwd and /etc/group; group may be NULL */
	size_t passwd_len, group_len;
};

/* user: "name", "name:group", or numbers instead of either.  BRIG_E_REFUSED: not found, or root. */
int accounts_find(const struct accounts *a, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		  struct brig_error *err);
/* The only regular file in a tar stream that contains nothing else; *ret points into the stream. */
int accounts_untar(const char *tar, size_t len, const char **ret, size_t *ret_len, struct brig_error *err);

#endif
