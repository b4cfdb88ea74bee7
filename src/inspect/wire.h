/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the confined worker sends: a header, then its findings as they are in memory (both ends are one program). The
 * receiver trusts nothing: length, counts, ranges, terminators and characters are checked before use.
 *
 * What a worker that was there first is sent: the request, flat (wire_ask.c).
 */
#ifndef INSPECT_WIRE_H
#define INSPECT_WIRE_H

#include "base/buf.h"
#include "inspect/inspect.h"
#include "model/finding.h"

#define WIRE_MAGIC 0x464e4447u
#define WIRE_MAX   (sizeof(struct wire_header) + FINDINGS_MAX * sizeof(struct finding))

enum wire_status { WIRE_DONE, WIRE_NO_MEMORY, WIRE_NOT_CONFINED, WIRE_STATUS_COUNT };

struct wire_header {
	uint32_t magic;
	uint32_t status;
	int32_t sys;      /* errno of WIRE_NOT_CONFINED */
	uint32_t n;       /* findings that follow; only with WIRE_DONE */
	uint32_t worst;   /* also of those that were dropped */
	uint32_t dropped; /* at most UINT32_MAX */
};

/* True: bytes are one sound message about a text of text_len bytes; *ret has its findings (WIRE_DONE), heap.
 * False: not sound, or no memory (*ret_no_memory). */
bool wire_decode(const void *bytes, size_t len, size_t text_len, struct wire_header *ret_header, struct findings *ret,
		 bool *ret_no_memory);
/* Whether the answer that begins with these bytes has all that its header announces. */
bool wire_is_whole(const void *bytes, size_t len);

#define WIRE_ASK_MAX  (64 * KiB) /* goes into a socket's buffer at once; who asks for more waits longer anyway */
#define WIRE_ASK_HEAD (11 * sizeof(uint32_t))

/* A request taken apart.  It points into the bytes that it was read from, and to itself. */
struct wire_ask {
	struct inspect_request req;
	struct setting_list allowed;
	const char **asked;
};

/* Appends the request to out; false: longer than WIRE_ASK_MAX, or no memory. */
bool wire_ask_encode(const struct inspect_request *req, struct buf *out);
/* How long the message is that begins with these WIRE_ASK_HEAD bytes; 0: it is none. */
size_t wire_ask_size(const void *head);
/* True: the bytes are one sound request.  False: not sound, or no memory.  wire_ask_release() in both cases. */
bool wire_ask_decode(const void *bytes, size_t len, struct wire_ask *ret);
void wire_ask_release(struct wire_ask *ask);

#endif
