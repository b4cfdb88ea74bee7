/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - data from a client for a running program
 *
 * The runner has one end of a socket pair and feeds the program from it; data that the socket does not take is
 * buffered, up to INPUT_WAITING_MAX.  Data for a program that has ended or closed its input is discarded: that is no
 * error of the client.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "server/front/front.h"

#define INPUT_WAITING_MAX (1 * MiB)

struct input {
	struct source source;
	struct front *front;
	struct buf waiting;
	size_t at;
};

int input_open(struct client *c, int *ret_other)
{
	struct input *in = calloc(1, sizeof(*in));
	int ends[2];

	if (!in)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
		int rc = -errno;

		free(in);
		return rc;
	}
	in->source = (struct source){ .kind = SOURCE_INPUT, .fd = ends[0] };
	in->front = c->front;
	in->waiting = (struct buf)BUF_INIT(INPUT_WAITING_MAX);
	c->input = in;
	*ret_other = ends[1];
	return 0;
}

static void shut(struct input *in)
{
	front_watch(in->front, &in->source, 0); /* RULE F1 */
	fd_closep(&in->source.fd);
	buf_release(&in->waiting);
}

void input_on_event(struct input *in)
{
	size_t left = in->waiting.len - in->at;
	ssize_t n;

	if (in->source.fd < 0)
		return;
	n = left ? send(in->source.fd, in->waiting.data + in->at, left, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		shut(in);
		return;
	}
	in->at += n > 0 ? (size_t)n : 0;
	if (in->at == in->waiting.len) {
		in->waiting.len = in->at = 0;
		front_watch(in->front, &in->source, 0);
	} else {
		front_watch(in->front, &in->source, EPOLLOUT);
	}
}

bool input_write(struct client *c, const char *bytes, size_t len)
{
	struct input *in = c->input;

	if (!in || in->source.fd < 0)
		return true;
	if (in->at > 0) {
		memmove(in->waiting.data, in->waiting.data + in->at, in->waiting.len - in->at);
		in->waiting.len -= in->at;
		in->at = 0;
	}
	if (in->waiting.len + len > INPUT_WAITING_MAX || buf_add(&in->waiting, bytes, len) < len)
		return false;
	input_on_event(in);
	return true;
}

void input_close(struct client *c)
{
	if (c->input && c->input->source.fd >= 0)
		shut(c->input);
}

void input_free(struct input *in)
{
	if (!in)
		return;
	fd_closep(&in->source.fd);
	buf_release(&in->waiting);
	free(in);
}
