/* SPDX-License-Identifier: Apache-2.0 */
/* Fault injection, only in builds with -Dfaults=true: $BRIG_TEST_FAULT names the step that shall fail. */
#include "backend/native/cell_spec.h"

#ifdef BRIG_FAULTS
#include "base/str.h"

enum step fault_step = STEP_COUNT;
int fault_errno = EIO;

void fault_arm(void)
{
	const char *name = getenv("BRIG_TEST_FAULT");

	fault_step = STEP_COUNT;
	for (enum step s = 0; name && s < STEP_COUNT; s++)
		if (str_eq(name, step_info[s].name))
			fault_step = s;
}
#endif
