/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

/* Wire format; a shorter record has number 0. */
struct control_record {
	char kind, unused[3];
	uint32_t number;
};

int control_send(int sock, const struct control_message *m)
{
	struct control_record record = { .kind = (char)m->kind, .number = m->number };
	struct iovec piece = { &record, sizeof(record) };

	return sock < 0 ? -EPIPE : fd_send_record(sock, &piece, 1, m->fds, m->n_fds, MSG_DONTWAIT);
}

int control_receive(int sock, struct control_message *ret)
{
	union {
		char bytes[CMSG_LEN(CONTROL_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct control_record record = { 0 };
	struct iovec piece = { &record, sizeof(record) };
	struct msghdr msg = { .msg_iov = &piece,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_LEN(CONTROL_FDS_MAX * sizeof(int)) };
	ssize_t n = fd_receive_record(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret = (struct control_message){ .n_fds = 0 };
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -EPIPE;
	ret->n_fds = fd_take_beside(&msg, ret->fds, CONTROL_FDS_MAX);
	ret->kind = (enum control_kind)record.kind;
	ret->number = record.number;
	return 1;
}

void control_close(struct control_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		fd_closep(&m->fds[i]);
	m->n_fds = 0;
}
