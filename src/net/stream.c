/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that starts as HTTP and continues as raw bytes in both directions.
 *
 * libcurl connects (and does the TLS handshake), and then leaves the connection to us: it supports no upgrades but its
 * own.  The request is written here, and the head of the answer is the only HTTP that the client parses itself. Without
 * TLS the socket is used directly; with TLS every byte goes through libcurl.
 */
#include "net/http_internal.h"

#include <ctype.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"

struct http_stream {
	const struct curl_library *curl;
	CURL *easy;
	bool tls;
	bool more; /* TLS: the last read brought something, so there may be more that poll does not see */
	int fd;    /* libcurl's, unless adopted */
	bool adopted;
	struct buf ahead; /* came with the head of the answer */
	size_t ahead_used;
};

/* ---- the head of an answer ------------------------------------------------------------------------ */

static bool parse_status(const char *line, size_t len, int *ret)
{
	if (len < 12 || (memcmp(line, "HTTP/1.1 ", 9) != 0 && memcmp(line, "HTTP/1.0 ", 9) != 0))
		return false;
	if (!isdigit((unsigned char)line[9]) || !isdigit((unsigned char)line[10]) || !isdigit((unsigned char)line[11]))
		return false;
	if (len > 12 && line[12] != ' ')
		return false;
	*ret = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
	return *ret >= 100 && *ret <= 599;
}

static bool parse_length(const char *line, size_t len, int64_t *ret)
{
	static const char name[] = "content-length:";
	char digits[16] = "";
	uint64_t value;
	size_t n = sizeof(name) - 1;

	if (len < n || strncasecmp(line, name, n) != 0)
		return true;
	line += n;
	len -= n;
	while (len > 0 && (*line == ' ' || *line == '\t'))
		line++, len--;
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, line, len);
	if (!str_to_u64(digits, &value) || (*ret >= 0 && (uint64_t)*ret != value))
		return false;
	*ret = (int64_t)value;
	return true;
}

static bool is_field(const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);

	if (!colon || colon == line)
		return false;
	for (const char *p = line; p < colon; p++)
		if (!isalnum((unsigned char)*p) && (*p == '\0' || !strchr("!#$%&'*+-.^_`|~", *p)))
			return false;
	for (const char *p = colon; p < line + len; p++)
		if (*p == '\0' || *p == '\r' || *p == '\n')
			return false;
	return true;
}

ssize_t http_parse_head(const char *data, size_t len, struct http_answer *ret, int64_t *ret_length)
{
	size_t at = 0;
	bool first = true;

	*ret_length = -1;
	for (;;) {
		const char *line = data + at;
		const char *end = memmem(line, len - at, "\r\n", 2);
		size_t n;

		if (!end)
			return len > HTTP_HEADER_MAX || (first && len >= 5 && memcmp(data, "HTTP/", 5) != 0) ? -1 : 0;
		n = (size_t)(end - line);
		at += n + 2;
		if (at > HTTP_HEADER_MAX)
			return -1;
		if (first && !parse_status(line, n, &ret->status))
			return -1;
		if (!first && n == 0)
			return (ssize_t)at;
		if (!first && (!is_field(line, n) || !parse_length(line, n, ret_length)))
			return -1;
		if (!first)
			http_take_header(ret, line, n);
		first = false;
	}
}

/* ---- bytes ---------------------------------------------------------------------------------------- */

static ssize_t raw_write(struct http_stream *s, const void *data, size_t len)
{
	struct pipe_guard guard;
	size_t sent = 0;
	CURLcode code;

	if (!s->tls) {
		ssize_t n = send(s->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		return n < 0 ? -errno : n;
	}
	pipe_guard_enter(&guard, true);
	code = s->curl->easy_send(s->easy, data, len, &sent);
	pipe_guard_leave(&guard);
	if (code == CURLE_AGAIN)
		return -EAGAIN;
	return code == CURLE_OK ? (ssize_t)sent : -EPIPE;
}

static ssize_t raw_read(struct http_stream *s, void *data, size_t len)
{
	struct pipe_guard guard;
	size_t got = 0;
	CURLcode code;

	if (!s->tls) {
		ssize_t n = recv(s->fd, data, len, MSG_DONTWAIT);

		return n < 0 ? -errno : n;
	}
	pipe_guard_enter(&guard, true);
	code = s->curl->easy_recv(s->easy, data, len, &got);
	pipe_guard_leave(&guard);
	s->more = code == CURLE_OK && got > 0;
	if (code == CURLE_AGAIN)
		return -EAGAIN;
	return code == CURLE_OK ? (ssize_t)got : -ECONNRESET;
}

/* Waits until the socket is ready for events; 0, or -errno. */
static int await(struct http_stream *s, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = s->fd, .events = events };
	int ready;

	do {
		ready = wait_poll(&p, 1, (int)http_remaining_ms(deadline_ns));
	} while (ready < 0 && errno == EINTR);
	return ready < 0 ? -errno : ready == 0 ? -ETIMEDOUT : 0;
}

