/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig session ...`: long-lived cells at a service (docs/SESSIONS.md).
 *
 *	session.c          what these commands do first; requests that are answered by a document
 *	session_process.c  a session's program on our own descriptors
 *	terminal.c         the user's terminal while a session's program uses it
 *	cmd_session*.c     the commands
 *
 * They use a service in the same way as `brig run` (cli/service.h), with the same records: each request is a route of
 * the API with its fields, and the kernel identifies the caller. Sessions belong to the service, so none of this can
 * run here instead.
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli/commands.h"
#include "cli/document.h"
#include "cli/service.h"
#include "server/message.h"
#include "server/routes.h"

/* Options of all these commands; each has rows for those that it supports. */
struct session_values {
	const char *trust, *environment, *timeout, *code, *lang, *context, *cwd, *out_dir, *add, *remove, *depth,
		*snapshot, *name;
	bool json, events, no_color, quiet, raw, tty, no_input, detach, tar, overwrite;
	struct words env;
	struct wishes wishes;
};

/* A command being executed. */
struct session_work {
	const struct command *self;
	struct session_values v;
	struct operands ops;
	struct service_place place;
	char id[64];      /* the session named on the command line; "": none */
	uint64_t process; /* a process started by another command, to be watched; 0: none */
};

/* The operands of a command: how many words, and which of them names a session. */
struct session_shape {
	size_t min, max;
	size_t id_at; /* SESSION_NO_ID: none */
	bool has_rest;
	const char *wants; /* for the usage message */
};
#define SESSION_NO_ID SIZE_MAX

/* The `own` member of session commands. */
struct session_command {
	const struct session_shape *shape;
	/* Returns the exit status, or -code. */
	int (*run)(struct session_work *w, struct brig_error *err);
};

/* The members of struct command after its texts. */
#define SESSION_COMMAND(rows, words, function)                                    \
	.options = (rows), .n_options = ARRAY_LEN(rows), .run = cli_session_main, \
	.own = &(const struct session_command)                                    \
	{                                                                         \
		&(words), (function)                                              \
	}

/* Reads the command line, finds the service and the session, and runs the command; the exit status. */
int cli_session_main(const struct command *self, int argc, char **argv);

/* ---- requests -------------------------------------------------------------------------------------------- */

/* Adds the fields that all requests have; the caller adds others. */
void cli_session_ask_begin(struct service_ask *a, enum route route, const char *id);
/*
 * Sends a request and waits.  0: *ret is the document, or NULL if the answer is not one (then bytes has it); -code:
 * refused.  bytes may be NULL.  Releases a.
 */
int cli_session_ask(const struct session_work *w, struct service_ask *a, json_t **ret, struct buf *bytes,
		    struct brig_error *err);
/* The error for an unsuccessful answer. */
int cli_session_refusal(const struct service_answer *a, struct brig_error *err);
/* Connects, and begins the call. */
int cli_session_call(const struct session_work *w, const struct service_ask *a, struct service_answer *ret,
		     struct service_call **ret_call, struct brig_error *err);
/* Adds a time ("5", "200ms", "2m") as a field, if there is a text. */
int cli_session_put_time(struct service_ask *a, const char *text, struct brig_error *err);
/* Adds the variables of --env. */
void cli_session_put_env(struct service_ask *a, const struct words *env);
/* Parses the number of --context and the like; 0: there is no text. */
int cli_session_number(const char *text, const char *option, uint64_t *ret, struct brig_error *err);
/* Prints the document with --json, otherwise the line; releases the document.  Returns the exit status. */
int cli_session_tell(const struct session_work *w, json_t *doc, const char *fmt, ...) PRINTF(3, 4);

/* ---- programs ------------------------------------------------------------------------------------------------ */

/*
 * Runs the process of the request, or watches that of the work, on our descriptors; releases a.  Returns the exit
 * status.
 */
int cli_session_process(struct session_work *w, struct service_ask *a, struct brig_error *err);
/* Requests a terminal for it, with the size of ours if we have one. */
void cli_session_put_terminal(struct service_ask *ask, bool tty);
/* At the end of a run or process: prints the result and its remarks.  Returns the exit status. */
int cli_session_end(const struct session_work *w, const struct service_answer *answer, const char *name,
		    struct brig_error *err);
/* Prints an event as a line of JSON on standard output. */
void cli_session_print_event(const json_t *event);

#endif
