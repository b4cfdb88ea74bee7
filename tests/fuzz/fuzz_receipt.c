/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_receipt - hostile receipts.
 *
 * What must hold: nothing crashes, every answer is JSON that says why, and nothing but the one true receipt is valid under
 * a key that the attacker does not have.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void check(const uint8_t *data, size_t size, const char *key)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	json_t *doc;
	int rc = receipt_verify((const char *)data, size, key, &text, &err);

	if (rc < 0) {
		must(err.msg[0] != '\0', "a failure says why");
		return;
	}
	doc = json_loads(text, 0, NULL);
	must(doc != NULL, "the answer is JSON");
	must(json_is_true(json_object_get(doc, "ok")) == (rc == 0), "the answer and its number agree");
	if (rc == 1)
		must(json_is_string(json_object_get(doc, "problem")), "a receipt that does not hold has a reason");
	must(rc == 1 || !key, "a receipt holds under a key that nobody has");
	json_decref(doc);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check(data, size, NULL);
	check(data, size, "0000000000000000000000000000000000000000000000000000000000000001");
	return 0;
}
