/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of code that runs in a session: resolved, inspected and recorded like any request, and executed by the
 * session in its existing cell.  The protections are the session's; its record has the evidence for them.
 */
#ifndef EXECUTOR_PIECE_H
#define EXECUTOR_PIECE_H

#include "executor/executor.h"
#include "executor/record.h"

struct piece {
	const struct brig_request *req; /* BRIG_KIND_CODE */
	/* Called if nothing forbids the code; fills verdict, reason and usage. May wait (base/wait.h). */
	void (*execute)(void *arg, struct recording *recording, struct result *result);
	void *arg;
	/* The session's resolved policy, which applies to the piece; NULL: resolve it again. */
	const struct policy_resolved *resolved;
	struct policy_digest *digest; /* of its settings; NULL: none */
};

/* Work left after the result was delivered: metrics, new inspection workers. */
struct piece_rest;

/* Always fills *ret, as executor_run() does. *ret_rest must be finished; x and piece must live until then. */
void executor_run_piece(const struct executor *x, const struct piece *piece, struct result *ret,
			struct piece_rest **ret_rest);
void executor_finish_piece(struct piece_rest *rest); /* accepts NULL */

#endif
