/* SPDX-License-Identifier: Apache-2.0 */
/* From a message to its answer: a handler for each route. */
#ifndef SERVER_RUNNER_ASKS_H
#define SERVER_RUNNER_ASKS_H

#include "server/runner/service.h"

/* Takes the descriptors of the record.  False: it is no message, and the front is not to be listened to any more. */
bool asks_take(struct service *s, struct record *r);
/* By the handler of its route, whose access was checked elsewhere. */
void asks_handle(struct service *s, struct ask *ask);

/* ---- handlers: each answers its ask now, or has it answered later -------------------------------------------- */

void ask_execute(struct service *s, struct ask *ask); /* accept.c */
/* Answers of 202 whose promise is on disk; call it once in each turn of the loop. */
void accept_commit(struct service *s);
/* One that is promised where all can find it: its answer waits for the next commit. */
void accept_promise(struct service *s, struct execution *x);

void ask_executions(struct service *s, struct ask *ask); /* look.c */
void ask_execution(struct service *s, struct ask *ask);
void ask_execution_events(struct service *s, struct ask *ask);
void ask_artifact(struct service *s, struct ask *ask); /* artifacts.c */
/* The bytes of one, from the document of a result, or why they are not there; result may be NULL. */
void artifact_answer(struct service *s, const struct ask *ask, const char *id, const json_t *result, const char *path);
void ask_cancel(struct service *s, struct ask *ask);
/* The execution that the ask names and its token may see; NULL: there is none, and it was answered unless it may be in the
 * history (*ret_is_past). */
struct execution *look_up(struct service *s, const struct ask *ask, bool *ret_is_past);
/* Asks for an execution of the history; then is to call look_through_history().  False: no execution has such an id. */
bool look_up_history(struct service *s, const struct ask *ask, const char *id, recorded_fn then);
/* What the recorder answered: 1: *text is an execution that the token may see; 0: there is none such; negative: *err. */
int look_through_history(const struct ask *ask, int rc, char **text, const struct brig_error *err);

void ask_batch(struct service *s, struct ask *ask);   /* batch_accept.c */
void ask_batches(struct service *s, struct ask *ask); /* batch_look.c */
void ask_batch_state(struct service *s, struct ask *ask);
void ask_batch_results(struct service *s, struct ask *ask);
void ask_batch_cancel(struct service *s, struct ask *ask);

void ask_workspace_put(struct service *s, struct ask *ask); /* workspace_asks.c */
void ask_workspaces(struct service *s, struct ask *ask);
void ask_workspace(struct service *s, struct ask *ask);
void ask_workspace_archive(struct service *s, struct ask *ask);
void ask_workspace_diff(struct service *s, struct ask *ask);
void ask_workspace_delete(struct service *s, struct ask *ask);

void ask_session_make(struct service *s, struct ask *ask); /* sessions.c */
void ask_sessions(struct service *s, struct ask *ask);
void ask_session(struct service *s, struct ask *ask);
void ask_session_delete(struct service *s, struct ask *ask);
void ask_session_timeout(struct service *s, struct ask *ask);
void ask_session_fork(struct service *s, struct ask *ask); /* session_copies.c */
void ask_session_restore(struct service *s, struct ask *ask);
void ask_snapshot_make(struct service *s, struct ask *ask); /* snapshots.c */
void ask_snapshots(struct service *s, struct ask *ask);
void ask_snapshot(struct service *s, struct ask *ask);
void ask_snapshot_delete(struct service *s, struct ask *ask);
void ask_session_pause(struct service *s, struct ask *ask); /* session_asks.c */
void ask_session_resume(struct service *s, struct ask *ask);
void ask_contexts(struct service *s, struct ask *ask);
void ask_context_make(struct service *s, struct ask *ask);
void ask_context_delete(struct service *s, struct ask *ask);
void ask_context_restart(struct service *s, struct ask *ask);
void ask_context_interrupt(struct service *s, struct ask *ask);
void ask_process_input(struct service *s, struct ask *ask);
void ask_process_signal(struct service *s, struct ask *ask);
void ask_process_resize(struct service *s, struct ask *ask);
void ask_session_run(struct service *s, struct ask *ask); /* session_pieces.c */
void ask_process_start(struct service *s, struct ask *ask);
void ask_processes(struct service *s, struct ask *ask);
void ask_process(struct service *s, struct ask *ask);
void ask_process_events(struct service *s, struct ask *ask);
void ask_session_files(struct service *s, struct ask *ask); /* session_files.c */
void ask_session_file(struct service *s, struct ask *ask);
void ask_session_file_put(struct service *s, struct ask *ask);
void ask_session_file_delete(struct service *s, struct ask *ask);
void ask_session_folder(struct service *s, struct ask *ask);
void ask_session_move(struct service *s, struct ask *ask);
void ask_session_port(struct service *s, struct ask *ask); /* session_ports.c */
void ask_session_link(struct service *s, struct ask *ask);
void ask_session_watch(struct service *s, struct ask *ask); /* session_watches.c */
void ask_session_watch_changes(struct service *s, struct ask *ask);
void ask_session_watch_delete(struct service *s, struct ask *ask);

void ask_environments(struct service *s, struct ask *ask); /* environments.c */
void ask_environment(struct service *s, struct ask *ask);
void ask_environment_delete(struct service *s, struct ask *ask);
/* True: the ask would make one that there is, or will be; it has been answered. */
bool environment_is_taken(struct service *s, const struct ask *ask);

void ask_inspect(struct service *s, struct ask *ask); /* questions.c */
void ask_languages(struct service *s, struct ask *ask);
void ask_policy(struct service *s, struct ask *ask);
void ask_capabilities(struct service *s, struct ask *ask);
/* The answer to somebody who asked then is good for others, too, for a while. */
void questions_keep_capabilities(struct service *s, const struct record *r, uint64_t asked_ns);
void ask_rules(struct service *s, struct ask *ask);
void ask_history(struct service *s, struct ask *ask);
void ask_history_entry(struct service *s, struct ask *ask);
void ask_statistics(struct service *s, struct ask *ask);
void ask_cells(struct service *s, struct ask *ask);
void ask_queue(struct service *s, struct ask *ask);
void ask_whoami(struct service *s, struct ask *ask);
void ask_verify_receipt(struct service *s, struct ask *ask);
void ask_readyz(struct service *s, struct ask *ask);
void ask_metrics(struct service *s, struct ask *ask);
void ask_nodes(struct service *s, struct ask *ask); /* queue_nodes.c */

#endif
