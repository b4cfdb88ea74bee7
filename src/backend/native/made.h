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
/* The sockets of plan->egress, which become the caller's; FD_NONE: it has none. */
int native_made_way_out(struct cell *c);

#endif
