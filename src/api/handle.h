/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a handle; for the files of this folder that implement brig.h. */
#ifndef API_HANDLE_H
#define API_HANDLE_H

#include <brig/exchange.h>

#include <stdatomic.h>

#include "base/wait.h"
#include "executor/executor.h"
#include "executor/inspection.h"
#include "executor/record.h"
#include "executor/select.h"
#include "executor/warm.h"
#include "model/result.h"
#include "policy/policy.h"

struct brig {
	struct policy *policy;
	struct rulebook rules;
	struct recorder recorder;
	struct kept_hosts hosts;
	struct warm warm;
	struct task_spares tasks;
	struct brig_exchange exchange; /* want NULL: other hosts are not asked */
};

struct brig_result {
	struct result r;
	struct result_text text; /* for brig_result_json(), if it was made ahead */
	atomic_uint others;      /* reference count of other holders */
};

struct executor handle_executor(struct brig *b);
/* A result without a verdict yet; NULL: no memory. */
struct brig_result *result_new(void);

#endif
