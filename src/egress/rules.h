/* SPDX-License-Identifier: Apache-2.0 */
/* The whitelist, taken apart, and the hosts that are held against it. */
#ifndef EGRESS_RULES_H
#define EGRESS_RULES_H

#include "egress/address.h"
#include "egress/egress.h"

#define HOST_TEXT_MAX 254 /* RFC 1035: 253 characters */

/* A host as somebody wrote it, in the one form in which it is compared, resolved and reported. */
struct host {
	char text[HOST_TEXT_MAX]; /* lower case, no trailing dot, no brackets */
	bool is_address;
	struct address address; /* if so */
};

/*
 * Names of ASCII letters, digits, - and _ (others in punycode), and addresses in their usual spelling.  Everything
 * that some resolver might read as an address in another spelling (0x7f.1, 2130706433, 127.1, 0177.0.0.1, ::ffff:1.2.3.4)
 * is no host.  An IPv6 address stands in brackets if bracketed.
 */
bool host_parse(const char *text, size_t len, bool bracketed, struct host *ret);
/* 1 to 65535 in plain digits. */
bool port_parse(const char *text, size_t len, uint16_t *ret);

enum rule_ports { PORTS_WEB, PORTS_ONE, PORTS_ANY };

struct rule {
	struct host host;
	bool below; /* "*.host": what is below it, not the host itself */
	enum rule_ports ports;
	uint16_t port; /* PORTS_ONE */
};

struct rule_list {
	struct rule row[SETTING_LIST_MAX];
	size_t n;
};

/* BRIG_E_POLICY with the item that makes no sense. */
int rules_parse(const struct setting_list *hosts, struct rule_list *ret, struct brig_error *err);

enum rule_match { MATCH_NONE, MATCH_OTHER_PORT, MATCH_YES };
enum rule_match rules_match(const struct rule_list *list, const struct host *host, uint16_t port);
/* Whether an address that a name resolved to is itself listed. */
bool rules_match_address(const struct rule_list *list, const struct address *a, uint16_t port);

#endif
