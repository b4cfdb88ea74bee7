/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause.c - the clocks of a session whose processes are stopped
 *
 * The steward stops them and lets them go on; here is what that means for time.  The session's own time passes.  Limits of runs and
 * processes, and the time after which nothing was asked of it, stand still from the ask for a pause on to the ask for its end: who
 * does not run can neither be late nor be idle.  What could only wait for a stopped process is refused meanwhile.
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
