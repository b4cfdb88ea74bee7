/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication and authorisation of requests.
 *
 * A client presents a token or is identified by the kernel: for a unix socket the front passes the client's own socket,
 * and the runner asks the kernel for its peer.  What the front claims about a client is not trusted.
 */
#ifndef SERVER_RUNNER_ACCESS_H
#define SERVER_RUNNER_ACCESS_H

#include "server/runner/service.h"

/*
 * The token, or the equivalent for a client without one, valid until the next call.  NULL: refused with *ret_status and
 * ret_why.
 */
const struct token *access_find(struct service *s, const struct message *m, int peer, uint16_t *ret_status,
				char *ret_why, size_t why_size);

/*
 * Fills in the defaults of token and policy, then checks the job against the token: 0, or -BRIG_E_REFUSED.
 * *ret_memory: its memory limit.
 */
int access_check(const struct host *h, const struct token *token, const struct door_set *doors, struct job *job,
		 uint64_t *ret_memory, struct brig_error *err);
/* The door through which a message came; DOOR_api: none. */
enum door access_door(const struct message *m);

/*
 * A stand-in for the token that created something, for a request authorised on its account; never an administrator.
 * Valid until the next call.  NULL: that token is no longer valid.
 */
const struct token *access_of_owner(struct service *s, const char *owner, const struct quota *quota, char *ret_why,
				    size_t why_size);

/* Whether the token may see and cancel what this owner has. */
bool access_owns(const struct token *token, const char *owner);

#endif
