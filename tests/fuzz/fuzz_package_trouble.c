/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed installer wrote, in which the reason is looked for: what is shown is one printable line. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "packages/packages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); /* so that reading behind its end is noticed */
	char why[512];

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	for (size_t i = 0; i < ecosystem_count; i++) {
		why[0] = '\0';
		(void)packages_trouble_of_words(&ecosystems[i], copy, size, why, sizeof(why));
		for (const char *c = why; *c; c++)
			if (!isprint((unsigned char)*c))
				abort();
	}
	free(copy);
	return 0;
}
