/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses as plain bytes, and which of them are not public. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <sys/socket.h>

#include "base/util.h"

#define ADDRESS_TEXT_MAX 48

struct address {
	bool v6;
	uint8_t byte[16]; /* network order; an IPv4 address has the first four, the others are zero */
};

/* The canonical spelling only: four decimal numbers without leading zeros, or IPv6 without a zone. */
bool address_parse(const char *text, struct address *ret);
bool address_eq(const struct address *a, const struct address *b);
/* 127.0.0.0/8 and ::1. */
bool address_is_loopback(const struct address *a);
const char *address_text(const struct address *a, char dst[ADDRESS_TEXT_MAX]);
/* What kind of special address it is, in a few words; NULL: an ordinary public one. */
const char *address_special(const struct address *a);

/* False: neither IPv4 nor IPv6. */
bool address_from_sockaddr(const struct sockaddr *sa, struct address *ret);
/* The port of an IPv4 or IPv6 socket address; 0: it is of another family. */
uint16_t address_port(const struct sockaddr *sa);
/* Its length. */
socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);

#endif
