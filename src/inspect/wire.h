/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the confined worker sends: a header, then its findings as they are in memory (both ends are one program).
 * The receiver believes nothing: length, counts, ranges, terminators and characters are checked before use.
 */
#ifndef INSPECT_WIRE_H
#define INSPECT_WIRE_H

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

#endif
