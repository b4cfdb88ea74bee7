/* SPDX-License-Identifier: Apache-2.0 */
#include "server/front/websocket.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "base/library.h"
#include "base/sha1.h"
#include "base/str.h"
#include "server/doors/door.h"

#define KEY_LEN 24 /* base64 of 16 bytes */

/* Function pointers; types come from the header, nothing is linked. */
static struct wslay {
#define WSLAY_FUNCTION(name) __typeof__(name) *name;
#include "server/front/websocket.def"
} wslay;

struct websocket {
	wslay_event_context_ptr ctx;
	const struct websocket_use *use;
	const char *bytes; /* received and being parsed */
	size_t len;
	bool is_reading; /* wslay_event_recv() is active */
	bool is_opening; /* no message received yet */
	bool is_closing; /* a close frame was sent */
	bool is_pinged;  /* and has not responded */
};

int websocket_load(struct brig_error *err)
{
	static const char *const names[] = { "libwslay.so.1", "libwslay.so", NULL };
	static const struct library_function functions[] = {
#define WSLAY_FUNCTION(name) { #name, offsetof(struct wslay, name) },
#include "server/front/websocket.def"
	};
	const struct library library = { names, functions, ARRAY_LEN(functions) };
	void *handle;
	const char *why;
	int rc = library_load(&library, &wslay, &handle, &why);

	if (rc == -ENOENT)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"a door that is open speaks WebSocket, and %s is not installed: install package libwslay1, "
			"or leave that door out",
			names[0]);
	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, 0, "libwslay has no function %s: update package libwslay1", why);
	return 0;
}

/* ---- the handshake ------------------------------------------------------------------------------------- */

bool websocket_check(struct client *c, const char *bytes, const struct http1_head *head)
{
	const struct http1_line *key = http1_find(bytes, head, "Sec-WebSocket-Key");
	const struct http1_line *version = http1_find(bytes, head, "Sec-WebSocket-Version");
	char raw[KEY_LEN];

	if (!head->upgrade || !http1_has_word(bytes, head, "Upgrade", "websocket", strlen("websocket")) ||
	    head->version_1_0 || head->body != HTTP1_BODY_NONE) {
		reply_refuse(c, 426, "this is a WebSocket: connect to it as to one");
		return false;
	}
	if (!version || !http1_is(bytes, version->value, "13") || !key || key->value.len != KEY_LEN ||
	    http1_count(bytes, head, "Sec-WebSocket-Key") > 1 ||
	    base64_get(raw, bytes + key->value.at, KEY_LEN) != 16) {
		reply_refuse(c, 400, "Sec-WebSocket-Version must be 13 and Sec-WebSocket-Key 16 bytes in base64");
		return false;
	}
	memcpy(c->req->call->websocket_key, bytes + key->value.at, KEY_LEN);
	return true;
}

