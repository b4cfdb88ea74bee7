/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and answers over libcurl's easy interface.
 *
 * Read-only requests (GET, HEAD) reuse the last connection; libcurl resends such a request itself if that turns out to
 * be closed.  Everything else gets a fresh connection, so that nothing which changes the server's state is ever sent
 * twice.
 */
#include "net/http_internal.h"

#include <ctype.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"

#define UPLOAD_BUFFER (256 * KiB)

static const char *const methods[] = { "GET", "POST", "PUT", "DELETE", "HEAD" };

void http_answer_release(struct http_answer *a)
{
	buf_release(&a->body);
	a->status = 0;
}

long http_remaining_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();

	if (deadline_ns <= now)
		return 0;
	return (long)min_u64((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS, INT_MAX);
}

/* ---- SIGPIPE ------------------------------------------------------------------------------------- */

void pipe_guard_enter(struct pipe_guard *g, bool needed)
{
	sigset_t block, pending;

	g->active = needed;
	if (!needed)
		return;
	(void)sigemptyset(&pending);
	(void)sigpending(&pending);
	g->was_pending = sigismember(&pending, SIGPIPE) == 1;
	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &block, &g->mask);
}

void pipe_guard_leave(struct pipe_guard *g)
{
	static const struct timespec at_once = { 0, 0 };
	sigset_t block;

	if (!g->active)
		return;
	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGPIPE);
	if (!g->was_pending)
		while (sigtimedwait(&block, NULL, &at_once) < 0 && errno == EINTR)
			;
	(void)pthread_sigmask(SIG_SETMASK, &g->mask, NULL);
}

/* ---- checks and text ----------------------------------------------------------------------------- */

void http_escape(struct buf *b, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < 0x80 && (isalnum(*p) || strchr("-._~", *p)))
			(void)buf_add(b, p, 1);
		else
			(void)buf_addf(b, "%%%02X", *p);
	}
}

/* Visible ASCII only: what could end the request line or begin a header is never sent. */
static bool is_visible(const char *s, bool spaces)
{
	for (; *s; s++)
		if ((*s <= ' ' || *s > '~') && !(spaces && *s == ' '))
			return false;
	return true;
}

int http_check(const struct http_request *req, struct brig_error *err)
{
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		known |= req->method && str_eq(req->method, methods[i]);
	if (!known)
		return err_set(err, BRIG_E_INTERNAL, 0, "an HTTP request without a known method");
	if (!req->path || req->path[0] != '/' || !is_visible(req->path, false))
		return err_set(err, BRIG_E_INTERNAL, 0, "an HTTP request with a path that is not percent-encoded");
	if (req->content_type && !is_visible(req->content_type, true))
		return err_set(err, BRIG_E_INTERNAL, 0, "an HTTP request with a bad content type");
	for (size_t i = 0; i < ARRAY_LEN(req->headers) && req->headers[i]; i++)
		if (!is_visible(req->headers[i], true))
			return err_set(err, BRIG_E_INTERNAL, 0, "an HTTP request with a bad header");
	if (req->deadline_ns == 0)
		return err_set(err, BRIG_E_INTERNAL, 0, "an HTTP request without a deadline");
	return 0;
}

void http_describe(char *dst, size_t size, const struct http_client *c, const struct http_request *req)
{
	const struct http_target *t = &c->target;

	if (t->socket[0])
		(void)snprintf(dst, size, "%s %.200s at unix://%s", req->method, req->path, t->socket);
	else
		(void)snprintf(dst, size, "%s %.200s at %s://%.100s:%u", req->method, req->path,
			       t->tls ? "https" : "http", t->host, t->port);
}

int http_fail(enum http_trouble *ret_trouble, enum http_trouble trouble, struct brig_error *err, int sys,
	      const char *where, const char *why)
{
	if (ret_trouble)
		*ret_trouble = trouble;
	return err_set(err, BRIG_E_SYSTEM, sys, "%s: %s", where, why);
}

