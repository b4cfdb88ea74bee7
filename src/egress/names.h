/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the cell's own loopback that stand for names of the whitelist: a connection to one of them is meant for
 * that name, on the port of the listener.
 */
#ifndef EGRESS_NAMES_H
#define EGRESS_NAMES_H

#include "egress/rules.h"
#include "model/plan.h"

#define NAMES_FIRST 0x7f420001u /* 127.66.0.1: not in common use */
#define NAMES_BELOW 64          /* addresses for names below wildcards: they are given away as they are asked for */
#define NAMES_MAX   (SETTING_LIST_MAX + NAMES_BELOW)

struct names {
	const struct rule_list *rules;
	size_t n;                            /* addresses */
	char name[NAMES_MAX][HOST_TEXT_MAX]; /* ""; none has been requested yet */
};

/* Gives each name of the list its address, and says which sockets the cell needs: the proxy's, the lookups' and theirs.
 * What does not fit has none, and is reached through the proxy only. */
void names_begin(struct names *n, const struct rule_list *rules, struct plan_egress *ret);
bool names_is_own(const char *name); /* localhost and what is below it: the cell's own, whatever is listed */
bool names_is_listed(const struct names *n, const struct host *host);
/* The address of a listed name, in host order; 0: there is none left. */
uint32_t names_address(struct names *n, const struct host *host);
/* The name that an address stands for; NULL: none. */
const char *names_at(const struct names *n, uint32_t address);

#endif
