/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets of the service: configured addresses, unix sockets, and sockets passed by systemd. */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include "server/serve.h"

struct listeners {
	struct listener item[LISTENERS_MAX];
	size_t n;
	/* unix sockets that this process created and removes in the end; NULL: none */
	const char *unix_path, *socket_path;
	bool made_folder; /* that of socket_path; removed in the end */
};

/* 0 or -code; in both cases the caller closes what was opened. */
int listeners_open(struct listeners *l, const struct serve_options *o, struct brig_error *err);
void listeners_close(struct listeners *l);

#endif
