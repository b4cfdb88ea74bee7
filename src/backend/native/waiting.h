/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells that are made before there is a request for them (plan->waits_at), for the keeper.
 *
 * Calls on such a cell: begin; await until CELL_CAN_BE_CLAIMED; claim, go; from then on those of any other cell.  destroy
 * may come at any point.
 */
#ifndef NATIVE_WAITING_H
#define NATIVE_WAITING_H

#include "backend/backend.h"

/* DOES_NOT_WAIT: nor will another one of such a plan; SPOILED: this one has failed. */
enum cell_readiness { CELL_BUILDING, CELL_CAN_BE_CLAIMED, CELL_DOES_NOT_WAIT, CELL_SPOILED };

struct zygote;

/* Begins to build, and does not wait.  The interpreter is started in the cell, or comes from a zygote that is ready. */
int native_waiting_begin(struct backend_host *h, const struct plan *plan, struct zygote *from, struct cell **ret,
			 struct brig_error *err);
/* Takes in what the cell has said; the last two fill err. */
enum cell_readiness native_waiting_pump(struct cell *c, struct brig_error *err);
/* Poll for reading; then pump. */
int native_waiting_fd(const struct cell *c);
/* Its process with a listener for refused calls, which may come and go; FD_NONE. */
int native_told_fd(const struct cell *c);
/* The program, as a descriptor of a file of size bytes that nobody changes any more. */
int native_waiting_claim(struct cell *c, int program, uint64_t size, struct brig_error *err);
/* Whose it is, for those who list cells: the run's id, and the process to be told if it shall end. */
void native_waiting_mark(struct cell *c, const char *run, pid_t caller);
/* The program begins. */
int native_waiting_go(struct cell *c, struct brig_error *err);
/* Descriptors of the program's streams and of its workspace, which become the caller's: in, out, err, workspace. */
enum { WAITING_IN, WAITING_OUT, WAITING_ERR, WAITING_WORKSPACE, WAITING_FDS };
void native_waiting_take(struct cell *c, int ret[WAITING_FDS]);
/* The memory that its groups are charged for, before it is claimed; 0: there is no such group. */
uint64_t native_waiting_bytes(const struct cell *c);
/* Whether its interpreter is a zygote's child. */
bool native_waiting_is_forked(const struct cell *c);
/* Sends SIGKILL and does not wait: native_waiting_fd() turns readable when all is dead. */
void native_waiting_kill(struct cell *c);
bool native_waiting_is_dead(const struct cell *c);
/* settle for cells that were destroyed, of whichever run: only those of which nothing is to be waited for any more.  Each is
 * told, with what stayed of it: "" is nothing. */
typedef void (*native_settled_fn)(void *arg, const void *rest, const char *leftovers);
void native_settle_ended(struct backend_host *h, native_settled_fn each, void *arg);
bool native_has_remains(const struct backend_host *h);
/* What is left of the cell of this id that was destroyed last, by a name of its own; NULL: nothing.  *ret_fd is readable when it
 * may be settled. */
const void *native_rest_of(const struct backend_host *h, const char *id, int *ret_fd);
bool native_has_rest(const struct backend_host *h, const void *rest);
/* Whether making a cell takes programs that get their rights from their files: newuidmap. */
bool native_runs_helpers(const struct backend_host *h);
/* The program has ended, init dies by itself and nobody else is left: stop does not wait. */
bool native_dies_alone(struct cell *c);

#endif
