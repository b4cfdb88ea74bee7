/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a confined worker: a header, then its findings in their memory layout (both ends are one program). The
 * receiver checks everything before use: length, counts, ranges, terminators and characters.
 *
 * The request to a pre-forked worker is one flat message (wire_ask.c).
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
	int32_t sys;      /* errno for WIRE_NOT_CONFINED */
	uint32_t n;       /* number of findings that follow; only with WIRE_DONE */
	uint32_t worst;   /* includes dropped findings */
	uint32_t dropped; /* at most UINT32_MAX */
};

/*
 * True: the bytes are one valid message about a text of text_len bytes; *ret has its findings (WIRE_DONE), allocated.
 * False: invalid, or no memory (*ret_no_memory).
 */
bool wire_decode(const void *bytes, size_t len, size_t text_len, struct wire_header *ret_header, struct findings *ret,
		 bool *ret_no_memory);
/* True if the answer that begins with these bytes is as long as its header says. */
bool wire_is_whole(const void *bytes, size_t len);

/* fits into a socket's buffer at once; inspecting a longer text takes longer than a fork anyway */
#define WIRE_ASK_MAX  (64 * KiB)
#define WIRE_ASK_HEAD (11 * sizeof(uint32_t))

/* A decoded request.  It points into the bytes that it was read from, and to itself. */
struct wire_ask {
	struct inspect_request req;
	struct setting_list allowed;
	const char **asked;
};

/* Appends the request to out; false: longer than WIRE_ASK_MAX, or no memory. */
bool wire_ask_encode(const struct inspect_request *req, struct buf *out);
/* The length of the message that begins with these WIRE_ASK_HEAD bytes; 0: invalid. */
size_t wire_ask_size(const void *head);
/* True: the bytes are one valid request.  False: invalid, or no memory.  Call wire_ask_release() in both cases. */
bool wire_ask_decode(const void *bytes, size_t len, struct wire_ask *ret);
void wire_ask_release(struct wire_ask *ask);

#endif
