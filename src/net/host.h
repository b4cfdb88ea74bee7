/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts as people and programs write them, and rules that match them. */
#ifndef NET_HOST_H
#define NET_HOST_H

#include "net/address.h"

#define HOST_TEXT_MAX 254 /* RFC 1035: 253 characters */

/* A host in canonical form, in which it is compared, resolved and reported. */
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
/* host or host:port, as addresses and Host fields of HTTP have it; a port of 0 in ret_port: none is written. */
bool authority_parse(const char *text, size_t len, struct host *ret, uint16_t *ret_port);

enum rule_ports { PORTS_WEB, PORTS_ONE, PORTS_ANY };

struct host_rule {
	struct host host;
	bool below; /* "*.host": what is below it, not the host itself */
	enum rule_ports ports;
	uint16_t port; /* PORTS_ONE */
};

/* "host", "*.host", "host:port", "host:*", addresses likewise, IPv6 with a port in brackets.  NULL, or what is wrong. */
const char *host_rule_parse(const char *item, struct host_rule *ret);

enum rule_match { MATCH_NONE, MATCH_OTHER_PORT, MATCH_YES };
enum rule_match host_rule_match(const struct host_rule *r, const struct host *host, uint16_t port);

#endif
