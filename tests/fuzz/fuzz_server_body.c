/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests for executions: the first byte chooses the route and whether it is a form, or lines. */
#include "fuzz_body.h"

static const enum route routes[] = { ROUTE_execute,        ROUTE_command, ROUTE_tests,           ROUTE_inspect,
				     ROUTE_verify_receipt, ROUTE_batch,   ROUTE_environment_make };

static int read_body(unsigned char how, const struct bytes *body, struct buf *fields, int *files,
		     struct brig_error *err)
{
	if (how & 0x80)
		return form_to_fields(ROUTE_execute, "multipart/form-data; boundary=x", body, fields, files, err);
	if (how & 0x40)
		return batch_lines_to_fields(body->data, body->len, fields, err);
	return body_to_fields(routes[how % ARRAY_LEN(routes)], body, &(struct body_parts){ 0 }, fields, files, err);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	return fuzz_body(data, len, read_body);
}
