/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace on its way from one cell to another, which a program may have written: whatever the stream says, the reader makes nothing outside
 * of the folder that it was given, opens nothing through a link, and ends.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "backend/guest/steward/tree_load.c" /* it is a part of the steward, which is a program of its own */

#define FILE_MAX (1 * MiB) /* of one file: what bounds it in a cell is the cell */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By descriptors: whole paths may be longer than the kernel takes.  Takes the folder. */
static void empty(int folder)
{
	DIR *d = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *e;

	if (!d)
		abort();
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    unlinkat(dirfd(d), e->d_name, 0) == 0)
			continue;
		empty(openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
		if (unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) < 0)
			abort();
	}
	(void)closedir(d);
}

static void count_outside(int outer, const struct stat *before)
{
	struct stat st;

	/* Beside the folder there is one file, as it was. */
	if (fstat(outer, &st) < 0 || st.st_nlink != 3)
		abort();
	if (fstatat(outer, "beside", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size != before->st_size ||
	    st.st_mode != before->st_mode || st.st_mtim.tv_sec != before->st_mtim.tv_sec)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rlimit most = { .rlim_cur = FILE_MAX, .rlim_max = RLIM_INFINITY };
	char folder[] = "/dev/shm/brig-fuzz-XXXXXX";
	AUTO_FD in = memfd_create("stream", MFD_CLOEXEC);
	AUTO_FD outer = FD_NONE, inner = FD_NONE, beside = FD_NONE;
	struct tree_counts counts;
	struct stat before;
	int rc;

	if (!mkdtemp(folder) || fd_write_all(in, data, size) < 0 || lseek(in, 0, SEEK_SET) < 0)
		abort();
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &most);
	outer = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	beside = openat(outer, "beside", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
	if (beside < 0 || fstat(beside, &before) < 0 || mkdirat(outer, "inner", 0755) < 0)
		abort();
	inner = openat(outer, "inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = tree_load(inner, in, &counts);
	if (rc > 0 || counts.bytes > size || counts.entries > size / sizeof(struct tree_head))
		abort();
	count_outside(outer, &before);
	empty(fcntl(outer, F_DUPFD_CLOEXEC, 0));
	if (rmdir(folder) < 0)
		abort();
	return 0;
}
