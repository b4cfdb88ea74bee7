/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - event streams (text/event-stream), one chunk per event
 *
 * A client that does not read loses samples first, since later ones replace them; then, if nothing can be sent for the
 * write deadline or too much is unsent, the connection.  An idle stream gets ": ping" comments.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "server/doors/door.h"

void stream_rest(struct client *c)
{
	deadline_set(c, c->req->call && c->req->call->pings_soon ? DEADLINE_SOON : DEADLINE_PING);
}

bool stream_put(struct client *c, const struct iovec *parts, size_t n)
{
	struct iovec pieces[STREAM_PARTS_MAX + 2];
	size_t len = 0, k = 0;
	char size[24], line_end[] = "\r\n";

	for (size_t i = 0; i < n; i++)
		len += parts[i].iov_len;
	(void)snprintf(size, sizeof(size), "%zx\r\n", len);
	if (!c->req->version_1_0)
		pieces[k++] = (struct iovec){ size, strlen(size) };
	for (size_t i = 0; i < n; i++)
		pieces[k++] = parts[i];
	if (!c->req->version_1_0)
		pieces[k++] = (struct iovec){ line_end, strlen(line_end) };
	if (!client_put(c, pieces, k))
		return false;
	c->req->sent += len;
	/* The write deadline starts when data becomes unsent; more data does not extend it. */
	if (client_pending(c) > 0 && c->deadline_kind != DEADLINE_WRITE)
		deadline_set(c, DEADLINE_WRITE);
	else if (client_pending(c) == 0)
		stream_rest(c);
	front_watch(c->front, &c->source, client_pending(c) ? EPOLLRDHUP | EPOLLOUT : EPOLLRDHUP);
	return true;
}

/* HTTP/1.0 has no chunks: the stream ends with the connection. */
bool stream_begin(struct client *c, const char *content_type)
{
	struct request *req = c->req;
	char date[32], head[512];
	struct iovec piece = { head, 0 };

	c->is_last |= !req->keep_alive || req->version_1_0;
	reply_date(date);
	(void)snprintf(head, sizeof(head),
		       "HTTP/1.1 200 OK\r\nDate: %s\r\nX-Request-Id: %s\r\nContent-Type: %s\r\n"
		       "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s%s%s%s%s\r\n",
		       date, req->id, content_type, req->version_1_0 ? "" : "Transfer-Encoding: chunked\r\n",
		       c->is_last ? "Connection: close\r\n" : "", req->trace[0] ? "traceparent: " : "", req->trace,
		       req->trace[0] ? "\r\n" : "");
	piece.iov_len = strlen(head);
	req->status = 200;
	req->was_streaming = true;
	c->state = CLIENT_STREAM;
	return client_put(c, &piece, 1);
}

void stream_event(struct client *c, const struct record *r)
{
	AUTO_FREE char *data = NULL;
	char name[48], end[] = "\n\n";
	struct iovec parts[3];

	if (r->status >= EVENT_KINDS || !c->req->wants_stream)
		return;
	if (!c->req->was_streaming && !stream_begin(c, "text/event-stream"))
		return;
	if (r->status == EVENT_sample && client_pending(c) > FRONT_STREAM_FULL)
		return;
	if (client_pending(c) + r->len > FRONT_STREAM_MAX && r->status < EVENT_verdict) {
		client_close(c, true);
		return;
	}
	data = malloc(r->len + 1);
	if (!data) {
		client_close(c, true);
		return;
	}
	memcpy(data, r->data, r->len);
	/* JSON documents have newlines only between tokens; within strings they are escaped. */
	for (size_t i = 0; i < r->len; i++)
		if (data[i] == '\n' || data[i] == '\r')
			data[i] = ' ';
	(void)snprintf(name, sizeof(name), "event: %s\ndata: ", event_name[r->status]);
	parts[0] = (struct iovec){ name, strlen(name) };
	parts[1] = (struct iovec){ data, r->len };
	parts[2] = (struct iovec){ end, strlen(end) };
	(void)stream_put(c, parts, ARRAY_LEN(parts));
}

void stream_ping(struct client *c)
{
	char ping[] = ": ping\n\n";

	if (c->req->call) { /* its protocol may have no pings */
		stream_rest(c);
		if (c->req->call->on_quiet)
			c->req->call->on_quiet(c);
		return;
	}
	(void)stream_put(c, &(struct iovec){ ping, strlen(ping) }, 1);
}

void stream_end(struct client *c)
{
	char end[] = "0\r\n\r\n";

	if (c->req->version_1_0 || client_put(c, &(struct iovec){ end, strlen(end) }, 1))
		client_finish(c);
}
