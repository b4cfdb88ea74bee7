/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The multiplexed stream of an attached container: frames of an 8-byte header {stream, 0, 0, 0, size (big endian)} and
 * size bytes.  A decoder that takes the bytes in pieces of any length, keeps no copy of them and does no input or
 * output.  What is neither stdout nor stderr, has a header byte set that must be zero, or is larger than the ceiling
 * is a protocol error, and stays one: nothing that follows is believed.
 */
#ifndef DOCKER_FRAMES_H
#define DOCKER_FRAMES_H

#include "base/util.h"

#define FRAME_HEADER 8
#define FRAME_MAX    (16 * MiB) /* engines send 32 KiB at most; more than this is nonsense */

enum frame_stream { FRAME_STDOUT = 1, FRAME_STDERR = 2 };

enum frame_error {
	FRAME_OK,
	FRAME_BAD_STREAM,  /* the first byte is neither 1 nor 2 */
	FRAME_BAD_PADDING, /* bytes 1 to 3 are not zero */
	FRAME_TOO_BIG,
	FRAME_CUT, /* frames_end in the middle of a frame */
};

struct frames {
	unsigned char header[FRAME_HEADER];
	unsigned have; /* header bytes so far */
	uint32_t left; /* payload bytes of the current frame still to come */
	uint32_t max;
	enum frame_error error;
};

#define FRAMES_INIT(ceiling)     \
	{                        \
		.max = (ceiling) \
	}

/*
 * Takes the first *len bytes of *data and finds the next run of payload in them: 1 and *ret, *ret_len and *ret_stream say
 * where it is (inside the caller's bytes); 0: all bytes are used up; -1: a protocol error, f->error says which.
 * Moves *data and *len on; call it until it returns 0.
 */
int frames_next(struct frames *f, const char **data, size_t *len, enum frame_stream *ret_stream, const char **ret,
		size_t *ret_len);
/* The stream has ended: true between two frames, else f->error is FRAME_CUT. */
bool frames_end(struct frames *f);
/* "a frame of an unknown stream" ... */
const char *frames_error_text(enum frame_error error);

#endif
