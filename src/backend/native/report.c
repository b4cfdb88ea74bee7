/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/native/report.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/guest/wait.h"
#include "backend/guest/walls.h"
#include "base/fd.h"

static_assert(HANDED_COUNT <= FD_BESIDE_MAX, "what init hands over goes into one record");
static_assert(sizeof(struct guest_word) != sizeof(struct report), "records are told apart by their size");

/* NONE is not a protection; every other word in that column is. */
#define PROT_NONE PROT_COUNT

const struct step_info step_info[] = {
#define STEP(name, protection, what) { #name, PROT_##protection, what },
#include "backend/native/steps.def"
};
static_assert(ARRAY_LEN(step_info) == STEP_COUNT, "step_info[] misses a step");

struct report report_make(enum report_kind kind)
{
	return (struct report){ .magic = REPORT_MAGIC, .kind = kind };
}

bool report_decode(const void *bytes, size_t len, struct report *ret)
{
	struct report r;

	if (len != sizeof(r))
		return false;
	memcpy(&r, bytes, sizeof(r));
	if (r.magic != REPORT_MAGIC || r.kind == 0 || r.kind >= REPORT_KIND_END || r.step >= STEP_COUNT)
		return false;
	if (r.kind == REPORT_ENDED) {
		if (r.exited != 0 && r.exited != 1)
			return false;
		if (r.exited ? (r.value < 0 || r.value > 255) : (r.value < 1 || r.value > 64))
			return false;
	}
	*ret = r;
	return true;
}

int report_send(int sock, const struct report *r, const int *fds, size_t n)
{
	struct report copy = *r;
	struct iovec whole = { .iov_base = &copy, .iov_len = sizeof(copy) };

	return fd_send_record(sock, &whole, 1, fds, n, 0);
}

int report_failure(int sock, enum step step, int rc)
{
	struct report r = report_make(REPORT_FAILED);

	r.step = step;
	r.sys = -rc;
	return report_send(sock, &r, NULL, 0);
}

static void take_control(struct msghdr *msg, struct received *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS && len <= sizeof(ret->fds)) {
			memcpy(ret->fds, CMSG_DATA(c), len);
			ret->n_fds = len / sizeof(int);
		} else if (c->cmsg_type == SCM_CREDENTIALS && len == sizeof(struct ucred)) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			ret->sender = cred.pid;
		}
	}
}

static bool decode_not_joined(uint64_t value, struct report *ret)
{
	static const enum step steps[] = {
#define X(name) [JOIN_##name] = STEP_##name,
		GUEST_JOINS(X)
#undef X
	};
	uint64_t join = value >> 32;

	if (join >= ARRAY_LEN(steps))
		return false;
	*ret = report_make(REPORT_FAILED);
	ret->step = steps[join];
	ret->sys = (int32_t)(value & INT32_MAX);
	return true;
}

/* The library in an interpreter sends shorter records (guest/wait.h). */
static bool decode_wait(const void *bytes, size_t len, struct report *ret)
{
	struct guest_word w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	if (w.magic != GUEST_WORD_MAGIC)
		return false;
	switch (w.kind) {
	case GUEST_WAITING:
		*ret = report_make(REPORT_WAITING);
		return true;
	case GUEST_FAILED:
	case GUEST_UNFIT:
		*ret = report_make(REPORT_FAILED);
		ret->step = STEP_wait;
		return true;
	case GUEST_CONFINED:
		*ret = report_make(REPORT_CONFINED);
		ret->value = (int32_t)min_u64(w.value, INT32_MAX);
		return true;
	case GUEST_NOT_JOINED:
		return decode_not_joined(w.value, ret);
	default:
		return false;
	}
}

int report_receive(int sock, bool wait, struct received *ret)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * HANDED_COUNT) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char bytes[sizeof(struct report) + 1];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	*ret = (struct received){ .n_fds = 0 };
	for (size_t i = 0; i < HANDED_COUNT; i++)
		ret->fds[i] = FD_NONE;
	n = fd_receive_record(sock, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	if (n <= 0)
		return n < 0 ? -errno : 0;
	take_control(&msg, ret);
	if (!(msg.msg_flags & MSG_CTRUNC) &&
	    (report_decode(bytes, (size_t)n, &ret->report) || decode_wait(bytes, (size_t)n, &ret->report)))
		return 1;
	for (size_t i = 0; i < HANDED_COUNT; i++)
		fd_closep(&ret->fds[i]);
	ret->n_fds = 0;
	return msg.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
}
