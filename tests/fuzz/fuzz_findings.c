/* SPDX-License-Identifier: Apache-2.0 */
/* The message of the inspection's worker: the one blob that comes back from the process with the parsers. */
#include <string.h>

#include "inspect/wire.h"

#define TEXT_LEN 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct findings f = { 0 };
	struct wire_header h;
	bool no_memory;

	if (!wire_decode(data, size, TEXT_LEN, &h, &f, &no_memory))
		return 0;
	/* What was accepted can be printed and used as an index without another look. */
	for (size_t i = 0; i < f.n; i++)
		if (f.row[i].severity >= SEVERITY_COUNT || f.row[i].span.end > TEXT_LEN ||
		    strlen(f.row[i].message) >= sizeof(f.row[i].message) ||
		    strlen(f.row[i].rule) >= sizeof(f.row[i].rule))
			abort();
	findings_release(&f);
	return 0;
}
