/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - answers of the front itself: health check, description of the API, console */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/assets.h"
#include "server/front/front.h"

extern const unsigned char openapi_bytes[];
extern const size_t openapi_size;
extern const char openapi_hash[];

/* Content that is part of the program; etag includes its quotes. */
static void send_kept(struct client *c, const char *type, struct bytes content, const char *etag, const char *more)
{
	struct reply a = { .status = 200,
			   .content_type = type,
			   .body = content.data,
			   .len = content.len,
			   .policy = CONSOLE_SECURITY_POLICY,
			   .may_be_kept = true };
	char head[512];

	(void)snprintf(head, sizeof(head), "ETag: %s\r\n%s", etag, more);
	a.more = head;
	if (str_eq(c->req->etag, etag)) {
		a.status = 304;
		a.len = 0;
	}
	reply_send(c, &a);
}

static void send_asset(struct client *c, const char *path)
{
	const struct asset *asset = asset_find(path);
	char more[256];

	if (!asset) {
		reply_error(c, 404, "there is no such part of the console");
		return;
	}
	if (asset->gzip && !c->req->takes_gzip) {
		reply_error(c, 406, "the console is kept compressed: send Accept-Encoding: gzip");
		return;
	}
	(void)snprintf(more, sizeof(more), "Cache-Control: %s\r\n%s",
		       str_eq(path, "/") ? "no-cache" : "public, max-age=31536000, immutable",
		       asset->gzip ? "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n" : "");
	send_kept(c, asset->type, (struct bytes){ (const char *)asset->data, asset->len }, asset->etag, more);
}

static void send_openapi(struct client *c)
{
	char etag[72];

	(void)snprintf(etag, sizeof(etag), "\"%.64s\"", openapi_hash);
	send_kept(c, "application/json", (struct bytes){ (const char *)openapi_bytes, openapi_size }, etag,
		  "Cache-Control: no-cache\r\n");
}

void page_answer(struct client *c)
{
	static const char ok[] = "{\"status\":\"ok\"}\n";
	char path[4200];

	switch (c->req->route) {
	case ROUTE_healthz:
		reply_send(c, &(struct reply){ .status = 200, .body = ok, .len = strlen(ok) });
		return;
	case ROUTE_openapi:
		send_openapi(c);
		return;
	case ROUTE_page:
		send_asset(c, "/");
		return;
	default:
		(void)snprintf(path, sizeof(path), "/assets/%s", c->req->path);
		send_asset(c, path);
	}
}
