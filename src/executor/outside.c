/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects backend and egress, which do not know each other: one creates the socket in the cell's network, the other
 * serves it.  The program is released only when the proxy is ready, so a proxy that cannot be started refuses the run
 * before it begins.
 */
#include "executor/outside.h"

#include "backend/idmap.h"

struct egress_rules outside_rules(const struct setting_list *hosts, const struct settings *set)
{
	const struct idmap ids = geteuid() == 0 ? idmap_find() : (struct idmap){ .kind = IDMAP_NONE };

	return (struct egress_rules){
		.hosts = hosts,
		.connections = set->egress_connections,
		.bytes = set->egress_bytes,
		.first_id = ids.first_uid,
		.ids = ids.pairs,
	};
}

int outside_check(struct stage *s)
{
	if (!s->plan->egress || s->backend->listener)
		return 0;
	return err_set(
		&s->err, BRIG_E_REFUSED, 0,
		"network_mode allowlist cannot be kept by the %s backend, which has no network of its own for the "
		"program; use native or docker, or network_mode none",
		s->backend->name);
}

int outside_begin(struct stage *s)
{
	AUTO_FD listener = FD_NONE;

	if (!s->plan->egress)
		return 0;
	if (!s->egress)
		return err_set(&s->err, BRIG_E_INTERNAL, 0, "a cell with a way out has no rules for it");
	listener = s->backend->listener(s->cell, &s->err);
	if (listener < 0)
		return listener;
	return egress_start(&listener, s->egress, &s->proxy, &s->err);
}

void outside_end(struct stage *s)
{
	struct result *r = s->result;

	egress_stop(MOVE_PTR(s->proxy), &r->network, s->plan->report_denied ? &r->denied : NULL);
}
