/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - the workspace of a session goes into a file of the owner's, or comes out of one
 *
 * The steward writes or reads a stream (backend/guest/steward/tree.h) at one end of a socket; here its bytes are carried between the
 * other end and the file, some with each step, and never looked at.  So many and no more: who asked says how large the file may
 * become, and a steward that does not go on is given up at the deadline.  One at a time.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "session/inside.h"

#define PIECES_OF_A_STEP 4
#define COPY_PIECE       (256 * KiB)
#define COPY_ROOM        (int)MiB /* in the socket: neither side is woken up for less, if the host lets us */
#define COPY_MS          120000

static void forget(struct session *s)
{
	source_close(s, &s->copy.end);
	fd_closep(&s->copy.file);
	free(MOVE_PTR(s->copy.piece));
	s->copy.tag = 0;
}

static void tell(struct session *s)
{
	struct brig_session_event e = s->copy.done;

	e.kind = BRIG_SESSION_DONE;
	e.tag = s->copy.tag;
	e.fd = -1;
	e.error = s->copy.error ? s->copy.error : e.error;
	forget(s);
	session_is_active(s);
	session_tell(s, &e);
}

/* Nothing more goes through it; the steward, which sees that, has or will have something to say. */
static void close_end(struct session *s, int error)
{
	if (s->copy.error == 0)
		s->copy.error = error;
	source_close(s, &s->copy.end);
	s->copy.is_over = true;
	if (s->copy.is_answered)
		tell(s);
}

/* 1: there may be more now, 0: not now, or -errno; -ENODATA: that was all. */
static int carry_out(struct session *s)
{
	struct copy *c = &s->copy;
	ssize_t n = recv(c->end.fd, c->piece, COPY_PIECE, 0);
	int rc;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ENODATA;
	if ((uint64_t)n > c->most - c->at)
		return -EFBIG;
	rc = fd_write_all_at(c->file, c->piece, (size_t)n, c->at);
	c->at += (uint64_t)n;
	return rc < 0 ? rc : 1;
}

static int carry_in(struct session *s)
{
	struct copy *c = &s->copy;
	ssize_t n = pread(c->file, c->piece, COPY_PIECE, (off_t)c->at), taken;

	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	taken = send(c->end.fd, c->piece, (size_t)n, MSG_NOSIGNAL);
	if (taken < 0)
		return errno == EAGAIN || errno == EINTR       ? 0
		       : errno == EPIPE || errno == ECONNRESET ? -ENODATA
							       : -errno;
	c->at += (uint64_t)taken;
	return 1;
}

static void serve_end(struct session *s, void *owner UNUSED, uint32_t events UNUSED)
{
	int rc = 1;

	for (int i = 0; rc > 0 && i < PIECES_OF_A_STEP; i++)
		rc = s->copy.saves ? carry_out(s) : carry_in(s);
	if (rc < 0)
		close_end(s, rc == -ENODATA ? 0 : -rc);
	session_set_timer(s);
}

void copy_answered(struct session *s, uint64_t tag, const int64_t *number, int error)
{
	struct copy *c = &s->copy;

	if (c->tag != tag)
		return; /* it was given up */
	c->is_answered = true;
	c->done.error = error;
	c->done.entries = (uint64_t)number[1];
	c->done.bytes = (uint64_t)number[2];
	c->done.left_out = (uint64_t)number[3];
	if (c->is_over || !c->saves || error)
		tell(s);
}

uint64_t copy_deadline(const struct session *s)
{
	return s->copy.tag ? s->copy.deadline_ns : UINT64_MAX;
}

void copy_check_deadline(struct session *s, uint64_t now)
{
	if (!s->copy.tag || now < s->copy.deadline_ns)
		return;
	s->copy.error = ETIMEDOUT;
	tell(s);
}

void copy_abandon(struct session *s)
{
	if (s->copy.tag)
		forget(s);
}

static void make_room(int sock)
{
	const int room = COPY_ROOM;

	if (setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) < 0)
		(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

static int open_both(struct session *s, int file, bool saves, int *ret_theirs)
{
	struct copy *c = &s->copy;
	AUTO_FD own = FD_NONE;
	int ends[2], rc;

	c->piece = malloc(COPY_PIECE);
	if (!c->piece)
		return -ENOMEM;
	c->file = fcntl(file, F_DUPFD_CLOEXEC, 3);
	if (c->file < 0)
		return -errno;
	/* Not a pipe: writing to one without a reader kills. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	own = ends[0];
	*ret_theirs = ends[1];
	make_room(ends[0]);
	make_room(ends[1]);
	rc = fd_set_nonblock(own);
	if (rc == 0)
		rc = source_watch(s, &c->end, own, saves ? EPOLLIN : EPOLLOUT, serve_end, s);
	if (rc == 0)
		(void)fd_move(&own);
	return rc;
}

int session_copy(struct session *s, int file, bool saves, uint64_t most_bytes, uint64_t *ret_tag,
		 struct brig_error *err)
{
	struct steward_head head = { .kind = saves ? STEWARD_SAVE : STEWARD_LOAD };
	int theirs = FD_NONE, rc;

	if (s->copy.tag)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the files of the session are being copied: try again in a moment");
	s->copy = (struct copy){ .tag = session_next_tag(s),
				 .saves = saves,
				 .most = most_bytes,
				 .deadline_ns = clock_now_ns() + COPY_MS * NS_PER_MS,
				 .file = FD_NONE,
				 .end = { .fd = FD_NONE } };
	head.tag = s->copy.tag;
	head.number[0] = SESSION_ENTRIES_MAX;
	head.number[1] = (int64_t)min_u64(most_bytes, INT64_MAX);
	rc = open_both(s, file, saves, &theirs);
	rc = rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot copy the files of the session")
		    : session_send(s, &head, NULL, 0, &theirs, 1, false, err);
	fd_closep(&theirs);
	if (rc < 0)
		forget(s);
	else if (ret_tag)
		*ret_tag = head.tag;
	return rc;
}
