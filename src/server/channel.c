/* SPDX-License-Identifier: Apache-2.0 */
#include "server/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "server/message.h"

#define FILE_WEIGHT 512 /* bytes of a file that count as one byte of the socket's buffer */

const char *const event_name[EVENT_KINDS] = {
	[EVENT_queued] = "queued", [EVENT_started] = "started", [EVENT_finding] = "finding",
	[EVENT_notice] = "notice", [EVENT_stdout] = "stdout",   [EVENT_stderr] = "stderr",
	[EVENT_sample] = "sample", [EVENT_changed] = "changed", [EVENT_verdict] = "verdict",
	[EVENT_result] = "result", [EVENT_done] = "done",
};

struct record_head {
	uint32_t tag;
	uint16_t type;
	uint16_t status;
	uint32_t len;
	uint32_t in_file; /* 1: the first descriptor holds the data */
};

struct waiting {
	struct waiting *next;
	struct record_head head;
	int fds[CHANNEL_FDS_MAX];
	size_t n_fds, n_bytes;
	char bytes[];
};

struct channel {
	int sock;
	struct waiting *first, **last;
	size_t queued; /* queued bytes in this process */
	size_t held;   /* plus those in files */
	/* the record received last */
	char bytes[CHANNEL_INLINE_MAX];
	void *mapped;
	size_t mapped_len;
	struct record received;
};

int channel_new(int *sock, struct channel **ret, struct brig_error *err)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err);
	c->sock = fd_move(sock);
	c->last = &c->first;
	if (fd_set_nonblock(c->sock) < 0) {
		channel_free(c);
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot use the socket between front and runner");
	}
	*ret = c;
	return 0;
}

static void waiting_free(struct waiting *w)
{
	for (size_t i = 0; i < w->n_fds; i++)
		fd_closep(&w->fds[i]);
	free(w);
}

/* Releases what the last record brought and the caller has not taken. */
static void forget_received(struct channel *c)
{
	for (size_t i = 0; i < c->received.n_fds; i++)
		fd_closep(&c->received.fds[i]);
	c->received.n_fds = 0;
	if (c->mapped)
		(void)munmap(c->mapped, c->mapped_len);
	c->mapped = NULL;
}

void channel_free(struct channel *c)
{
	if (!c)
		return;
	while (c->first) {
		struct waiting *w = c->first;

		c->first = w->next;
		waiting_free(w);
	}
	forget_received(c);
	fd_closep(&c->sock);
	free(c);
}

int channel_fd(const struct channel *c)
{
	return c->sock;
}

short channel_events(const struct channel *c)
{
	return c->first ? POLLIN | POLLOUT : POLLIN;
}

size_t channel_waiting(const struct channel *c)
{
	return c->held;
}

/* ---- sending --------------------------------------------------------------------------------------- */

/*
 * A file in memory occupies only a few bytes of the socket's buffer, so hundreds of them could queue up for a reader
 * that does not read.  Therefore its record repeats the first bytes of the file, enough that a few large ones fill the
 * buffer.
 */
static size_t ballast_of(uint32_t len)
{
	return min_u64(len / FILE_WEIGHT, CHANNEL_INLINE_MAX);
}

/* 1: sent; 0: the socket is full; -errno. */
static int try_send(const struct channel *c, const struct record_head *head, const void *bytes, size_t n_bytes,
		    const int *fds, size_t n_fds)
{
	struct record_head copy = *head;
	struct iovec pieces[] = { { &copy, sizeof(copy) }, { .iov_len = n_bytes } };
	int rc;

	memcpy(&pieces[1].iov_base, &bytes, sizeof(bytes)); /* only read */
	rc = fd_send_record(c->sock, pieces, ARRAY_LEN(pieces), fds, n_fds, MSG_DONTWAIT);

	/* ETOOMANYREFS: too many descriptors in flight; there will be fewer as the peer receives them. */
	if (rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS)
		return 0;
	return rc < 0 ? rc : 1;
}

/* Appends to the send queue. */
static int enqueue(struct channel *c, const struct record_head *head, const void *bytes, size_t n_bytes, const int *fds,
		   size_t n_fds, struct brig_error *err)
{
	struct waiting *w;

	if (c->queued + n_bytes > CHANNEL_QUEUE_MAX || (c->held > 0 && c->held + head->len > CHANNEL_HELD_MAX))
		return err_set(err, BRIG_E_SYSTEM, 0, "the other process of the service does not take what it is sent");
	w = calloc(1, sizeof(*w) + n_bytes);
	if (!w)
		return err_nomem(err);
	w->head = *head;
	for (; w->n_fds < n_fds; w->n_fds++) {
		w->fds[w->n_fds] = fcntl(fds[w->n_fds], F_DUPFD_CLOEXEC, 3);
		if (w->fds[w->n_fds] < 0) {
			waiting_free(w);
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot keep a descriptor that is to be sent");
		}
	}
	if (n_bytes > 0)
		memcpy(w->bytes, bytes, n_bytes);
	w->n_bytes = n_bytes;
	*c->last = w;
	c->last = &w->next;
	c->queued += n_bytes + sizeof(*w);
	c->held += head->len + sizeof(*w);
	return 0;
}

