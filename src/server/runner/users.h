/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions of local users on the unix sockets: `users` of the policy, with names resolved.
 *
 * Names are resolved once, when the policy is read.  An unknown name is an error with its position, since the row could
 * be one that removes a permission.  Rows for a group or for all users do not apply to root and to the user of the
 * service; only rows that name them do.
 */
#ifndef SERVER_RUNNER_USERS_H
#define SERVER_RUNNER_USERS_H

#include <jansson.h>
#include <sys/types.h>

#include "server/tokens.h"

struct users_row {
	enum { USERS_ONE, USERS_OF_GROUP, USERS_ALL } kind;
	uint32_t id; /* uid or gid */
	char place[160];
	bool refuse;
	struct token may; /* name is empty; lists refer to the policy's JSON rows */
};

struct users_peer {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* supplementary groups */
	size_t n_groups;
};

struct users;

/* rows: from brig_policy_users_json().  -BRIG_E_POLICY: a user or group does not exist on this host. */
int users_read(const json_t *rows, struct users **ret, struct brig_error *err);
void users_free(struct users *u); /* NULL is allowed */

/*
 * The supplementary groups of a unix socket's peer, if any row names a group; false: the kernel does not provide them.
 */
bool users_groups(const struct users *u, int peer, gid_t **ret, size_t *ret_n);
/* The first matching row; NULL: none. */
const struct users_row *users_find(const struct users *u, const struct users_peer *who);

#endif
