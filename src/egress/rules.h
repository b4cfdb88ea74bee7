/* SPDX-License-Identifier: Apache-2.0 */
/* The whitelist, taken apart. */
#ifndef EGRESS_RULES_H
#define EGRESS_RULES_H

#include "egress/egress.h"
#include "net/host.h"

struct rule_list {
	struct host_rule row[SETTING_LIST_MAX];
	size_t n;
};

/* BRIG_E_POLICY with the item that makes no sense. */
int rules_parse(const struct setting_list *hosts, struct rule_list *ret, struct brig_error *err);

/* The best that some rule says. */
enum rule_match rules_match(const struct rule_list *list, const struct host *host, uint16_t port);
/* Whether an address that a name resolved to is itself listed. */
bool rules_match_address(const struct rule_list *list, const struct address *a, uint16_t port);

#endif
