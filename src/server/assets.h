/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the web console, compiled into the program from web/ (tools/embed-console).
 *
 * Names below /assets/ contain a hash of the contents, so browsers may cache them indefinitely; "/" must be
 * revalidated.
 */
#ifndef SERVER_ASSETS_H
#define SERVER_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The console loads only its own files, connects only to this server, and cannot be framed.  Images produced by
 * programs are shown from blob: or data: URLs.
 */
#define CONSOLE_SECURITY_POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct asset {
	const char *path; /* request path: "/", "/assets/app-0123456789ab.js" */
	const char *type; /* Content-Type */
	const char *etag; /* with its quotes; computed before compression */
	const unsigned char *data;
	size_t len;
	bool gzip; /* data is compressed: Content-Encoding: gzip */
};

extern const struct asset asset_table[];
extern const size_t asset_count;

/* path: decoded, without query; NULL: not found. */
const struct asset *asset_find(const char *path);

#endif
