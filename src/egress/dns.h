/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses DNS queries (RFC 1035) from programs' resolvers, and builds answers.  Nothing is looked up here: what may be
 * answered is the caller's decision.
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
	enum dns_code code; /* DNS_OK: a valid query; otherwise the answer code */
	bool is_host;       /* its name can be one of a host, which is then in host */
	struct host host;
	uint16_t type;
	size_t end; /* of the question in the bytes; 0: there is none to repeat */
};

/* False: not a query, and not to be answered. */
bool dns_parse(const uint8_t *bytes, size_t len, struct dns_query *ret);
/* The answer to it: its code, with the address (in host order; 0: none) if it is DNS_OK.  Its length. */
size_t dns_answer(const uint8_t *bytes, const struct dns_query *q, enum dns_code code, uint32_t address,
		  uint8_t dst[DNS_ANSWER_MAX]);

#endif
