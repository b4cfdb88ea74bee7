/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/requests.h"

#include <stdio.h>

#include "base/fd.h"
#include "server/report.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"

static void (*const handlers[ROUTE_COUNT])(struct service *s, struct request *req) = {
	[ROUTE_execute] = handle_execute,
	[ROUTE_command] = handle_execute,
	[ROUTE_tests] = handle_execute,
	[ROUTE_executions] = handle_executions,
	[ROUTE_execution] = handle_execution,
	[ROUTE_execution_events] = handle_execution_events,
	[ROUTE_artifact] = handle_artifact,
	[ROUTE_cancel] = handle_cancel,
	[ROUTE_batch] = handle_batch,
	[ROUTE_batches] = handle_batches,
	[ROUTE_batch_state] = handle_batch_state,
	[ROUTE_batch_results] = handle_batch_results,
	[ROUTE_batch_cancel] = handle_batch_cancel,
	[ROUTE_workspace_put] = handle_workspace_put,
	[ROUTE_workspaces] = handle_workspaces,
	[ROUTE_workspace] = handle_workspace,
	[ROUTE_workspace_archive] = handle_workspace_archive,
	[ROUTE_workspace_diff] = handle_workspace_diff,
	[ROUTE_workspace_delete] = handle_workspace_delete,
	[ROUTE_session_make] = handle_session_make,
	[ROUTE_sessions] = handle_sessions,
	[ROUTE_session] = handle_session,
	[ROUTE_session_delete] = handle_session_delete,
	[ROUTE_session_timeout] = handle_session_timeout,
	[ROUTE_session_pause] = handle_session_pause,
	[ROUTE_session_resume] = handle_session_resume,
	[ROUTE_session_fork] = handle_session_fork,
	[ROUTE_snapshot_make] = handle_snapshot_make,
	[ROUTE_snapshots] = handle_snapshots,
	[ROUTE_snapshot] = handle_snapshot,
	[ROUTE_snapshot_delete] = handle_snapshot_delete,
	[ROUTE_contexts] = handle_contexts,
	[ROUTE_context_make] = handle_context_make,
	[ROUTE_context_delete] = handle_context_delete,
	[ROUTE_context_restart] = handle_context_restart,
	[ROUTE_context_interrupt] = handle_context_interrupt,
	[ROUTE_session_run] = handle_session_run,
	[ROUTE_process_start] = handle_process_start,
	[ROUTE_processes] = handle_processes,
	[ROUTE_process] = handle_process,
	[ROUTE_process_events] = handle_process_events,
	[ROUTE_process_input] = handle_process_input,
	[ROUTE_process_signal] = handle_process_signal,
	[ROUTE_process_resize] = handle_process_resize,
	[ROUTE_session_files] = handle_session_files,
	[ROUTE_session_file] = handle_session_file,
	[ROUTE_session_file_put] = handle_session_file_put,
	[ROUTE_session_file_delete] = handle_session_file_delete,
	[ROUTE_session_folder] = handle_session_folder,
	[ROUTE_session_move] = handle_session_move,
	[ROUTE_session_watch] = handle_session_watch,
	[ROUTE_session_port] = handle_session_port,
	[ROUTE_session_link] = handle_session_link,
	[ROUTE_session_watch_make] = handle_session_watch,
	[ROUTE_session_watch_changes] = handle_session_watch_changes,
	[ROUTE_session_watch_delete] = handle_session_watch_delete,
	[ROUTE_inspect] = handle_inspect,
	[ROUTE_languages] = handle_languages,
	[ROUTE_environments] = handle_environments,
	[ROUTE_environment_make] = handle_execute,
	[ROUTE_environment] = handle_environment,
	[ROUTE_environment_delete] = handle_environment_delete,
	[ROUTE_policy] = handle_policy,
	[ROUTE_capabilities] = handle_capabilities,
	[ROUTE_rules] = handle_rules,
	[ROUTE_history] = handle_history,
	[ROUTE_history_entry] = handle_history_entry,
	[ROUTE_statistics] = handle_statistics,
	[ROUTE_cells] = handle_cells,
	[ROUTE_queue] = handle_queue,
	[ROUTE_whoami] = handle_whoami,
	[ROUTE_verify_receipt] = handle_verify_receipt,
	[ROUTE_readyz] = handle_readyz,
	[ROUTE_metrics] = handle_metrics,
	[ROUTE_nodes] = handle_nodes,
};

