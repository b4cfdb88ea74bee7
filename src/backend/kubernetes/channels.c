/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/channels.h"

#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#include "backend/container/answer.h"
#include "base/library.h"

#define MESSAGE_MAX (16 * KiB) /* to the server: below the maximum size of its WebSocket frames */

enum channel { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_ERROR };

/* Pointers to wslay's functions, typed by its header; the library is loaded at run time. */
static struct wslay {
#define WSLAY_FUNCTION(name) __typeof__(name) *name;
#include "backend/kubernetes/channels.def"
} wslay;

struct channels {
	wslay_event_context_ptr ctx;
	struct pump *pump; /* set while bytes are read or written */
	const char *bytes; /* received bytes that are being parsed */
	size_t len;
	bool is_control;  /* the current frame is a control frame */
	bool has_channel; /* the channel byte was received */
	unsigned char channel;
	int rc; /* result of handling them */
	struct brig_error *err;
	char words[300]; /* received on the error channel */
	size_t words_len;
	uint8_t message[1 + MESSAGE_MAX];
};

static int load(struct brig_error *err)
{
	static const char *const names[] = { "libwslay.so.1", "libwslay.so", NULL };
	static const struct library_function functions[] = {
#define WSLAY_FUNCTION(name) { #name, offsetof(struct wslay, name) },
#include "backend/kubernetes/channels.def"
	};
	const struct library library = { names, functions, ARRAY_LEN(functions) };
	const char *why;
	void *handle;
	int rc;

	if (wslay.wslay_event_recv)
		return 0;
	rc = library_load(&library, &wslay, &handle, &why);
	if (rc == -ENOENT)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "pods are spoken to over WebSocket, and %s is not installed: install package libwslay1",
			       names[0]);
	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, 0, "libwslay has no function %s: update package libwslay1", why);
	return 0;
}

/* ---- wslay callbacks -------------------------------------------------------------------------------- */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *dst, size_t len, int flags UNUSED, void *user)
{
	struct channels *c = user;
	size_t n = min_u64(len, c->len);

	if (n == 0 || c->rc < 0) {
		wslay.wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(dst, c->bytes, n);
	c->bytes += n;
	c->len -= n;
	return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags UNUSED, void *user)
{
	struct channels *c = user;
	ssize_t n = c->pump->stream ? http_stream_write(c->pump->stream, data, len) : -EPIPE;

	if (n >= 0)
		return n;
	wslay.wslay_event_set_error(ctx, n == -EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int on_mask(wslay_event_context_ptr ctx UNUSED, uint8_t *dst, size_t len, void *user UNUSED)
{
	return getrandom(dst, len, 0) == (ssize_t)len ? 0 : -1;
}

static void on_frame(wslay_event_context_ptr ctx UNUSED, const struct wslay_event_on_frame_recv_start_arg *arg,
		     void *user)
{
	struct channels *c = user;

	c->is_control = wslay_is_ctrl_frame(arg->opcode);
	/* Continuation frames belong to the channel of the first one. */
	if (!c->is_control && arg->opcode != WSLAY_CONTINUATION_FRAME)
		c->has_channel = false;
}

static void keep_words(struct channels *c, const char *data, size_t len)
{
	size_t n = min_u64(len, sizeof(c->words) - 1 - c->words_len);

	memcpy(c->words + c->words_len, data, n);
	c->words_len += n;
}

static void on_chunk(wslay_event_context_ptr ctx UNUSED, const struct wslay_event_on_frame_recv_chunk_arg *arg,
		     void *user)
{
	struct channels *c = user;
	const char *data = (const char *)arg->data;
	size_t len = arg->data_length;

	if (c->is_control || c->rc < 0 || len == 0)
		return;
	if (!c->has_channel) {
		c->channel = (unsigned char)*data++;
		c->has_channel = true;
		len--;
	}
	if (len == 0)
		return;
	switch (c->channel) {
	case CHANNEL_STDOUT:
		c->rc = pump_stdout(c->pump, data, len, c->err);
		break;
	case CHANNEL_STDERR:
		c->rc = pump_stderr(c->pump, data, len, c->err);
		break;
	case CHANNEL_ERROR:
		keep_words(c, data, len);
		break;
	default:
		c->rc = err_set(c->err, BRIG_E_SYSTEM, 0, "the pod's stream makes no sense: a message on channel %u",
				c->channel);
	}
}

/* ---- the carrier ------------------------------------------------------------------------------------ */

/* Sends as much of the queue as possible; true: some is left. */
static bool flush(struct pump *p)
{
	struct channels *c = p->carried;

	c->pump = p;
	if (wslay.wslay_event_want_write(c->ctx) && wslay.wslay_event_send(c->ctx) < 0)
		return false; /* no reader is left: the end of the stream will show it */
	return wslay.wslay_event_want_write(c->ctx);
}

static ssize_t write_channel(struct pump *p, const char *data, size_t len)
{
	struct channels *c = p->carried;
	size_t n = min_u64(len, MESSAGE_MAX);
	const struct wslay_event_msg msg = { .opcode = WSLAY_BINARY_FRAME, .msg = c->message, .msg_length = 1 + n };

	if (flush(p))
		return -EAGAIN;
	c->message[0] = CHANNEL_STDIN;
	memcpy(c->message + 1, data, n);
	if (wslay.wslay_event_queue_msg(c->ctx, &msg) < 0)
		return -EPIPE;
	explicit_bzero(c->message, 1 + n); /* contains keys of the job; wslay keeps its own copy until it is sent */
	(void)flush(p);
	return (ssize_t)n;
}

static int take_messages(struct pump *p, const char *data, size_t len, struct brig_error *err)
{
	struct channels *c = p->carried;

	c->pump = p;
	c->bytes = data;
	c->len = len;
	c->rc = 0;
	c->err = err;
	if (wslay.wslay_event_recv(c->ctx) < 0 && c->rc == 0)
		c->rc = err_set(err, BRIG_E_SYSTEM, 0, "the pod's stream makes no sense: it is not WebSocket");
	c->err = NULL;
	return c->rc < 0 ? -err->code : 0;
}

const struct pump_carrier channels_carrier = { .write = write_channel, .take = take_messages, .holds = flush };

int channels_open(struct channels **ret, struct brig_error *err)
{
	static const struct wslay_event_callbacks callbacks = { .recv_callback = on_recv,
								.send_callback = on_send,
								.genmask_callback = on_mask,
								.on_frame_recv_start_callback = on_frame,
								.on_frame_recv_chunk_callback = on_chunk };
	struct channels *c;
	int rc = load(err);

	if (rc < 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c || wslay.wslay_event_context_client_init(&c->ctx, &callbacks, c) < 0) {
		free(c);
		return err_nomem(err);
	}
	wslay.wslay_event_config_set_no_buffering(c->ctx, 1); /* pass frames on as they arrive */
	*ret = c;
	return 0;
}

void channels_close(struct channels *c)
{
	if (!c)
		return;
	wslay.wslay_event_context_free(c->ctx);
	free(c);
}

const char *channels_last_words(const struct channels *c)
{
	return c ? c->words : "";
}
