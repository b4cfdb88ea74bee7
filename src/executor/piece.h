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
	/* Called while another process records the result, which may get a warning or another verdict by that, and no more. */
	void (*meanwhile)(void *arg);
	void *arg;
	/* The session's resolved policy, which applies to the piece and outlives it. */
	const struct policy_resolved *resolved;
	struct policy_digest *digest; /* of its settings */
};

/*
 * The life of a piece:
 *
 *	begin    checks it and sends its code to an inspector, which works while the caller prepares the run
 *	run      waits for the inspector (base/wait.h), executes, records; always fills *ret, as executor_run() does
 *	finish   work left after the result was delivered: metrics, new inspection workers
 */
struct piece_work;
/* The piece must live until it is finished.  NULL: no memory. */
struct piece_work *executor_begin_piece(const struct executor *x, const struct piece *piece);
void executor_run_piece(struct piece_work *p, struct result *ret);
/* Also for one that has not run; accepts NULL. */
void executor_finish_piece(struct piece_work *p);

#endif
