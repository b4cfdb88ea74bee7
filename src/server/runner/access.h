/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks, and whether that one may have it.
 *
 * A client shows a token, or is known by the kernel: on the unix socket the front sends the client's own socket along, and
 * its peer is asked of the kernel here.  What the front writes about a client is not believed.
 */
#ifndef SERVER_RUNNER_ACCESS_H
#define SERVER_RUNNER_ACCESS_H

#include "server/runner/service.h"

/* Who asks without a token: filled by access_find(), good until its next call. */
const struct token *access_find(struct service *s, const struct message *m, int peer, uint16_t *ret_status,
				char *ret_why, size_t why_size);

/*
 * What the job will run with where it says nothing is filled in from token and policy; then the token is asked: 0, or
 * -BRIG_E_REFUSED.  *ret_memory: of its limit.
 */
int access_check(const struct host *h, const struct token *token, const struct door_set *doors, struct job *job,
		 uint64_t *ret_memory, struct brig_error *err);
/* Which door a message came through; DOOR_api: none. */
enum door access_door(const struct message *m);

/* Who made something, for somebody who was let in on that account: no administrator, whatever the token is.  NULL: the token is
 * not good any more.  It holds until the next call. */
const struct token *access_of_owner(struct service *s, const char *owner, const struct quota *quota, char *ret_why,
				    size_t why_size);

/* Whether somebody may see and cancel what this one owns. */
bool access_owns(const struct token *token, const char *owner);

#endif
