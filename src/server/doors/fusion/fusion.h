/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SandboxFusion: programs, notebooks and judgements.
 *
 *	fusion		/run_code: what a result becomes
 *	check		members of requests: what they must be, and how errors are told
 *	jupyter		/run_jupyter: cells of a notebook, one after another in a session of their own
 *	submit		/submit: a model's answer judged by tests that came with it, as a batch
 *	extract		the code in a model's answer
 */
#ifndef SERVER_DOORS_FUSION_H
#define SERVER_DOORS_FUSION_H

#include "server/doors/door.h"

/* Their languages; ours: NULL: there is none here. */
struct fusion_language {
	const char *theirs, *ours;
	bool compiles;
	bool at_start; /* as the program starts, in one step with it */
};

/* NULL: they have no such language. */
const struct fusion_language *fusion_language_of(const char *name);

/* A member of a request. */
struct fusion_member {
	const char *name;
	bool must;
	bool (*is)(const json_t *value);
	const char *type, *msg;
};
bool fusion_is_text(const json_t *v);
bool fusion_is_maybe_text(const json_t *v);
bool fusion_is_number(const json_t *v);
bool fusion_is_whole(const json_t *v);
bool fusion_is_maybe_number(const json_t *v);
bool fusion_is_files(const json_t *v);
bool fusion_is_list(const json_t *v);
bool fusion_is_object(const json_t *v);

/* False: members are not as they must be, and that was answered with 422. */
bool fusion_check(struct client *c, json_t *doc, const struct fusion_member *members, size_t n);
/* The answer of a request that is none; takes the input. */
void fusion_refuse(struct client *c, const char *type, const char *field, const char *msg, json_t *input);
/* The answer to a body that is no JSON, or none at all. */
void fusion_refuse_body(struct client *c, const char *why);

/* What an execution became, as /run_code answers; request: with names of files that are wanted of it, may be NULL. */
json_t *fusion_response(const struct fusion_language *language, const json_t *request, const json_t *result);
/* Whether that is the service's fault. */
bool fusion_is_ours(const json_t *response);
/* A document of text that is or is not there. */
const char *fusion_text(const json_t *object, const char *name);
/* One stage of it; takes output and errors. */
json_t *fusion_stage(bool is_late, double seconds, long code, json_t *output, json_t *errors);
/* Of a result: what the program wrote, and what was found in it instead. */
json_t *fusion_output(const json_t *result, const char *stream);

/* Fields of an execution: limits in seconds and megabytes, files as an archive (the caller's; FD_NONE: none, or *ret_why says why). */
void fusion_put_limits(struct buf *fields, const json_t *seconds, double usual, const json_t *megabytes);
int fusion_files(const json_t *files, const char **ret_why);
/* The code; of PHP with the tag that it may lack. */
void fusion_put_code(struct buf *fields, const struct fusion_language *language, const char *code, size_t len);
/* The bytes of a file in base64, which may have line ends in it; *ret is for free().  -1: it is none. */
ssize_t fusion_bytes(const json_t *content, char **ret);

/* extract.c: the code of an answer; for free(), NULL: no memory. */
char *fusion_extract(const char *completion, const char *language);

#endif
