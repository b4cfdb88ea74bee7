/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells that are built before there is a request for them (plan->waits_at), for the keeper.
 *
 * Calls: native_waiting_begin; pump until CELL_CAN_BE_CLAIMED; claim, go; from then on as for any other cell.  destroy
 * may be called at any point.
 */
#ifndef NATIVE_WAITING_H
#define NATIVE_WAITING_H

#include "backend/backend.h"

/* DOES_NOT_WAIT: no cell for such a plan will; SPOILED: this one has failed. */
enum cell_readiness { CELL_BUILDING, CELL_CAN_BE_CLAIMED, CELL_DOES_NOT_WAIT, CELL_SPOILED };

struct zygote;

/* Begins to build, without blocking.  The interpreter is started in the cell, or forked from a zygote that is ready. */
int native_waiting_begin(struct backend_host *h, const struct plan *plan, struct zygote *from, struct cell **ret,
			 struct brig_error *err);
/* Takes in the cell's reports.  CELL_DOES_NOT_WAIT and CELL_SPOILED fill err. */
enum cell_readiness native_waiting_pump(struct cell *c, struct brig_error *err);
/* Poll for reading; then pump. */
int native_waiting_fd(const struct cell *c);
/* The cell's listener for refused calls, which may come and go; FD_NONE: none. */
int native_told_fd(const struct cell *c);
/* Sends the program, a descriptor of a sealed file of size bytes. */
int native_waiting_claim(struct cell *c, int program, uint64_t size, struct brig_error *err);
/* Marks the cell for `brig ps` and `brig kill`: the run's id, and the process to signal. */
void native_waiting_mark(struct cell *c, const char *run, pid_t caller);
/* Starts the program. */
int native_waiting_go(struct cell *c, struct brig_error *err);
/* Descriptors of the program's streams and of its workspace, which the caller takes: in, out, err, workspace. */
enum { WAITING_IN, WAITING_OUT, WAITING_ERR, WAITING_WORKSPACE, WAITING_FDS };
void native_waiting_take(struct cell *c, int ret[WAITING_FDS]);
/* Memory that its cgroup is charged for before the claim; 0: there is no such group. */
uint64_t native_waiting_bytes(const struct cell *c);
/* Whether its interpreter was forked from a zygote. */
bool native_waiting_is_forked(const struct cell *c);
/* Sends SIGKILL without waiting: native_waiting_fd() becomes readable when all processes are dead. */
void native_waiting_kill(struct cell *c);
bool native_waiting_is_dead(const struct cell *c);
/*
 * settle for destroyed cells of all runs, limited to those that need no waiting any more.  Calls each with what was
 * left of the cell; "": nothing.
 */
typedef void (*native_settled_fn)(void *arg, const void *rest, const char *leftovers);
void native_settle_ended(struct backend_host *h, native_settled_fn each, void *arg);
bool native_has_remains(const struct backend_host *h);
/*
 * A handle for what is left of the cell of this id that was destroyed last; NULL: nothing.  *ret_fd becomes readable
 * when it may be settled.
 */
const void *native_rest_of(const struct backend_host *h, const char *id, int *ret_fd);
bool native_has_rest(const struct backend_host *h, const void *rest);
/* Whether creating a cell executes set-uid programs: newuidmap. */
bool native_runs_helpers(const struct backend_host *h);
/* The program has ended, init exits by itself and no other process is left: stop will not wait. */
bool native_dies_alone(struct cell *c);

#endif
