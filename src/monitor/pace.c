/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/pace.h"

#include <limits.h>

#define CPU_LOOK_MIN_NS (2 * NS_PER_MS)

static uint64_t earliest_exhaustion(const struct pace *p, uint64_t used_ns, uint64_t now_ns)
{
	uint64_t left = p->cpu_limit_ns - used_ns;

	return now_ns + max_u64(left / p->cpu_percent * 100, CPU_LOOK_MIN_NS);
}

void pace_start(struct pace *p, uint64_t now_ns)
{
	p->next_cpu_ns = p->cpu_limit_ns ? earliest_exhaustion(p, 0, now_ns) : UINT64_MAX;
	p->next_sample_ns = p->interval_ns ? now_ns + p->interval_ns : UINT64_MAX;
}

bool pace_wall_is_over(const struct pace *p, uint64_t now_ns)
{
	return now_ns >= p->wall_deadline_ns;
}

bool pace_sample_is_due(struct pace *p, uint64_t now_ns)
{
	if (now_ns < p->next_sample_ns)
		return false;
	/* From now, not from when it was due: after a pause there is no burst to catch up. */
	p->next_sample_ns = now_ns + p->interval_ns;
	return true;
}

bool pace_cpu_is_due(const struct pace *p, uint64_t now_ns)
{
	return now_ns >= p->next_cpu_ns;
}

bool pace_cpu_is_over(struct pace *p, uint64_t used_ns, uint64_t now_ns)
{
	if (used_ns >= p->cpu_limit_ns)
		return true;
	p->next_cpu_ns = earliest_exhaustion(p, used_ns, now_ns);
	return false;
}

int pace_timeout_ms(const struct pace *p, uint64_t now_ns)
{
	uint64_t next = min_u64(p->wall_deadline_ns, min_u64(p->next_cpu_ns, p->next_sample_ns));
	uint64_t ms = next <= now_ns ? 0 : (next - now_ns + NS_PER_MS - 1) / NS_PER_MS;

	return ms > INT_MAX ? INT_MAX : (int)ms;
}