/* ---- callbacks ----------------------------------------------------------------------------------- */

/* Is this header line called name?  Then its value, trimmed, goes to dst. */
static bool header_value(const char *line, size_t len, const char *name, char *dst, size_t size)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	line += n + 1;
	len -= n + 1;
	while (len > 0 && (*line == ' ' || *line == '\t'))
		line++, len--;
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	if (len >= size)
		len = size - 1;
	for (size_t i = 0; i < len; i++)
		dst[i] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
	dst[len] = '\0';
	return true;
}

void http_take_header(struct http_answer *a, const char *line, size_t len)
{
	if (header_value(line, len, "Content-Type", a->content_type, sizeof(a->content_type))) {
		a->content_type[strcspn(a->content_type, "; ")] = '\0';
		for (char *p = a->content_type; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		return;
	}
	(void)(header_value(line, len, "Server", a->server, sizeof(a->server)) ||
	       header_value(line, len, "Api-Version", a->api_version, sizeof(a->api_version)));
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n;

	t->head_len += len;
	if (t->head_len > HTTP_HEADER_MAX) {
		t->too_big = true;
		return 0;
	}
	if (len >= 12 && memcmp(data, "HTTP/", 5) == 0) {
		long status = 0;

		(void)t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
		t->answer.status = (int)status;
	} else if (len <= 2 && t->answer.status >= 200) {
		t->headers_done = true;
	} else {
		http_take_header(&t->answer, data, len);
	}
	return len;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n;

	if (t->on_data && t->answer.status < 300) {
		t->stopped = t->on_data(t->arg, data, len) < 0;
		return t->stopped ? 0 : len;
	}
	if (buf_add(&t->answer.body, data, len) != len) {
		t->too_big = true;
		return 0;
	}
	return len;
}

/* The body comes from a descriptor that may be slow: the deadline holds here, too. */
static size_t on_upload(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	struct pollfd p = { .fd = t->req->body_fd, .events = POLLIN };
	ssize_t got;
	int ready;

	do {
		ready = poll(&p, 1, (int)http_remaining_ms(t->deadline_ns));
	} while (ready < 0 && errno == EINTR);
	if (ready == 0) {
		t->body_late = true;
		return CURL_READFUNC_ABORT;
	}
	do {
		got = read(p.fd, data, size * n);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		t->body_error = errno;
		return CURL_READFUNC_ABORT;
	}
	return (size_t)got;
}

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

	(void)arg;
	(void)purpose;
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* ---- a transfer ---------------------------------------------------------------------------------- */

static CURLcode set_target(const struct http_client *c, CURL *easy, const struct http_request *req)
{
	const struct curl_library *l = c->curl;
	const struct http_target *at = &c->target;
	AUTO_BUF url = BUF_INIT(64 * KiB);
	CURLcode rc = CURLE_OK;

	if (at->socket[0]) {
		(void)buf_addf(&url, "http://localhost%s", req->path);
		rc = l->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, at->socket);
	} else {
		bool v6 = strchr(at->host, ':') != NULL;

		(void)buf_addf(&url, "%s://%s%s%s:%u%s", at->tls ? "https" : "http", v6 ? "[" : "", at->host,
			       v6 ? "]" : "", at->port, req->path);
	}
	if (rc == CURLE_OK && (url.full || url.no_memory))
		rc = CURLE_URL_MALFORMAT;
	if (rc == CURLE_OK)
		rc = l->easy_setopt(easy, CURLOPT_URL, buf_str(&url));
	if (rc == CURLE_OK && at->tls && at->ca[0]) {
		rc = l->easy_setopt(easy, CURLOPT_CAINFO, at->ca);
		if (rc == CURLE_OK) /* that one instead of the system's */
			rc = l->easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	if (rc == CURLE_OK && at->tls && at->cert[0])
		rc = l->easy_setopt(easy, CURLOPT_SSLCERT, at->cert);
	if (rc == CURLE_OK && at->tls && at->key[0])
		rc = l->easy_setopt(easy, CURLOPT_SSLKEY, at->key);
	return rc;
}

/* What no request may change: nothing from the environment, one protocol, no redirects or retries. */
static CURLcode set_limits(const struct http_client *c, CURL *easy)
{
	static const struct {
		CURLoption option;
		long value;
	} fixed[] = {
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
		{ CURLOPT_HTTP09_ALLOWED, 0 },
		{ CURLOPT_FOLLOWLOCATION, 0 },
		{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
		{ CURLOPT_PATH_AS_IS, 1 },
		{ CURLOPT_MAXCONNECTS, 2 },
		{ CURLOPT_SSL_VERIFYPEER, 1 },
		{ CURLOPT_SSL_VERIFYHOST, 2 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_TCP_NODELAY, 1 },
		{ CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER },
	};
	CURLcode rc = CURLE_OK;

	for (size_t i = 0; i < ARRAY_LEN(fixed) && rc == CURLE_OK; i++)
		rc = c->curl->easy_setopt(easy, fixed[i].option, fixed[i].value);
	if (rc == CURLE_OK)
		rc = c->curl->easy_setopt(easy, CURLOPT_PROXY, "");
	if (rc == CURLE_OK)
		rc = c->curl->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	if (rc == CURLE_OK)
		rc = c->curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Not in older libraries, which then wait for a name server at the end. */
	(void)c->curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return rc;
}

static CURLcode set_callbacks(struct transfer *t)
{
	const struct {
		CURLoption option;
		void *value;
	} pointers[] = {
		{ CURLOPT_HEADERDATA, t }, { CURLOPT_WRITEDATA, t },         { CURLOPT_READDATA, t },
		{ CURLOPT_PRIVATE, t },    { CURLOPT_ERRORBUFFER, t->text }, { CURLOPT_HTTPHEADER, t->headers },
	};
	CURLcode rc = CURLE_OK;

	for (size_t i = 0; i < ARRAY_LEN(pointers) && rc == CURLE_OK; i++)
		rc = t->curl->easy_setopt(t->easy, pointers[i].option, pointers[i].value);
	if (rc == CURLE_OK)
		rc = t->curl->easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	if (rc == CURLE_OK)
		rc = t->curl->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	return rc;
}

static CURLcode set_body(struct transfer *t, const struct http_request *req)
{
	const struct curl_library *l = t->curl;
	CURLcode rc;

	if (str_eq(req->method, "HEAD"))
		return l->easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
	rc = l->easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, req->method);
	if (rc != CURLE_OK || str_eq(req->method, "GET"))
		return rc;
	if (req->has_body_fd) {
		rc = l->easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
		return rc == CURLE_OK ? l->easy_setopt(t->easy, CURLOPT_READFUNCTION, on_upload) : rc;
	}
	rc = l->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len);
	if (rc == CURLE_OK) /* "" and not NULL: a body of length 0, not one from a callback */
		rc = l->easy_setopt(t->easy, CURLOPT_POSTFIELDS, req->body ? req->body : "");
	return rc;
}

