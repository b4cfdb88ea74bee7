/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/asks.h"

#include <stdio.h>

#include "base/fd.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"

static void (*const handlers[ROUTE_COUNT])(struct service *s, struct ask *ask) = {
	[ROUTE_execute] = ask_execute,
	[ROUTE_command] = ask_execute,
	[ROUTE_tests] = ask_execute,
	[ROUTE_executions] = ask_executions,
	[ROUTE_execution] = ask_execution,
	[ROUTE_execution_events] = ask_execution_events,
	[ROUTE_artifact] = ask_artifact,
	[ROUTE_cancel] = ask_cancel,
	[ROUTE_batch] = ask_batch,
	[ROUTE_batches] = ask_batches,
	[ROUTE_batch_state] = ask_batch_state,
	[ROUTE_batch_results] = ask_batch_results,
	[ROUTE_batch_cancel] = ask_batch_cancel,
	[ROUTE_workspace_put] = ask_workspace_put,
	[ROUTE_workspaces] = ask_workspaces,
	[ROUTE_workspace] = ask_workspace,
	[ROUTE_workspace_archive] = ask_workspace_archive,
	[ROUTE_workspace_diff] = ask_workspace_diff,
	[ROUTE_workspace_delete] = ask_workspace_delete,
	[ROUTE_session_make] = ask_session_make,
	[ROUTE_sessions] = ask_sessions,
	[ROUTE_session] = ask_session,
	[ROUTE_session_delete] = ask_session_delete,
	[ROUTE_session_timeout] = ask_session_timeout,
	[ROUTE_session_pause] = ask_session_pause,
	[ROUTE_session_resume] = ask_session_resume,
	[ROUTE_session_fork] = ask_session_fork,
	[ROUTE_snapshot_make] = ask_snapshot_make,
	[ROUTE_snapshots] = ask_snapshots,
	[ROUTE_snapshot] = ask_snapshot,
	[ROUTE_snapshot_delete] = ask_snapshot_delete,
	[ROUTE_contexts] = ask_contexts,
	[ROUTE_context_make] = ask_context_make,
	[ROUTE_context_delete] = ask_context_delete,
	[ROUTE_context_restart] = ask_context_restart,
	[ROUTE_context_interrupt] = ask_context_interrupt,
	[ROUTE_session_run] = ask_session_run,
	[ROUTE_process_start] = ask_process_start,
	[ROUTE_processes] = ask_processes,
	[ROUTE_process] = ask_process,
	[ROUTE_process_events] = ask_process_events,
	[ROUTE_process_input] = ask_process_input,
	[ROUTE_process_signal] = ask_process_signal,
	[ROUTE_process_resize] = ask_process_resize,
	[ROUTE_session_files] = ask_session_files,
	[ROUTE_session_file] = ask_session_file,
	[ROUTE_session_file_put] = ask_session_file_put,
	[ROUTE_session_file_delete] = ask_session_file_delete,
	[ROUTE_session_folder] = ask_session_folder,
	[ROUTE_session_move] = ask_session_move,
	[ROUTE_session_watch] = ask_session_watch,
	[ROUTE_session_port] = ask_session_port,
	[ROUTE_session_link] = ask_session_link,
	[ROUTE_session_watch_make] = ask_session_watch,
	[ROUTE_session_watch_changes] = ask_session_watch_changes,
	[ROUTE_session_watch_delete] = ask_session_watch_delete,
	[ROUTE_inspect] = ask_inspect,
	[ROUTE_languages] = ask_languages,
	[ROUTE_environments] = ask_environments,
	[ROUTE_environment_make] = ask_execute,
	[ROUTE_environment] = ask_environment,
	[ROUTE_environment_delete] = ask_environment_delete,
	[ROUTE_policy] = ask_policy,
	[ROUTE_capabilities] = ask_capabilities,
	[ROUTE_rules] = ask_rules,
	[ROUTE_history] = ask_history,
	[ROUTE_history_entry] = ask_history_entry,
	[ROUTE_statistics] = ask_statistics,
	[ROUTE_cells] = ask_cells,
	[ROUTE_queue] = ask_queue,
	[ROUTE_whoami] = ask_whoami,
	[ROUTE_verify_receipt] = ask_verify_receipt,
	[ROUTE_readyz] = ask_readyz,
	[ROUTE_metrics] = ask_metrics,
	[ROUTE_nodes] = ask_nodes,
};