/* RFC 6455 4.2.2: hash of the key and a fixed text. */
static void accept_text(const char *key, char dst[29])
{
	static const char fixed[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[KEY_LEN + sizeof(fixed)];
	uint8_t hash[SHA1_LEN];

	memcpy(text, key, KEY_LEN);
	memcpy(text + KEY_LEN, fixed, sizeof(fixed));
	sha1(text, strlen(text), hash);
	base64_put(dst, hash, sizeof(hash));
	dst[28] = '\0';
}

/* ---- callbacks of wslay ----------------------------------------------------------------------------------------- */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *dst, size_t len, int flags UNUSED, void *user)
{
	struct websocket *w = ((struct client *)user)->websocket;
	size_t n = min_u64(len, w->len);

	if (n == 0) {
		wslay.wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(dst, w->bytes, n);
	w->bytes += n;
	w->len -= n;
	return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags UNUSED, void *user)
{
	struct client *c = user;
	struct iovec piece = { .iov_len = len };

	memcpy(&piece.iov_base, &data, sizeof(data)); /* only read */
	if (c->state != CLIENT_DEAD && client_put(c, &piece, 1)) {
		c->req->sent += len;
		return (ssize_t)len;
	}
	wslay.wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static void on_message(wslay_event_context_ptr ctx UNUSED, const struct wslay_event_on_msg_recv_arg *arg, void *user)
{
	struct client *c = user;
	struct websocket *w = c->websocket;

	w->is_pinged = false;
	if (c->state == CLIENT_DEAD || w->is_closing || wslay_is_ctrl_frame(arg->opcode))
		return;
	w->use->on_message(c, (const char *)arg->msg, arg->msg_length, arg->opcode == WSLAY_TEXT_FRAME);
}

/* ---- sending and receiving -------------------------------------------------------------------------------------- */

/* Sends queued frames, unless websocket_on_bytes() is active and will do so.  False: the connection was closed. */
static bool flush(struct client *c)
{
	struct websocket *w = c->websocket;

	if (c->state == CLIENT_DEAD)
		return false;
	if (w->is_reading)
		return true;
	if (wslay.wslay_event_send(w->ctx) < 0 || client_pending(c) > FRONT_STREAM_MAX) {
		client_close(c, true);
		return false;
	}
	if (wslay.wslay_event_get_close_sent(w->ctx) && wslay.wslay_event_get_close_received(w->ctx) &&
	    client_pending(c) == 0) {
		client_close(c, false);
		return false;
	}
	front_watch(c->front, &c->source, EPOLLIN | EPOLLRDHUP | (client_pending(c) ? EPOLLOUT : 0));
	if (client_pending(c) > 0 && c->deadline_kind != DEADLINE_WRITE)
		deadline_set(c, DEADLINE_WRITE);
	else if (client_pending(c) == 0)
		websocket_on_drained(c);
	return true;
}

void websocket_opened(struct client *c)
{
	c->websocket->is_opening = false;
}

void websocket_on_drained(struct client *c)
{
	struct websocket *w = c->websocket;
	enum deadline_kind kind = w->is_closing ? DEADLINE_LINGER : w->is_opening ? DEADLINE_OPENING : DEADLINE_PING;

	if (c->deadline_kind != kind)
		deadline_set(c, kind);
}

bool websocket_send(struct client *c, const char *text, size_t len)
{
	const struct wslay_event_msg msg = { .opcode = WSLAY_TEXT_FRAME,
					     .msg = (const uint8_t *)text,
					     .msg_length = len };

	if (c->state == CLIENT_DEAD)
		return false;
	if (c->websocket->is_closing)
		return true;
	if (wslay.wslay_event_queue_msg(c->websocket->ctx, &msg) < 0) {
		client_close(c, true);
		return false;
	}
	return flush(c);
}

void websocket_close(struct client *c, uint16_t code, const char *reason)
{
	struct websocket *w = c->websocket;
	size_t len = min_u64(strlen(reason), WEBSOCKET_REASON_MAX);

	if (c->state == CLIENT_DEAD || w->is_closing)
		return;
	/*
	 * wslay sends a close frame before queued messages and nothing after it, so messages queued while receiving are
	 * sent first.
	 */
	if (wslay.wslay_event_send(w->ctx) < 0 ||
	    wslay.wslay_event_queue_close(w->ctx, code, (const uint8_t *)reason, len) < 0) {
		client_close(c, true);
		return;
	}
	w->is_closing = true;
	(void)flush(c);
}

void websocket_on_bytes(struct client *c, const char *bytes, size_t len)
{
	struct websocket *w = c->websocket;
	int rc;

	w->bytes = bytes;
	w->len = len;
	w->is_reading = true;
	rc = wslay.wslay_event_recv(w->ctx);
	w->is_reading = false;
	if (c->state == CLIENT_DEAD)
		return;
	if (rc < 0) {
		client_close(c, true);
		return;
	}
	(void)flush(c);
}

void websocket_on_deadline(struct client *c)
{
	const struct wslay_event_msg ping = { .opcode = WSLAY_PING };
	struct websocket *w = c->websocket;

	if (w->is_closing || client_pending(c) > 0 || w->is_pinged) {
		client_close(c, true);
		return;
	}
	if (w->is_opening && w->use->on_late) {
		w->use->on_late(c);
		return;
	}
	w->is_pinged = true;
	if (wslay.wslay_event_queue_msg(w->ctx, &ping) < 0)
		client_close(c, true);
	else
		(void)flush(c);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

bool websocket_accept(struct client *c, const struct websocket_use *use)
{
	static const struct wslay_event_callbacks callbacks = { .recv_callback = on_recv,
								.send_callback = on_send,
								.on_msg_recv_callback = on_message };
	struct websocket *w = calloc(1, sizeof(*w));
	AUTO_BUF head = BUF_INIT(KiB);
	char accept[29];

	accept_text(c->req->call->websocket_key, accept);
	(void)buf_addf(&head,
		       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		       "Sec-WebSocket-Accept: %s\r\nX-Request-Id: %s\r\n\r\n",
		       accept, c->req->id);
	if (!w || wslay.wslay_event_context_server_init(&w->ctx, &callbacks, c) < 0) {
		free(w);
		client_close(c, true);
		return false;
	}
	wslay.wslay_event_config_set_max_recv_msg_length(w->ctx, WEBSOCKET_MESSAGE_MAX);
	w->use = use;
	w->is_opening = use->on_late != NULL;
	c->websocket = w;
	c->is_last = true;
	c->req->status = 101;
	c->state = CLIENT_SOCKET;
	deadline_set(c, DEADLINE_NONE);
	return client_put(c, &(struct iovec){ head.data, head.len }, 1) && flush(c);
}

void websocket_free(struct websocket *w)
{
	if (!w)
		return;
	wslay.wslay_event_context_free(w->ctx);
	free(w);
}
