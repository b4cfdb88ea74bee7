/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host lets brig do.  Versions are not compared: each feature is tried, in a child process that disappears
 * with everything it created.  Nothing here needs a privilege, changes this process or leaves a trace; the whole takes
 * a few milliseconds.
 */
#ifndef SYS_PROBE_H
#define SYS_PROBE_H

#include "base/util.h"

enum probe_id {
#define PROBE(name, area, fix) PROBE_##name,
#include "sys/probes.def"
	PROBE_COUNT
};

struct probe_info {
	const char *name, *area, *fix;
};
extern const struct probe_info probe_info[PROBE_COUNT];

enum probe_status {
	PROBE_MISSING, /* also what an unanswered probe is */
	PROBE_OK,
	PROBE_INFO, /* worth knowing, without consequences */
};

struct probe {
	enum probe_status status;
	int sys; /* errno of what failed, or 0 */
	char detail[240];
};

struct probe_report {
	struct probe row[PROBE_COUNT];
};

/* Asks everything. */
void probe_host(struct probe_report *ret);
/* The part that is tried in a child: namespaces, mounts, confinement. */
void probe_cell(struct probe_report *ret);

void probe_set(struct probe_report *r, enum probe_id id, enum probe_status status, int sys, const char *fmt, ...)
	PRINTF(5, 6);

#endif
