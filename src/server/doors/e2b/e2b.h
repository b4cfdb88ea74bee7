/* SPDX-License-Identifier: Apache-2.0 */
/*
 * E2B: a sandbox is a session of the runner, and its id is the session's id.
 *
 *	e2b             refusals; which sandbox a request is for, and access to it; health
 *	control, look,  the control plane, authenticated by the door's key: create, inspect and end sandboxes;
 *	copies          snapshots and forks
 *	connect         messages of the Connect protocol: unary calls and streams
 *	process         process.Process: commands and terminals
 *	filesystem      filesystem.Filesystem
 *	files           /files: contents of files
 *	interpreter     /execute and /contexts
 *
 * All requests outside the control plane are for one sandbox and authenticate with that session's key, which the runner
 * generated. They name the sandbox in E2b-Sandbox-Id and the key in X-Access-Token (for the interpreter also
 * E2B-Traffic-Access-Token, the same key); older clients send only the key, and signed /files URLs neither. The runner
 * allows such a request to act on this session only.
 *
 *	HANDLER(c) -> e2b_with_sandbox(c, service, then) -> asks the runner for the session
 *	  -> then(c)       the session runs: call->session is its id. From here on door_fields() includes id and key, and
 *	                   FIELD_id must not be added again. req->body stays until the next door_ask() (see
 *	                   door_keep_body()); call->id is the id in the path, as ever
 *	  -> 401 or 502    already answered: E2B's clients take a 502 for "the sandbox is gone", whatever the request was
 */
#ifndef SERVER_DOORS_E2B_H
#define SERVER_DOORS_E2B_H

#include "server/doors/door.h"

#define E2B_ENVD_VERSION "0.6.4"
#define E2B_HOME         "/home/user"
#define E2B_USER         "user"
#define E2B_DEBUG_ID     "debug_sandbox_id"
#define E2B_PATH_MAX     4096
#define E2B_TIMEOUT      300 /* seconds, if the client names none */

enum e2b_service { E2B_ENVD, E2B_INTERPRETER };

/* The options of every session that serves as a sandbox. */
void e2b_put_options(struct buf *fields);

void e2b_with_sandbox(struct client *c, enum e2b_service service, void (*then)(struct client *c));

/*
 * Variables that tell a program in which sandbox it is (E2B_SANDBOX, E2B_SANDBOX_ID and others). They come with each
 * command and run, not with the session: sessions with variables of their own cannot take a cell that was made ahead,
 * and a fork has another id. What the creator of the sandbox sets stays: e2b_note_variables() notes which ones those are.
 */
void e2b_note_variables(json_t *note, const json_t *variables);
/* Adds those that own, the variables of the request, does not have; NULL: it has none. */
void e2b_put_variables(struct client *c, struct buf *fields, const json_t *own);
/* Removes them from the variables of a process, of which clients expect to see only what they gave. */
void e2b_hide_variables(const struct client *c, json_t *variables);

/*
 * True if the runner's answer to a session request says that the session has ended or never existed; e2b_gone() tells
 * the client so.
 */
bool e2b_is_gone(unsigned status, const struct message *m);
void e2b_gone(struct client *c);

/*
 * Maps a client's path to a path in the session: relative paths and "~" start in E2B_HOME, which is an alias of the
 * session's workspace. False (invalid argument): the path is "~other" or too long. e2b_shown_path() maps a path for a
 * response; dst may equal path.
 */
bool e2b_path(const char *path, char dst[E2B_PATH_MAX + 1]);
void e2b_shown_path(const char *path, char dst[E2B_PATH_MAX + 1]);

/* {"code": status, "message": ...}, the error format of the control plane and of /files. */
void e2b_reply_error(struct client *c, unsigned status, const char *message);
/* The Connect error code for an HTTP status: "not_found". */
const char *e2b_connect_code(unsigned status);

#endif
