/* SPDX-License-Identifier: Apache-2.0 */
/* What runs and checks share of the static inspection: the rules in force, and what kind of text a program is. */
#ifndef EXECUTOR_INSPECTION_H
#define EXECUTOR_INSPECTION_H

#include "inspect/inspect.h"
#include "lang/lang.h"

/*
 * The rules of one handle.  Loading them takes longer than inspecting a small program, so they are kept from one
 * request to the next; a request whose policy names another file of rules loads anew.
 */
struct rulebook {
	struct rule_set *set;          /* NULL: not loaded yet */
	char extra[SETTING_TEXT_MAX];  /* a file of the handle's owner, over the policy's; "": none */
	char loaded[SETTING_TEXT_MAX]; /* the policy's rules_file that set holds */
};

/* *ret belongs to the book until its next use. */
int rulebook_get(struct rulebook *book, const char *rules_file, const struct rule_set **ret, struct brig_error *err);
void rulebook_release(struct rulebook *book);

/*
 * With network_mode allowlist, talking to the network is what the policy is for: findings that say no more than that
 * (struct rule, network) inform, at every trust level.
 */
void inspection_allow_network(const struct rule_set *rules, struct findings *f);

/* False: nobody inspects this language. */
bool inspection_kind(const struct language *lang, const char *file_name, enum inspect_kind *ret);

#endif
