/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `brig check` for people (text), programs (JSON, one document per line) and tools (SARIF). */
#ifndef CLI_CHECK_OUTPUT_H
#define CLI_CHECK_OUTPUT_H

#include "cli/document.h"

/* One inspected text. */
struct checked {
	const char *name; /* as given by the user, or "<stdin>", "<command>" ... */
	const char *text;
	size_t len;
	json_t *doc; /* from brig_check() */
};

struct check_counts {
	size_t files, not_inspected, critical, high, lesser;
};

struct check_output {
	const struct check_format *format;
	bool has_color;
	char level[16]; /* of inspection; "": unknown */
	struct check_counts counts;
	struct buf out;
	json_t *results, *rules; /* for SARIF */
};

/* NULL: no such format. */
const struct check_format *check_format_find(const char *name);

void check_output_init(struct check_output *o, const struct check_format *format, bool has_color);
/* Counts and shows one text. */
void check_output_add(struct check_output *o, const struct checked *c);
/* Appends one finding as text to o->out, with the code if that is available. */
void check_output_finding(struct check_output *o, const struct checked *c, const json_t *f);
/* Writes the rest; rules: from brig_rules_json().  Returns the exit status, ok_status unless writing failed. */
int check_output_end(struct check_output *o, const char *rules, int ok_status);
void check_output_release(struct check_output *o);

/* ---- sarif.c ---- */
void sarif_add(struct check_output *o, const struct checked *c);
void sarif_end(struct check_output *o, const char *rules);

#endif
