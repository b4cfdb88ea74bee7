/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch of requests: a handler for each route. */
#ifndef SERVER_RUNNER_REQUESTS_H
#define SERVER_RUNNER_REQUESTS_H

#include "server/runner/service.h"

/*
 * Handles one record of the front; takes its descriptors.  False: the record is invalid, and the front must be cut off.
 */
bool requests_take(struct service *s, struct record *r);
/* Calls the handler of the route, without checking access. */
void requests_handle(struct service *s, struct request *req);

/* ---- handlers: each answers its request now or later ----------------------------------------- */

void handle_execute(struct service *s, struct request *req); /* accept.c */
/*
 * Submits a job to admission under this id (NULL: a new one); takes the job.  name and body: hashes of its
 * Idempotency-Key, or NULL.  req->m is valid during the call only, unless it is the job's.
 */
void accept_enter(struct service *s, const struct request *req, struct job *job, const char *id, uint64_t memory,
		  const uint8_t *name, const uint8_t *body);
/* Answers a repeated request with the earlier execution: now, or when it ends, or as a stream, as requested. */
void accept_join(struct service *s, const struct request *req, struct execution *x);
void accept_answer(struct service *s, const struct request *req, const char *id, const char *state); /* 202 */
/* Writes pending promises to disk and sends their 202 answers; called once per turn of the loop. */
void accept_commit(struct service *s);
/* The promise is kept (in the ledger or the queue): the next commit sends the 202. */
void accept_promise(struct service *s, struct execution *x);

void handle_executions(struct service *s, struct request *req); /* look.c */
/* The list it returns, youngest first, bounded by `limit`; the last returns false if it has refused the request. */
json_t *executions_list(const struct service *s, const struct request *req);
size_t executions_list_limit(const struct request *req);
bool executions_list_is_good(struct service *s, const struct request *req);
void handle_execution(struct service *s, struct request *req);
void handle_execution_events(struct service *s, struct request *req);
void handle_artifact(struct service *s, struct request *req); /* artifacts.c */
/* The contents of an artifact from a result's document, which may be NULL; or 404. */
void artifact_answer(struct service *s, const struct request *req, const char *id, const json_t *result,
		     const char *path);
void handle_cancel(struct service *s, struct request *req);
/*
 * The execution named in the request, if the token may see it.  NULL: not in memory; if *ret_is_past, the caller must
 * look elsewhere and answer, otherwise 404 was answered.
 */
struct execution *look_up(struct service *s, const struct request *req, bool *ret_is_past);
/* Queries the history for an execution; `then` must call look_through_history().  False: the id is malformed. */
bool look_up_history(struct service *s, const struct request *req, const char *id, recorded_fn then);
/* Interprets the recorder's answer.  1: *text is an execution that the token may see; 0: not found; negative: *err. */
int look_through_history(const struct request *req, int rc, char **text, const struct brig_error *err);

void handle_batch(struct service *s, struct request *req);   /* batch_accept.c */
void handle_batches(struct service *s, struct request *req); /* batch_look.c */
json_t *batches_list(const struct service *s, const struct request *req);
json_t *batch_summary(const struct service *s, const struct batch *b); /* an item of the list */
void handle_batch_state(struct service *s, struct request *req);
void handle_batch_results(struct service *s, struct request *req);
void handle_batch_cancel(struct service *s, struct request *req);

void handle_workspace_put(struct service *s, struct request *req); /* workspace_requests.c */
void handle_workspaces(struct service *s, struct request *req);
void handle_workspace(struct service *s, struct request *req);
void handle_workspace_archive(struct service *s, struct request *req);
void handle_workspace_diff(struct service *s, struct request *req);
void handle_workspace_delete(struct service *s, struct request *req);

void handle_session_make(struct service *s, struct request *req); /* sessions.c */
void handle_sessions(struct service *s, struct request *req);
void handle_session(struct service *s, struct request *req);
void handle_session_delete(struct service *s, struct request *req);
void handle_session_timeout(struct service *s, struct request *req);
void handle_session_fork(struct service *s, struct request *req); /* session_copies.c */
void handle_session_restore(struct service *s, struct request *req);
void handle_snapshot_make(struct service *s, struct request *req); /* snapshots.c */
void handle_snapshots(struct service *s, struct request *req);
json_t *snapshots_list(const struct service *s, const struct request *req);
void handle_snapshot(struct service *s, struct request *req);
void handle_snapshot_delete(struct service *s, struct request *req);
void handle_session_pause(struct service *s, struct request *req); /* session_requests.c */
void handle_session_resume(struct service *s, struct request *req);
void handle_contexts(struct service *s, struct request *req);
void handle_context_make(struct service *s, struct request *req);
void handle_context_delete(struct service *s, struct request *req);
void handle_context_restart(struct service *s, struct request *req);
void handle_context_interrupt(struct service *s, struct request *req);
void handle_process_input(struct service *s, struct request *req);
void handle_process_signal(struct service *s, struct request *req);
void handle_process_resize(struct service *s, struct request *req);
void handle_session_run(struct service *s, struct request *req); /* session_pieces.c */
void handle_process_start(struct service *s, struct request *req);
void handle_processes(struct service *s, struct request *req);
void handle_process(struct service *s, struct request *req);
void handle_process_events(struct service *s, struct request *req);
void handle_session_files(struct service *s, struct request *req); /* session_files.c */
void handle_session_file(struct service *s, struct request *req);
void handle_session_file_put(struct service *s, struct request *req);
void handle_session_file_delete(struct service *s, struct request *req);
void handle_session_folder(struct service *s, struct request *req);
void handle_session_move(struct service *s, struct request *req);
void handle_session_port(struct service *s, struct request *req); /* session_ports.c */
void handle_session_link(struct service *s, struct request *req);
void handle_session_watch(struct service *s, struct request *req); /* session_watches.c */
void handle_session_watch_changes(struct service *s, struct request *req);
void handle_session_watch_delete(struct service *s, struct request *req);

void handle_environments(struct service *s, struct request *req); /* environments.c */
void handle_environment(struct service *s, struct request *req);
void handle_environment_delete(struct service *s, struct request *req);
/* True: an environment of that name exists or is being created; the request has been answered. */
bool environment_is_taken(struct service *s, const struct request *req);

void handle_inspect(struct service *s, struct request *req); /* questions.c */
void handle_languages(struct service *s, struct request *req);
void handle_policy(struct service *s, struct request *req);
void handle_capabilities(struct service *s, struct request *req);
/* Caches the answer to one request for others. */
void questions_keep_capabilities(struct service *s, const struct record *r, uint64_t asked_ns);
void handle_rules(struct service *s, struct request *req);
void handle_history(struct service *s, struct request *req);
size_t history_limit(const struct request *req);
void history_answer_none(struct service *s, const struct request *req, const char *id);
void handle_history_entry(struct service *s, struct request *req);
void handle_statistics(struct service *s, struct request *req);
void handle_cells(struct service *s, struct request *req);
void handle_queue(struct service *s, struct request *req);
void handle_whoami(struct service *s, struct request *req);
void handle_verify_receipt(struct service *s, struct request *req);
void handle_readyz(struct service *s, struct request *req);
void handle_metrics(struct service *s, struct request *req);
void handle_nodes(struct service *s, struct request *req); /* queue_nodes.c */

#endif