static bool add_header(struct transfer *t, const char *line)
{
	struct curl_slist *more = t->curl->slist_append(t->headers, line);

	if (more)
		t->headers = more;
	return more != NULL;
}

static bool set_headers(struct transfer *t, const struct http_request *req)
{
	char line[256];
	/* "Expect:" without a value: no pause before larger bodies.  The same for the type libcurl would make up. */
	bool ok = add_header(t, "Expect:") && add_header(t, "Accept: application/json");

	(void)snprintf(line, sizeof(line), "Content-Type:%s%s", req->content_type ? " " : "",
		       req->content_type ? req->content_type : "");
	ok = ok && add_header(t, line);
	for (size_t i = 0; ok && i < ARRAY_LEN(req->headers) && req->headers[i]; i++)
		ok = add_header(t, req->headers[i]);
	return ok;
}

/* The name stays what certificates are compared with. */
static CURLcode set_address(struct transfer *t, const struct http_target *at)
{
	char line[sizeof(at->host) + sizeof(at->address) + 16];

	if (!at->address[0] || at->socket[0])
		return CURLE_OK;
	(void)snprintf(line, sizeof(line), "%s:%u:%s", at->host, at->port, at->address);
	t->addresses = t->curl->slist_append(NULL, line);
	return t->addresses ? t->curl->easy_setopt(t->easy, CURLOPT_RESOLVE, t->addresses) : CURLE_OUT_OF_MEMORY;
}

