/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name that is listed has an address from the beginning, with a socket for each port that the list allows it.  For
 * what is below a wildcard there is a stock of addresses, each with a socket for every port of any wildcard: which of
 * them a name may use is checked on use, as always.  An address stays with its name for as long as the cell lives:
 * reassigning it would misdirect connections.
 *
 * With `:*` any port is allowed, but sockets can only be where they are known to be needed: those of the web.
 *
 * The plan is computed twice, before the cell for its sockets and in the proxy for their meaning; the same list gives
 * the same plan.
 */
#include "egress/names.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/str.h"

#define PORTS_MAX (2 * SETTING_LIST_MAX)

struct ports {
	uint16_t port[PORTS_MAX];
	size_t n;
};

static void add_port(struct ports *p, uint16_t port)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->port[i] == port)
			return;
	if (p->n < PORTS_MAX)
		p->port[p->n++] = port;
}

static void add_ports_of(struct ports *p, const struct host_rule *r)
{
	if (r->ports == PORTS_ONE) {
		add_port(p, r->port);
		return;
	}
	add_port(p, 80);
	add_port(p, 443);
}

bool names_is_own(const char *name)
{
	static const char own[] = "localhost";
	size_t len = strlen(name), own_len = strlen(own);

	if (len < own_len || !str_eq(name + len - own_len, own))
		return false;
	return len == own_len || name[len - own_len - 1] == '.';
}

static bool add_place(struct plan_egress *p, uint32_t address, uint16_t port, bool datagrams)
{
	if (p->n_places == EGRESS_PLACES_MAX)
		return false;
	p->place[p->n_places++] = (struct loopback_place){ .address = address, .port = port, .datagrams = datagrams };
	return true;
}

/* One more address, with all its ports or not at all. */
static bool add_address(struct names *n, const struct ports *ports, const char *name, struct plan_egress *ret)
{
	if (n->n == NAMES_MAX || ports->n > EGRESS_PLACES_MAX - ret->n_places)
		return false;
	for (size_t i = 0; i < ports->n; i++)
		(void)add_place(ret, NAMES_FIRST + (uint32_t)n->n, ports->port[i], false);
	(void)str_copy(n->name[n->n++], HOST_TEXT_MAX, name);
	return true;
}

static bool has_address(const struct names *n, const char *name)
{
	for (size_t i = 0; i < n->n; i++)
		if (str_eq(n->name[i], name))
			return true;
	return false;
}

static void add_exact(struct names *n, const struct host *host, struct plan_egress *ret)
{
	struct ports ports = { .n = 0 };

	for (size_t i = 0; i < n->rules->n; i++)
		if (host_rule_match(&n->rules->row[i], host, 0) != MATCH_NONE)
			add_ports_of(&ports, &n->rules->row[i]);
	(void)add_address(n, &ports, host->text, ret);
}

static void add_stock(struct names *n, struct plan_egress *ret)
{
	struct ports ports = { .n = 0 };

	for (size_t i = 0; i < n->rules->n; i++)
		if (n->rules->row[i].below)
			add_ports_of(&ports, &n->rules->row[i]);
	for (size_t i = 0; ports.n > 0 && i < NAMES_BELOW; i++)
		if (!add_address(n, &ports, "", ret))
			return;
}

void names_begin(struct names *n, const struct rule_list *rules, struct plan_egress *ret)
{
	*n = (struct names){ .rules = rules };
	ret->n_places = 0;
	(void)add_place(ret, INADDR_LOOPBACK, EGRESS_PORT, false);
	(void)add_place(ret, INADDR_LOOPBACK, EGRESS_NAMES_PORT, true);
	for (size_t i = 0; i < rules->n; i++) {
		const struct host_rule *r = &rules->row[i];

		if (!r->below && !r->host.is_address && !names_is_own(r->host.text) && !has_address(n, r->host.text))
			add_exact(n, &r->host, ret);
	}
	add_stock(n, ret);
}

bool names_is_listed(const struct names *n, const struct host *host)
{
	return !host->is_address && !names_is_own(host->text) && rules_match(n->rules, host, 0) != MATCH_NONE;
}

uint32_t names_address(struct names *n, const struct host *host)
{
	for (size_t i = 0; i < n->n; i++) {
		if (!n->name[i][0])
			(void)str_copy(n->name[i], HOST_TEXT_MAX, host->text); /* the stock comes last */
		if (str_eq(n->name[i], host->text))
			return NAMES_FIRST + (uint32_t)i;
	}
	return 0;
}

const char *names_at(const struct names *n, uint32_t address)
{
	size_t i = address - NAMES_FIRST;

	return address >= NAMES_FIRST && i < n->n && n->name[i][0] ? n->name[i] : NULL;
}
