/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One inspector, in this process.  The first byte is the trust level and the strictness of commands, the rest the text.
 * What comes out must be a sound message: places inside the text, terminated words, a worst severity that is right.
 */
#include <string.h>

#include "inspect/inspect.h"
#include "inspect/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_findings(const struct findings *f, size_t text_len)
{
	static char message[WIRE_MAX];
	struct wire_header h = {
		.magic = WIRE_MAGIC, .n = (uint32_t)f->n, .worst = f->worst, .dropped = (uint32_t)f->dropped
	};
	struct findings again = { 0 };
	bool no_memory;

	memcpy(message, &h, sizeof(h));
	if (f->n)
		memcpy(message + sizeof(h), f->row, f->n * sizeof(*f->row));
	if (!wire_decode(message, sizeof(h) + f->n * sizeof(*f->row), text_len, &h, &again, &no_memory))
		abort();
	findings_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rule_set *rules;
	struct inspect_request req = { .kind = FUZZ_KIND };
	struct findings found = { 0 };

	if (size == 0)
		return 0;
	if (!rules && rules_builtin(&rules, NULL) < 0)
		abort();
	req.level = data[0] % INSPECTION_COUNT;
	req.has_input = data[0] & 0x40;
	req.strict_commands = data[0] & 0x80;
	req.text = (const char *)data + 1;
	req.len = size - 1;
	if (inspect_text(rules, &req, &found, NULL) < 0)
		abort();
	check_findings(&found, req.len);
	findings_release(&found);
	return 0;
}
