/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a cell's processes send to the supervisor: the one blob that crosses that border. */
#include <stdint.h>
#include <string.h>

#include "backend/native/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report r;

	if (!report_decode(data, size, &r))
		return 0;
	/* What was accepted can be used as an index and as an exit status without another look. */
	if (step_info[r.step].name[0] == '\0' || r.kind >= REPORT_KIND_END)
		abort();
	if (r.kind == REPORT_ENDED && (r.value < 0 || r.value > 255))
		abort();
	return 0;
}
