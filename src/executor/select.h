/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which backend makes the cells of a request.  A backend that the policy or the request names is used or refuses; it is
 * never replaced by another one.  `auto` tries one after another and uses the first that can keep the policy; whenever
 * that is not the first one asked, the selection says why.
 */
#ifndef EXECUTOR_SELECT_H
#define EXECUTOR_SELECT_H

#include "backend/backend.h"

typedef const struct backend_ops *(*backend_find_fn)(enum backend_kind kind, struct brig_error *err);

/* Hosts of one handle that serve more than one request; zeroed in the beginning. */
struct kept_hosts {
	struct kept_host *first;
};
void kept_hosts_release(struct kept_hosts *hosts);

struct select_ask {
	const struct settings *set;
	struct kept_hosts *hosts;   /* NULL: none is kept */
	protection_set may_degrade; /* allow_degraded */
	enum trust trust;
	backend_find_fn find; /* NULL: backend_find; tests bring backends of their own */
};

struct selection {
	const struct backend_ops *ops; /* NULL: none */
	struct backend_host *host;     /* opened; for ops->close, unless it is kept */
	bool kept;
	protection_set missing; /* what its cells go without on this host */
	protection_set excused; /* of these, what it gives nowhere and therefore is not refused for */
	char why[400];          /* why the backends before it were not taken; "": it was the first choice */
	size_t at;              /* its place in the order of auto */
};

/* What the policy and the request say: enable_sandbox false is direct. */
enum backend_kind select_kind(const struct settings *set);
/* Negative: none can keep the policy, and err says what each of them lacks. */
int select_backend(const struct select_ask *ask, struct selection *ret, struct brig_error *err);
/*
 * The chosen backend has turned out not to be able to make the cell, for the reason in err: some protections only show
 * on trying.  Takes the next one that auto allows; negative, with further reasons added to err, if there is none.
 * Either way the old one is closed.
 */
int select_next(const struct select_ask *ask, struct selection *s, struct brig_error *err);
/* What of a backend's missing protections it is not refused for; by_name: it was not auto that found it. */
protection_set select_excused(const struct backend_ops *ops, protection_set missing, bool by_name, enum trust trust);
void selection_release(struct selection *s);

#endif
