/* SPDX-License-Identifier: Apache-2.0 */
/*
 * E2B: a sandbox is a session of the runner, its id the session's.
 *
 *	e2b		words of refusals; which sandbox a request is for, and whether it may touch it; health
 *	control, look,	the control plane: sandboxes are made, looked at, ended, with the key of the door;
 *	copies		snapshots and forks
 *	connect		messages of the Connect protocol: unary calls and streams
 *	process		process.Process: commands and terminals
 *	filesystem	filesystem.Filesystem
 *	files		/files: bytes of files
 *	interpreter	/execute and /contexts
 *
 * The control plane has the door's key.  All else is for one sandbox and has the key of that session, which the runner made: a request
 * says E2b-Sandbox-Id and X-Access-Token (to the interpreter also E2B-Traffic-Access-Token, the same key), older clients only the
 * token, and addresses of /files that were signed neither.  The runner lets such a request do what concerns this session, and nothing else.
 *
 *	HANDLER(c) -> e2b_with_sandbox(c, service, then) -> the runner is asked for the session
 *		-> then(c)		it runs: call->session is its id.  door_fields() has its id and key from here on, so that asks
 *					need nothing but what is asked for; FIELD_id must not be put again.  req->body is still there, until the
 *					next ask (door_keep_body()); call->id is what the path names, as ever
 *		-> 401 or 502		answered here: 502 is what tells these clients that a sandbox is no more, whatever was asked
 */
#ifndef SERVER_DOORS_E2B_H
#define SERVER_DOORS_E2B_H

#include "server/doors/door.h"

#define E2B_ENVD_VERSION "0.6.4"
#define E2B_HOME         "/home/user"
#define E2B_USER         "user"
#define E2B_DEBUG_ID     "debug_sandbox_id"
#define E2B_PATH_MAX     4096
#define E2B_TIMEOUT      300 /* seconds, where a client names none */

enum e2b_service { E2B_ENVD, E2B_INTERPRETER };

/* The options of every session that is a sandbox. */
void e2b_put_options(struct buf *fields);

void e2b_with_sandbox(struct client *c, enum e2b_service service, void (*then)(struct client *c));

/* Whether an answer to an ask of a session says that it has ended, or never was; e2b_gone() says so to the client. */
bool e2b_is_gone(unsigned status, const struct message *m);
void e2b_gone(struct client *c);

/*
 * A path as clients write it, where it is in the session: relative ones and "~" begin in E2B_HOME, which is another name of the session's
 * workspace.  False: it is "~other" or too long; then it is an invalid argument.  e2b_shown_path() is for paths in answers: dst may be path.
 */
bool e2b_path(const char *path, char dst[E2B_PATH_MAX + 1]);
void e2b_shown_path(const char *path, char dst[E2B_PATH_MAX + 1]);

/* {"code": status, "message": ...}: of the control plane and of /files. */
void e2b_reply_error(struct client *c, unsigned status, const char *message);
/* The Connect protocol's word for a status: "not_found". */
const char *e2b_connect_code(unsigned status);

#endif