void asks_handle(struct service *s, struct ask *ask)
{
	handlers[ask->route](s, ask);
}

/* True: whoever asks may use the route. */
static bool let_in(struct service *s, struct ask *ask, int peer)
{
	enum route_access access = route_rows[ask->route].access;
	uint16_t status = 401;
	char why[256] = "";

	if (access == ACCESS_OPEN)
		return true;
	if (session_has_key(ask->m))
		return session_let_in(s, ask);
	ask->token = access_find(s, ask->m, peer, &status, why, sizeof(why));
	if (!ask->token) {
		answer_error(s, ask, status, "%s", why);
		return false;
	}
	if (access == ACCESS_ADMIN && !ask->token->admin) {
		answer_error(s, ask, 403,
			     "%s is for administrators, and the token %s is none: ask who runs the service",
			     route_rows[ask->route].path, ask->token->name);
		return false;
	}
	return true;
}

/* at: where the descriptors are, each of which whoever uses it takes. */
static void take_ask(struct service *s, struct record *r, const struct message *m, const int at[BESIDE_COUNT])
{
	const char *request_id = message_text(m, FIELD_request_id);
	struct ask ask = {
		.tag = r->tag, .m = m, .request_id = request_id ? request_id : "", .beside = JOB_DESCRIPTORS_NONE
	};
	const struct {
		enum beside which;
		int *fd;
	} places[] = { { BESIDE_FILES, &ask.beside.files },
		       { BESIDE_INPUT, &ask.beside.input },
		       { BESIDE_OUT, &ask.beside.out },
		       { BESIDE_PROJECT, &ask.beside.project },
		       { BESIDE_LEFT, &ask.beside.left } };
	uint64_t route = message_number(m, FIELD_route, ROUTE_COUNT);
	struct brig_error err = BRIG_ERROR_INIT;

	if (route >= ROUTE_COUNT || !handlers[route]) {
		answer_error(s, &ask, 404, "there is no such route");
		return;
	}
	ask.route = (enum route)route;
	if (!let_in(s, &ask, at[BESIDE_PEER] >= 0 ? r->fds[at[BESIDE_PEER]] : FD_NONE))
		return;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (at[places[i].which] >= 0)
			*places[i].fd = fd_move(&r->fds[at[places[i].which]]);
	if (job_check_descriptors(&ask.beside, &err) < 0)
		answer_trouble(s, &ask, &err);
	else if (!forward_takes(s, &ask))
		handlers[route](s, &ask);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		fd_closep(places[i].fd);
}

static bool take_message(struct service *s, struct record *r)
{
	int at[BESIDE_COUNT];
	struct message m;
	const char *why;
	size_t n;

	if (!message_read(r->data, r->len, &m, &why)) {
		(void)fprintf(stderr, "brig serve: runner: the front sent %s\n", why);
		return false;
	}
	message_beside(&m, at, &n);
	if (n != r->n_fds) {
		(void)fprintf(stderr, "brig serve: runner: the front sent %zu descriptors and announced %zu\n",
			      r->n_fds, n);
		return false;
	}
	take_ask(s, r, &m, at);
	return true;
}

bool asks_take(struct service *s, struct record *r)
{
	bool is_good = true;

	switch (r->tag <= CHANNEL_TAG_MAX ? r->type : RECORD_TYPES) {
	case RECORD_ASK:
		is_good = take_message(s, r);
		break;
	case RECORD_GONE:
		if (!batches_gone(s, r->tag) && !answerers_gone(s, r->tag) && !sessions_gone(s, r->tag) &&
		    !front_gone(s, r->tag) && !forward_gone(s, r->tag))
			executions_gone(s, r->tag);
		break;
	case RECORD_CANCEL:
		if (!sessions_cancel(s, r->tag) && !forward_cancel(s, r->tag))
			executions_cancel(s, r->tag);
		break;
	case RECORD_SIGNAL:
		executions_signal(s, r->tag, r->status);
		break;
	default:
		(void)fprintf(stderr,
			      "brig serve: runner: the front sent a record of its own side, or a tag of ours\n");
		is_good = false;
	}
	for (size_t i = 0; i < r->n_fds; i++)
		fd_closep(&r->fds[i]);
	return is_good;
}
