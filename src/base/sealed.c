/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sealed.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/fd.h"

#define SEALS      (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define SEAL_TRIES 8

int sealed_make(const char *name, const void *data, size_t len)
{
	AUTO_FD fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, data, len);
	if (rc < 0)
		return rc;
	rc = sealed_close(fd);
	return rc < 0 ? rc : fd_move(&fd);
}

/*
 * The kernel refuses F_SEAL_WRITE with EBUSY while anybody else holds a page of the file, which it has waited for some 0.15 s by
 * then.  Nobody of ours does, but the kernel itself may: compaction and reclaim take pages that they move, and keep them as long
 * as they are not scheduled.
 */
int sealed_close(int fd)
{
	int rc = 0;

	for (unsigned i = 0; i < SEAL_TRIES; i++) {
		rc = fcntl(fd, F_ADD_SEALS, SEALS);
		if (rc == 0 || errno != EBUSY)
			break;
	}
	return rc < 0 ? -errno : 0;
}

void *sealed_map(int fd, size_t len)
{
	void *at;

	/* No fstat(): some C libraries implement it as a system call with a path. */
	if (len == 0 || fcntl(fd, F_GET_SEALS) != SEALS || lseek(fd, 0, SEEK_END) != (off_t)len)
		return NULL;
	at = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}
