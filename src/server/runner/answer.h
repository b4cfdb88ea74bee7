/* SPDX-License-Identifier: Apache-2.0 */
/* What goes back to the front: one answer for each request, events before it where they are wanted. */
#ifndef SERVER_RUNNER_ANSWER_H
#define SERVER_RUNNER_ANSWER_H

#include <jansson.h>

#include "server/runner/service.h"

struct answer {
	uint16_t status;
	const char *content_type; /* NULL: JSON */
	const char *location;     /* NULL: none */
	const char *who;          /* NULL: nobody in particular */
	const char *execution;    /* that it is about, for the log, as is the verdict; NULL: none */
	const char *verdict;
	const char *unlisted; /* NULL: none */
	uint32_t retry_after; /* seconds; 0: none */
	const int *fd;        /* a descriptor beside it, which stays the caller's; NULL: none */
	int error;            /* errno; 0: none */
	const void *body;
	size_t len;
};

/* Whatever happens, the tag is answered, or the front that asked with it has gone. */
void answer_send(struct service *s, uint32_t tag, const struct answer *a);
/*
 * An answer whose body is written by and by: a file in memory that has everything but that, and where its len bytes are to be put;
 * -errno.  When they are there it is sent, with its whole length.
 */
int answer_begin_file(const char *content_type, const char *who, uint64_t len, uint64_t *ret_before);
void answer_send_file(struct service *s, uint32_t tag, uint16_t status, int file, uint64_t len);
/* An answer that another process of ours has made. */
void answer_pass_on(struct service *s, uint32_t tag, const struct record *r);
/* Takes the document, which may be NULL for want of memory. */
void answer_json(struct service *s, const struct request *req, uint16_t status, json_t *doc);
/* A document of the library's, which is taken. */
void answer_document(struct service *s, const struct request *req, char *text);
/* { "error": { "code", "message", "request_id" } }; the code goes with the status. */
void answer_error(struct service *s, const struct request *req, uint16_t status, const char *fmt, ...) PRINTF(4, 5);
void answer_retry(struct service *s, const struct request *req, uint16_t status, uint32_t retry_after, const char *fmt,
		  ...) PRINTF(5, 6);
/* Likewise, with what a call failed with. */
void answer_errno(struct service *s, const struct request *req, uint16_t status, int error, const char *fmt, ...)
	PRINTF(5, 6);
/* What the library refused, with the status that goes with its code. */
void answer_trouble(struct service *s, const struct request *req, const struct brig_error *err);

void event_send(struct service *s, uint32_t tag, enum event_kind kind, const char *text, size_t len);

#endif
