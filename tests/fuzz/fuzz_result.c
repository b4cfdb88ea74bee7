/* SPDX-License-Identifier: Apache-2.0 */
/* A result from its document: what is accepted gives a document that is accepted again, and is then the same. */
#include <brig/brig.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	struct brig_result *r = NULL, *again = NULL;
	char *first = NULL, *second = NULL;

	if (brig_result_from_json((const char *)data, len, &r, NULL) < 0)
		return 0;
	(void)brig_result_status(r);
	if (brig_result_json(r, &first, NULL) < 0 || brig_result_from_json(first, strlen(first), &again, NULL) < 0 ||
	    brig_result_json(again, &second, NULL) < 0 || strcmp(first, second) != 0)
		abort();
	brig_free(first);
	brig_free(second);
	brig_result_free(r);
	brig_result_free(again);
	return 0;
}