int transfer_init(struct transfer *t, const struct http_client *c, CURL *easy, const struct http_request *req,
		  uint64_t until_ns, struct brig_error *err)
{
	bool reads = str_eq(req->method, "GET") || str_eq(req->method, "HEAD");
	CURLcode rc = CURLE_OUT_OF_MEMORY;

	*t = (struct transfer){ .curl = c->curl, .easy = easy, .req = req, .on_data = req->on_data, .arg = req->arg };
	t->answer.body = (struct buf)BUF_INIT(req->max_body);
	t->deadline_ns = until_ns;
	http_describe(t->where, sizeof(t->where), c, req);
	if (set_headers(t, req))
		rc = set_limits(c, easy);
	if (rc == CURLE_OK)
		rc = set_target(c, easy, req);
	if (rc == CURLE_OK)
		rc = set_address(t, &c->target);
	if (rc == CURLE_OK)
		rc = set_callbacks(t);
	if (rc == CURLE_OK)
		rc = set_body(t, req);
	if (rc == CURLE_OK)
		rc = c->curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, reads ? 0L : 1L);
	if (rc == CURLE_OK) /* 0 would mean no limit at all */
		rc = c->curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, http_remaining_ms(until_ns) ?: 1L);
	if (rc != CURLE_OK) {
		transfer_release(t);
		return err_set(err, BRIG_E_INTERNAL, 0, "%s: cannot be prepared: %s", t->where,
			       c->curl->easy_strerror(rc));
	}
	return 0;
}

void transfer_release(struct transfer *t)
{
	if (t->headers)
		t->curl->slist_free_all(t->headers);
	t->headers = NULL;
	if (t->addresses)
		t->curl->slist_free_all(t->addresses);
	t->addresses = NULL;
	http_answer_release(&t->answer);
}

static const struct {
	CURLcode code;
	enum http_trouble trouble;
	const char *why;
} troubles[] = {
#define TROUBLE(code, trouble, why) { code, trouble, why },
#include "net/troubles.def"
};

/* Some of libcurl's results have several causes. */
static enum http_trouble closer_look(const struct transfer *t, CURLcode code, enum http_trouble first, int sys)
{
	if (code == CURLE_COULDNT_CONNECT && (sys == EACCES || sys == EPERM))
		return HTTP_DENIED;
	if (code == CURLE_COULDNT_CONNECT && sys == ETIMEDOUT)
		return HTTP_LATE;
	/* TLS 1.3: a rejected client certificate shows up at the first read. */
	if (code == CURLE_RECV_ERROR && (strstr(t->text, "alert") || strstr(t->text, "certificate")))
		return HTTP_TLS;
	if (code == CURLE_RECV_ERROR && strstr(t->text, "hunk"))
		return HTTP_GARBAGE;
	return first;
}

/* What went wrong in our own callbacks, which libcurl knows only as "aborted". */
static int own_trouble(const struct transfer *t, enum http_trouble *ret_trouble, struct brig_error *err)
{
	if (t->too_big)
		return http_fail(ret_trouble, HTTP_TOO_BIG, err, 0, t->where, "the answer is larger than it may be");
	if (t->stopped)
		return http_fail(ret_trouble, HTTP_STOPPED, err, 0, t->where, "the answer was not taken");
	if (t->body_late)
		return http_fail(ret_trouble, HTTP_LATE, err, 0, t->where, "what was to be sent did not come in time");
	if (t->body_error)
		return http_fail(ret_trouble, HTTP_OTHER, err, t->body_error, t->where,
				 "cannot read what was to be sent");
	return 0;
}

