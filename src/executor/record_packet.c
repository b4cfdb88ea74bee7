/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/record_packet.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"

enum field_type { TYPE_TEXT, TYPE_NUMBER, TYPE_BYTES };

static const struct {
	enum field_type type;
	size_t max;
} field_info[PACKET_FIELDS] = {
#define FIELD(name, type, max) { TYPE_##type, max },
#include "executor/record_packet.def"
};

#define F(name) (1u << PACKET_##name)
static const struct {
	uint32_t must, may;
} kind_info[PACKET_KINDS] = {
#define KIND(name, must, may) { must, may },
#include "executor/record_packet.def"
};
static_assert(PACKET_FIELDS <= 32, "a set of fields is a number of 32 bits");

/* ---- writing ------------------------------------------------------------------------------------------------- */

void packet_bytes(struct packet_out *w, enum packet_field f, const void *bytes, size_t len)
{
	if (len > field_info[f].max || buf_add(&w->bytes, bytes, len) != len)
		w->bytes.full = true;
	else
		w->head.len[f] = (uint32_t)len;
}

void packet_text(struct packet_out *w, enum packet_field f, const char *text)
{
	if (text)
		packet_bytes(w, f, text, strlen(text) + 1);
}

void packet_number(struct packet_out *w, enum packet_field f, uint64_t n)
{
	packet_bytes(w, f, &n, sizeof(n));
}

void packet_release(struct packet_out *w)
{
	buf_release(&w->bytes);
}

int packet_send(int sock, const struct packet_out *w, int beside)
{
	struct packet_head head = w->head;
	struct iovec pieces[] = { { &head, sizeof(head) }, { w->bytes.data, w->bytes.len } };
	bool in_file = w->bytes.len > PACKET_INLINE_MAX;
	AUTO_FD file = FD_NONE;
	int fds[2], rc;
	size_t n_fds = 0;

	if (w->bytes.full || w->bytes.no_memory)
		return w->bytes.no_memory ? -ENOMEM : -EMSGSIZE;
	if (beside >= 0)
		fds[n_fds++] = beside;
	if (in_file) {
		file = sealed_make("brig-record", w->bytes.data, w->bytes.len);
		if (file < 0)
			return file;
		fds[n_fds++] = file;
	}
	rc = fd_send_record(sock, pieces, in_file ? 1 : 2, fds, n_fds, MSG_DONTWAIT);
	/* ETOOMANYREFS: too many descriptors in flight; the receiver reduces them. */
	return rc == -ENOBUFS || rc == -ETOOMANYREFS ? -EAGAIN : rc;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static const char *field_fault(enum packet_field f, const char *bytes, size_t len)
{
	if (len > field_info[f].max)
		return "a field that is too long";
	switch (field_info[f].type) {
	case TYPE_TEXT:
		return memchr(bytes, '\0', len) == bytes + len - 1 ? NULL : "a text that does not end where it says";
	case TYPE_NUMBER:
		return len == sizeof(uint64_t) ? NULL : "a number that is none";
	case TYPE_BYTES:
		break;
	}
	return NULL;
}

const char *packet_check(const struct packet_head *head, const char *bytes, size_t len, struct packet_in *ret)
{
	uint32_t there = 0;
	size_t at = 0;

	if (head->protocol != PACKET_PROTOCOL)
		return "a message of another version";
	if (head->kind >= PACKET_KINDS)
		return "a message of no kind";
	for (enum packet_field f = 0; f < PACKET_FIELDS; f++) {
		const char *fault;

		if (head->len[f] == 0)
			continue;
		if (head->len[f] > len - at)
			return "less than it says";
		fault = field_fault(f, bytes + at, head->len[f]);
		if (fault)
			return fault;
		ret->at[f] = bytes + at;
		ret->len[f] = head->len[f];
		at += head->len[f];
		there |= 1u << f;
	}
	if (at != len)
		return "more than it says";
	ret->kind = (enum packet_kind)head->kind;
	if ((there & kind_info[ret->kind].must) != kind_info[ret->kind].must)
		return "a message without a field that it needs";
	return there & ~(kind_info[ret->kind].must | kind_info[ret->kind].may) ? "a field that has no place there"
									       : NULL;
}

/* Answers carry no reply socket, so their first descriptor is the file. */
static const char *read_parts(struct packet_in *m, const struct packet_head *head, size_t n_bytes, int fds[2],
			      bool is_answer)
{
	AUTO_FD file = FD_NONE;
	uint64_t total = 0;

	if (!is_answer)
		m->beside = fd_move(&fds[0]);
	file = is_answer ? fd_move(&fds[0]) : fd_move(&fds[1]);
	for (size_t f = 0; f < PACKET_FIELDS; f++)
		total += head->len[f];
	if (file < 0)
		return packet_check(head, m->bytes, n_bytes, m);
	if (n_bytes > 0 || total > PACKET_MAX)
		return "bytes beside a file of them";
	m->mapped = sealed_map(file, (size_t)total);
	if (!m->mapped)
		return "a file that is not as long as it says, or not sealed";
	m->mapped_len = (size_t)total;
	return packet_check(head, m->mapped, m->mapped_len, m);
}

int packet_receive(int sock, bool is_answer, struct packet_in *ret, const char **ret_why)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct packet_head head = { 0 };
	struct iovec pieces[] = { { &head, sizeof(head) }, { .iov_len = PACKET_INLINE_MAX } };
	struct msghdr msg = {
		.msg_iov = pieces, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	int fds[2] = { FD_NONE, FD_NONE };
	ssize_t n;

	*ret = (struct packet_in)PACKET_IN_INIT;
	ret->bytes = malloc(PACKET_INLINE_MAX);
	if (!ret->bytes)
		return -ENOMEM;
	pieces[1].iov_base = ret->bytes;
	do
		n = fd_receive_record(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n == 0 ? -EPIPE : errno == EAGAIN ? 0 : -errno;
	(void)fd_take_beside(&msg, fds, 2); /* the reply socket, then the file with the fields */
	if ((size_t)n < sizeof(head) || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		ret->beside = fd_move(&fds[0]);
		*ret_why = (size_t)n < sizeof(head) ? "less than a message" : "more than a message may have";
	} else {
		*ret_why = read_parts(ret, &head, (size_t)n - sizeof(head), fds, is_answer);
	}
	fd_closep(&fds[0]);
	fd_closep(&fds[1]);
	return *ret_why ? -EBADMSG : 1;
}

void packet_forget(struct packet_in *m)
{
	fd_closep(&m->beside);
	if (m->mapped)
		(void)munmap(m->mapped, m->mapped_len);
	free(m->bytes);
	m->bytes = NULL;
	m->mapped = NULL;
}

uint64_t packet_get_number(const struct packet_in *m, enum packet_field f, uint64_t without)
{
	uint64_t n = without;

	if (m->at[f])
		memcpy(&n, m->at[f], sizeof(n));
	return n;
}
