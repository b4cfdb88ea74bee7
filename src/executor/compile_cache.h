/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled and transpiled programs, kept in the store of the state folder: see compile_cache.c. */
#ifndef EXECUTOR_COMPILE_CACHE_H
#define EXECUTOR_COMPILE_CACHE_H

#include "executor/prepare.h"
#include "executor/record.h"
#include "executor/select.h"
#include "store/store.h"

/* Of one compile step; zero is an unused one. */
struct compile_cache {
	struct store *store; /* NULL: nothing is looked for or kept */
	struct store_key key;
	struct store_key shared; /* what others call it; zero: nobody is asked */
	const struct brig_exchange *exchange;
	protection_set missing; /* what the compile cell is known to go without */
};

/* What is compiled, and where. */
struct compile_ask {
	const struct prepared_request *request;
	const struct prepared *compile;
	const struct selection *chosen;
	const struct brig_request *req;
	const struct brig_exchange *exchange; /* who may have compiled it; NULL: nobody */
};

/*
 * True: *ret is the compiled program, and no compiler is needed.  False: compile it, and call compile_cache_end().
 * Waits while another brig compiles the same.  Trouble is a warning of the result, never a failure.
 */
bool compile_cache_begin(struct compile_cache *c, struct recorder *recorder, const struct compile_ask *ask,
			 struct buf *ret, struct result *res);
/* After the compile cell; compiled is NULL if it was no success. */
void compile_cache_end(struct compile_cache *c, const struct buf *compiled, struct result *res);

#endif
