/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many processes are possible, if no file inside says so.  Kubernetes limits them for a whole pod, in a cgroup
 * above the container's that is not visible inside, and its API neither sets nor reports the number.  So it is tried:
 * idle processes are forked until the kernel refuses one, or there is one more than the limit permits.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/container/init/inside.h"
#include "model/facts.h"

#define HERE_ALREADY 2 /* init, and the waiting payload */

static _Noreturn void do_nothing(void)
{
	for (;;)
		(void)syscall(SYS_pause);
}

void processes_try(struct inside *in)
{
	static pid_t pids[32768]; /* the largest limit that a policy can set */
	struct wire_fact f = { .id = FACT_pids_max, .text = "", .source = "init: tried with fork(2)" };
	uint64_t n = 0, want = in->job.pids - min_u64(in->job.pids, HERE_ALREADY) + 1;
	int refused = 0;

	while (n < min_u64(want, ARRAY_LEN(pids))) {
		long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid == 0)
			do_nothing();
		if (pid < 0) {
			refused = errno;
			break;
		}
		pids[n++] = (pid_t)pid;
	}
	for (uint64_t i = 0; i < n; i++)
		(void)kill(pids[i], SIGKILL);
	for (uint64_t i = 0; i < n; i++)
		while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			;
	in->tried_processes = true;
	/* If memory ran out first, the limit is unknown. */
	f.num = refused == EAGAIN ? HERE_ALREADY + n : UINT64_MAX;
	wire_put_fact(&in->out, &f);
}
