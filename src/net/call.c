/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call whose answer may take long, behind one descriptor.
 *
 * libcurl's multi interface says which sockets to watch and when it wants to be called again.  Both go into one epoll
 * set: sockets as they are, the time as a timer descriptor.  So the set itself becomes readable whenever there is
 * something to do, and the caller needs to know nothing else.  A third descriptor makes it readable if an answer was
 * complete before the caller polled.
 */
#include "net/http_internal.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/wait.h"

struct http_call {
	const struct curl_library *curl;
	CURL *easy;
	CURLM *multi;
	bool added;
	bool tls;
	int epoll;
	int timer;
	int kick;
	bool finished; /* the answer was handed out, or there will be none */
	struct transfer transfer;
};

static int on_watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct http_call *call = arg;
	struct epoll_event ev = { .data.fd = fd };

	(void)easy;
	(void)socket_arg;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(call->epoll, EPOLL_CTL_DEL, fd, NULL); /* may be closed already */
		return 0;
	}
	ev.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	if (epoll_ctl(call->epoll, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	return epoll_ctl(call->epoll, EPOLL_CTL_ADD, fd, &ev);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct http_call *call = arg;
	struct itimerspec when = { 0 };

	(void)multi;
	if (ms == 0)
		when.it_value.tv_nsec = 1; /* at once; zero would switch it off */
	else if (ms > 0) {
		when.it_value.tv_sec = ms / 1000;
		when.it_value.tv_nsec = (ms % 1000) * (long)NS_PER_MS;
	}
	return timerfd_settime(call->timer, 0, &when, NULL);
}

static int make_descriptors(struct http_call *call)
{
	struct epoll_event ev = { .events = EPOLLIN };

	call->epoll = epoll_create1(EPOLL_CLOEXEC);
	call->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	call->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (call->epoll < 0 || call->timer < 0 || call->kick < 0)
		return -1;
	ev.data.fd = call->timer;
	if (epoll_ctl(call->epoll, EPOLL_CTL_ADD, call->timer, &ev) < 0)
		return -1;
	ev.data.fd = call->kick;
	return epoll_ctl(call->epoll, EPOLL_CTL_ADD, call->kick, &ev);
}

static int make_multi(struct http_call *call)
{
	const struct curl_library *l = call->curl;

	call->easy = l->easy_init();
	call->multi = l->multi_init();
	if (!call->easy || !call->multi)
		return -1;
	if (l->multi_setopt(call->multi, CURLMOPT_SOCKETFUNCTION, on_watch) != CURLM_OK ||
	    l->multi_setopt(call->multi, CURLMOPT_SOCKETDATA, call) != CURLM_OK ||
	    l->multi_setopt(call->multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
	    l->multi_setopt(call->multi, CURLMOPT_TIMERDATA, call) != CURLM_OK)
		return -1;
	return 0;
}

int http_call_begin(struct http_client *c, const struct http_request *req, uint64_t until_ns, struct http_call **ret,
		    enum http_trouble *ret_trouble, struct brig_error *err)
{
	struct http_call *call = NULL;
	int rc = http_check(req, err);

	if (ret_trouble)
		*ret_trouble = HTTP_OTHER;
	if (rc < 0)
		return rc;
	if (req->has_body_fd)
		return err_set(err, BRIG_E_INTERNAL, 0, "a pending call cannot send from a descriptor");
	call = calloc(1, sizeof(*call));
	if (!call)
		return err_nomem(err);
	call->curl = c->curl;
	call->tls = c->target.tls;
	call->epoll = call->timer = call->kick = FD_NONE;
	if (make_descriptors(call) < 0 || make_multi(call) < 0)
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot prepare an HTTP call");
	else
		rc = transfer_init(&call->transfer, c, call->easy, req, until_ns, err);
	if (rc == 0) {
		call->added = true;
		if (call->curl->multi_add_handle(call->multi, call->easy) != CURLM_OK)
			rc = err_set(err, BRIG_E_SYSTEM, 0, "cannot begin an HTTP call");
	}
	if (rc < 0) {
		http_call_close(call);
		return rc;
	}
	*ret = call;
	return 0;
}

int http_call_fd(const struct http_call *call)
{
	return call->epoll;
}

int http_call_status(const struct http_call *call)
{
	return call->transfer.headers_done ? call->transfer.answer.status : 0;
}

/* Tells libcurl about everything that is ready now. */
static void drive(struct http_call *call)
{
	struct epoll_event ev[8];
	int n = epoll_wait(call->epoll, ev, ARRAY_LEN(ev), 0);
	uint64_t count;
	int running;

	for (int i = 0; i < n; i++) {
		if (ev[i].data.fd == call->kick) {
			(void)!read(call->kick, &count, sizeof(count));
			continue;
		}
		if (ev[i].data.fd == call->timer) {
			(void)!read(call->timer, &count, sizeof(count));
			(void)call->curl->multi_socket_action(call->multi, CURL_SOCKET_TIMEOUT, 0, &running);
			continue;
		}
		(void)call->curl->multi_socket_action(
			call->multi, ev[i].data.fd,
			(ev[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
				(ev[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				(ev[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
			&running);
	}
}

int http_call_step(struct http_call *call, struct http_answer *ret, enum http_trouble *ret_trouble,
		   struct brig_error *err)
{
	struct pipe_guard guard;
	const CURLMsg *msg;
	int left, rc;

	if (call->finished)
		return http_fail(ret_trouble, HTTP_OTHER, err, 0, call->transfer.where, "the call has ended already");
	pipe_guard_enter(&guard, call->tls);
	drive(call);
	pipe_guard_leave(&guard);
	msg = call->curl->multi_info_read(call->multi, &left);
	if (!msg || msg->msg != CURLMSG_DONE)
		return 0;
	call->finished = true;
	rc = transfer_result(&call->transfer, msg->data.result, ret_trouble, err);
	if (rc < 0)
		return rc;
	*ret = call->transfer.answer;
	call->transfer.answer = (struct http_answer)HTTP_ANSWER_INIT;
	return 1;
}

int http_call_and_wait(struct http_client *c, const struct http_request *req, struct http_answer *ret,
		       enum http_trouble *ret_trouble, struct brig_error *err)
{
	struct http_call *call;
	int rc = http_call_begin(c, req, req->deadline_ns, &call, ret_trouble, err);

	if (rc < 0)
		return rc;
	while ((rc = http_call_step(call, ret, ret_trouble, err)) == 0) {
		struct pollfd p = { .fd = call->epoll, .events = POLLIN };

		/* libcurl keeps the deadline itself; ours is for the case that it does not. */
		if (http_remaining_ms(req->deadline_ns) == 0 && wait_poll(&p, 1, 0) == 0) {
			rc = http_fail(ret_trouble, HTTP_LATE, err, 0, call->transfer.where, "no answer in time");
			break;
		}
		(void)wait_poll(&p, 1, (int)http_remaining_ms(req->deadline_ns));
	}
	http_call_close(call);
	return rc < 0 ? rc : 0;
}

/* Steps until the headers are there.  An answer that is complete by then stays for the caller's own step. */
static int await_headers(struct http_call *call, uint64_t deadline_ns, enum http_trouble *ret_trouble,
			 struct brig_error *err)
{
	struct pollfd p = { .fd = call->epoll, .events = POLLIN };

	while (!call->transfer.headers_done) {
		struct pipe_guard guard;
		const CURLMsg *msg;
		int left, ready = wait_poll(&p, 1, (int)http_remaining_ms(deadline_ns));

		if (ready < 0 && errno != EINTR)
			return http_fail(ret_trouble, HTTP_OTHER, err, errno, call->transfer.where, "cannot wait");
		if (ready == 0)
			return http_fail(ret_trouble, HTTP_LATE, err, 0, call->transfer.where, "no answer in time");
		pipe_guard_enter(&guard, call->tls);
		drive(call);
		pipe_guard_leave(&guard);
		if (call->transfer.headers_done)
			break;
		msg = call->curl->multi_info_read(call->multi, &left);
		if (msg && msg->msg == CURLMSG_DONE) {
			int rc = transfer_result(&call->transfer, msg->data.result, ret_trouble, err);

			call->finished = true;
			return rc < 0 ? rc
				      : http_fail(ret_trouble, HTTP_GARBAGE, err, 0, call->transfer.where,
						  "the answer has no headers");
		}
	}
	return 0;
}

int http_call_open(struct http_client *c, const struct http_request *req, uint64_t until_ns, struct http_call **ret,
		   enum http_trouble *ret_trouble, struct brig_error *err)
{
	struct http_call *call = NULL;
	int rc = http_call_begin(c, req, until_ns, &call, ret_trouble, err);

	if (rc < 0 || !call)
		return rc;
	rc = await_headers(call, req->deadline_ns, ret_trouble, err);
	if (rc < 0) {
		http_call_close(call);
		return rc;
	}
	(void)eventfd_write(call->kick, 1);
	/* The caller's request is not needed any longer: nothing of it is read from here on. */
	call->transfer.req = NULL;
	*ret = call;
	return 0;
}

void http_call_close(struct http_call *call)
{
	struct pipe_guard guard;

	if (!call)
		return;
	pipe_guard_enter(&guard, call->tls);
	if (call->added)
		(void)call->curl->multi_remove_handle(call->multi, call->easy);
	if (call->easy)
		call->curl->easy_cleanup(call->easy);
	if (call->multi)
		(void)call->curl->multi_cleanup(call->multi);
	pipe_guard_leave(&guard);
	if (call->transfer.curl)
		transfer_release(&call->transfer);
	fd_closep(&call->epoll);
	fd_closep(&call->timer);
	fd_closep(&call->kick);
	free(call);
}
