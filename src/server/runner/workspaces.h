/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces: files that a client stores for later executions.
 *
 * A workspace is an archive (STATE/serve/workspaces/ID.tar) and a line about it (ID) with its owner and time of
 * creation.  A run gets the archive as its files, so none of them is ever a file of this host; the result lists what
 * the program changed.  With `keep`, a new archive is written afterwards: the old files except deleted ones, with the
 * added and changed ones.
 *
 *   RULE W1  An archive is replaced atomically and never modified: processes that have it open continue to read the old
 *   one.
 *   RULE W2  The changes of a run are kept completely or not at all; not at all if another run has changed the
 *   workspace meanwhile.
 *   RULE W3  Size and number are bounded, per token and in total; workspaces unused for a day are removed.
 */
#ifndef SERVER_RUNNER_WORKSPACES_H
#define SERVER_RUNNER_WORKSPACES_H

#include <sys/queue.h>

#include "server/message.h"
#include "server/runner/executions.h"
#include "sys/statedir.h"

#define WORKSPACES_MAX         1024
#define WORKSPACES_OF_TOKEN    64
#define STORES_OF_TOKEN        512 /* workspaces that doors create for clients' files */
#define WORKSPACES_BYTES_MAX   ((uint64_t)2 * GiB)
#define WORKSPACES_TOKEN_BYTES (512 * MiB)
#define WORKSPACE_UNUSED_S     (24 * 3600)

struct workspace {
	TAILQ_ENTRY(workspace) in_age; /* oldest first */
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	uint64_t created_s, used_s, bytes;
	uint64_t version;                /* incremented with each write, in this process */
	bool is_store;                   /* created by a door; the oldest are dropped when there are too many */
	char last[EXECUTION_ID_LEN + 1]; /* id of the execution accepted for it last; "": none */
};

TAILQ_HEAD(workspace_list, workspace);

struct workspaces {
	struct workspace_list all;
	size_t n;
	uint64_t bytes;
	struct statedir dir;
};

struct service;

void workspaces_init(struct workspaces *w);
int workspaces_open(struct service *s, struct brig_error *err);
void workspaces_close(struct service *s);

struct workspace *workspaces_find(const struct workspaces *w, const char *id);
/* Removes workspaces that have not been used for WORKSPACE_UNUSED_S. */
void workspaces_sweep(struct service *s);
/* -BRIG_E_REFUSED or -BRIG_E_NOMEM: no room for so many more bytes of this owner. */
int workspaces_room(const struct service *s, const char *owner, uint64_t bytes, bool is_new, struct brig_error *err);
/* Drops the oldest stores of this owner until so many more bytes fit. */
void workspaces_make_room(struct service *s, const char *owner, uint64_t bytes);
/* NULL: *err. */
struct workspace *workspace_make(struct service *s, const char *owner, bool is_store, const char *bytes, size_t len,
				 struct brig_error *err);
int workspace_write(struct service *s, struct workspace *w, const char *bytes, size_t len, struct brig_error *err);
void workspace_remove(struct service *s, struct workspace *w);
/* Opens the archive for reading: a descriptor or -code. */
int workspace_archive(const struct service *s, const struct workspace *w, struct brig_error *err);
/* Reads a file of at most max bytes into a buffer, which the caller releases. */
int workspace_read_all(int fd, uint64_t max, struct buf *out, struct brig_error *err);

/* Opens the archive of the workspace named in a message as the job's files; 0 also if none is named. */
int workspace_use(struct service *s, const struct token *token, const struct message *m, struct job_descriptors *beside,
		  struct brig_error *err);
/* Called when an execution is accepted, starts and ends; the last adds to the result whether changes were kept. */
void workspace_on_accept(struct service *s, struct execution *x);
void workspace_on_start(struct execution *x);
void workspace_on_end(struct service *s, struct execution *x);

#endif
