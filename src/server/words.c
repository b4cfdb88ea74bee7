/* SPDX-License-Identifier: Apache-2.0 */
#include "server/words.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

/* As it travels; a record that is shorter has no number. */
struct word_record {
	char word, unused[3];
	uint32_t number;
};

int words_say(int sock, const struct word *w)
{
	struct word_record record = { .word = (char)w->word, .number = w->number };
	struct iovec piece = { &record, sizeof(record) };

	return sock < 0 ? -EPIPE : fd_send_record(sock, &piece, 1, w->fds, w->n_fds, MSG_DONTWAIT);
}

int words_hear(int sock, struct word *ret)
{
	union {
		char bytes[CMSG_LEN(WORD_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct word_record record = { 0 };
	struct iovec piece = { &record, sizeof(record) };
	struct msghdr msg = { .msg_iov = &piece,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_LEN(WORD_FDS_MAX * sizeof(int)) };
	ssize_t n = fd_receive_record(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret = (struct word){ .n_fds = 0 };
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -EPIPE;
	ret->n_fds = fd_take_beside(&msg, ret->fds, WORD_FDS_MAX);
	ret->word = (enum serve_word)record.word;
	ret->number = record.number;
	return 1;
}

void words_close(struct word *w)
{
	for (size_t i = 0; i < w->n_fds; i++)
		fd_closep(&w->fds[i]);
	w->n_fds = 0;
}
