/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP client share. */
#ifndef NET_HTTP_INTERNAL_H
#define NET_HTTP_INTERNAL_H

#include <signal.h>

#include "net/curl.h"
#include "net/http.h"

struct http_client {
	const struct curl_library *curl;
	struct http_target target;
	CURL *easy; /* for http_send: keeps its connection */
};

/* One transfer of libcurl: where its answer goes and what went wrong in our callbacks. */
struct transfer {
	const struct curl_library *curl;
	CURL *easy;
	struct curl_slist *headers, *addresses;
	const struct http_request *req; /* valid while the request is sent */
	http_data_fn on_data;
	void *arg;
	struct http_answer answer;
	size_t head_len;
	uint64_t deadline_ns;
	bool headers_done;
	bool connect_only;
	bool too_big, stopped, body_late;
	int body_error;
	char where[400]; /* "GET /v1.41/info at unix:///run/docker.sock", for messages */
	char text[CURL_ERROR_SIZE];
};

/* Milliseconds until a deadline, rounded up; 0 when it is past. */
long http_remaining_ms(uint64_t deadline_ns);
/* Prepares a transfer on an easy handle: target, request, limits, callbacks.  The transfer must stay where it is. */
int transfer_init(struct transfer *t, const struct http_client *c, CURL *easy, const struct http_request *req,
		  uint64_t until_ns, struct brig_error *err);
void transfer_release(struct transfer *t); /* not the easy handle */
/* Turns libcurl's result into ours.  0, or negative with *ret_trouble and err. */
int transfer_result(struct transfer *t, CURLcode code, enum http_trouble *ret_trouble, struct brig_error *err);

/* http_send() in a task: the same as a call that is waited for. */
int http_call_and_wait(struct http_client *c, const struct http_request *req, struct http_answer *ret,
		       enum http_trouble *ret_trouble, struct brig_error *err);

/* Checks that a request can be sent as it is. */
int http_check(const struct http_request *req, struct brig_error *err);
void http_describe(char *dst, size_t size, const struct http_client *c, const struct http_request *req);
/* One header line, without its end: what an answer keeps of it. */
void http_take_header(struct http_answer *a, const char *line, size_t len);
int http_fail(enum http_trouble *ret_trouble, enum http_trouble trouble, struct brig_error *err, int sys,
	      const char *where, const char *why);

/*
 * TLS libraries may write to a broken connection without MSG_NOSIGNAL; the library installs no signal handler, so
 * SIGPIPE is blocked in this thread meanwhile and consumed afterwards, unless it was pending before.
 */
struct pipe_guard {
	bool active;
	bool was_pending;
	sigset_t mask;
};
void pipe_guard_enter(struct pipe_guard *g, bool needed);
void pipe_guard_leave(struct pipe_guard *g);

#endif
