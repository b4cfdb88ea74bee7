/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines as tables: each command has one array of rows, from which come its parser and its help.
 *
 * To add an option: add a member to the command's struct of values and a row that points to it.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/buf.h"
#include "base/err.h"

/* Strings of the command line, in order; they belong to argv. */
struct words {
	const char **item;
	size_t n;
};

/* Wishes of the request, as brig_request takes them. */
struct wishes {
	struct brig_option *item;
	size_t n;
};

enum option_kind {
	OPTION_FLAG, /* bool: given or not */
	OPTION_TEXT, /* const char *: the last one counts */
	OPTION_LIST, /* struct words: every one counts */
	OPTION_WISH, /* struct wishes: the value is the setting named by the row's key; without key it is KEY=VALUE */
	OPTION_FIXED_WISH, /* struct wishes: a flag that sets the row's key to the row's value */
};

struct option_row {
	const char *name; /* long name, without dashes */
	char letter;      /* short name, or 0 */
	enum option_kind kind;
	const char *value; /* what help calls the value; NULL for flags.  Of a fixed wish: the value */
	size_t offset;     /* of the member in the command's values */
	const char *key;
	const char *help;
};

struct command {
	const char *name;     /* one or two words: "run", "policy show" */
	const char *synopsis; /* what follows the name */
	const char *summary;  /* one line */
	const char *details;  /* further paragraphs of its help, or NULL */
	const char *examples; /* lines to copy, each with what it does behind '#' */
	const struct option_row *options;
	size_t n_options;
	bool makes_cells;  /* and little else: what makes them is forked first of all */
	bool asks_service; /* and leaves that to a service, if there is one */
	bool gives_result; /* its --json is a result, and so is the end of its --events, on every path */
	/* argv[0] is the first word behind the command's name.  Returns the exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
	const void *own; /* for a run() that several commands share, or NULL */
};

/* What is not an option. */
struct operands {
	struct words words; /* before "--" */
	struct words rest;  /* behind "--" */
};

enum options_outcome { OPTIONS_OK, OPTIONS_HELP };

/* Fills *values and *ops.  OPTIONS_HELP if --help or -h was met; -BRIG_E_USAGE with the reason in *err. */
int options_parse(const struct command *cmd, int argc, char **argv, void *values, struct operands *ops,
		  struct brig_error *err);
/* Frees the lists; the strings are argv's. */
void options_release(const struct command *cmd, void *values, struct operands *ops);
/* The help page of one command. */
void options_help(const struct command *cmd, struct buf *out);

#endif
