/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a zygote's child memory of its own before a request waits for it.
 *
 * After the fork the child shares every page with its zygote until it writes to it.  Each first write costs a fault and
 * a copy, hundreds of them for the smallest program.  They are made before the program arrives, by
 * MADV_POPULATE_WRITE, but only for pages that programs are going to write: copying the others would cost more than it
 * saves, in memory even more than in time.
 *
 * Which these are is found out once, by the zygote's first child: the pages that it alone maps when it has been set up
 * as a fork, and those that a rehearsal alone maps.  That is a process which the child forks and which runs a small
 * program of ours to its end, as a request's would be run.  The list is in memory that they share with the zygote and
 * nobody else: each child unmaps it before it can be claimed, so nothing that a guest does can change the list.  The
 * rehearsal's pid leaves the next one free, and it is gone before the child is confined.
 *
 * Not the zygote itself rehearses: it lives in one pid namespace with a /proc of another, in which it finds no maps of
 * its own.
 *
 * Nothing here can fail.  Without a list (the rehearsal ended otherwise, or two children were ordered at once) all
 * pages that are present are copied; a page that was not copied now is copied later, by a fault.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/guest/wait/library.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define REHEARSAL_PID 299 /* next to zygote.c's GUIDE_PID: gone before the program could see it */
#define REHEARSAL_MAX 2   /* seconds */
#define LOOK_PAGES    512 /* pages of one mapping examined at a time */
#define RUNS_MAX      512
#define GAP_PAGES     1
#define PRESENT       ((uint64_t)1 << 63)
#define MAPPED_BY_ONE ((uint64_t)1 << 56)

struct run {
	uintptr_t start;
	size_t size;
};

struct page_list {
	bool is_complete; /* written last */
	size_t n;
	struct run run[RUNS_MAX];
};

static struct page_list *shared; /* with the first child and its rehearsal; NULL: unmapped */
static struct page_list written; /* what the zygote has learned */
static bool has_rehearsed;

/* ---- looking at memory ---------------------------------------------------------------------------------- */

struct look {
	int pagemap;
	size_t page;
	uint64_t wanted; /* bits of an entry, all of them */
	void (*found)(struct run r, struct page_list *list);
	struct page_list *list;
};

/* Calls found() for each run of wanted pages in up to LOOK_PAGES pages. */
static void look_at_some(const struct look *l, struct run part)
{
	uint64_t entry[LOOK_PAGES];
	ssize_t got = pread(l->pagemap, entry, part.size / l->page * sizeof(entry[0]),
			    (off_t)(part.start / l->page * sizeof(entry[0])));
	size_t n = got > 0 ? (size_t)got / sizeof(entry[0]) : 0, first = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && (entry[i] & l->wanted) == l->wanted)
			continue;
		if (i > first)
			l->found((struct run){ part.start + first * l->page, (i - first) * l->page }, l->list);
		first = i + 1;
	}
}

/* Handles a line of maps: "start-end rw-p ...". */
static void look_at_mapping(const struct look *l, const char *line)
{
	char *at;
	uintptr_t start = strtoul(line, &at, 16), end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;

	if (strncmp(at, " rw-p", 5) != 0 && strncmp(at, " rwxp", 5) != 0)
		return;
	while (start < end) {
		size_t size = end - start < LOOK_PAGES * l->page ? end - start : LOOK_PAGES * l->page;

		look_at_some(l, (struct run){ start, size });
		start += size;
	}
}

static void look_at_all(const struct look *l, int maps)
{
	char text[8192], *line, *end;
	size_t have = 0;
	ssize_t n;

	while ((n = read(maps, text + have, sizeof(text) - 1 - have)) > 0) {
		have += (size_t)n;
		text[have] = '\0';
		for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1)
			look_at_mapping(l, line);
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
}

/* Not through open(), which this library defines. */
static int open_own(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* Looks at all memory that is private and can be written. */
static void look(struct look l)
{
	int maps = open_own("/proc/self/maps");

	l.pagemap = open_own("/proc/self/pagemap");
	l.page = (size_t)sysconf(_SC_PAGESIZE);
	if (maps >= 0 && l.pagemap >= 0)
		look_at_all(&l, maps);
	if (maps >= 0)
		(void)close(maps);
	if (l.pagemap >= 0)
		(void)close(l.pagemap);
}

/* ---- the rehearsal -------------------------------------------------------------------------------------- */

/* Runs come in order of addresses, twice; what is too much is left to faults. */
static void add_run(struct run r, struct page_list *list)
{
	struct run *last = list->n > 0 ? &list->run[list->n - 1] : NULL;
	size_t gap = GAP_PAGES * (size_t)sysconf(_SC_PAGESIZE);

	if (last && r.start > last->start && r.start - (last->start + last->size) <= gap)
		last->size = r.start + r.size - last->start;
	else if (list->n < RUNS_MAX)
		list->run[list->n++] = r;
}

/* Adds the pages that this process alone maps. */
static void note_written(void)
{
	look((struct look){ .wanted = PRESENT | MAPPED_BY_ONE, .found = add_run, .list = shared });
}

/* In the rehearsal, when the interpreter has nothing left to do that a program could notice. */
static void end_rehearsal(void)
{
	note_written();
	__atomic_store_n(&shared->is_complete, true, __ATOMIC_RELEASE);
	_exit(0);
}

/* As fork(2), with a chosen pid. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

void pages_share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		shared = NULL;
}

/* The list may be there at the second order, or at a later one. */
void pages_learn(void)
{
	if (!shared || !__atomic_load_n(&shared->is_complete, __ATOMIC_ACQUIRE))
		return;
	written = *shared;
	if (written.n > RUNS_MAX)
		wait_give_up();
	(void)munmap(shared, sizeof(*shared));
	shared = NULL;
}

void pages_child_made(void)
{
	has_rehearsed = true;
}

/* Whether this child is the one that finds the pages. */
static bool rehearses(void)
{
	return shared && !has_rehearsed;
}

/* ---- copying -------------------------------------------------------------------------------------------- */

static void copy_run(struct run r, struct page_list *list)
{
	(void)list;
	(void)madvise((void *)r.start, r.size, MADV_POPULATE_WRITE);
}

static void copy_pages(void)
{
	if (!written.is_complete)
		look((struct look){ .wanted = PRESENT, .found = copy_run });
	for (size_t i = 0; i < written.n; i++)
		copy_run(written.run[i], NULL);
}

void pages_copy(void)
{
	if (!rehearses())
		copy_pages();
}

static void rehearse(void)
{
	pid_t pid;

	note_written();
	pid = fork_as(REHEARSAL_PID);
	if (pid == 0) {
		(void)alarm(REHEARSAL_MAX);
		python_rehearse(end_rehearsal);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

void pages_rehearse(void)
{
	bool is_first = rehearses();

	if (is_first)
		rehearse();
	if (shared)
		(void)munmap(shared, sizeof(*shared));
	shared = NULL;
	if (is_first)
		copy_pages();
}
