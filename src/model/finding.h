/* SPDX-License-Identifier: Apache-2.0 */
/* One finding of the static inspection, and a bounded list of them. */
#ifndef MODEL_FINDING_H
#define MODEL_FINDING_H

#include "base/util.h"

/* CRITICAL blocks the run, HIGH warns, MEDIUM and LOW inform.  NONE: the rule is silent at that level. */
enum severity { SEVERITY_NONE, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL, SEVERITY_COUNT };
extern const char *const severity_name[SEVERITY_COUNT];

/* A piece of the inspected text, in bytes of what the caller handed in; end is behind the last one. */
struct span {
	uint32_t start, end;
};

struct finding {
	char rule[48];
	enum severity severity;
	struct span span;
	uint32_t line, column;         /* of span.start, from 1; columns count characters */
	uint32_t end_line, end_column; /* of span.end */
	char name[128];                /* what was found, resolved: "os.system" for an alias of it */
	char message[240];
	char remedy[400]; /* of one that blocks, with what would permit it */
	bool network;     /* says no more than that the code talks to the network */
};

#define FINDINGS_MAX 256

struct findings {
	struct finding *row; /* heap */
	size_t n, cap;
	size_t dropped; /* further ones that did not fit below FINDINGS_MAX */
	enum severity worst;
};

/* Copies; duplicates (same rule and span) are left out.  False: no memory. */
bool findings_add(struct findings *f, const struct finding *one);
/* By place, then severity. */
void findings_sort(struct findings *f);
void findings_release(struct findings *f);

#endif
