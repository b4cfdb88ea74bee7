/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a program's standard error, in which a missing package is looked for: what is shown is one printable line. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "executor/hint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); /* so that reading behind its end is noticed */
	char hint[512];

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	hint_find(copy, size, size % 2 ? HINT_HOST : HINT_IMAGE, hint, sizeof(hint));
	for (const char *c = hint; *c; c++)
		if (!isprint((unsigned char)*c))
			abort();
	free(copy);
	return 0;
}
