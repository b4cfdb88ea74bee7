/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of compiled and transpiled programs in the store of the state folder: see compile_cache.c. */
#ifndef EXECUTOR_COMPILE_CACHE_H
#define EXECUTOR_COMPILE_CACHE_H

#include "executor/prepare.h"
#include "executor/record.h"
#include "executor/select.h"
#include "store/store.h"

/* For one compile step; zero-initialized is unused. */
struct compile_cache {
	struct store *store; /* NULL: the cache is not used */
	struct store_key key;
	struct store_key shared; /* the key on other hosts; zero: other hosts are not asked */
	const struct brig_exchange *exchange;
	protection_set missing; /* protections that the compile cell lacks */
};

/* What is compiled, and where. */
struct compile_ask {
	const struct prepared_request *request;
	const struct prepared *compile;
	const struct selection *chosen;
	const struct brig_request *req;
	const struct brig_exchange *exchange; /* other hosts that may have compiled it; NULL: none */
};

/*
 * True: *ret is the compiled program, and no compiler is needed. False: compile it, then call compile_cache_end().
 * Waits while another brig compiles the same program. Errors become warnings of the result, never failures.
 */
bool compile_cache_begin(struct compile_cache *c, struct recorder *recorder, const struct compile_ask *ask,
			 struct buf *ret, struct result *res);
/* To be called after the compile cell; compiled is NULL if it failed. */
void compile_cache_end(struct compile_cache *c, const struct buf *compiled, struct result *res);

#endif
