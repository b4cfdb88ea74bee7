/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells that are made for one request (no plan->waits_at), for a process that makes them for others and never waits for one.
 *
 * Calls on such a cell: native_backend.begin; pump until CELL_CAN_BE_CLAIMED, take, go; from then on those of any other cell.
 * With plan->start_at_once let_go may come at any time after begin: the program then starts as soon as its walls are up.
 */
#ifndef NATIVE_MADE_H
#define NATIVE_MADE_H

#include "backend/native/waiting.h"

/* Cells that are made for a request are listed as this process's, which asked for them. */
void native_set_owner(struct backend_host *h, pid_t owner);
/* This process, with one thread, goes into a user namespace that has the ids for its cells (range_ns.c).  False: it stays, because it is
 * root or has no range, or because that cannot be had; nothing has changed then. */
bool native_enter_range(struct backend_host *h);
enum cell_readiness native_made_pump(struct cell *c, struct brig_error *err);
int native_made_let_go(struct cell *c, struct brig_error *err);
uint64_t native_made_started_ns(const struct cell *c); /* when it was let go */
/* The program begins, if it was not let go before; and what only processes show is read. */
int native_made_go(struct cell *c, struct brig_error *err);
/* Projects that cannot be mounted in cells of this host, or all of them, are asked for as streams, and not packed here. */
void native_ask_for_streams(struct backend_host *h, bool always);
bool native_made_wants_stream(const struct cell *c);
/* The stream, which becomes the cell's own to read; its size is what the caller says, and init's caps. */
int native_made_offer_stream(struct cell *c, int source, uint64_t bytes, uint64_t inodes, struct brig_error *err);
/* Copies of the descriptors by which its workspace can be looked at when it is dead: the upper layer of a project's overlay, or
 * the workspace; its user namespace.  FD_NONE where none is left for them. */
enum { MADE_UPPER, MADE_NS_USER, MADE_REST_FDS };
void native_made_rest(const struct cell *c, int ret[MADE_REST_FDS]);
/* The sockets of plan->egress, which become the caller's; FD_NONE: it has none. */
int native_made_way_out(struct cell *c);

#endif
