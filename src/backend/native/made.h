/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells for one request (no plan->waits_at), for a process that creates them for others and must not block.
 *
 * Calls: native_backend.begin; native_made_pump until CELL_CAN_BE_CLAIMED, then take and go; from then on as for any
 * other cell.  With plan->start_at_once, let_go may be called at any time after begin: the program then starts as soon
 * as it is confined.
 */
#ifndef NATIVE_MADE_H
#define NATIVE_MADE_H

#include "backend/native/waiting.h"

/* Cells made for a request are listed as owned by this process, which requested them. */
void native_set_owner(struct backend_host *h, pid_t owner);
/*
 * Moves this process, which must have one thread, into a user namespace that has the ids for its cells (range_ns.c).
 * False: nothing has changed, because we are root, or have no range, or the namespace cannot be created.
 */
bool native_enter_range(struct backend_host *h);
enum cell_readiness native_made_pump(struct cell *c, struct brig_error *err);
int native_made_let_go(struct cell *c, struct brig_error *err);
uint64_t native_made_started_ns(const struct cell *c); /* when the program was started */
/* Starts the program, unless let_go already did, and reads what only living processes show. */
int native_made_go(struct cell *c, struct brig_error *err);
/*
 * Requests projects as streams instead of packing them: those that cannot be mounted in cells of this host, or all of
 * them.
 */
void native_ask_for_streams(struct backend_host *h, bool always);
bool native_made_wants_stream(const struct cell *c);
/* Takes the stream.  The caller states its size; init enforces that. */
int native_made_offer_stream(struct cell *c, int source, uint64_t bytes, uint64_t inodes, struct brig_error *err);
/*
 * Duplicates of the descriptors through which its workspace can be examined when it is dead: the upper layer of a
 * project's overlay, or the workspace; its user namespace.  FD_NONE if duplicating fails.
 */
enum { MADE_UPPER, MADE_NS_USER, MADE_REST_FDS };
void native_made_rest(const struct cell *c, int ret[MADE_REST_FDS]);
/* The sockets of plan->egress, which the caller takes; FD_NONE: none. */
int native_made_way_out(struct cell *c);

#endif
