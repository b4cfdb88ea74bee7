/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a handle, for files of this folder that access them outside of runs (cache.c). */
#ifndef API_STORES_H
#define API_STORES_H

#include "api/handle.h"
#include "store/store.h"

/* 1: *ret is the store; 0: it does not exist, and make was false. */
int handle_open_store(struct brig *b, enum store_form form, bool make, struct store **ret, struct brig_error *err);

#endif
