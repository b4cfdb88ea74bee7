/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect-wait FILE... - how long a caller waits for a confined worker's findings: for each Python file the median wall
 * clock of ROUNDS inspections with a worker forked for it and with one that was there, in turn, as a line
 * "bytes forked_ns spare_ns missed name"; missed: how often none was there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "inspect/worker.h"

#define ROUNDS   500
#define TEXT_MAX (1 << 20)
#define PAUSE_NS (3 * NS_PER_MS) /* about what a program takes that was let go: the next worker is made meanwhile */

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "inspect-wait: %s\n", what);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t *times)
{
	qsort(times, ROUNDS, sizeof(*times), compare);
	return times[ROUNDS / 2];
}

static uint64_t wait_once(struct inspectors *from, const struct rule_set *rules, const struct inspect_request *req)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct inspect_job *job = NULL;
	struct findings found = { 0 };
	uint64_t begin = clock_now_ns();

	if (inspect_begin(from, rules, req, &job, &err) < 0 || inspect_finish(job, &found, &err) < 0)
		fail(err.msg);
	findings_release(&found);
	return clock_now_ns() - begin;
}

static void measure(struct inspectors *from, const struct rule_set *rules, const char *path, char *text)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -errno : fd_read_all(fd, text, TEXT_MAX);
	struct inspect_request req = { .kind = INSPECT_PYTHON, .level = INSPECTION_GUARD, .text = text };
	uint64_t forked[ROUNDS], spare[ROUNDS];
	unsigned missed = 0;

	if (len < 0)
		fail(path);
	req.len = (size_t)len;
	for (size_t i = 0; i < ROUNDS; i++) {
		missed += !inspectors_are_ready(from);
		spare[i] = wait_once(from, rules, &req);
		if (!inspectors_refill(from))
			fail("the process with spare workers is gone");
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		forked[i] = wait_once(NULL, rules, &req);
	}
	printf("%zd %llu %llu %u %s\n", len, (unsigned long long)median(forked), (unsigned long long)median(spare),
	       missed, path);
}

int main(int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FREE char *text = malloc(TEXT_MAX);
	struct inspectors *from = NULL;
	struct rule_set *rules = NULL;

	if (!text || rules_builtin(&rules, &err) < 0 || inspectors_open(rules, 2, &from, &err) < 0)
		fail(err.msg);
	for (int i = 1; i < argc; i++)
		measure(from, rules, argv[i], text);
	inspectors_close(from);
	rules_free(rules);
	return 0;
}
