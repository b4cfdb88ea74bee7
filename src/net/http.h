/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 client for one server at a time: a unix socket, tcp, or tcp with TLS.
 *
 * libcurl does the talking.  It is loaded with dlopen when the first client is opened, because loading it takes longer
 * than a whole native cell; a program that never opens one never pays.  The environment is ignored: no proxy, no netrc,
 * no redirects, no other protocol.  Every call has a deadline and every answer a ceiling (INV-7); descriptors are
 * close-on-exec.
 *
 * One client serves one thread at a time.  Calls and streams borrow nothing from their client: each has its own
 * connection and may outlive it.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define HTTP_HEADER_MAX (64 * KiB) /* all header lines of an answer together */

/* Where a server is.  Empty texts are "none". */
struct http_target {
	char socket[108]; /* path of a unix socket; "": tcp to host and port */
	char host[256];
	char address
		[256]; /* that host is at, as numbers, with commas between several; "": a thread of libcurl's looks it up */
	unsigned port;
	bool tls;
	char ca[512]; /* PEM files; with TLS the server's certificate is always checked, against this or the system's */
	char cert[512]; /* ours, and its key */
	char key[512];
};

/* Why there is no answer, for callers that have a better sentence than ours. */
enum http_trouble {
	HTTP_FINE,
	HTTP_NO_LIBRARY, /* libcurl is missing or too old */
	HTTP_NO_SERVER,  /* sys: ENOENT, ECONNREFUSED, ENOTSOCK ... or the name does not resolve (sys 0) */
	HTTP_DENIED,     /* sys: EACCES or EPERM */
	HTTP_TLS,        /* certificates, or no TLS on the other side */
	HTTP_LATE,       /* the deadline passed */
	HTTP_TOO_BIG,    /* a body or its headers are larger than the ceiling */
	HTTP_GARBAGE,    /* what came is not HTTP, or ended early */
	HTTP_CLOSED,     /* the connection broke */
	HTTP_STOPPED,    /* on_data said so */
	HTTP_OTHER,
};

/* A piece of the body as it arrives; negative ends the call with HTTP_STOPPED. */
typedef int (*http_data_fn)(void *arg, const char *data, size_t len);

struct http_request {
	const char *method;       /* "GET", "POST", "PUT", "DELETE", "HEAD" */
	const char *path;         /* starts with '/', percent-encoded already: see http_escape */
	const char *content_type; /* NULL: none */
	const char *upgrade;      /* of a stream: what it is to become; NULL: "tcp" */
	const char *headers[6];   /* more header lines, "Name: value"; NULL-terminated unless all are used */
	const void *body;         /* borrowed until the call ends */
	size_t body_len;
	int body_fd;          /* with has_body_fd: the body is read from here, up to its end, and sent in chunks */
	bool has_body_fd;     /* (so that zero stays "no descriptor") */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0 is refused: nothing here waits forever */
	size_t max_body;      /* 0: no body is expected, a longer one is HTTP_TOO_BIG */
	http_data_fn on_data; /* instead of collecting the body in the answer; only for answers below 300 */
	void *arg;
};

struct http_answer {
	int status;
	struct buf body;       /* NUL-terminated when not empty; http_answer_release frees it */
	char content_type[96]; /* lower case, without parameters */
	char server[96];
	char api_version[32]; /* the header Api-Version */
};
#define HTTP_ANSWER_INIT     \
	{                    \
		.status = 0, \
	}
void http_answer_release(struct http_answer *a);
#define AUTO_ANSWER                  \
	CLEANUP(http_answer_release) \
	struct http_answer

struct http_client;
/* Loads the library and checks the target; does not connect.  Copies the target. */
int http_open(const struct http_target *target, struct http_client **ret, struct brig_error *err);
void http_close(struct http_client *c); /* NULL is fine */

/*
 * One request, one answer, whatever its status.  The connection is kept for the next request.
 * On failure *ret_trouble (may be NULL) says of which kind; err->sys is the errno where there is one.
 */
int http_send(struct http_client *c, const struct http_request *req, struct http_answer *ret,
	      enum http_trouble *ret_trouble, struct brig_error *err);

/* ---- a call that takes its time ------------------------------------------------------------------ */

struct http_call;
/* Sends the request on its own connection and returns when the answer's headers have arrived: the server has accepted
 * it.  The body follows later.  deadline_ns covers the headers; until_ns the whole call. */
int http_call_open(struct http_client *c, const struct http_request *req, uint64_t until_ns, struct http_call **ret,
		   enum http_trouble *ret_trouble, struct brig_error *err);
/* The same without waiting for the headers. */
int http_call_begin(struct http_client *c, const struct http_request *req, uint64_t until_ns, struct http_call **ret,
		    enum http_trouble *ret_trouble, struct brig_error *err);
/* One descriptor for everything: poll it for reading, then call http_call_step.  Belongs to the call. */
int http_call_fd(const struct http_call *call);
/* 1: the answer is complete and moved to *ret (once), 0: not yet, negative: there will be none. */
int http_call_step(struct http_call *call, struct http_answer *ret, enum http_trouble *ret_trouble,
		   struct brig_error *err);
/* The status of the answer as soon as its headers are there; 0 before. */
int http_call_status(const struct http_call *call);
void http_call_close(struct http_call *call); /* NULL is fine; gives up an unfinished call */

/* ---- a connection that stops being HTTP ---------------------------------------------------------- */

struct http_stream;
/*
 * Asks for an upgrade (to "tcp" unless the request says otherwise) and hands over the raw connection when the server answers 101, or 200 as old engines
 * do.  Any other answer is put into *ret_answer and fails with HTTP_FINE as trouble: its status and body say why.
 */
int http_stream_open(struct http_client *c, const struct http_request *req, struct http_stream **ret,
		     struct http_answer *ret_answer, enum http_trouble *ret_trouble, struct brig_error *err);
/* The same over a connected socket that another process upgraded and passed to us, with nothing read ahead: takes fd,
 * unless it returns NULL for lack of memory. */
struct http_stream *http_stream_adopt(int fd);
/* Non-blocking.  Poll it for what you want to do; with TLS ask http_stream_pending before you poll for reading. */
int http_stream_fd(const struct http_stream *s);
bool http_stream_pending(struct http_stream *s);
/* The count, 0 at the end (read), or -errno: -EAGAIN, -EPIPE, -ECONNRESET, -EPROTO. */
ssize_t http_stream_read(struct http_stream *s, void *data, size_t len);
ssize_t http_stream_write(struct http_stream *s, const void *data, size_t len);
/* No more will be written; reading goes on.  0 or -errno. */
int http_stream_end_writing(struct http_stream *s);
void http_stream_close(struct http_stream *s); /* NULL is fine */

/* ---- text ---------------------------------------------------------------------------------------- */

/* Adds text to b with everything but unreserved characters percent-encoded, '/' too: nothing of it can leave the
 * path segment or the query value it is put into. */
void http_escape(struct buf *b, const char *text);

/*
 * The head of an answer, for the stream (libcurl reads all others).  Returns how many bytes it is long, 0 if it is not
 * complete yet, negative if it is not one.  Fills status, content_type and *ret_length (-1: not said).
 */
ssize_t http_parse_head(const char *data, size_t len, struct http_answer *ret, int64_t *ret_length);

#endif
