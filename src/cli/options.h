/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines as tables: each command has one array of rows, from which its parser and its help are derived.
 *
 * To add an option: add a member to the command's struct of values, and a row that refers to it.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/buf.h"
#include "base/err.h"

/* Arguments, in order; the strings belong to argv. */
struct words {
	const char **item;
	size_t n;
};

/* Settings of the request, as brig_request takes them. */
struct wishes {
	struct brig_option *item;
	size_t n;
};

enum option_kind {
	OPTION_FLAG,       /* bool: present or not */
	OPTION_TEXT,       /* const char *: the last one counts */
	OPTION_LIST,       /* struct words: all are collected */
	OPTION_WISH,       /* struct wishes: sets the row's key to the value; without key the value is KEY=VALUE */
	OPTION_FIXED_WISH, /* struct wishes: a flag that sets the row's key to the row's value */
};

struct option_row {
	const char *name; /* long name, without dashes */
	char letter;      /* short name, or 0 */
	enum option_kind kind;
	const char *value; /* name of the value in help; NULL for flags.  OPTION_FIXED_WISH: the value */
	size_t offset;     /* of the member in the command's values */
	const char *key;
	const char *help;
};

struct command {
	const char *name;     /* one or two words: "run", "policy show" */
	const char *synopsis; /* shown after the name */
	const char *summary;  /* one line */
	const char *details;  /* more paragraphs for its help, or NULL */
	const char *examples; /* lines to copy, each with an explanation after '#' */
	const struct option_row *options;
	size_t n_options;
	bool makes_cells;  /* its main purpose; the keeper is forked before anything else */
	bool asks_service; /* it uses a service for that, if there is one */
	bool gives_result; /* its --json is a result, and so is the end of its --events, in every case */
	/* argv[0] is the first word after the command's name.  Returns the exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
	const void *own; /* data for a run() that several commands share, or NULL */
};

/* Arguments that are not options. */
struct operands {
	struct words words; /* before "--" */
	struct words rest;  /* after "--" */
};

enum options_outcome { OPTIONS_OK, OPTIONS_HELP };

/* Fills *values and *ops.  OPTIONS_HELP for --help or -h; -BRIG_E_USAGE and *err for errors. */
int options_parse(const struct command *cmd, int argc, char **argv, void *values, struct operands *ops,
		  struct brig_error *err);
/* Frees the lists; the strings are argv's. */
void options_release(const struct command *cmd, void *values, struct operands *ops);
/* The help page of one command. */
void options_help(const struct command *cmd, struct buf *out);

#endif
