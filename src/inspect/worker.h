/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two kinds of confined workers: forked for one request (worker.c), or pre-forked (inspectors.c). */
#ifndef INSPECT_WORKER_H
#define INSPECT_WORKER_H

#include <sys/types.h>

#include "inspect/inspect.h"

struct worker {
	pid_t pid;
	int pid_fd;
	int answer_fd; /* to read its answer from */
	bool is_ours;  /* a child of this process, which must reap it */
};
#define WORKER_NONE                                                                  \
	(struct worker)                                                              \
	{                                                                            \
		.pid = -1, .pid_fd = FD_NONE, .answer_fd = FD_NONE, .is_ours = false \
	}

/*
 * fork(2).  The child continues on the stack that it was forked on, and parsers may need STACK_MAX: a task's stack is
 * smaller, so the fork runs on the stepper's stack.  All signals stay blocked in the child, so no handler of the caller
 * runs there.
 */
pid_t worker_fork(void (*child)(void *arg), void *arg);
/*
 * Called in the worker: keeps only fd, as descriptor 0, sets limits, installs the system call filter.  0 or -errno.
 * The worker dies with its parent; if the parent is already gone, it exits here.
 */
int worker_confine(int fd, pid_t parent);
/*
 * Called in the confined worker (confined: result of worker_confine()): inspects the text, answers, exits.  rests:
 * waits before it exits.  Tearing a process down takes as long as inspecting a small text, and without an idle CPU that
 * would happen before the caller can use the answer.
 */
_Noreturn void worker_work(int confined, const struct rule_set *rules, const struct inspect_request *req, bool rests);

/*
 * Sends the request to a waiting worker.  False: there is none, it died while it waited, or the request is too large
 * for the socket; the caller must then fork a worker.
 */
bool inspectors_take(struct inspectors *from, const struct inspect_request *req, struct worker *ret);
/* Takes over a worker that has answered and will exit soon; it is killed later if it does not. */
void inspectors_retire(struct inspectors *from, struct worker *w);
/* True if a worker can be taken now. */
bool inspectors_are_ready(const struct inspectors *from);

#endif
