/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the job: its description into memory of fixed size, files directly to their places. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/container/init/inside.h"
#include "base/fd.h"
#include "files/beneath.h"

static char meta[WIRE_META_MAX]; /* unused pages are never allocated */

void job_read(struct inside *in)
{
	char head[WIRE_HEAD];
	ssize_t n = fd_read_all(STDIN_FILENO, head, sizeof(head));
	int64_t len;

	if (n == 0)
		end(INIT_DONE); /* brig closed the stream without a job: an unused warm container */
	len = n == WIRE_HEAD ? wire_head_decode(head) : -1;
	if (len < 0 || fd_read_all(STDIN_FILENO, meta, (size_t)len) != len ||
	    !wire_job_decode(meta, (size_t)len, &in->job))
		end(INIT_NO_JOB);
}

static int copy_in(int fd, uint64_t len)
{
	static char piece[64 * KiB];

	while (len > 0) {
		size_t want = (size_t)min_u64(len, sizeof(piece));
		ssize_t n = fd_read_all(STDIN_FILENO, piece, want);
		int rc;

		if (n != (ssize_t)want)
			end(INIT_LOST);
		rc = fd_write_all(fd, piece, want);
		if (rc < 0)
			return rc;
		len -= want;
	}
	return 0;
}

int job_stage_files(struct inside *in)
{
	for (uint32_t i = 0; i < in->job.n_files; i++) {
		const struct wire_file *f = &in->job.files[i];
		AUTO_FD fd = beneath_create(in->place[f->place], f->name, 0600);
		int rc;

		if (fd < 0)
			return fd_move(&fd);
		rc = copy_in(fd, f->len);
		if (rc < 0)
			return rc;
		if (fchmod(fd, f->mode) < 0)
			return -errno;
	}
	return 0;
}
