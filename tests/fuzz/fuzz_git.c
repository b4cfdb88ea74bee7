/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a repository that a program wrote: the first byte says which, and half of the rest is what the project has. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/git.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum git_part parts[] = { GIT_INDEX, GIT_PACKED, GIT_HEAD, GIT_REF };
	enum git_part part;
	size_t was_len;
	char *text, *was;

	if (size < 1)
		return 0;
	part = parts[data[0] % ARRAY_LEN(parts)];
	was_len = part == GIT_PACKED ? (size - 1) / 2 : 0;
	/* Each in a block of its own, so that reading behind its end is seen. */
	was = malloc(was_len + 1);
	text = malloc(size - was_len);
	if (was && text) {
		memcpy(was, data + 1, was_len);
		memcpy(text, data + 1 + was_len, size - 1 - was_len);
		(void)git_part_sound(part, text, size - 1 - was_len, was, was_len, data[0] & 0x80);
	}
	free(was);
	free(text);
	return 0;
}
