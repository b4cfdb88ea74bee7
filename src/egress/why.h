/* SPDX-License-Identifier: Apache-2.0 */
/* Why an attempt was refused or came to nothing; rows in why.def. */
#ifndef EGRESS_WHY_H
#define EGRESS_WHY_H

enum why {
#define WHY(name, kind, status, reply, fix, text) WHY_##name,
#include "egress/why.def"
	WHY_COUNT
};

enum why_kind { WHY_KIND_OK, WHY_KIND_DENIED, WHY_KIND_FAILED };
enum why_fix { FIX_NOTHING, FIX_HOST, FIX_ADDRESS, FIX_CONNECTIONS, FIX_BYTES };

struct why_info {
	enum why_kind kind;
	int status;
	unsigned char reply;
	enum why_fix fix;
	const char *text;
};
extern const struct why_info why_info[WHY_COUNT];

#endif
