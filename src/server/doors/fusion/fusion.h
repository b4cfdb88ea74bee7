/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SandboxFusion: programs, notebooks and judgements.
 *
 *	fusion    /run_code: validation of requests, conversion of results
 *	check     members of requests: their types, and how errors are reported
 *	jupyter   /run_jupyter: cells of a notebook, run one after another in a session of their own
 *	submit    /submit: a model's answer, judged by tests in the request, as a batch
 *	extract   extraction of the code from a model's answer
 */
#ifndef SERVER_DOORS_FUSION_H
#define SERVER_DOORS_FUSION_H

#include "server/doors/door.h"

/* A language of SandboxFusion; ours: NULL if brig has no equivalent. */
struct fusion_language {
	const char *theirs, *ours;
	bool compiles;
	bool at_start; /* compiled in the same step that starts the program */
};

/* NULL: SandboxFusion has no such language. */
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

/* False: a member is missing or invalid, and the request was answered with 422. */
bool fusion_check(struct client *c, json_t *doc, const struct fusion_member *members, size_t n);
/* Answers an invalid request with 422; takes the input. */
void fusion_refuse(struct client *c, const char *type, const char *field, const char *msg, json_t *input);
/* Answers a request whose body is missing or not JSON. */
void fusion_refuse_body(struct client *c, const char *why);

/* Converts an execution result to a response of /run_code; request: names the files to fetch, may be NULL. */
json_t *fusion_response(const struct fusion_language *language, const json_t *request, const json_t *result);
/* True if the response reports a failure of the service (SandboxError). */
bool fusion_is_ours(const json_t *response);
/* The string member of that name, or "". */
const char *fusion_text(const json_t *object, const char *name);
/* The result of one stage; takes output and errors. */
json_t *fusion_stage(bool is_late, double seconds, long code, json_t *output, json_t *errors);
/* Output of the program from a result; an error note if it is not UTF-8. */
json_t *fusion_output(const json_t *result, const char *stream);

/*
 * fusion_put_limits() adds limits, given in seconds and megabytes, to the fields of an execution. fusion_files() packs
 * the files into an archive, which the caller owns; *ret_files stays as it is if there are none.
 */
void fusion_put_limits(struct buf *fields, const json_t *seconds, double usual, const json_t *megabytes);
int fusion_files(const json_t *files, int *ret_files, struct brig_error *err);
/* Adds the code; PHP code gets the opening tag if it lacks one. */
void fusion_put_code(struct buf *fields, const struct fusion_language *language, const char *code, size_t len);
/* Decodes a file's base64 content, which may contain line breaks; the caller frees *ret. -1: not base64. */
ssize_t fusion_bytes(const json_t *content, char **ret);

/* extract.c: the code in a model's answer; the caller frees it. NULL: no memory. */
char *fusion_extract(const char *completion, const char *language);

#endif
