/* SPDX-License-Identifier: Apache-2.0 */
/* The job as a container's init reads it, and every body that brig reads from init. */
#include <stdlib.h>
#include <string.h>

#include "backend/container/wire.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	static struct wire_job job;
	char *exact = malloc(len + 1);
	struct wire_failure failure;
	struct wire_spaces spaces;
	struct wire_exit how;
	struct wire_fact fact;
	uint64_t size;

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	if (wire_job_decode(exact, len, &job)) {
		char *again = malloc(WIRE_HEAD + len);

		if (!job.argv[0] || job.n_files > WIRE_FILES_MAX)
			abort();
		/* What was understood is written the same. */
		if (again && (wire_job_encode(&job, again, WIRE_HEAD + len) != WIRE_HEAD + len ||
			      memcmp(again + WIRE_HEAD, exact, len) != 0))
			abort();
		free(again);
	}
	if (len >= WIRE_HEAD)
		(void)wire_head_decode(exact);
	(void)wire_get_failure(exact, len, &failure);
	(void)wire_get_spaces(exact, len, &spaces);
	(void)wire_get_exit(exact, len, &how);
	(void)wire_get_number(exact, len, &size);
	if (wire_get_fact(exact, len, &fact) && strlen(fact.text) + strlen(fact.source) > len)
		abort();
	free(exact);
	return 0;
}
