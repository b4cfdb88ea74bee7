/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a tree, as a container hands it out: whatever it holds, everything is made beneath the folder. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "files/pack.h"
#include "../unit/temp_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly one entry below the outer folder: the inner one. */
static void check_outer(int outer)
{
	struct stat st;

	if (fstat(outer, &st) < 0 || st.st_nlink != 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unpack_options o = { .caps = { .entries = 64, .bytes = 1 << 20, .upper = size % 2 },
					  .uid = UINT32_MAX,
					  .gid = UINT32_MAX };
	char folder[] = "/dev/shm/brig-fuzz-XXXXXX";
	struct pack_counts counts;
	uint32_t len = (uint32_t)size;
	AUTO_FD in = memfd_create("stream", MFD_CLOEXEC);
	AUTO_FD outer = FD_NONE, inner = FD_NONE;
	int rc;

	if (!mkdtemp(folder))
		abort();
	outer = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(outer, "inner", 0755) < 0)
		abort();
	inner = openat(outer, "inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* As one block, so that the bytes are records at once; and as they are. */
	for (int as_block = 0; as_block < 2; as_block++) {
		if (ftruncate(in, 0) < 0 || lseek(in, 0, SEEK_SET) < 0 ||
		    (as_block && fd_write_all(in, &len, sizeof(len)) < 0) || fd_write_all(in, data, size) < 0 ||
		    lseek(in, 0, SEEK_SET) < 0)
			abort();
		rc = unpack_tree(inner, in, &o, &counts);
		if (rc > 0 || counts.entries > o.caps.entries || counts.bytes > o.caps.bytes)
			abort();
	}
	check_outer(outer);
	(void)temp_folder_remove(folder);
	return 0;
}
