/* SPDX-License-Identifier: Apache-2.0 */
/* What a call is answered with: results of runs and documents of questions, as words, images and data for a model. */
#ifndef MCP_SHARED_SHOW_H
#define MCP_SHARED_SHOW_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* An error of the protocol if code is not 0. */
struct answer {
	json_t *content; /* blocks of a tool's, or contents of a resource */
	json_t *structured;
	bool is_error;
	int code;
	struct brig_error why; /* for an error: a sentence for the model */
};
/* The result of a call of a tool, new; one that could not be made has the reason as its text.  Only without a code. */
json_t *answer_result(struct answer *a);
void answer_release(struct answer *a);

/* A run.  args: of its call; in_project: it may have changes that wait. */
void show_run(const json_t *args, bool in_project, const json_t *doc, struct answer *a);
/* The run of a helper of ours (reading, writing) did not end well: says why; else false. */
bool show_helper_failed(const json_t *doc, const char *what, struct answer *a);
/* Adds lines on what inspection found, and what was denied. */
void show_findings(const json_t *findings, struct buf *out);
void show_denied(const json_t *denied, struct buf *out);

/* Documents, which become part of the answer. */
void show_check(json_t *doc, struct answer *a);
void show_rule(json_t *doc, struct answer *a);
void show_policy(const json_t *args, json_t *doc, struct answer *a);
void show_languages(json_t *doc, struct answer *a);
void show_execution(json_t *doc, struct answer *a);
void show_receipt(json_t *doc, struct answer *a);

#endif
