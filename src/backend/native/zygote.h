/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters whose forks fill cells, for the keeper: see zygote.c. */
#ifndef NATIVE_ZYGOTE_H
#define NATIVE_ZYGOTE_H

#include "backend/backend.h"

struct zygote;

enum zygote_state { ZYGOTE_STARTS, ZYGOTE_READY, ZYGOTE_LOST };

/* Whether this host supports that; otherwise interpreters are started in their cells. */
bool zygote_possible(const struct backend_host *h);
/* Begins to start one for cells of this plan (with waits_at), without blocking. */
int zygote_begin(struct backend_host *h, const struct plan *plan, struct zygote **ret, struct brig_error *err);
/* Poll for reading; then pump. */
int zygote_fd(const struct zygote *z);
/* ZYGOTE_LOST fills err. */
enum zygote_state zygote_pump(struct zygote *z, struct brig_error *err);
/* Memory that its cgroup is charged for. */
uint64_t zygote_bytes(const struct zygote *z);
/* How many children it was ordered, and when it was begun. */
unsigned zygote_children(const struct zygote *z);
uint64_t zygote_since_ns(const struct zygote *z);
/* Orders no more children than for cells already begun: it ends when these are filled. */
void zygote_retire(struct zygote *z);
/* Kills it.  Cells that it has filled stay; what belongs to its user id is kept until the last of them is gone. */
void zygote_end(struct zygote *z);

#endif
