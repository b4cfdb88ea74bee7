/* SPDX-License-Identifier: Apache-2.0 */
/* What `brig check` found, for people (text), for programs (JSON, one document per line) and for tools (SARIF). */
#ifndef CLI_CHECK_OUTPUT_H
#define CLI_CHECK_OUTPUT_H

#include "cli/document.h"

/* One inspected text. */
struct checked {
	const char *name; /* as the user called it, "<stdin>", "<command>" ... */
	const char *text;
	size_t len;
	json_t *doc; /* of brig_check() */
};

struct check_counts {
	size_t files, not_inspected, critical, high, lesser;
};

struct check_output {
	const struct check_format *format;
	bool has_color;
	char level[16]; /* of inspection; "": not known */
	struct check_counts counts;
	struct buf out;
	json_t *results, *rules; /* of SARIF */
};

/* NULL: there is no such format. */
const struct check_format *check_format_find(const char *name);

void check_output_init(struct check_output *o, const struct check_format *format, bool has_color);
/* Counts and shows one text. */
void check_output_add(struct check_output *o, const struct checked *c);
/* One finding for people, with its place in the text if that is there, appended to o->out. */
void check_output_finding(struct check_output *o, const struct checked *c, const json_t *f);
/* Writes what is left; rules is the document of brig_rules_json().  The exit status, ok_status unless that fails. */
int check_output_end(struct check_output *o, const char *rules, int ok_status);
void check_output_release(struct check_output *o);

/* ---- sarif.c ---- */
void sarif_add(struct check_output *o, const struct checked *c);
void sarif_end(struct check_output *o, const char *rules);

#endif
