/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that cells are filled from, for the keeper: see zygote.c. */
#ifndef NATIVE_ZYGOTE_H
#define NATIVE_ZYGOTE_H

#include "backend/backend.h"

struct zygote;

enum zygote_state { ZYGOTE_STARTS, ZYGOTE_READY, ZYGOTE_LOST };

/* Whether cells of this host can be filled that way; else their interpreters are started in them. */
bool zygote_possible(const struct backend_host *h);
/* Begins to start one for cells of this plan (waits_at), and does not wait. */
int zygote_begin(struct backend_host *h, const struct plan *plan, struct zygote **ret, struct brig_error *err);
/* Poll for reading; then pump. */
int zygote_fd(const struct zygote *z);
/* LOST fills err. */
enum zygote_state zygote_pump(struct zygote *z, struct brig_error *err);
/* The memory that its groups are charged for. */
uint64_t zygote_bytes(const struct zygote *z);
/* How many children it was asked for, and when it was begun. */
unsigned zygote_children(const struct zygote *z);
uint64_t zygote_since_ns(const struct zygote *z);
/* It has no more cells to fill than those that were begun for it: it ends when it has filled them. */
void zygote_retire(struct zygote *z);
/* Kills it.  Cells that it has filled stay as they are, and what belongs to its user id is held until the last is gone. */
void zygote_end(struct zygote *z);

#endif
