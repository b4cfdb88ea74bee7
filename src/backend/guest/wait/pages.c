/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child has its zygote's memory until it writes to it; each first write to a page is a fault and a copy, hundreds of them for
 * the smallest program.  Here they are all made while nobody waits: what is present in writable mappings is touched for
 * writing, in runs of pages.  Nothing fails: what was not copied now is copied later.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/guest/wait/library.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define LOOK_PAGES 512 /* of one mapping at a time */
#define PRESENT    ((uint64_t)1 << 63)

static void copy_run(uintptr_t start, size_t pages, size_t page)
{
	if (pages > 0)
		(void)madvise((void *)start, pages * page, MADV_POPULATE_WRITE);
}

/* Runs of present pages, up to LOOK_PAGES of them. */
static void copy_some(int pagemap, uintptr_t start, size_t pages, size_t page)
{
	uint64_t entry[LOOK_PAGES];
	size_t run = 0, n;
	ssize_t got = pread(pagemap, entry, pages * sizeof(entry[0]), (off_t)(start / page * sizeof(entry[0])));

	n = got > 0 ? (size_t)got / sizeof(entry[0]) : 0;
	for (size_t i = 0; i < n; i++) {
		if (entry[i] & PRESENT) {
			run++;
			continue;
		}
		copy_run(start + (i - run) * page, run, page);
		run = 0;
	}
	copy_run(start + (n - run) * page, run, page);
}

/* One line of maps: "start-end rw-p ...". */
static void copy_mapping(int pagemap, char *line, size_t page)
{
	char *at;
	uintptr_t start = strtoul(line, &at, 16), end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;

	if (strncmp(at, " rw-p", 5) != 0 && strncmp(at, " rwxp", 5) != 0)
		return;
	for (; start < end; start += LOOK_PAGES * page) {
		size_t pages = (end - start) / page;

		copy_some(pagemap, start, pages < LOOK_PAGES ? pages : LOOK_PAGES, page);
	}
}

static int open_own(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

void pages_copy(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int maps = open_own("/proc/self/maps"), pagemap = open_own("/proc/self/pagemap");
	char text[8192], *line, *end;
	size_t have = 0;
	ssize_t n = 0;

	while (maps >= 0 && pagemap >= 0 && (n = read(maps, text + have, sizeof(text) - 1 - have)) > 0) {
		have += (size_t)n;
		text[have] = '\0';
		for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1)
			copy_mapping(pagemap, line, page);
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
	if (maps >= 0)
		(void)close(maps);
	if (pagemap >= 0)
		(void)close(pagemap);
}
