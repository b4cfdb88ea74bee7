/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands that run something share: their options (request_options.def), the program's input, the run itself with
 * its output live, and what is said at its end.  They use the library like any third party.
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

/* What a command does differently. */
struct request_way {
	const char *name; /* of what runs, in messages about it; may be NULL */
	bool quiet;       /* output is not shown as it comes: it is kept in the result, for end() */
	/* Shows the result instead of report_remarks() unless --json does; returns the exit status.  May be NULL. */
	int (*end)(const struct brig_result *r, void *arg);
	void *arg;
};

/* A file that the caller names, for reading; also: enum file_also.  Negative: err says why not. */
int request_open(const char *path, unsigned also, struct brig_error *err);
/* Everything from a descriptor, up to what the buffer takes: with one byte more than allowed, so that the caller can
 * refuse it. */
int request_read_all(int fd, const char *name, struct buf *ret, struct brig_error *err);
/* Reading from a terminal in the background would stop us. */
bool request_may_read_stdin(void);
/* Says why nothing can run, as a result too if --json or --events asks for one; returns the exit status. */
int request_refuse(const struct command *self, const struct request_values *v, const struct brig_error *err);
/* *ret_fd is opened here and the caller's to close; the request borrows it. */
int request_stdin(const struct request_values *v, bool code_from_stdin, struct brig_request *req, int *ret_fd,
		  struct brig_error *err);
/* The items of each list, as of every --packages; both allocations are the caller's to free.  False: no memory. */
bool request_split(const struct words *lists, char **ret_text, const char ***ret, size_t *ret_n);
/* Fills in what the options say, runs, shows.  Returns the exit status. */
int request_run(const struct request_values *v, const struct brig_request *what, const struct request_way *way);

#endif
