/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault injection, only in builds with -Dfaults=true: $BRIG_TEST_FAULT names the step that must fail or, after "skip:",
 * a step that is silently omitted, so that the evidence has to detect it.
 */
#include "backend/native/cell_spec.h"

#ifdef BRIG_FAULTS
#include <string.h>

#include "base/str.h"

#define SKIP "skip:"

enum step fault_step = STEP_COUNT;
int fault_errno = EIO;

void fault_arm(void)
{
	const char *name = getenv("BRIG_TEST_FAULT");

	fault_step = STEP_COUNT;
	fault_errno = EIO;
	if (name && strncmp(name, SKIP, strlen(SKIP)) == 0) {
		fault_errno = 0;
		name += strlen(SKIP);
	}
	for (enum step s = 0; name && s < STEP_COUNT; s++)
		if (str_eq(name, step_info[s].name))
			fault_step = s;
}
#endif
