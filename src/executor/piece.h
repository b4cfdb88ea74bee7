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
	/* Called when nothing stands against the code; fills verdict, reason and usage.  May wait (base/wait.h). */
	void (*execute)(void *arg, struct recording *recording, struct result *result);
	/* Called while another process records the result, which may get a warning or another verdict by that, and no more. */
	void (*meanwhile)(void *arg);
	void *arg;
	/* What the session's policy, trust and wishes came to, which are the piece's: it outlives the piece. */
	const struct policy_resolved *resolved;
	struct policy_digest *digest; /* of its settings */
};

/*
 * A piece from its beginning until all about it is done:
 *
 *	begin    checks it and hands its code to an inspector, which reads it while the caller prepares to run it
 *	run      waits for the inspector (base/wait.h), executes, records; always fills *ret, as executor_run() does
 *	finish   what follows when the caller has been told of the result: counting it, other workers for the inspection
 */
struct piece_work;
/* Needs the piece until it is finished.  NULL: no memory. */
struct piece_work *executor_begin_piece(const struct executor *x, const struct piece *piece);
void executor_run_piece(struct piece_work *p, struct result *ret);
/* Also of one that has not run; NULL is fine. */
void executor_finish_piece(struct piece_work *p);

#endif
