/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the console, which are part of the program: made of web/ at build time (tools/embed-console).
 *
 * Names below /assets/ change with their contents, so they may be kept by browsers for ever; "/" may not.
 */
#ifndef SERVER_ASSETS_H
#define SERVER_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

/* The console runs nothing but its own files, asks nobody but this server, and is shown in no frame.  Pictures that
 * programs made come as blob: or data:. */
#define CONSOLE_SECURITY_POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct asset {
	const char *path; /* of the request: "/", "/assets/app-0123456789ab.js" */
	const char *type; /* Content-Type */
	const char *etag; /* with its quotes; of the contents before compression */
	const unsigned char *data;
	size_t len;
	bool gzip; /* data is compressed: Content-Encoding: gzip */
};

extern const struct asset asset_table[];
extern const size_t asset_count;

/* path: decoded, without query; NULL: there is no such file. */
const struct asset *asset_find(const char *path);

#endif
