/* SPDX-License-Identifier: Apache-2.0 */
/* A session of the library; for the files of this folder that implement it. */
#ifndef API_SESSION_H
#define API_SESSION_H

#include "api/handle.h"
#include "executor/watch.h"
#include "session/session.h"

struct task;

/* Code or a process that is inspected, run and recorded by itself (session_pieces.c). */
struct piece_task;

struct brig_session {
	struct executor x;
	struct session_link link;
	struct brig_session_opts opts;
	struct brig_request req;
	struct policy_resolved resolved;
	struct policy_digest digest; /* of its settings */
	char id[RUN_ID_LEN + 1];
	struct brig_result *result;
	struct task *task;
	struct task_spares *tasks; /* of the handle */
	struct session *engine;
	int epoll, cancel;
	int control; /* set by the task, attached by the next step */
	bool finished, stepping;
	struct piece_task *pieces;
};

/* Continues all pieces. */
void pieces_step(struct brig_session *s);
/* Ends the remaining pieces. */
void pieces_finish(struct brig_session *s);
/* 0 or an error; *ret_tag is valid at once. */
int piece_begin_process(struct brig_session *s, const struct brig_session_process *what, uint64_t *ret_tag,
			struct brig_error *err);
int piece_begin_code(struct brig_session *s, const struct brig_session_code *what, uint64_t *ret_tag,
		     struct brig_error *err);
int piece_cancel(struct brig_session *s, uint64_t tag, struct brig_error *err);

#endif
