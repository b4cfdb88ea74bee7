/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests as the service's front reads them.  The first byte chooses the route and whether it is a form, or lines.  Whatever
 * comes, it is a message that the runner understands, or a complaint that can be put into an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "server/front/front.h"

static const enum route routes[] = { ROUTE_execute,        ROUTE_command, ROUTE_tests,           ROUTE_inspect,
				     ROUTE_verify_receipt, ROUTE_batch,   ROUTE_environment_make };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	AUTO_FD files = FD_NONE;
	struct message m;
	const char *why;
	struct bytes body;
	char *exact;
	int rc;

	if (len == 0)
		return 0;
	exact = malloc(len); /* so that one byte too far is seen */
	if (!exact)
		return 0;
	memcpy(exact, data + 1, len - 1);
	body = (struct bytes){ exact, len - 1 };
	if (data[0] & 0x80)
		rc = form_to_fields(ROUTE_execute, "multipart/form-data; boundary=x", &body, &fields, &files, &err);
	else if (data[0] & 0x40)
		rc = batch_lines_to_fields(body.data, body.len, &fields, &err);
	else
		rc = body_to_fields(routes[data[0] % ARRAY_LEN(routes)], &body, &(struct body_parts){ 0 }, &fields,
				    &files, &err);
	if (rc == 0 && !message_read(buf_str(&fields), fields.len, &m, &why))
		abort();
	if (rc < 0 && (err.code == 0 || err.msg[0] == '\0' || !str_is_utf8(err.msg, strlen(err.msg))))
		abort();
	free(exact);
	return 0;
}
