/* SPDX-License-Identifier: Apache-2.0 */
/* What a program attempted: refused calls, files and hosts, and every host it requested from the egress proxy. */
#ifndef MODEL_ATTEMPTS_H
#define MODEL_ATTEMPTS_H

#include "base/util.h"

enum denied_kind { DENIED_SYSCALL, DENIED_FILE, DENIED_HOST, DENIED_KIND_COUNT };
extern const char *const denied_kind_name[DENIED_KIND_COUNT];

#define DENIED_MAX 128

/* Each thing once, with how often it was tried. */
struct denied_row {
	enum denied_kind kind;
	char what[192]; /* "ptrace", ".env", "example.org:443" */
	char why[160];
	char fix[160]; /* what to change in the policy; "" if nothing could allow it */
	uint64_t count;
};

struct denied {
	struct denied_row *row; /* heap */
	size_t n, cap;
	uint64_t dropped;   /* attempts at further things, beyond DENIED_MAX */
	const char *unseen; /* static: what this list cannot show although it was asked for; NULL */
};

/* Values of unseen. */
extern const char denied_without_listener[], denied_without_watches[];

/* Counts one attempt (count of them) at something; a new thing is added.  False: no memory. */
bool denied_add(struct denied *d, const struct denied_row *one);
void denied_release(struct denied *d);

#define NETWORK_MAX 256

/* What became of an attempt. */
enum network_end {
	NETWORK_REACHED,
	NETWORK_DENIED,     /* it is not allowed */
	NETWORK_NOT_PUBLIC, /* its name is, but leads to an address that has to be allowed by its number */
	NETWORK_UNRESOLVED,
	NETWORK_UNREACHABLE,
	NETWORK_TIMED_OUT,
};

struct network_row {
	char host[256]; /* as asked for, in lower case, without a trailing dot */
	uint16_t port;
	bool allowed;
	enum network_end end;
	char reason[128]; /* of a denial, or of a connection that came to nothing; "" */
	uint64_t count;   /* connections asked for */
	uint64_t sent_bytes, received_bytes;
};

struct network {
	struct network_row *row; /* heap */
	size_t n, cap;
	uint64_t dropped;
};

/* Adds to the row of the same host, port, allowed and reason, or makes one.  False: no memory. */
bool network_add(struct network *net, const struct network_row *one);
void network_release(struct network *net);

#endif