int transfer_result(struct transfer *t, CURLcode code, enum http_trouble *ret_trouble, struct brig_error *err)
{
	enum http_trouble trouble = HTTP_OTHER;
	const char *why = "";
	long sys = 0;
	int rc = own_trouble(t, ret_trouble, err);

	if (rc < 0)
		return rc;
	if (code == CURLE_OK && !t->headers_done &&
	    !t->connect_only) /* a status without a body needs no more for libcurl */
		return http_fail(ret_trouble, HTTP_GARBAGE, err, 0, t->where, "the answer is cut off");
	if (code == CURLE_OK && t->answer.body.no_memory)
		return http_fail(ret_trouble, HTTP_OTHER, err, ENOMEM, t->where, "no memory for the answer");
	if (code == CURLE_OK) {
		if (ret_trouble)
			*ret_trouble = HTTP_FINE;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(troubles); i++)
		if (troubles[i].code == code) {
			trouble = troubles[i].trouble;
			why = troubles[i].why;
		}
	if (code == CURLE_COULDNT_CONNECT)
		(void)t->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &sys);
	trouble = closer_look(t, code, trouble, (int)sys);
	if (sys)
		why = "cannot connect";
	else if (!why[0] || trouble == HTTP_TLS)
		why = t->text[0] ? t->text : t->curl->easy_strerror(code);
	return http_fail(ret_trouble, trouble, err, (int)sys, t->where, why);
}

/* ---- the client ---------------------------------------------------------------------------------- */

int http_open(const struct http_target *target, struct http_client **ret, struct brig_error *err)
{
	const struct curl_library *l = curl_library(err);
	struct http_client *c;

	if (!l)
		return -BRIG_E_REFUSED;
	if (!target->socket[0] && (!target->host[0] || target->port == 0 || target->port > 65535))
		return err_set(err, BRIG_E_USAGE, 0, "an HTTP server needs a socket, or a host and a port");
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(err);
	c->curl = l;
	c->target = *target;
	c->easy = l->easy_init();
	if (!c->easy) {
		free(c);
		return err_nomem(err);
	}
	*ret = c;
	return 0;
}

void http_close(struct http_client *c)
{
	struct pipe_guard guard;

	if (!c)
		return;
	pipe_guard_enter(&guard, c->target.tls);
	c->curl->easy_cleanup(c->easy);
	pipe_guard_leave(&guard);
	free(c);
}

int http_send(struct http_client *c, const struct http_request *req, struct http_answer *ret,
	      enum http_trouble *ret_trouble, struct brig_error *err)
{
	struct pipe_guard guard;
	struct transfer t;
	CURLcode code;
	int rc = http_check(req, err);

	if (ret_trouble)
		*ret_trouble = HTTP_OTHER;
	if (rc < 0)
		return rc;
	if (wait_gives_way() && !req->has_body_fd && http_remaining_ms(req->deadline_ns) > 0)
		return http_call_and_wait(c, req, ret, ret_trouble, err);
	c->curl->easy_reset(c->easy); /* options only: connections stay */
	rc = transfer_init(&t, c, c->easy, req, req->deadline_ns, err);
	if (rc < 0)
		return rc;
	if (http_remaining_ms(req->deadline_ns) == 0) {
		rc = http_fail(ret_trouble, HTTP_LATE, err, 0, t.where, "no time left");
	} else {
		pipe_guard_enter(&guard, c->target.tls);
		code = c->curl->easy_perform(c->easy);
		pipe_guard_leave(&guard);
		rc = transfer_result(&t, code, ret_trouble, err);
	}
	if (rc == 0) {
		*ret = t.answer;
		t.answer = (struct http_answer)HTTP_ANSWER_INIT;
	}
	transfer_release(&t);
	return rc;
}
