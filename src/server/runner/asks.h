/* SPDX-License-Identifier: Apache-2.0 */
/* From a message to its answer: a handler for each route. */
#ifndef SERVER_RUNNER_ASKS_H
#define SERVER_RUNNER_ASKS_H

#include "server/runner/service.h"

/* Takes the descriptors of the record.  False: it is no message, and the front is not to be listened to any more. */
bool asks_take(struct service *s, struct record *r);

/* ---- handlers: each answers its ask now, or has it answered later -------------------------------------------- */

void ask_execute(struct service *s, struct ask *ask); /* accept.c */
/* Answers of 202 whose promise is on disk; call it once in each turn of the loop. */
void accept_commit(struct service *s);

void ask_executions(struct service *s, struct ask *ask); /* look.c */
void ask_execution(struct service *s, struct ask *ask);
void ask_execution_events(struct service *s, struct ask *ask);
void ask_artifact(struct service *s, struct ask *ask); /* artifacts.c */
void ask_cancel(struct service *s, struct ask *ask);
/* The execution that the ask names and its token may see; NULL: there is none, and it was answered unless it may be in the
 * history (*ret_is_past). */
struct execution *look_up(struct service *s, const struct ask *ask, bool *ret_is_past);
/* An execution of the history, if the token may see it: 1; 0: there is none such; negative: *err. */
int look_up_history(struct service *s, const struct ask *ask, const char *id, char **ret, struct brig_error *err);

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

void ask_inspect(struct service *s, struct ask *ask); /* questions.c */
void ask_languages(struct service *s, struct ask *ask);
void ask_environments(struct service *s, struct ask *ask);
void ask_policy(struct service *s, struct ask *ask);
void ask_capabilities(struct service *s, struct ask *ask);
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

#endif
