/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting, as the library does it everywhere, and work that is done in steps.  Code that waits is written as if it
 * blocked; whether it does is decided by who called it (wait.c).
 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <poll.h>

#include "base/util.h"

/* poll(2).  In a task it returns to whoever steps the task until a descriptor is ready or the time is over. */
int wait_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
/* nanosleep(2), likewise. */
void wait_sleep(uint64_t ns);
/* Whether they do: for who has another way to wait, which would not. */
bool wait_gives_way(void);
/* Calls fn on the stack of whoever steps the task; outside of one, directly.  For what may need more of a stack than a
 * task has, and for callbacks: theirs is not ours to choose. */
void wait_outside(void (*fn)(void *arg), void *arg);

struct task;

/* fn runs by and by, from the first task_step() on.  0 or -errno. */
int task_new(void (*fn)(void *arg), void *arg, struct task **ret);
/* Only of a task that has not begun or has ended.  NULL is fine. */
void task_free(struct task *t);
/*
 * Tasks that have ended, whose stacks the next ones get: to make one takes longer than a step.  (What is polled is made anew:
 * whoever has not stopped to poll must not hear of another task.)  All zero is empty; not for several threads at a time.
 */
struct task_spares {
	struct task *first;
	unsigned n;
};
/* As task_new() and task_free(). */
int task_take(struct task_spares *from, void (*fn)(void *arg), void *arg, struct task **ret);
void task_put(struct task_spares *to, struct task *t);
void task_spares_release(struct task_spares *s);
/* Readable when task_step() has something to do; belongs to the task. */
int task_fd(const struct task *t);
/* Goes on with it until it waits or ends; never waits.  True: there is more to do. */
bool task_step(struct task *t);
/* Whether it is being stepped now: by a caller of this function, then. */
bool task_is_running(const struct task *t);

#endif
