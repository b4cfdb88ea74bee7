/* SPDX-License-Identifier: Apache-2.0 */
/* The user that the program runs as: the ids in the policy's `user`, or those of a user name in the backend's cells. */
#ifndef EXECUTOR_USER_H
#define EXECUTOR_USER_H

#include "executor/prepare.h"
#include "executor/select.h"

/* Sets uid and gid of the request for the selected backend; BRIG_E_REFUSED: its cells have no such user. */
int user_find(struct prepared_request *pr, const struct selection *chosen, const struct brig_request *req,
	      struct brig_error *err);

#endif
