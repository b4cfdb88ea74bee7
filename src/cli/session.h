/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig session ...`: cells that stay, at a service (docs/SESSIONS.md).
 *
 *	session.c          what all of these commands do first; asks that are answered by a document
 *	session_process.c  a program of a session on our own descriptors
 *	terminal.c         the user's terminal while a program of a session has it
 *	cmd_session*.c     the commands
 *
 * They go the way that `brig run` goes to a service (cli/service.h), by the same records: each ask is a route of the
 * API with its fields, the kernel identifies the caller.  Sessions belong to the service, so nothing of this can run
 * here instead.
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli/commands.h"
#include "cli/document.h"
#include "cli/service.h"
#include "server/message.h"
#include "server/routes.h"

/* The options of all of them; each has the rows that it knows. */
struct session_values {
	const char *trust, *environment, *timeout, *code, *lang, *context, *cwd, *out_dir, *add, *remove, *depth,
		*snapshot, *name;
	bool json, events, no_color, quiet, raw, tty, no_input, detach, tar, overwrite;
	struct words env;
	struct wishes wishes;
};

/* One command on its way. */
struct session_work {
	const struct command *self;
	struct session_values v;
	struct operands ops;
	struct service_place place;
	char id[64];      /* of the session that the command line names; "": none */
	uint64_t process; /* that is watched and has been started by another command; 0: none */
};

/* What follows the options: how many words there may be, and which of them names a session. */
struct session_shape {
	size_t min, max;
	size_t id_at; /* SESSION_NO_ID: none */
	bool has_rest;
	const char *wants; /* for who gave something else */
};
#define SESSION_NO_ID SIZE_MAX

/* What a command of sessions has as its `own`. */
struct session_command {
	const struct session_shape *shape;
	/* The exit status, or -code. */
	int (*run)(struct session_work *w, struct brig_error *err);
};

/* The members of struct command that follow its texts. */
#define SESSION_COMMAND(rows, words, function)                                    \
	.options = (rows), .n_options = ARRAY_LEN(rows), .run = cli_session_main, \
	.own = &(const struct session_command)                                    \
	{                                                                         \
		&(words), (function)                                              \
	}

/* Reads the command line, finds the service and the session, and runs the command; the exit status. */
int cli_session_main(const struct command *self, int argc, char **argv);

/* ---- asks ------------------------------------------------------------------------------------------------- */

/* The fields that each has; the caller adds its own. */
void cli_session_ask_begin(struct service_ask *a, enum route route, const char *id);
/* Asks and waits.  0: *ret has the document, or NULL if it is none (then bytes have it); -code: it was refused.  bytes:
 * NULL if not wanted.  The ask is released. */
int cli_session_ask(const struct session_work *w, struct service_ask *a, json_t **ret, struct buf *bytes,
		    struct brig_error *err);
/* An answer that is no success, as an error. */
int cli_session_refusal(const struct service_answer *a, struct brig_error *err);
/* Connects, and has the ask under way. */
int cli_session_call(const struct session_work *w, const struct service_ask *a, struct service_answer *ret,
		     struct service_call **ret_call, struct brig_error *err);
/* "5", "200ms", "2m": a field, if there is a text. */
int cli_session_put_time(struct service_ask *a, const char *text, struct brig_error *err);
/* The variables of --env. */
void cli_session_put_env(struct service_ask *a, const struct words *env);
/* A number of --context and the like; 0: there is no text. */
int cli_session_number(const char *text, const char *option, uint64_t *ret, struct brig_error *err);
/* Prints the document if --json wants it, else the line; releases the document.  The exit status. */
int cli_session_tell(const struct session_work *w, json_t *doc, const char *fmt, ...) PRINTF(3, 4);

/* ---- programs ------------------------------------------------------------------------------------------------ */

/* Runs a process of the ask, or watches the one of the work, on our descriptors; releases the ask.  The exit status. */
int cli_session_process(struct session_work *w, struct service_ask *a, struct brig_error *err);
/* It gets a terminal, of the size of ours if we have one. */
void cli_session_put_terminal(struct service_ask *ask, bool tty);
/* What is to be done at the end of either: prints the result and what must not pass unseen.  The exit status. */
int cli_session_end(const struct session_work *w, const struct service_answer *answer, const char *name,
		    struct brig_error *err);
/* One event as a line of JSON on standard output. */
void cli_session_print_event(const json_t *event);

#endif
