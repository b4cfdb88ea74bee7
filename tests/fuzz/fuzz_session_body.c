/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of what is asked of sessions, as the service's front reads them.  The first byte chooses the route.  Whatever comes, it is a message that
 * the runner understands, or a complaint that can be put into an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "server/front/front.h"

static const enum route routes[] = { ROUTE_session_make,    ROUTE_session_fork,   ROUTE_snapshot_make,
				     ROUTE_session_timeout, ROUTE_context_make,   ROUTE_session_run,
				     ROUTE_process_start,   ROUTE_process_input,  ROUTE_process_signal,
				     ROUTE_process_resize,  ROUTE_session_folder, ROUTE_session_watch_make,
				     ROUTE_session_move,    ROUTE_session_link };

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
	rc = body_to_fields(routes[data[0] % ARRAY_LEN(routes)], &body, &(struct body_parts){ 0 }, &fields, &files,
			    &err);
	if (rc == 0 && !message_read(buf_str(&fields), fields.len, &m, &why))
		abort();
	if (rc < 0 && (err.code == 0 || err.msg[0] == '\0' || !str_is_utf8(err.msg, strlen(err.msg))))
		abort();
	free(exact);
	return 0;
}
