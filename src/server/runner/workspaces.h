/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces: files that a client has left here, for executions to come.
 *
 * Each is an archive (STATE/serve/workspaces/ID.tar) and a line about it (ID): its owner and when it was made.  A run gets the
 * archive as its files, so nothing of it is ever a file of this host; what the program changed is in its result.  With keep the
 * archive is then written anew: what was there, without what was deleted, and with what was added or changed.
 *
 *   RULE W1  An archive is replaced by another whole one, never changed: who has it open reads on.
 *   RULE W2  What a run is to keep is kept wholly or not at all; not if another run has changed the workspace meanwhile.
 *   RULE W3  Bytes and numbers are bounded, of each token and in all; what nobody uses for a day is removed.
 */
#ifndef SERVER_RUNNER_WORKSPACES_H
#define SERVER_RUNNER_WORKSPACES_H

#include <sys/queue.h>

#include "server/message.h"
#include "server/runner/executions.h"
#include "sys/statedir.h"

#define WORKSPACES_MAX         1024
#define WORKSPACES_OF_TOKEN    64
#define STORES_OF_TOKEN        512 /* workspaces that doors keep files in */
#define WORKSPACES_BYTES_MAX   ((uint64_t)2 * GiB)
#define WORKSPACES_TOKEN_BYTES (512 * MiB)
#define WORKSPACE_UNUSED_S     (24 * 3600)

struct workspace {
	TAILQ_ENTRY(workspace) in_age; /* the oldest first */
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	uint64_t created_s, used_s, bytes;
	uint64_t version; /* how often it was written, in this process */
	bool is_store;    /* a door keeps a client's files in it: the oldest go when there are too many */
	char last[EXECUTION_ID_LEN + 1]; /* the execution that was accepted for it last; "": none */
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
/* Removes what was not used for long. */
void workspaces_sweep(struct service *s);
/* -BRIG_E_REFUSED: there is no room for so many bytes more of this owner's. */
int workspaces_room(const struct service *s, const char *owner, uint64_t bytes, bool is_new, struct brig_error *err);
/* The oldest stores of this owner go until so many bytes more have room. */
void workspaces_make_room(struct service *s, const char *owner, uint64_t bytes);
/* A new one of these bytes; NULL: *err. */
struct workspace *workspace_make(struct service *s, const char *owner, bool is_store, const char *bytes, size_t len,
				 struct brig_error *err);
int workspace_write(struct service *s, struct workspace *w, const char *bytes, size_t len, struct brig_error *err);
void workspace_remove(struct service *s, struct workspace *w);
/* The archive, for reading: a descriptor or -code. */
int workspace_archive(const struct service *s, const struct workspace *w, struct brig_error *err);
/* The bytes of a file of at most max, into a buffer of the caller's. */
int workspace_read_all(int fd, uint64_t max, struct buf *out, struct brig_error *err);

/* The archive of the workspace that a message names, as its files; 0 if it names none. */
int workspace_use(struct service *s, const struct token *token, const struct message *m, struct job_descriptors *beside,
		  struct brig_error *err);
/* An execution that may be on a workspace is accepted, begins, and has ended: the result of one that is to be kept says whether
 * it was. */
void workspace_on_accept(struct service *s, struct execution *x);
void workspace_on_start(struct execution *x);
void workspace_on_end(struct service *s, struct execution *x);

#endif