static int write_all(struct http_stream *s, const char *data, size_t len, uint64_t deadline_ns)
{
	while (len > 0) {
		ssize_t n = raw_write(s, data, len);

		if (n == -EAGAIN || n == -EINTR) {
			int rc = await(s, POLLOUT, deadline_ns);

			if (rc < 0)
				return rc;
			continue;
		}
		if (n < 0)
			return (int)n;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* One piece into b, waiting for it: the count, 0 at the end, or -errno. */
static ssize_t read_some(struct http_stream *s, struct buf *b, uint64_t deadline_ns)
{
	char piece[4096];
	ssize_t n;

	for (;;) {
		n = raw_read(s, piece, sizeof(piece));
		if (n != -EAGAIN && n != -EINTR)
			break;
		n = await(s, POLLIN, deadline_ns);
		if (n < 0)
			return n;
	}
	if (n > 0 && buf_add(b, piece, (size_t)n) != (size_t)n)
		return -EMSGSIZE;
	return n;
}

/* ---- opening -------------------------------------------------------------------------------------- */

static int connect_stream(struct http_stream *s, struct http_client *c, const struct http_request *req,
			  enum http_trouble *ret_trouble, struct brig_error *err)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	struct pipe_guard guard;
	struct transfer t;
	CURLcode code;
	int rc = transfer_init(&t, c, s->easy, req, req->deadline_ns, err);

	if (rc < 0)
		return rc;
	t.connect_only = true;
	pipe_guard_enter(&guard, s->tls);
	code = s->curl->easy_setopt(s->easy, CURLOPT_CONNECT_ONLY, 1L);
	if (code == CURLE_OK)
		code = s->curl->easy_perform(s->easy);
	pipe_guard_leave(&guard);
	rc = transfer_result(&t, code, ret_trouble, err);
	/* The transfer ends here; the handle must not point to it any more. */
	(void)s->curl->easy_setopt(s->easy, CURLOPT_ERRORBUFFER, NULL);
	(void)s->curl->easy_setopt(s->easy, CURLOPT_HTTPHEADER, NULL);
	if (rc == 0 && (s->curl->easy_getinfo(s->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd < 0))
		rc = http_fail(ret_trouble, HTTP_CLOSED, err, 0, t.where, "the connection is gone");
	s->fd = fd;
	if (rc == 0 && fd_set_nonblock(fd) < 0)
		rc = http_fail(ret_trouble, HTTP_OTHER, err, EIO, t.where, "the connection cannot be used");
	transfer_release(&t);
	return rc;
}

static int send_request(struct http_stream *s, const struct http_client *c, const struct http_request *req)
{
	AUTO_BUF text = BUF_INIT(64 * KiB);

	(void)buf_addf(&text,
		       "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n",
		       req->method, req->path, c->target.socket[0] ? "localhost" : c->target.host,
		       req->upgrade ? req->upgrade : "tcp");
	for (size_t i = 0; i < ARRAY_LEN(req->headers) && req->headers[i]; i++)
		(void)buf_addf(&text, "%s\r\n", req->headers[i]);
	(void)buf_adds(&text, "\r\n");
	if (text.full || text.no_memory)
		return -ENOBUFS;
	return write_all(s, text.data, text.len, req->deadline_ns);
}

/* The rest of an answer that is no upgrade: only as much as it says, and only what a message needs. */
static void read_refusal(struct http_stream *s, const struct http_request *req, struct http_answer *answer,
			 int64_t length)
{
	size_t want = length < 0 ? s->ahead.len : (size_t)min_u64((uint64_t)length, 16 * KiB);

	while (s->ahead.len < want && read_some(s, &s->ahead, req->deadline_ns) > 0)
		;
	answer->body = (struct buf)BUF_INIT(16 * KiB);
	(void)buf_add(&answer->body, buf_str(&s->ahead), (size_t)min_u64(s->ahead.len, want));
}

/* What came behind the head belongs to the stream. */
static void keep_rest(struct http_stream *s, struct buf *head, size_t head_len)
{
	s->ahead = (struct buf)BUF_INIT(HTTP_HEADER_MAX + 16 * KiB);
	(void)buf_add(&s->ahead, head->data + head_len, head->len - head_len);
}

static int read_answer(struct http_stream *s, const struct http_request *req, struct http_answer *answer,
		       const char *where, enum http_trouble *ret_trouble, struct brig_error *err)
{
	AUTO_BUF head = BUF_INIT(HTTP_HEADER_MAX + 4 * KiB);
	int64_t length;
	ssize_t n, end = 0;

	while (end == 0) {
		n = read_some(s, &head, req->deadline_ns);
		if (n == -ETIMEDOUT)
			return http_fail(ret_trouble, HTTP_LATE, err, 0, where, "no answer in time");
		if (n == -EMSGSIZE)
			return http_fail(ret_trouble, HTTP_TOO_BIG, err, 0, where,
					 "the answer is larger than it may be");
		if (n <= 0)
			return http_fail(ret_trouble, HTTP_CLOSED, err, (int)-n, where,
					 "the connection was closed before an answer");
		end = http_parse_head(head.data, head.len, answer, &length);
		if (end < 0)
			return http_fail(ret_trouble, HTTP_GARBAGE, err, 0, where,
					 "what answers does not speak HTTP/1.1");
	}
	keep_rest(s, &head, (size_t)end);
	if (s->ahead.no_memory)
		return http_fail(ret_trouble, HTTP_OTHER, err, ENOMEM, where, "no memory for the answer");
	if (answer->status == 101 || answer->status == 200)
		return 0;
	read_refusal(s, req, answer, length);
	return http_fail(ret_trouble, HTTP_FINE, err, 0, where, "the connection was not handed over");
}

int http_stream_open(struct http_client *c, const struct http_request *req, struct http_stream **ret,
		     struct http_answer *ret_answer, enum http_trouble *ret_trouble, struct brig_error *err)
{
	enum http_trouble unused;
	struct http_stream *s;
	char where[400];
	int rc = http_check(req, err);

	if (!ret_trouble)
		ret_trouble = &unused;
	*ret_trouble = HTTP_OTHER;
	if (rc < 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err);
	s->curl = c->curl;
	s->tls = c->target.tls;
	s->fd = FD_NONE;
	s->easy = c->curl->easy_init();
	http_describe(where, sizeof(where), c, req);
	rc = s->easy ? connect_stream(s, c, req, ret_trouble, err) : err_nomem(err);
	if (rc == 0) {
		int sent = send_request(s, c, req);

		if (sent < 0)
			rc = http_fail(ret_trouble, sent == -ETIMEDOUT ? HTTP_LATE : HTTP_CLOSED, err, -sent, where,
				       "cannot send the request");
	}
	if (rc == 0)
		rc = read_answer(s, req, ret_answer, where, ret_trouble, err);
	if (rc < 0) {
		http_stream_close(s);
		return rc;
	}
	*ret_trouble = HTTP_FINE;
	*ret = s;
	return 0;
}

struct http_stream *http_stream_adopt(int fd)
{
	struct http_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->adopted = true;
	(void)fd_set_nonblock(fd);
	return s;
}

/* ---- use ------------------------------------------------------------------------------------------ */

int http_stream_fd(const struct http_stream *s)
{
	return s->fd;
}

bool http_stream_pending(struct http_stream *s)
{
	return s->ahead_used < s->ahead.len || s->more;
}

ssize_t http_stream_read(struct http_stream *s, void *data, size_t len)
{
	size_t left = s->ahead.len - s->ahead_used;

	if (left == 0)
		return raw_read(s, data, len);
	if (len > left)
		len = left;
	memcpy(data, s->ahead.data + s->ahead_used, len);
	s->ahead_used += len;
	return (ssize_t)len;
}

ssize_t http_stream_write(struct http_stream *s, const void *data, size_t len)
{
	return raw_write(s, data, len);
}

/*
 * TLS has its own way to say that no more will come, which libcurl does not offer.  With OpenSSL behind it the
 * connection's own object can be asked; otherwise the other side sees the end of the tcp stream, which ends its
 * reading as well.
 */
static void tls_end_writing(struct http_stream *s)
{
	struct curl_tlssessioninfo *info = NULL;
	int (*ssl_shutdown)(void *ssl);
	struct pipe_guard guard;

	if (s->curl->easy_getinfo(s->easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info || !info->internals ||
	    info->backend != CURLSSLBACKEND_OPENSSL)
		return;
	*(void **)&ssl_shutdown = dlsym(s->curl->handle, "SSL_shutdown");
	if (!ssl_shutdown)
		return;
	pipe_guard_enter(&guard, true);
	(void)ssl_shutdown(info->internals);
	pipe_guard_leave(&guard);
}

int http_stream_end_writing(struct http_stream *s)
{
	if (s->tls)
		tls_end_writing(s);
	return shutdown(s->fd, SHUT_WR) < 0 ? -errno : 0;
}

void http_stream_close(struct http_stream *s)
{
	struct pipe_guard guard;

	if (!s)
		return;
	pipe_guard_enter(&guard, s->tls);
	if (s->easy)
		s->curl->easy_cleanup(s->easy);
	pipe_guard_leave(&guard);
	if (s->adopted)
		fd_closep(&s->fd);
	buf_release(&s->ahead);
	free(s);
}
