/* SPDX-License-Identifier: Apache-2.0 */
/* A job as the keeper reads it: what is understood is written the same, and asks for its own kind of cell. */
/* Of a project's paths a job has only numbers: such as fit them are made, with the sizes of its files before them. */
#include <stdlib.h>
#include <string.h>

#include "model/job.h"

#define CONTENTS_MAX (64 * KiB)

static bool set_contents(struct job *job, char contents[CONTENTS_MAX])
{
	size_t n = job->plan.workspace ? job->workspace.n_hidden + job->workspace.n_held : 0, at = 0, end;

	for (size_t i = 0; i < job->plan.n_files; i++) {
		if (job->files[i].len > CONTENTS_MAX - at)
			return false;
		at += job->files[i].len;
	}
	if (job->egress.certificates && job->certificates.len > CONTENTS_MAX - at)
		return false;
	at += job->egress.certificates ? job->certificates.len : 0;
	if (job->paths_size > CONTENTS_MAX - at || job->paths_size / 2 < n)
		return false;
	memset(contents, 'x', CONTENTS_MAX);
	end = at + job->paths_size;
	for (size_t i = 0; i + 1 < n; i++)
		contents[at + 2 * i + 1] = '\0';
	if (n > 0)
		contents[end - 1] = '\0';
	return job_set_contents(job, contents, end);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	char *exact = malloc(len + 1);
	struct brig_error err;
	struct buf again = BUF_INIT(0);
	static char contents[CONTENTS_MAX];
	struct job *job;

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	job = job_decode(exact, len);
	if (job) {
		if (!job_same_kind(job, job))
			abort();
		if (job->plan.workspace && !set_contents(job, contents))
			goto out;
		if (job_encode(&job->plan, &again, &err) < 0 || again.len != len || memcmp(again.data, exact, len) != 0)
			abort();
	}
out:
	buf_release(&again);
	job_destroy(job);
	free(exact);
	return 0;
}
