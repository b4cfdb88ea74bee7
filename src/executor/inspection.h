/* SPDX-License-Identifier: Apache-2.0 */
/* Static inspection as shared by runs and checks: the rules in force, and the kind of text that a program is. */
#ifndef EXECUTOR_INSPECTION_H
#define EXECUTOR_INSPECTION_H

#include "inspect/inspect.h"
#include "lang/lang.h"
#include "policy/policy.h"

/*
 * The rules of one handle.  Loading them takes longer than inspecting a small program, so they are kept from one
 * request to the next; a request whose policy names another rules file reloads them.
 */
struct rulebook {
	struct loaded_rules *loaded;  /* NULL: not loaded yet */
	char extra[SETTING_TEXT_MAX]; /* an extra file of the handle's owner, besides the policy's; "": none */
	/*
	 * Every rule set has a number, which stays unique after the set is gone; consecutive requests with equal
	 * choices get the same one.
	 */
	uint64_t n_numbers;
	struct rule_choices choices; /* of the last request that had any; its list is chosen */
	struct setting_list chosen;
	uint64_t chosen_from, chosen_number; /* the set that chosen was applied to, and the number of the result */
	/* of the set that the last request got, and how many requests in a row got it */
	uint64_t asked_number, times_asked;
	struct inspectors *inspectors; /* NULL: none */
	uint64_t inspectors_number;    /* of the set that they have loaded */
};

/* The rules for one request; they stay unchanged whatever other requests load. */
struct rules_in_use {
	const struct rule_set *set; /* NULL: none */
	struct loaded_rules *loaded;
	struct rule_set *adjusted; /* with the request's own choices; NULL: it has none */
	uint64_t number;
};

/* Must be followed by rules_put(*ret), even on failure. */
int rulebook_get(struct rulebook *book, const struct policy_resolved *r, struct rules_in_use *ret,
		 struct brig_error *err);
void rules_put(struct rules_in_use *used);
/* Spare workers with these rules loaded; NULL: none. */
struct inspectors *rulebook_spares(const struct rulebook *book, const struct rules_in_use *used);
/*
 * To be called when no one waits for the result any more: replaces used workers, from the second request in a row with
 * the same rules on, so a handle for a single request never pays for it. Not before cgroups are divided, which cgroup
 * v2 allows only in a process without children.
 */
void rulebook_refill(struct rulebook *book, const struct rules_in_use *used);
/* To be called when idle: ends the spare workers; the next refill starts new ones. */
void rulebook_rest(struct rulebook *book);
void rulebook_release(struct rulebook *book);

/*
 * With network_mode allowlist, talking to the network is what the policy is for: findings that say no more than that
 * (struct rule, network) inform, at every level, unless the rule was chosen by name.
 */
void inspection_allow_network(const struct rule_set *rules, struct findings *f);

/* Appends to the remedy of each blocking finding the smallest change that would permit it. */
void inspection_tell_permits(const struct policy_resolved *r, struct findings *f);

/* A finding as callers see it; its strings are the finding's. */
struct brig_finding inspection_public(const struct finding *f);

/* False: this language is not inspected. */
bool inspection_kind(const struct language *lang, const char *file_name, enum inspect_kind *ret);

#endif
