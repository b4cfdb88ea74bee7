/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The multiplexed stream of an attached container: frames of an 8-byte header {stream, 0, 0, 0, size (big endian)} and
 * size bytes.  The decoder takes input in pieces of any length, keeps no copy, and does no I/O.  A frame that is
 * neither stdout nor stderr, has nonzero padding, or exceeds the ceiling is a protocol error; after that all input is
 * rejected.
 */
#ifndef DOCKER_FRAMES_H
#define DOCKER_FRAMES_H

#include "base/util.h"

#define FRAME_HEADER 8
#define FRAME_MAX    (16 * MiB) /* engines send at most 32 KiB */

enum frame_stream { FRAME_STDOUT = 1, FRAME_STDERR = 2 };

enum frame_error {
	FRAME_OK,
	FRAME_BAD_STREAM,  /* the first byte is neither 1 nor 2 */
	FRAME_BAD_PADDING, /* bytes 1 to 3 are not zero */
	FRAME_TOO_BIG,
	FRAME_CUT, /* end of file in the middle of a frame */
};

struct frames {
	unsigned char header[FRAME_HEADER];
	unsigned have; /* header bytes received */
	uint32_t left; /* payload bytes of the current frame not yet received */
	uint32_t max;
	enum frame_error error;
};

#define FRAMES_INIT(ceiling)     \
	{                        \
		.max = (ceiling) \
	}

/*
 * Finds the next payload in the first *len bytes of *data.  1: *ret, *ret_len and *ret_stream describe it (inside the
 * caller's buffer); 0: all input is consumed; -1: a protocol error, see f->error.  Advances *data and *len; call it
 * until it returns 0.
 */
int frames_next(struct frames *f, const char **data, size_t *len, enum frame_stream *ret_stream, const char **ret,
		size_t *ret_len);
/* At end of file: true between two frames, otherwise f->error is FRAME_CUT. */
bool frames_end(struct frames *f);
/* "a frame of an unknown stream" ... */
const char *frames_error_text(enum frame_error error);

#endif
