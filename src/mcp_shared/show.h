/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to calls: results of runs and other documents as text, images and data for a model. */
#ifndef MCP_SHARED_SHOW_H
#define MCP_SHARED_SHOW_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* A protocol error if code is not 0. */
struct answer {
	json_t *content; /* content blocks of a tool, or contents of a resource */
	json_t *structured;
	bool is_error;
	int code;
	struct brig_error why; /* of an error: a message for the model */
};
/*
 * The result of a tool call (a new reference); a call that could not be made has the reason as its text. Only if code
 * is 0.
 */
json_t *answer_result(struct answer *a);
void answer_release(struct answer *a);

/* Shows a run. args: of the call; in_project: the run may have left pending changes. */
void show_run(const json_t *args, bool in_project, const json_t *doc, struct answer *a);
/* True if a helper run of this server (reading, writing) failed; the answer then contains the reason. */
bool show_helper_failed(const json_t *doc, const char *what, struct answer *a);
/* Adds lines about findings of the inspection and about denied operations. */
void show_findings(const json_t *findings, struct buf *out);
void show_denied(const json_t *denied, struct buf *out);

/* Show a document; it may become part of the answer. */
void show_check(json_t *doc, struct answer *a);
void show_rule(json_t *doc, struct answer *a);
void show_policy(const json_t *args, json_t *doc, struct answer *a);
void show_languages(json_t *doc, struct answer *a);
void show_execution(json_t *doc, struct answer *a);
void show_receipt(json_t *doc, struct answer *a);

#endif
