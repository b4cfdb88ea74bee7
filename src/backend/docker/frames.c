/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/frames.h"

#include <string.h>

static int fail(struct frames *f, enum frame_error error)
{
	f->error = error;
	return -1;
}

/* Parses a complete header. */
static int open_frame(struct frames *f)
{
	const unsigned char *h = f->header;

	f->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
	if (h[0] != FRAME_STDOUT && h[0] != FRAME_STDERR)
		return fail(f, FRAME_BAD_STREAM);
	if (h[1] || h[2] || h[3])
		return fail(f, FRAME_BAD_PADDING);
	if (f->left > f->max)
		return fail(f, FRAME_TOO_BIG);
	return 0;
}

int frames_next(struct frames *f, const char **data, size_t *len, enum frame_stream *ret_stream, const char **ret,
		size_t *ret_len)
{
	if (f->error)
		return -1;
	while (*len > 0) {
		size_t n;

		if (f->have == FRAME_HEADER && f->left > 0) {
			n = *len < f->left ? *len : f->left;
			*ret_stream = (enum frame_stream)f->header[0];
			*ret = *data;
			*ret_len = n;
			f->left -= (uint32_t)n;
			*data += n;
			*len -= n;
			return 1;
		}
		if (f->have == FRAME_HEADER) /* the previous frame is complete */
			f->have = 0;
		n = FRAME_HEADER - f->have;
		if (n > *len)
			n = *len;
		memcpy(f->header + f->have, *data, n);
		f->have += (unsigned)n;
		*data += n;
		*len -= n;
		if (f->have == FRAME_HEADER && open_frame(f) < 0)
			return -1;
	}
	return 0;
}

bool frames_end(struct frames *f)
{
	if (f->error)
		return false;
	if (f->have == 0 || (f->have == FRAME_HEADER && f->left == 0))
		return true;
	f->error = FRAME_CUT;
	return false;
}

const char *frames_error_text(enum frame_error error)
{
	static const char *const text[] = {
		[FRAME_OK] = "no error",
		[FRAME_BAD_STREAM] = "a frame of a stream that is neither stdout nor stderr",
		[FRAME_BAD_PADDING] = "a frame whose header is not one",
		[FRAME_TOO_BIG] = "a frame larger than engines send",
		[FRAME_CUT] = "the stream ended inside a frame",
	};

	return text[error];
}
