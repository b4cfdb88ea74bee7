/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the backend for a request. A backend named by the policy or the request is used or the request refused; it is
 * never replaced by another one. `auto` tries one after another and uses the first that can enforce the policy; if that
 * is not the first, the selection says why.
 */
#ifndef EXECUTOR_SELECT_H
#define EXECUTOR_SELECT_H

#include "backend/backend.h"

typedef const struct backend_ops *(*backend_find_fn)(enum backend_kind kind, struct brig_error *err);

/* Backend hosts that a handle keeps for further requests; zero-initialized. */
struct kept_hosts {
	struct kept_host *first;
};
void kept_hosts_release(struct kept_hosts *hosts);

struct select_ask {
	const struct settings *set;
	struct kept_hosts *hosts;   /* NULL: hosts are not kept */
	protection_set may_degrade; /* allow_degraded */
	enum trust trust;
	backend_find_fn find; /* NULL: backend_find; tests pass their own */
};

struct selection {
	const struct backend_ops *ops; /* NULL: none */
	struct backend_host *host;     /* opened; to be closed with ops->close unless kept */
	bool kept;
	protection_set missing; /* protections that its cells lack on this host */
	protection_set excused; /* of these, the ones that it lacks everywhere, which are no reason to refuse it */
	char why[400];          /* why earlier backends were not taken; "": it was the first choice */
	size_t at;              /* its position in the order of auto */
};

/* The backend that policy and request ask for: enable_sandbox false means direct. */
enum backend_kind select_kind(const struct settings *set);
/* Negative: no backend can enforce the policy; err says what each one lacks. */
int select_backend(const struct select_ask *ask, struct selection *ret, struct brig_error *err);
/*
 * To be called if the selected backend could not create the cell, for the reason in err: some failures show only on
 * trying. Selects the next one that auto allows; negative, with more reasons added to err, if there is none. The old
 * one is closed in either case.
 */
int select_next(const struct select_ask *ask, struct selection *s, struct brig_error *err);
/* The missing protections that are no reason to refuse a backend; by_name: it was named, not found by auto. */
protection_set select_excused(const struct backend_ops *ops, protection_set missing, bool by_name, enum trust trust);
void selection_release(struct selection *s);

#endif
