/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of an attached container.  Whole or byte by byte, the same comes out; what comes out was in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/docker/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	size_t bytes[3];
	uint32_t sum;
	enum frame_error error;
};

static void decode(const char *data, size_t size, size_t piece, uint32_t max, struct seen *ret)
{
	struct frames f = FRAMES_INIT(max);

	for (size_t at = 0; at < size; at += piece) {
		const char *p = data + at, *part;
		size_t len = piece < size - at ? piece : size - at, n;
		enum frame_stream stream;
		int rc;

		while ((rc = frames_next(&f, &p, &len, &stream, &part, &n)) == 1) {
			if ((stream != FRAME_STDOUT && stream != FRAME_STDERR) || n == 0 || part < data ||
			    part + n > data + size)
				abort();
			ret->bytes[stream] += n;
			for (size_t i = 0; i < n; i++)
				ret->sum = ret->sum * 31 + (uint32_t)(unsigned char)part[i] + (uint32_t)stream;
		}
		if (rc == 0 && len != 0)
			abort();
		if (rc < 0)
			break;
	}
	if (frames_end(&f) != (f.error == FRAME_OK))
		abort();
	ret->error = f.error;
	if (!frames_error_text(f.error)[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { { 0 }, 0, FRAME_OK }, single = { { 0 }, 0, FRAME_OK };

	decode((const char *)data, size, size ? size : 1, 4096, &whole);
	decode((const char *)data, size, 1, 4096, &single);
	if (whole.sum != single.sum || whole.error != single.error ||
	    memcmp(whole.bytes, single.bytes, sizeof(whole.bytes)))
		abort();
	return 0;
}
