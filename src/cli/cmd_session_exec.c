/* SPDX-License-Identifier: Apache-2.0 */
/* `brig session exec` and `brig session open`: a command in a session, on our own descriptors or our terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/rows.h"
#include "cli/session.h"

#define AT(member) offsetof(struct session_values, member)
#define ROWS_OF_PROCESS                                                                                             \
	{ "cwd", 0, OPTION_TEXT, "DIR", AT(cwd), NULL, "the folder where it begins" },                              \
		{ "env", 'e', OPTION_LIST, "NAME=VALUE", AT(env), NULL, "a variable of its own; may be repeated" }, \
	{                                                                                                           \
		"timeout", 0, OPTION_TEXT, "TIME", AT(timeout), NULL, "its time limit: 5, 1.5s, 200ms, 2m"          \
	}
static const struct option_row exec_options[] = {
	ROWS_OF_PROCESS,
	{ "tty", 't', OPTION_FLAG, NULL, AT(tty), NULL,
	  "give it a terminal, which ours becomes for as long as it runs" },
	{ "no-stdin", 'n', OPTION_FLAG, NULL, AT(no_input), NULL, "its input is empty, and ours is left alone" },
	{ "detach", 'd', OPTION_FLAG, NULL, AT(detach), NULL, "do not wait for its end: print its number" },
	{ "events", 0, OPTION_FLAG, NULL, AT(events), NULL,
	  "print what happens as lines of JSON while it runs; the last one has the whole result" },
	{ "quiet", 'q', OPTION_FLAG, NULL, AT(quiet), NULL, "no lines of our own on stderr, but why nothing ran" },
	{ "raw", 0, OPTION_FLAG, NULL, AT(raw), NULL, "let control characters of the program reach the terminal" },
	ROW_JSON,
};
static const struct option_row open_options[] = { ROWS_OF_PROCESS };
static const struct option_row attach_options[] = {
	{ "tty", 't', OPTION_FLAG, NULL, AT(tty), NULL, "it has a terminal, which ours becomes" },
	{ "no-stdin", 'n', OPTION_FLAG, NULL, AT(no_input), NULL, "watch it only: our input is left alone" },
	{ "events", 0, OPTION_FLAG, NULL, AT(events), NULL,
	  "print what happens as lines of JSON while it runs; the last one has the whole result" },
	{ "quiet", 'q', OPTION_FLAG, NULL, AT(quiet), NULL, "no lines of our own on stderr, but why nothing ran" },
	{ "raw", 0, OPTION_FLAG, NULL, AT(raw), NULL, "let control characters of the program reach the terminal" },
	ROW_JSON,
};

static int detach(struct session_work *w, struct service_ask *ask, struct brig_error *err)
{
	json_t *doc = NULL;
	int rc;

	message_put_number(&ask->message, FIELD_async, 1);
	if (w->v.tty) {
		message_put_number(&ask->message, FIELD_interactive, 1); /* for a later attach */
		cli_session_put_terminal(ask, true);
	}
	rc = cli_session_ask(w, ask, &doc, NULL, err);
	return rc < 0 ? rc
		      : cli_session_tell(w, doc, "%lld\n",
					 (long long)json_integer_value(json_object_get(doc, "process")));
}

static int start(struct session_work *w, const char *const *args, size_t n, struct brig_error *err)
{
	struct service_ask ask;
	int rc;

	cli_session_ask_begin(&ask, ROUTE_process_start, w->id);
	for (size_t i = 0; i < n; i++)
		message_put_text(&ask.message, FIELD_arg, args[i]);
	cli_session_put_env(&ask, &w->v.env);
	message_put_text(&ask.message, FIELD_cwd, w->v.cwd);
	rc = cli_session_put_time(&ask, w->v.timeout, err);
	if (rc < 0) {
		service_ask_release(&ask);
		return rc;
	}
	return w->v.detach ? detach(w, &ask, err) : cli_session_process(w, &ask, err);
}

