/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of a request that another process runs (brig_folders_*() of brig.h).
 *
 * The privileges decide the protocol.  The other process may run as root while the caller does not: given a folder, by
 * path or by descriptor, it would read and write there with its own rights, follow other users' links, and enter what
 * is closed to the caller.  So it gets none.  This process opens the project, determines what is hidden and packs the
 * rest, as for a cell that cannot read it (files/pack.h), with the rights of its user; the other one unpacks it in
 * memory and runs on a copy; the contents of the workspace at the end come back in the same form, and is compared with
 * the project, kept, applied and copied out here, by the code of a run of our own (work.c).
 *
 *	here                             there
 *	away_open    folders, hide, pack -> project_fd, hidden -> workspace_from_tree()
 *	away_finish  unpack, work_take() <- left_fd            <- hand_over() of work.c
 *
 * Neither trusts the other: unpack_tree() checks names, counts and bytes, everything is created in a private in-memory
 * file system, and files/foreign.h and workspace/judge.c decide what may be written to a folder of the host.
 */
#ifndef EXECUTOR_AWAY_H
#define EXECUTOR_AWAY_H

#include "executor/executor.h"
#include "executor/work.h"
#include "model/result.h"

#define AWAY_BYTES_MAX (512 * MiB) /* bytes of a packed project */

struct away {
	const struct brig_request *req;
	struct prepared_request prepared;
	struct work work;
	int project;         /* packed; FD_NONE: none */
	const char **hidden; /* the array and its strings are on the heap; paths of folders end with a slash */
	size_t n_hidden;
};

/* *ret is on the heap. *ret_too_large: the request was refused for that reason. */
int away_open(const struct executor *x, const struct brig_request *req, struct away **ret, bool *ret_too_large,
	      struct brig_error *err);
/* left: the returned workspace, read from its start; empty if nothing ran. */
int away_finish(struct away *a, int left, struct result *res, struct brig_error *err);
void away_close(struct away *a); /* accepts NULL */

#endif
