/* SPDX-License-Identifier: Apache-2.0 */
/* Host user ids for programs, which belong to nobody else; native/idmap.c finds them. */
#ifndef BACKEND_IDMAP_H
#define BACKEND_IDMAP_H

#include "base/util.h"

enum idmap_kind {
	IDMAP_NONE,        /* root of a user namespace that has no ids to spare */
	IDMAP_OWN,         /* only the caller's own id */
	IDMAP_SUBORDINATE, /* a range of /etc/subuid, by newuidmap */
	IDMAP_DIRECT,      /* written by us: root, or the supervisor of an ordinary user in a namespace of its own */
};

/* Where the host ids of cells come from: pairs beginning at first. */
struct idmap {
	enum idmap_kind kind;
	uint64_t first_uid, first_gid, pairs;
};

struct idmap idmap_find(void);
/* The pair for a namespace's number (proc_ns_number): 0, or -ERANGE if the range has none for it. */
int idmap_pair(const struct idmap *ids, uint64_t number, uint64_t *ret);

#endif
