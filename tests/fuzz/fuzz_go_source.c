/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of Go tests: files of a project that are scanned for the tests they declare. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "testing/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct go_tests g = { .n = 0 };

	(void)go_source_read(&g, "a/x_test.go", (const char *)data, size);
	go_source_sort(&g);
	for (size_t i = 0; i < g.n; i++)
		if (strcmp(g.row[i].folder, "a") != 0 || !go_source_find(&g, "a", g.row[i].name))
			abort();
	go_source_release(&g);
	return 0;
}
