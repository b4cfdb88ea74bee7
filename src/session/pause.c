/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause.c - time limits of a session whose processes are stopped
 *
 * The steward stops and resumes the processes; this file adjusts the limits.  The session's own lifetime goes on.
 * Limits of runs and processes, and the idle timeout, are suspended from the request for a pause to the request to
 * resume: a process that does not run can be neither late nor idle.  Requests that could only wait for a stopped
 * process are refused meanwhile.
 */
#include "session/inside.h"

void pause_begin(struct session *s)
{
	if (!s->paused_ns)
		s->paused_ns = clock_now_ns();
}

void pause_end(struct session *s)
{
	uint64_t passed = s->paused_ns ? clock_now_ns() - s->paused_ns : 0;

	if (!s->paused_ns)
		return;
	s->paused_ns = 0;
	for (struct process *p = s->processes; p; p = p->next)
		if (p->deadline_ns)
			p->deadline_ns += passed;
	context_put_off(s, passed);
	session_is_active(s);
	session_set_timer(s);
}

int session_check_awake(const struct session *s, struct brig_error *err)
{
	return s->paused_ns ? err_set(err, BRIG_E_REFUSED, 0, "the session is paused: resume it first") : 0;
}
