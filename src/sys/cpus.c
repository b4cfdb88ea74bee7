/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cpus.h"

struct cpu_pair cpu_pair_find(void)
{
	struct cpu_pair p;

	p.usable = sched_getaffinity(0, sizeof(p.both), &p.both) == 0 && CPU_COUNT(&p.both) == 2;
	return p;
}

void cpu_pair_part(const struct cpu_pair *p, pid_t child)
{
	int here = sched_getcpu();
	cpu_set_t other = p->both;

	if (!p->usable || here < 0)
		return;
	CPU_CLR((size_t)here, &other);
	(void)sched_setaffinity(child, sizeof(other), &other);
}

void cpu_pair_join(const struct cpu_pair *p)
{
	if (p->usable)
		(void)sched_setaffinity(0, sizeof(p->both), &p->both);
}
