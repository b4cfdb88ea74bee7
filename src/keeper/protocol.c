/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/protocol.h"

#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

union keep_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * KEEP_FDS_MAX)];
};

int keep_send(int sock, enum keep_kind kind, const void *body, size_t len, const void *rest, size_t rest_len,
	      const int *fds, size_t n_fds)
{
	struct keep_head head = { .magic = KEEP_MAGIC, .kind = kind, .size = len + rest_len };
	struct iovec iov[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)body, .iov_len = len },
		{ .iov_base = (void *)(uintptr_t)rest, .iov_len = rest_len },
	};

	return fd_send_record(sock, iov, ARRAY_LEN(iov), fds, n_fds, MSG_DONTWAIT);
}

void keep_message_release(struct keep_message *m)
{
	for (size_t i = 0; i < KEEP_FDS_MAX; i++)
		fd_closep(&m->fds[i]);
	m->n_fds = 0;
}

int keep_receive(int sock, char *buffer, struct keep_message *ret)
{
	union keep_control control;
	struct iovec iov[] = {
		{ .iov_base = &ret->head, .iov_len = sizeof(ret->head) },
		{ .iov_base = buffer, .iov_len = KEEP_BODY_MAX },
	};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = ARRAY_LEN(iov),
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	*ret = (struct keep_message){ .body = buffer };
	for (size_t i = 0; i < KEEP_FDS_MAX; i++)
		ret->fds[i] = FD_NONE;
	n = fd_receive_record(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	ret->n_fds = fd_take_beside(&msg, ret->fds, KEEP_FDS_MAX);
	if (!(msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) && (size_t)n >= sizeof(ret->head) &&
	    ret->head.magic == KEEP_MAGIC && ret->head.kind > 0 && ret->head.kind < KEEP_KIND_END &&
	    ret->head.size == (size_t)n - sizeof(ret->head))
		return 1;
	keep_message_release(ret);
	return msg.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
}
