/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests to sessions: the first byte chooses the route. */
#include "fuzz_body.h"

static const enum route routes[] = { ROUTE_session_make,    ROUTE_session_fork,   ROUTE_snapshot_make,
				     ROUTE_session_timeout, ROUTE_context_make,   ROUTE_session_run,
				     ROUTE_process_start,   ROUTE_process_input,  ROUTE_process_signal,
				     ROUTE_process_resize,  ROUTE_session_folder, ROUTE_session_watch_make,
				     ROUTE_session_move,    ROUTE_session_link };

static int read_body(unsigned char how, const struct bytes *body, struct buf *fields, int *files,
		     struct brig_error *err)
{
	return body_to_fields(routes[how % ARRAY_LEN(routes)], body, &(struct body_parts){ 0 }, fields, files, err);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	return fuzz_body(data, len, read_body);
}
