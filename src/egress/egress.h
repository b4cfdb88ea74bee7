/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Egress by allow-list.  A cell has no interface but its own loopback; on it are sockets, made inside the cell's
 * network namespace and served from outside by an unprivileged process of ours: a proxy (HTTP CONNECT, plain HTTP and
 * SOCKS5 on the same port), DNS lookups, and listeners on addresses that stand for the listed hosts.  Only that process
 * resolves names and opens connections, and only to what is listed.
 */
#ifndef EGRESS_EGRESS_H
#define EGRESS_EGRESS_H

#include "base/err.h"
#include "model/attempts.h"
#include "model/plan.h"
#include "model/settings.h"

struct egress_rules {
	const struct setting_list *hosts; /* "host", "*.host", "host:port", "10.1.2.3", "[::1]:8080" */
	uint64_t connections;             /* of one run */
	uint64_t bytes;                   /* of one run, both directions together */
	/* As root: pairs of unused user ids, of which the proxy takes one, by a number that no cell has. */
	uint64_t first_id, ids;
};

/* Whether the list makes sense; BRIG_E_POLICY with the item that does not. */
int egress_check(const struct setting_list *hosts, struct brig_error *err);

/* Where the cell needs sockets for that list; certificates are not touched. */
int egress_places(const struct setting_list *hosts, struct plan_egress *ret, struct brig_error *err);

struct egress; /* a proxy process */

/* Takes those sockets, offered by loopback_offer().  The process is there and serving when this returns, and dies with the caller. */
int egress_start(int *offer, const struct egress_rules *rules, struct egress **ret, struct brig_error *err);
/* When the cell is dead: lets it deliver what the program had sent, stops it and reports what was requested: every
 * attempt in net, refused ones also in denied, unless that is NULL.  NULL is fine. */
void egress_stop(struct egress *e, struct network *net, struct denied *denied);

/* Bytes that the program has received so far.  No proxy: 0. */
uint64_t egress_received(const struct egress *e);

/* The environment that makes programs use it: HTTP_PROXY=http://127.0.0.1:3128 and its relatives; NULL-terminated. */
extern const char *const egress_env[];

#endif
