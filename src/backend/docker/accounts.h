/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a user that an image knows by name.  Both files are the image's own, so somebody else wrote them: they
 * are bounded, read strictly, and a name that stands there twice with different numbers, or for root, is refused.
 */
#ifndef DOCKER_ACCOUNTS_H
#define DOCKER_ACCOUNTS_H

#include "base/err.h"

#define ACCOUNTS_MAX (256 * KiB) /* of each file */

struct accounts {
	const char *passwd, *group; /* contents of /etc/passwd and /etc/group; group may be NULL: there is none */
	size_t passwd_len, group_len;
};

/* user: "name", "name:group", or a number in place of one of them.  BRIG_E_REFUSED: there is no such, or it is root's. */
int accounts_find(const struct accounts *a, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		  struct brig_error *err);
/* The one regular file of a tar stream with nothing else in it; its bytes are those of the stream. */
int accounts_untar(const char *tar, size_t len, const char **ret, size_t *ret_len, struct brig_error *err);

#endif
