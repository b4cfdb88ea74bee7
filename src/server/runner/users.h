/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users of this host at the service's unix sockets: `users` of the policy, with names as numbers.
 *
 * Names are looked up once, when the policy is read: a name that nobody has is an error with its place, because a row that
 * fits nobody could have been the one that takes a right away.  Root and who runs the service are met only by rows that name
 * them: a row for a group or for everybody is about the others.
 */
#ifndef SERVER_RUNNER_USERS_H
#define SERVER_RUNNER_USERS_H

#include <jansson.h>
#include <sys/types.h>

#include "server/tokens.h"

struct users_row {
	enum { USERS_ONE, USERS_OF_GROUP, USERS_ALL } kind;
	uint32_t id; /* of the user or group */
	char place[160];
	bool refuse;
	struct token may; /* without a name; its lists point into the row's words */
};

struct users_peer {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* supplementary ones */
	size_t n_groups;
};

struct users;

/* rows: of brig_policy_users_json().  -BRIG_E_POLICY: there is no such user or group here. */
int users_read(const json_t *rows, struct users **ret, struct brig_error *err);
void users_free(struct users *u); /* NULL is fine */

/* The groups of who is at the other end of a unix socket, if a row asks for one; false: they cannot be known. */
bool users_groups(const struct users *u, int peer, gid_t **ret, size_t *ret_n);
/* The first row that fits; NULL: none. */
const struct users_row *users_find(const struct users *u, const struct users_peer *who);

#endif
