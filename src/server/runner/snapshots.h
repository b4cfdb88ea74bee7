/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: what was in the workspace of a session at one moment, for sessions to come.
 *
 * Each is a file that the steward of the session wrote (STATE/serve/snapshots/ID.tree), which nobody here ever reads but to carry
 * it into another cell, and a document about it (ID): its owner, and what the session was asked to be.  Variables of the session
 * are not in it, because they are often secrets: who makes a session of it gives them anew.
 *
 *   RULE S1  A snapshot is whole or not there: its file has its name before its document is written, none without the other is kept
 *          at the next beginning, and a file that has lost its end makes no session.
 *   RULE S2  Bytes and numbers are bounded, of each token and in all; what nobody uses for a week is removed.
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
#define SNAPSHOT_BYTES_MAX    ((uint64_t)1 * GiB) /* of each, and of what a fork carries */
#define SNAPSHOTS_BYTES_MAX   ((uint64_t)8 * GiB)
#define SNAPSHOTS_TOKEN_BYTES ((uint64_t)2 * GiB)
#define SNAPSHOT_UNUSED_S     (7 * 24 * 3600)
#define SNAPSHOT_NAME_MAX     128
#define SNAPSHOT_ABOUT_MAX    (256 * KiB) /* of its document */

struct snapshot {
	TAILQ_ENTRY(snapshot) in_age; /* the oldest first */
	char id[EXECUTION_ID_LEN + 1], owner[TOKEN_NAME_MAX + 1];
	uint64_t used_s, bytes; /* bytes of its file */
	json_t *about;          /* its document */
	/* of its address on a queue (forward.h) */
	bool is_addressing;
	uint64_t addressed_ns; /* 0: it is not known there */
	uint32_t tag;          /* of who made it, and is told when that is known; 0: nobody */
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

/* What was said of its files when they were written, as the session had it; NULL: nothing. */
json_t *snapshot_file_metadata(const struct snapshot *x);
/* The one of this id that the token of the request may see; NULL: it has been answered. */
struct snapshot *snapshot_find(struct service *s, const struct request *req, const char *id);
/* There is none such that this token may see. */
void snapshot_answer_none(struct service *s, const struct request *req, const char *id);
/* Who made it is told of it, if nobody has done so yet. */
void snapshot_tell(struct service *s, struct snapshot *x);
void snapshots_all_gone(struct service *s);
/* Its file, from the beginning on; -code. */
int snapshot_read(struct service *s, struct snapshot *x, struct brig_error *err);
/* The session has been saved for the one who waits, or could not be. */
void snapshot_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event);
/* The files of one that did not come to be. */
void snapshot_drop(const struct service *s, const char *id);

#endif
