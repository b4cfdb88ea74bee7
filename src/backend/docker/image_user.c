/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves `user: node` with the image's own accounts.  The engine would do that as well, but the result could not be
 * compared with the request: so /etc/passwd and /etc/group are fetched from a container of the image that is never
 * started, and the cell's container is created with the numbers.
 */
#include <stdio.h>
#include <string.h>

#include "backend/docker/accounts.h"
#include "backend/docker/images.h"
#include "base/buf.h"

#define ARCHIVE_MAX (ACCOUNTS_MAX + 64 * KiB)

/* Fetches a file of the container into room; 1: not found. */
static int fetch(struct engine *e, const char *container, const char *path, struct buf *room, const char **ret,
		 size_t *ret_len, struct brig_error *err)
{
	int rc = engine_get_archive(e, container, path, room, err);

	if (rc != 0)
		return rc;
	rc = accounts_untar(room->data, room->len, ret, ret_len, err);
	return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

static int look_up(struct engine *e, const char *container, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		   struct brig_error *err)
{
	AUTO_BUF passwd = BUF_INIT(ARCHIVE_MAX), group = BUF_INIT(ARCHIVE_MAX);
	struct accounts a = { .passwd = "" };
	int rc = fetch(e, container, "/etc/passwd", &passwd, &a.passwd, &a.passwd_len, err);

	if (rc >= 0 && strchr(user, ':'))
		rc = fetch(e, container, "/etc/group", &group, &a.group, &a.group_len, err);
	return rc < 0 ? rc : accounts_find(&a, user, ret_uid, ret_gid, err);
}

int image_find_user(struct engine *e, const char *image_id, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		    struct brig_error *err)
{
	char container[ENGINE_ID_LEN + 1];
	struct brig_error second = BRIG_ERROR_INIT;
	int rc = image_unstarted(e, image_id, container, err);

	if (rc < 0)
		return rc;
	rc = look_up(e, container, user, ret_uid, ret_gid, err);
	if (engine_remove(e, container, &second) < 0 && rc == 0) {
		*err = second;
		rc = -err->code;
	}
	return rc;
}
