/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a zygote's child its own memory before a request waits for it.
 *
 * After the fork the child shares every page with its zygote until it writes to it.  Each first write costs a fault and
 * a copy, hundreds of them for the smallest program.  There are two ways to do that before the program arrives:
 *
 *	populate  MADV_POPULATE_WRITE on present pages: the kernel copies page by page, and frees page by page at the
 *	end
 *	move      copies runs of pages into an area that the kernel backs with huge pages, then mremap()s each run over
 *	its original: one allocation and one charge for 512 pages, and an exit that is cheaper by as much
 *
 * Moved memory becomes anonymous at the same address, even if it was a private file mapping.  Not moved: the stack, and
 * the mapping of the thread control block, to which the kernel writes by itself (restartable sequences).  Nothing here
 * can fail: a page that was not copied now is copied later, by a fault.
 */
#include <errno.h>
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
#define LOOK_PAGES 512 /* pages of one mapping examined at a time */
#define GAP_PAGES  8   /* absent pages between two runs that are copied with them: cheaper than another mapping */
#define RUNS_MAX   48  /* each moved run becomes a mapping of its own */
#define HUGE_SIZE  ((size_t)2 << 20)
#define PRESENT    ((uint64_t)1 << 63)

struct run {
	uintptr_t start;
	size_t size;
};

struct copying {
	int pagemap;
	size_t page;
	bool moves;
	struct run run[RUNS_MAX]; /* runs to move */
	size_t n_runs, bytes;
};

static void populate(struct run r)
{
	(void)madvise((void *)r.start, r.size, MADV_POPULATE_WRITE);
}

/* Adds a run of a mapping; called in order of addresses. */
static void add_run(struct copying *c, struct run r, bool in_same_mapping)
{
	struct run *last = c->n_runs > 0 ? &c->run[c->n_runs - 1] : NULL;

	if (in_same_mapping && last && r.start - (last->start + last->size) <= GAP_PAGES * c->page) {
		c->bytes += r.start + r.size - (last->start + last->size);
		last->size = r.start + r.size - last->start;
	} else if (c->n_runs < RUNS_MAX) {
		c->run[c->n_runs++] = r;
		c->bytes += r.size;
	} else {
		populate(r);
	}
}

/* Adds the runs of present pages in up to LOOK_PAGES pages.  *in_same: a run of this mapping was added before. */
static void look_at_some(struct copying *c, struct run part, bool moves, bool *in_same)
{
	uint64_t entry[LOOK_PAGES];
	ssize_t got = pread(c->pagemap, entry, part.size / c->page * sizeof(entry[0]),
			    (off_t)(part.start / c->page * sizeof(entry[0])));
	size_t n = got > 0 ? (size_t)got / sizeof(entry[0]) : 0, first = 0;

	for (size_t i = 0; i <= n; i++) {
		struct run r = { part.start + first * c->page, (i - first) * c->page };

		if (i < n && entry[i] & PRESENT)
			continue;
		first = i + 1;
		if (r.size == 0)
			continue;
		if (!moves) {
			populate(r);
			continue;
		}
		add_run(c, r, *in_same);
		*in_same = true;
	}
}

static bool lies_in(const void *at, uintptr_t start, uintptr_t end)
{
	return (uintptr_t)at >= start && (uintptr_t)at < end;
}

/* Handles a line of maps: "start-end rw-p ...". */
static void look_at_mapping(struct copying *c, const char *line)
{
	bool in_same = false, moves;
	char *at;
	uintptr_t start = strtoul(line, &at, 16), end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;

	if (strncmp(at, " rw-p", 5) != 0 && strncmp(at, " rwxp", 5) != 0)
		return;
	moves = c->moves && at[3] == '-' && !lies_in(&at, start, end) && !lies_in(&errno, start, end);
	while (start < end) {
		size_t size = end - start < LOOK_PAGES * c->page ? end - start : LOOK_PAGES * c->page;

		look_at_some(c, (struct run){ start, size }, moves, &in_same);
		start += size;
	}
}

static int open_own(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

static void look_at_all(struct copying *c, int maps)
{
	char text[8192], *line, *end;
	size_t have = 0;
	ssize_t n;

	while ((n = read(maps, text + have, sizeof(text) - 1 - have)) > 0) {
		have += (size_t)n;
		text[have] = '\0';
		for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1)
			look_at_mapping(c, line);
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
}

/* Between the copy of a run and its move, only the stack is written to. */
static void move_runs(const struct copying *c)
{
	size_t room = (c->bytes + HUGE_SIZE - 1) / HUGE_SIZE * HUGE_SIZE;
	char *area = mmap(NULL, room + HUGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;

	if (area == MAP_FAILED)
		return;
	at = area + (HUGE_SIZE - (uintptr_t)area % HUGE_SIZE) % HUGE_SIZE;
	(void)madvise(at, room, MADV_HUGEPAGE);
	for (size_t i = 0; i < c->n_runs; i++) {
		const struct run *r = &c->run[i];

		memcpy(at, (const void *)r->start, r->size);
		(void)mremap(at, r->size, r->size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)r->start);
		at += r->size;
	}
	(void)munmap(area, room + HUGE_SIZE);
}

void pages_copy(bool has_huge_pages)
{
	struct copying c = { .pagemap = open_own("/proc/self/pagemap"),
			     .page = (size_t)sysconf(_SC_PAGESIZE),
			     .moves = has_huge_pages };
	int maps = open_own("/proc/self/maps");

	if (maps >= 0 && c.pagemap >= 0)
		look_at_all(&c, maps);
	if (maps >= 0)
		(void)close(maps);
	if (c.pagemap >= 0)
		(void)close(c.pagemap);
	if (c.n_runs > 0)
		move_runs(&c);
}
