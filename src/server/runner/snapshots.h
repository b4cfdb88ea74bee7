/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: copies of a session's workspace, from which later sessions can be created.
 *
 * A snapshot is a file written by the session's steward (STATE/serve/snapshots/ID.tree), which the runner only copies
 * into other cells and never parses, and a document about it (ID) with its owner and the session's settings.  The
 * session's variables are not included, since they are often secrets: whoever creates a session from the snapshot
 * provides them again.
 *
 *   RULE S1  A snapshot is complete or absent: the file gets its final name before its document is written, at startup
 *   one without the other is removed, and a session is not created from a truncated file.
 *   RULE S2  Size and number are bounded, per token and in total; snapshots unused for a week are removed.
 */
#ifndef SERVER_RUNNER_SNAPSHOTS_H
#define SERVER_RUNNER_SNAPSHOTS_H

#include <jansson.h>
#include <sys/queue.h>

#include "server/message.h"
#include "server/runner/executions.h"
#include "sys/statedir.h"

#define SNAPSHOTS_MAX         256
#define SNAPSHOTS_OF_TOKEN    32
#define SNAPSHOT_BYTES_MAX    ((uint64_t)1 * GiB) /* of each, and of a fork in transit */
#define SNAPSHOTS_BYTES_MAX   ((uint64_t)8 * GiB)
#define SNAPSHOTS_TOKEN_BYTES ((uint64_t)2 * GiB)
#define SNAPSHOT_UNUSED_S     (7 * 24 * 3600)
#define SNAPSHOT_NAME_MAX     128
#define SNAPSHOT_ABOUT_MAX    (256 * KiB) /* size of its document */

struct snapshot {
	TAILQ_ENTRY(snapshot) in_age; /* oldest first */
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	uint64_t used_s, bytes; /* bytes: size of its file */
	json_t *about;          /* its document */
	/* state of its address on the queue (forward.h) */
	bool is_addressing;
	uint64_t addressed_ns; /* 0: not in the bucket */
	uint32_t tag;          /* of the request that created it, if it is still to be answered; else 0 */
	char request_id[129];
};

TAILQ_HEAD(snapshot_list, snapshot);

struct snapshots {
	struct snapshot_list all;
	size_t n;
	uint64_t bytes;
	struct statedir dir;
};

struct service;
struct request;
struct server_session;
struct session_wait;
struct brig_session_event;

void snapshots_init(struct snapshots *t);
int snapshots_open(struct service *s, struct brig_error *err);
void snapshots_close(struct service *s);

/* File metadata recorded in the snapshot; NULL: none. */
json_t *snapshot_file_metadata(const struct snapshot *x);
/* The snapshot with this id, if the token may see it; NULL: 404 was answered. */
struct snapshot *snapshot_find(struct service *s, const struct request *req, const char *id);
/* Answers 404. */
void snapshot_answer_none(struct service *s, const struct request *req, const char *id);
/* Answers the request that created it, unless that was answered. */
void snapshot_tell(struct service *s, struct snapshot *x);
void snapshots_all_gone(struct service *s);
/* Opens its file for reading; -code. */
int snapshot_read(struct service *s, struct snapshot *x, struct brig_error *err);
/* The session's files were saved for a waiting request, or could not be. */
void snapshot_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);
/* Removes the files of an incomplete one. */
void snapshot_drop(const struct service *s, const char *id);

#endif
