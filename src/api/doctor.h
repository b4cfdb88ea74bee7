/* SPDX-License-Identifier: Apache-2.0 */
/* What this host can enforce of the policy, row by row, with the fix for what is missing. */
#ifndef API_DOCTOR_H
#define API_DOCTOR_H

#include "base/err.h"
#include "model/protection.h"
#include "sys/cgroup.h"
#include "sys/probe.h"

struct policy;

/* What the document is made of; kept apart from it so that tests can describe hosts they do not run on. */
struct doctor_facts {
	struct probe_report host;
	bool root;
	char backend[32];
	struct brig_error backend_error; /* code 0: there is a backend and it answered */
	protection_set missing;
	protection_set may_degrade; /* allow_degraded */
	char cgroup_version[16];
	char cgroup_why[CGROUP_RESOURCE_COUNT][320]; /* "" where the resource is there */
};

/* Asks the host and the policy's backend.  Only a broken policy or want of memory makes it fail. */
int doctor_gather(const struct policy *policy, struct doctor_facts *ret, struct brig_error *err);
/*
 * The document: {"ok", "rows": [{"area", "name", "status", "detail", "fix", "protection", "required"}]}.
 * "ok" is true exactly if no row is both missing and required.
 */
int doctor_render(const struct doctor_facts *facts, char **ret, struct brig_error *err);
/* Both, one after the other. */
int doctor_json(const struct policy *policy, char **ret, struct brig_error *err);

#endif
