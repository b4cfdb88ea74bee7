/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways to a confined worker share: forked for one request (worker.c), or there before it (inspectors.c). */
#ifndef INSPECT_WORKER_H
#define INSPECT_WORKER_H

#include <sys/types.h>

#include "inspect/inspect.h"

struct worker {
	pid_t pid;
	int pid_fd;
	int answer_fd; /* what it writes comes here */
	bool is_ours;  /* a child of this process, to be reaped by it */
};
#define WORKER_NONE                                                                  \
	(struct worker)                                                              \
	{                                                                            \
		.pid = -1, .pid_fd = FD_NONE, .answer_fd = FD_NONE, .is_ours = false \
	}

/*
 * fork(2).  The child goes on with the stack that it is forked on, and parsers may need STACK_MAX of it: that of a task is
 * smaller, so the stepper's is taken.  All signals stay blocked in it: no handler of the caller's ever runs there.
 */
pid_t worker_fork(void (*child)(void *arg), void *arg);
/*
 * In the worker.  Leaves fd as descriptor 0 and nothing else, limits itself, filters its calls.  0 or -errno.  Ends with
 * its parent, also with one that is gone already.
 */
int worker_confine(int fd, pid_t parent);
/*
 * In the confined worker (confined: what worker_confine() returned): reads the text, answers, ends.  rests: not at
 * once.  Tearing a process down costs as much as inspecting a small text, and on a machine without an idle CPU it would
 * happen before the caller can use the answer.
 */
_Noreturn void worker_work(int confined, const struct rule_set *rules, const struct inspect_request *req, bool rests);

/*
 * Hands the request to a worker that waits.  False: there is none, it died while it waited, or the request is too large
 * for the way to it; then the text has to be read in another way.
 */
bool inspectors_take(struct inspectors *from, const struct inspect_request *req, struct worker *ret);
/* One that has answered and ends by itself soon; it is killed later if it does not.  Takes its descriptors. */
void inspectors_retire(struct inspectors *from, struct worker *w);
/* Whether a worker can be taken now. */
bool inspectors_are_ready(const struct inspectors *from);

#endif