/* file: FD_NONE, or the file with the payload, in which case the first n_bytes of it go into the record as well. */
static int send_record(struct channel *c, const struct record *r, const void *bytes, size_t n_bytes, int file,
		       struct brig_error *err)
{
	struct record_head head = {
		.tag = r->tag, .type = (uint16_t)r->type, .status = r->status, .len = (uint32_t)r->len
	};
	int fds[CHANNEL_FDS_MAX], rc = 0;
	size_t n_fds = 0;

	head.in_file = file >= 0;
	if (file >= 0)
		fds[n_fds++] = file;
	for (size_t i = 0; i < r->n_fds; i++)
		fds[n_fds++] = r->fds[i];
	if (!c->first)
		rc = try_send(c, &head, bytes, n_bytes, fds, n_fds);
	if (rc == 0)
		return enqueue(c, &head, bytes, n_bytes, fds, n_fds, err);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot write to the other process of the service") : 0;
}

int channel_send(struct channel *c, const struct record *r, struct brig_error *err)
{
	AUTO_FD file = FD_NONE;

	if (r->len > MESSAGE_MAX || r->n_fds >= CHANNEL_FDS_MAX)
		return err_set(err, BRIG_E_INTERNAL, 0, "a message of %zu bytes between front and runner", r->len);
	if (r->len <= CHANNEL_INLINE_MAX)
		return send_record(c, r, r->data, r->len, FD_NONE, err);
	file = sealed_make("brig-message", r->data, r->len);
	if (file < 0)
		return err_set(err, BRIG_E_SYSTEM, -file, "cannot keep a message of %zu bytes in memory", r->len);
	return send_record(c, r, r->data, ballast_of((uint32_t)r->len), file, err);
}

int channel_send_file(struct channel *c, const struct record *r, int file, struct brig_error *err)
{
	static char ballast[CHANNEL_INLINE_MAX];
	size_t n = ballast_of((uint32_t)min_u64(r->len, UINT32_MAX));

	if (r->len == 0 || r->len > MESSAGE_MAX || r->n_fds >= CHANNEL_FDS_MAX ||
	    pread(file, ballast, n, 0) != (ssize_t)n)
		return err_set(err, BRIG_E_INTERNAL, 0, "a file of %zu bytes between front and runner", r->len);
	return send_record(c, r, ballast, n, file, err);
}

int channel_flush(struct channel *c, struct brig_error *err)
{
	while (c->first) {
		struct waiting *w = c->first;
		int rc = try_send(c, &w->head, w->bytes, w->n_bytes, w->fds, w->n_fds);

		if (rc == 0)
			return 0;
		if (rc < 0)
			return err_set(err, BRIG_E_SYSTEM, -rc, "cannot write to the other process of the service");
		c->first = w->next;
		if (!c->first)
			c->last = &c->first;
		c->queued -= w->n_bytes + sizeof(*w);
		c->held -= w->head.len + sizeof(*w);
		waiting_free(w);
	}
	return 0;
}

/* ---- receiving ------------------------------------------------------------------------------------------ */

/* The payload is in the first descriptor: a sealed file of exactly len bytes. */
static bool map_file(struct channel *c, size_t len)
{
	struct record *r = &c->received;
	AUTO_FD file = FD_NONE;

	if (r->n_fds == 0)
		return false;
	file = r->fds[0];
	r->n_fds--;
	memmove(r->fds, r->fds + 1, r->n_fds * sizeof(r->fds[0]));
	c->mapped = len <= MESSAGE_MAX ? sealed_map(file, len) : NULL;
	if (!c->mapped)
		return false;
	c->mapped_len = len;
	r->data = c->mapped;
	return true;
}

static bool read_head(struct channel *c, const struct record_head *head, size_t n, bool is_cut)
{
	struct record *r = &c->received;

	if (is_cut || n < sizeof(*head) || head->type >= RECORD_TYPES || head->in_file > 1)
		return false;
	r->tag = head->tag;
	r->type = (enum record_type)head->type;
	r->status = head->status;
	r->data = c->bytes;
	r->len = head->len;
	if (head->in_file)
		return n - sizeof(*head) == ballast_of(head->len) && map_file(c, head->len);
	return n - sizeof(*head) == head->len;
}

int channel_receive(struct channel *c, struct record *ret, struct brig_error *err)
{
	union {
		char bytes[CMSG_SPACE(CHANNEL_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct record_head head = { 0 };
	struct iovec pieces[] = { { &head, sizeof(head) }, { c->bytes, sizeof(c->bytes) } };
	struct msghdr msg = { .msg_iov = pieces,
			      .msg_iovlen = ARRAY_LEN(pieces),
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	forget_received(c);
	do
		n = fd_receive_record(c->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return err_set(err, BRIG_E_SYSTEM, n < 0 ? errno : EPIPE, "the other process of the service has ended");
	c->received.n_fds = fd_take_beside(&msg, c->received.fds, CHANNEL_FDS_MAX);
	if (!read_head(c, &head, (size_t)n, (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)) {
		forget_received(c);
		return err_set(err, BRIG_E_SYSTEM, EPROTO,
			       "the other process of the service does not speak its language");
	}
	*ret = c->received;
	c->received.n_fds = 0; /* owned by the caller now */
	return 1;
}
