/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting, used throughout the library, and work that is done in steps.  Code that waits is written as if it blocked;
 * whether it does depends on the caller (wait.c).
 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <poll.h>

#include "base/util.h"

/* poll(2).  In a task it returns to the stepper until a descriptor is ready or the timeout expires. */
int wait_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
/* nanosleep(2), likewise. */
void wait_sleep(uint64_t ns);
/* Until task_wake(): for what one who is stepped by the same caller will know.  Outside a task it does not wait. */
void wait_for_wake(void);
/* Whether they yield: for callers with another way to wait, which would not. */
bool wait_gives_way(void);
/* Calls fn on the stepper's stack; outside a task, directly.  For code that may need more stack than a task has, and
 * for callbacks, whose stack use is unknown. */
void wait_outside(void (*fn)(void *arg), void *arg);

struct task;

/* fn runs in steps, from the first task_step() on.  0 or -errno. */
int task_new(void (*fn)(void *arg), void *arg, struct task **ret);
/* Only for a task that has not started or has ended.  NULL is fine. */
void task_free(struct task *t);
/*
 * Ended tasks, whose stacks are reused: creating one takes longer than a step.  (The polled descriptor is created anew:
 * a caller that still polls the old one must not be woken by another task.)  All zero is empty; not thread-safe.
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
/* Runs it until it waits or ends; never blocks.  True: there is more to do. */
bool task_step(struct task *t);
/* Ends its wait_for_wake(), or the next one: there is a step to make. */
void task_wake(struct task *t);
/* Whether it is being stepped now, which means by a caller of this function. */
bool task_is_running(const struct task *t);

#endif