static int exec(struct session_work *w, struct brig_error *err)
{
	if (w->ops.rest.n == 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "the command goes behind '--': brig session exec SESSION -- ls -l");
	return start(w, w->ops.rest.item, w->ops.rest.n, err);
}

/* By default runs a shell: bash if it exists. */
static int open_it(struct session_work *w, struct brig_error *err)
{
	static const char *const shell[] = { "sh", "-c",
					     "if command -v bash >/dev/null; then exec bash -i; fi; exec sh -i" };
	char term[128];
	struct words env = { calloc(w->v.env.n + 1, sizeof(char *)), 0 };
	const struct words own = w->v.env;
	int rc;

	if (!env.item)
		return err_nomem(err);
	(void)snprintf(term, sizeof(term), "TERM=%.100s", getenv("TERM") ? getenv("TERM") : "dumb");
	env.item[env.n++] = term; /* before those of the command line, which override it */
	for (size_t i = 0; i < own.n; i++)
		env.item[env.n++] = own.item[i];
	w->v.env = env;
	w->v.tty = true;
	rc = w->ops.rest.n > 0 ? start(w, w->ops.rest.item, w->ops.rest.n, err)
			       : start(w, shell, ARRAY_LEN(shell), err);
	w->v.env = own;
	free(env.item);
	return rc;
}

static int attach(struct session_work *w, struct brig_error *err)
{
	struct service_ask ask;

	if (cli_session_number(w->ops.words.item[1], "PROCESS", &w->process, err) < 0)
		return -err->code;
	cli_session_ask_begin(&ask, ROUTE_process_events, w->id);
	message_put_number(&ask.message, FIELD_item, w->process);
	return cli_session_process(w, &ask, err);
}

static const struct session_shape shape_attach = {
	2, 2, 0, false, "name a session and the number of a process; 'brig session show SESSION' has them"
};
static const struct session_shape shape = {
	1, 1, 0, true, "name one session; a command goes behind '--': brig session exec SESSION -- ls"
};

const struct command command_session_exec = {
	.name = "session exec",
	.synopsis = "[OPTIONS] SESSION -- COMMAND [ARGS]",
	.summary = "run a command in a session",
	.examples = "  brig session exec k7xq -- ls -l\n"
		    "  brig session exec k7xq -- sort < names.txt\n"
		    "  brig session exec --detach k7xq -- python3 -m http.server 8000\n",
	.details =
		"Our standard input is the command's, and signals (INT, TERM, HUP, QUIT, USR1, USR2) are passed on.\n"
		"The end of 'brig session exec', whatever ends it, ends the command, too; with --detach it goes on.\n\n"
		"Exit status: as of 'brig run': the command's own, 128 + signal if it crashed ...\n",
	SESSION_COMMAND(exec_options, shape, exec),
};

const struct command command_session_open = {
	.name = "session open",
	.synopsis = "[OPTIONS] SESSION [-- COMMAND [ARGS]]",
	.summary = "a shell of the session on this terminal",
	.examples = "  brig session open k7xq\n"
		    "  brig session open k7xq -- python3\n",
	.details = "What programs there print steers this terminal, as over ssh.  It is put back as it was whatever\n"
		   "happens, kill -9 included.\n",
	SESSION_COMMAND(open_options, shape, open_it),
};

const struct command command_session_attach = {
	.name = "session attach",
	.synopsis = "[OPTIONS] SESSION PROCESS",
	.summary = "watch a command that was started with --detach, from its first output on",
	.examples = "  P=$(brig session exec --detach --tty k7xq -- bash)\n"
		    "  brig session attach --tty k7xq $P\n",
	.details = "Our input is its, if it was started with --tty, and signals are passed on, but for TERM and HUP:\n"
		   "these end 'brig session attach', and the command goes on.\n\n"
		   "Exit status: as of 'brig session exec', or 130 if the command goes on.\n",
	SESSION_COMMAND(attach_options, shape_attach, attach),
};