void requests_handle(struct service *s, struct request *req)
{
	handlers[req->route](s, req);
}

/* Authenticates the client.  False: it has been refused and answered. */
static bool let_in(struct service *s, struct request *req, int peer)
{
	enum route_access access = route_rows[req->route].access;
	uint16_t status = 401;
	char why[256] = "";

	if (access == ACCESS_OPEN)
		return true;
	if (session_has_key(req->m))
		return session_let_in(s, req);
	req->token = access_find(s, req->m, peer, &status, why, sizeof(why));
	if (!req->token) {
		answer_error(s, req, status, "%s", why);
		return false;
	}
	if (access == ACCESS_ADMIN && !req->token->admin) {
		answer_error(s, req, 403,
			     "%s is for administrators, and the token %s is none: ask who runs the service",
			     route_rows[req->route].path, req->token->name);
		return false;
	}
	return true;
}

/* at: index of each descriptor in r->fds; those taken by a handler are moved out. */
static void take_ask(struct service *s, struct record *r, const struct message *m, const int at[BESIDE_COUNT])
{
	const char *request_id = message_text(m, FIELD_request_id);
	struct request req = {
		.tag = r->tag, .m = m, .request_id = request_id ? request_id : "", .beside = JOB_DESCRIPTORS_NONE
	};
	const struct {
		enum beside which;
		int *fd;
	} places[] = { { BESIDE_FILES, &req.beside.files },
		       { BESIDE_INPUT, &req.beside.input },
		       { BESIDE_OUT, &req.beside.out },
		       { BESIDE_PROJECT, &req.beside.project },
		       { BESIDE_LEFT, &req.beside.left } };
	uint64_t route = message_number(m, FIELD_route, ROUTE_COUNT);
	struct brig_error err = BRIG_ERROR_INIT;

	if (route >= ROUTE_COUNT || !handlers[route]) {
		answer_error(s, &req, 404, "there is no such route");
		return;
	}
	req.route = (enum route)route;
	if (!let_in(s, &req, at[BESIDE_PEER] >= 0 ? r->fds[at[BESIDE_PEER]] : FD_NONE))
		return;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (at[places[i].which] >= 0)
			*places[i].fd = fd_move(&r->fds[at[places[i].which]]);
	if (job_check_descriptors(&req.beside, &err) < 0)
		answer_trouble(s, &req, &err);
	else if (!forward_takes(s, &req))
		handlers[route](s, &req);
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
		report("the front sent %s", why);
		return false;
	}
	message_beside(&m, at, &n);
	if (n != r->n_fds) {
		report("the front sent %zu descriptors and announced %zu", r->n_fds, n);
		return false;
	}
	take_ask(s, r, &m, at);
	return true;
}

bool requests_take(struct service *s, struct record *r)
{
	bool is_good = true;

	switch (r->tag <= CHANNEL_TAG_MAX ? r->type : RECORD_TYPES) {
	case RECORD_ASK:
		is_good = take_message(s, r);
		break;
	case RECORD_GONE:
		if (!batches_gone(s, r->tag) && !answerers_gone(s, r->tag) && !sessions_gone(s, r->tag) &&
		    !front_gone(s, r->tag) && !keys_gone(s, r->tag) && !batch_asks_gone(s, r->tag) &&
		    !shared_batches_gone(s, r->tag) && !forward_gone(s, r->tag))
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
		report("the front sent a record that only the runner sends, or used a tag of the runner");
		is_good = false;
	}
	for (size_t i = 0; i < r->n_fds; i++)
		fd_closep(&r->fds[i]);
	return is_good;
}
