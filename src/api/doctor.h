/* SPDX-License-Identifier: Apache-2.0 */
/* What this host can enforce of the policy, row by row, with fixes for what is missing. */
#ifndef API_DOCTOR_H
#define API_DOCTOR_H

#include "base/err.h"
#include "model/protection.h"
#include "model/settings.h"
#include "sys/cgroup.h"
#include "sys/probe.h"

struct policy;

#define DOCTOR_ROWS_MAX 16

/* A row that does not belong to a protection: a backend, or something about an engine. */
struct doctor_row {
	const char *area;
	char name[32];
	enum probe_status status;
	char detail[640];
	const char *fix;
};

/* The input of the document, separate from it so that tests can describe other hosts. */
struct doctor_facts {
	struct probe_report host;
	bool root;
	char backend[32];
	struct brig_error backend_error; /* code 0: the backend exists and answered */
	protection_set missing;
	protection_set may_degrade; /* allow_degraded, and what the backend never provides */
	struct doctor_row extra[DOCTOR_ROWS_MAX];
	size_t n_extra;
	char cgroup_version[16];
	char cgroup_why[CGROUP_RESOURCE_COUNT][320]; /* "" if the resource is available */
};

/* doctor_backends.c: which backend runs would use, and what each can enforce. f->host has the probes. */
void doctor_gather_backends(const struct settings *set, enum trust trust, struct doctor_facts *f);

/* Asks the host and the policy's backend. Fails only for an invalid policy or lack of memory. */
int doctor_gather(const struct policy *policy, struct doctor_facts *ret, struct brig_error *err);
/*
 * The document: {"ok", "rows": [{"area", "name", "status", "detail", "fix", "protection", "required"}]}.
 * "ok" is true exactly if no row is both missing and required.
 */
int doctor_render(const struct doctor_facts *facts, char **ret, struct brig_error *err);
/* Both in turn, plus the contents of the state folder (a path, or NULL for the default). */
int doctor_json(const struct policy *policy, const char *state, char **ret, struct brig_error *err);

#endif
