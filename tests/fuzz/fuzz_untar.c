/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of files that a caller sends: whatever it holds, everything is made beneath the folder, below the caps. */
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "files/tar.h"

#define BLOCK_SUM 148 /* where a head has the sum of its bytes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seen_entries, seen_bytes;

static int look_at_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)kind;
	if (at->level > 1) {
		seen_entries++;
		seen_bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
		if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
			abort();
	}
	return remove(path);
}

/* Sums are corrected, or nothing behind them would ever be reached. */
static void mend_sums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
		unsigned sum = 0;

		if (data[at] == 0)
			continue;
		memset(data + at + BLOCK_SUM, ' ', 8);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += data[at + i];
		(void)snprintf((char *)data + at + BLOCK_SUM, 8, "%06o", sum);
	}
}

static void unpack(const uint8_t *data, size_t size)
{
	const struct untar_caps caps = { .entries = 64, .bytes = 1 << 20 };
	char folder[] = "/dev/shm/brig-fuzz-XXXXXX";
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD in = memfd_create("archive", MFD_CLOEXEC);
	AUTO_FD outer = FD_NONE, inner = FD_NONE;
	struct stat st;

	if (!mkdtemp(folder) || fd_write_all(in, data, size) < 0 || lseek(in, 0, SEEK_SET) < 0)
		abort();
	outer = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(outer, "inner", 0755) < 0)
		abort();
	inner = openat(outer, "inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (untar(in, inner, &caps, -1, &err) < 0 && err.code == 0)
		abort();
	if (fstat(outer, &st) < 0 || st.st_nlink != 3)
		abort();
	seen_entries = seen_bytes = 0;
	(void)nftw(folder, look_at_one, 16, FTW_DEPTH | FTW_PHYS);
	/* Folders on the way to a file are made without being counted: at most as many as its path can name. */
	if (seen_bytes > caps.bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	unpack(copy, size);
	mend_sums(copy, size);
	unpack(copy, size);
	free(copy);
	return 0;
}
