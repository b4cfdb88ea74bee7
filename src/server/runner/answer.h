/* SPDX-License-Identifier: Apache-2.0 */
/* What the runner sends to the front: one answer per request, preceded by events if the client wants them. */
#ifndef SERVER_RUNNER_ANSWER_H
#define SERVER_RUNNER_ANSWER_H

#include <jansson.h>

#include "server/runner/service.h"

struct answer {
	uint16_t status;
	const char *content_type; /* NULL: JSON */
	const char *location;     /* NULL: none */
	const char *who;          /* name of the token, for the log; NULL: none */
	const char *execution;    /* for the log, like the verdict; NULL: none */
	const char *verdict;
	const char *unlisted; /* NULL: none */
	uint32_t retry_after; /* seconds; 0: none */
	const int *fd;        /* a descriptor to send along, which stays the caller's; NULL: none */
	int error;            /* errno; 0: none */
	uint64_t changed;     /* modification time of the body, in seconds since 1970; 0: unknown */
	const void *body;
	size_t len;
};

/* Sends the answer or a substitute for it, unless the front that sent the request has gone. */
void answer_send(struct service *s, uint32_t tag, const struct answer *a);
/*
 * An answer whose body is written piece by piece.  answer_begin_file() returns a file in memory with all fields before
 * the body, or -errno; the caller writes the len bytes of the body at *ret_before.  answer_send_file() then sends it;
 * its len is the length of the whole file.  changed: when the body was modified, in seconds since 1970; 0: unknown.
 */
int answer_begin_file(const char *content_type, const char *who, uint64_t changed, uint64_t len, uint64_t *ret_before);
void answer_send_file(struct service *s, uint32_t tag, uint16_t status, int file, uint64_t len);
/* Forwards an answer made by a child process. */
void answer_pass_on(struct service *s, uint32_t tag, const struct record *r);
/* Takes ownership of the document; NULL: out of memory. */
void answer_json(struct service *s, const struct request *req, uint16_t status, json_t *doc);
/* A document from the library; takes ownership. */
void answer_document(struct service *s, const struct request *req, char *text);
/* { "error": { "code", "message", "request_id" } }; the code follows from the status. */
void answer_error(struct service *s, const struct request *req, uint16_t status, const char *fmt, ...) PRINTF(4, 5);
void answer_retry(struct service *s, const struct request *req, uint16_t status, uint32_t retry_after, const char *fmt,
		  ...) PRINTF(5, 6);
/* The same with the errno of a failed call. */
void answer_errno(struct service *s, const struct request *req, uint16_t status, int error, const char *fmt, ...)
	PRINTF(5, 6);
/* An error of the library, with the status for its code. */
void answer_trouble(struct service *s, const struct request *req, const struct brig_error *err);

void event_send(struct service *s, uint32_t tag, enum event_kind kind, const char *text, size_t len);

#endif
