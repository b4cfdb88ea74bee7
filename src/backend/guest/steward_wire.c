/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of the messages of a session's cell, for both ends; neither trusts the other. */
#include <string.h>
#include <sys/socket.h>

#include "backend/guest/steward.h"
#include "base/fd.h"
#include "base/util.h"

union steward_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * STEWARD_FDS_MAX)];
};

int steward_send(int sock, const struct steward_head *head, const char *const *words, size_t n_words, const int *fds,
		 size_t n_fds, int flags)
{
	struct iovec pieces[STEWARD_WORDS_MAX + 1];
	struct steward_head h = *head;

	if (n_words > STEWARD_WORDS_MAX || n_fds > STEWARD_FDS_MAX)
		return -E2BIG;
	h.magic = STEWARD_MAGIC;
	h.n_words = (uint32_t)n_words;
	h.size = 0;
	for (size_t i = 0; i < n_words; i++) {
		size_t len = strnlen(words[i], STEWARD_BYTES_MAX) + 1;

		if (len > STEWARD_BYTES_MAX - h.size)
			return -E2BIG;
		pieces[i + 1] = (struct iovec){ .iov_base = (void *)(uintptr_t)words[i], .iov_len = len };
		h.size += (uint32_t)len;
	}
	pieces[0] = (struct iovec){ .iov_base = &h, .iov_len = sizeof(h) };
	return fd_send_record(sock, pieces, n_words + 1, fds, n_fds, flags);
}

void steward_message_release(struct steward_message *m)
{
	for (size_t i = 0; i < STEWARD_FDS_MAX; i++)
		fd_closep(&m->fds[i]);
	m->n_fds = 0;
}

/* Checks that there are as many strings as the head says, and nothing after the last. */
static bool split_words(struct steward_message *m)
{
	const char *at = m->bytes, *end = m->bytes + m->head.size;

	for (size_t i = 0; i < m->head.n_words; i++) {
		const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

		if (!nul)
			return false;
		m->word[i] = at;
		at = nul + 1;
	}
	m->word[m->head.n_words] = NULL;
	return at == end;
}

static bool is_sound(struct steward_message *m, size_t received)
{
	const struct steward_head *h = &m->head;

	return received >= sizeof(*h) && h->magic == STEWARD_MAGIC && h->kind > 0 && h->kind < STEWARD_KIND_END &&
	       h->n_words <= STEWARD_WORDS_MAX && h->size == received - sizeof(*h) && split_words(m);
}

int steward_receive(int sock, struct steward_message *ret, int flags)
{
	union steward_control control;
	struct iovec iov[] = {
		{ .iov_base = &ret->head, .iov_len = sizeof(ret->head) },
		{ .iov_base = ret->bytes, .iov_len = sizeof(ret->bytes) },
	};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = ARRAY_LEN(iov),
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	ret->n_fds = 0;
	for (size_t i = 0; i < STEWARD_FDS_MAX; i++)
		ret->fds[i] = FD_NONE;
	n = fd_receive_record(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	ret->n_fds = fd_take_beside(&msg, ret->fds, STEWARD_FDS_MAX);
	if (!(msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) && is_sound(ret, (size_t)n))
		return 1;
	steward_message_release(ret);
	return -EPROTO;
}
