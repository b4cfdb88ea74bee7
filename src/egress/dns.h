/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of DNS (RFC 1035), as resolvers of programs write them, and answers to them.  Neither asks anybody: who may
 * be told what is the caller's to know.
 */
#ifndef EGRESS_DNS_H
#define EGRESS_DNS_H

#include "net/host.h"

#define DNS_QUERY_MAX  1232 /* with whatever a resolver adds to its question */
#define DNS_ANSWER_MAX 512
#define DNS_A          1
#define DNS_AAAA       28

enum dns_code { /* of an answer */
		DNS_OK = 0,
		DNS_MALFORMED = 1,
		DNS_NO_SUCH_NAME = 3,
		DNS_NOT_DONE = 4,
};

struct dns_query {
	enum dns_code code; /* DNS_OK: it is a sound question; else the only answer there is */
	bool is_host;       /* its name can be one of a host, which is then in host */
	struct host host;
	uint16_t type;
	size_t end; /* of the question in the bytes; 0: there is none to repeat */
};

/* False: no question at all, and nothing to be said to it. */
bool dns_parse(const uint8_t *bytes, size_t len, struct dns_query *ret);
/* The answer to it: its code, with the address (in host order; 0: none) if it is DNS_OK.  Its length. */
size_t dns_answer(const uint8_t *bytes, const struct dns_query *q, enum dns_code code, uint32_t address,
		  uint8_t dst[DNS_ANSWER_MAX]);

#endif
