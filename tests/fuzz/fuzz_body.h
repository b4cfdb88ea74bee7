/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests as the service's front reads them.  The first byte says how, the rest is the body.  Whatever comes, it
 * is a message that the runner understands, or a complaint that can be put into an answer.
 */
#ifndef TESTS_FUZZ_BODY_H
#define TESTS_FUZZ_BODY_H

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "server/front/front.h"

/* 0 or a negative number, as the readers of bodies. */
typedef int (*read_body_fn)(unsigned char how, const struct bytes *body, struct buf *fields, int *files,
			    struct brig_error *err);

static int fuzz_body(const unsigned char *data, size_t len, read_body_fn read_body)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF fields = BUF_INIT(MESSAGE_MAX);
	AUTO_FD files = FD_NONE;
	struct message m;
	const char *why;
	char *exact;
	int rc;

	if (len == 0)
		return 0;
	exact = malloc(len); /* so that one byte too far is seen */
	if (!exact)
		return 0;
	memcpy(exact, data + 1, len - 1);
	rc = read_body(data[0], &(struct bytes){ exact, len - 1 }, &fields, &files, &err);
	if (rc == 0 && !message_read(buf_str(&fields), fields.len, &m, &why))
		abort();
	if (rc < 0 && (err.code == 0 || err.msg[0] == '\0' || !str_is_utf8(err.msg, strlen(err.msg))))
		abort();
	free(exact);
	return 0;
}

#endif
