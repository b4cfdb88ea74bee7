/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by commands that run something: their options (request_options.def), the program's input, the run with its
 * live output, and the messages at its end.  They use the library like any other client.
 */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include <brig/brig.h>

#include "base/file.h"
#include "cli/live.h"
#include "cli/options.h"

struct request_values {
	const char *policy, *preset, *trust, *input, *state, *receipt, *workspace, *out_dir, *inline_artifacts, *files,
		*out_tar, *venv, *environment, *srt_settings;
	bool json, events, quiet, no_input, watch, summary, raw, no_color, apply, apply_git, overwrite,
		project_packages, local;
	struct words env, artifacts, packages;
	struct wishes wishes;
};

/* Differences between commands. */
struct request_way {
	const char *name; /* name of what runs, for messages; may be NULL */
	bool quiet;       /* output is not shown live but kept in the result, for end() */
	/* Shows the result instead of report_remarks() unless --json does; returns the exit status.  May be NULL. */
	int (*end)(const struct brig_result *r, void *arg);
	void *arg;
};

/* Opens a file named by the caller for reading; also: enum file_also.  Negative with err on failure. */
int request_open(const char *path, unsigned also, struct brig_error *err);
/*
 * Reads everything up to the buffer's maximum, which should be one byte more than permitted, so that the caller can
 * refuse it.
 */
int request_read_all(int fd, const char *name, struct buf *ret, struct brig_error *err);
/* False in the background: reading from the terminal would stop the process. */
bool request_may_read_stdin(void);
/* Prints why nothing can run, also as a result if --json or --events is given; returns the exit status. */
int request_refuse(const struct command *self, const struct request_values *v, const struct brig_error *err);
/* *ret_fd is opened here, and the caller closes it; the request borrows it. */
int request_stdin(const struct request_values *v, bool code_from_stdin, struct brig_request *req, int *ret_fd,
		  struct brig_error *err);
/* Splits lists such as those of every --packages into items; the caller frees both allocations.  False: no memory. */
bool request_split(const struct words *lists, char **ret_text, const char ***ret, size_t *ret_n);
/* Adds the options to the request, runs it, and shows the result.  Returns the exit status. */
int request_run(const struct request_values *v, const struct brig_request *what, const struct request_way *way);

#endif
