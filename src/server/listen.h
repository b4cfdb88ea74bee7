/* SPDX-License-Identifier: Apache-2.0 */
/* Where the service listens: addresses that it was told, a unix socket, or what systemd has opened for it. */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include "server/serve.h"

struct listeners {
	struct listener item[LISTENERS_MAX];
	size_t n;
	const char *unix_path, *socket_path; /* which were made, and go when all is over; NULL: none */
	bool made_folder;                    /* of socket_path, likewise */
};

/* 0 or -code; what was opened before is the caller's to close in either case. */
int listeners_open(struct listeners *l, const struct serve_options *o, struct brig_error *err);
void listeners_close(struct listeners *l);

#endif
