/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle holds; for the files of this folder that implement brig.h. */
#ifndef API_HANDLE_H
#define API_HANDLE_H

#include "executor/inspection.h"
#include "executor/record.h"
#include "model/result.h"
#include "policy/policy.h"

struct brig {
	struct policy *policy;
	struct rulebook rules;
	struct recorder recorder;
};

struct brig_result {
	struct result r;
};

#endif
