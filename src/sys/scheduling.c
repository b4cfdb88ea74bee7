/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/scheduling.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

static bool is_real_time(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* -errno, or 0 with the nice value; getpriority(2) also returns -1 as a value. */
static int read_nice(pid_t pid, int *ret)
{
	errno = 0;
	*ret = getpriority(PRIO_PROCESS, (id_t)pid);
	return *ret == -1 && errno ? -errno : 0;
}

/* A program's filter refuses to change it.  A kernel or a container without these calls has no such priorities to inherit. */
static void reset_io(void)
{
	long now = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);

	if (now < 0)
		return;
	if (IOPRIO_PRIO_CLASS(now) == IOPRIO_CLASS_RT ||
	    (IOPRIO_PRIO_CLASS(now) == IOPRIO_CLASS_BE && IOPRIO_PRIO_DATA(now) < IOPRIO_NORM))
		(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_NONE, 0));
}

int scheduling_reset(void)
{
	const struct sched_param none = { 0 };
	int policy = sched_getscheduler(0), nice, rc;

	if (policy < 0)
		return -errno;
	/* The flag stays: removing it needs a privilege. */
	if (is_real_time(policy) && sched_setscheduler(0, SCHED_OTHER | (policy & SCHED_RESET_ON_FORK), &none) < 0)
		return -errno;
	rc = read_nice(0, &nice);
	if (rc < 0)
		return rc;
	if (nice < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
		return -errno;
	reset_io();
	return 0;
}

const char *scheduling_of(pid_t pid)
{
	int policy = sched_getscheduler(pid), nice;

	if (policy < 0 || read_nice(pid, &nice) < 0)
		return NULL;
	if (is_real_time(policy))
		return "real-time";
	return nice < 0 ? "raised" : "ordinary";
}
