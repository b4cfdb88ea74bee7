/* SPDX-License-Identifier: Apache-2.0 */
/* What runs and checks share of the static inspection: the rules in force, and what kind of text a program is. */
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
	char extra[SETTING_TEXT_MAX]; /* a file of the handle's owner, over the policy's; "": none */
	/* Each set of rules has a number, by which it is known when it is gone; equal choices in a row give the same. */
	uint64_t n_numbers;
	struct rule_choices choices; /* of the last request that had some; its list is the next one */
	struct setting_list chosen;
	uint64_t chosen_from, chosen_number; /* the set that they were made of, and what came of it */
	uint64_t asked_number, times_asked;  /* of the set that the last request got, and how often in a row */
	struct inspectors *inspectors;       /* NULL: none */
	uint64_t inspectors_number;          /* of the set that they have */
};

/* The rules that one request is judged by; they stay what they are whatever others load meanwhile. */
struct rules_in_use {
	const struct rule_set *set; /* NULL: none */
	struct loaded_rules *loaded;
	struct rule_set *adjusted; /* to the request's own choices; NULL: it has none */
	uint64_t number;
};

/* *ret is to be given back with rules_put(), also if this fails. */
int rulebook_get(struct rulebook *book, const struct policy_resolved *r, struct rules_in_use *ret,
		 struct brig_error *err);
void rules_put(struct rules_in_use *used);
/* Spare workers that have these rules; NULL: none. */
struct inspectors *rulebook_spares(const struct rulebook *book, const struct rules_in_use *used);
/*
 * When nothing waits for the result any more: replaces used workers, starting with the second request in a row with the
 * same rules.  So a handle for one request never pays for it.  Not before cgroups are divided: on v2 that asks for a
 * process without children.
 */
void rulebook_refill(struct rulebook *book, const struct rules_in_use *used);
/* When nothing is asked for in a while: spare workers go, and come again with the next refill. */
void rulebook_rest(struct rulebook *book);
void rulebook_release(struct rulebook *book);

/*
 * With network_mode allowlist, talking to the network is what the policy is for: findings that say no more than that
 * (struct rule, network) inform, at every level, unless the rule was chosen by name.
 */
void inspection_allow_network(const struct rule_set *rules, struct findings *f);

/* Ends the remedy of each finding that blocks with the smallest change that would permit it. */
void inspection_tell_permits(const struct policy_resolved *r, struct findings *f);

/* A finding as callers see it; its strings are the finding's. */
struct brig_finding inspection_public(const struct finding *f);

/* False: this language is not inspected. */
bool inspection_kind(const struct language *lang, const char *file_name, enum inspect_kind *ret);

#endif
