/* SPDX-License-Identifier: Apache-2.0 */
/* A job as the keeper reads it: what is understood is written the same, and asks for its own kind of cell. */
#include <stdlib.h>
#include <string.h>

#include "model/job.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	char *exact = malloc(len + 1);
	struct brig_error err;
	struct buf again = BUF_INIT(0);
	struct job *job;

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	job = job_decode(exact, len);
	if (job) {
		if (!job_same_kind(job, job))
			abort();
		if (job_encode(&job->plan, &again, &err) < 0 || again.len != len || memcmp(again.data, exact, len) != 0)
			abort();
	}
	buf_release(&again);
	free(job);
	free(exact);
	return 0;
}
