/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the program runs as: the numbers that the policy's `user` has, or those of a name in the cells of a backend. */
#ifndef EXECUTOR_USER_H
#define EXECUTOR_USER_H

#include "executor/prepare.h"
#include "executor/select.h"

/* Fills uid and gid of the request for the chosen backend; BRIG_E_REFUSED: its cells have no such user. */
int user_find(struct prepared_request *pr, const struct selection *chosen, const struct brig_request *req,
	      struct brig_error *err);

#endif
