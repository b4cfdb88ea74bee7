/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - save and load: the workspace of a session to or from a file, or directly to another session
 *
 * The steward writes or reads a stream (backend/guest/steward/tree.h) at one end of a pipe.  This side moves the bytes
 * between the other end and the file, a limited amount per step, without looking at them: splice() moves pages of pipes
 * without copying.  The caller limits the size of the file, and a steward that makes no progress is given up at the
 * deadline.  One copy at a time.
 *
 *	save to a file     steward ==pipe==> move() ==> file
 *	load from a file                     file ==> move() ==pipe==> steward
 *	session to session steward ==pipe==> move() ==the caller's pipe==> steward of the other session
 *
 * For a direct copy, the caller's pipe is the file of a save in the first session and of a load in the second, whose
 * steward gets the read end itself.  The two cells never share a pipe: the connection between them is in this process,
 * and it ends with the copy, whatever descriptors either cell keeps.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "session/inside.h"

#define PIECES_OF_A_STEP 4
#define COPY_PIECE       (256 * KiB)
#define COPY_ROOM        (int)MiB /* pipe capacity, if the host permits it: fewer wakeups */
#define COPY_MS          120000

static void forget(struct session *s)
{
	source_close(s, &s->copy.end);
	source_close(s, &s->copy.next);
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

/* Closes our ends.  The steward notices, and has sent its answer or will send it. */
static void close_end(struct session *s, int error)
{
	if (s->copy.error == 0)
		s->copy.error = error;
	source_close(s, &s->copy.end);
	source_close(s, &s->copy.next);
	fd_closep(&s->copy.file);
	s->copy.is_over = true;
	if (s->copy.is_answered)
		tell(s);
}

/* Like splice(2), at the copy's own offset if the file is seekable, and without raising SIGPIPE in the caller. */
static ssize_t move(struct copy *c, int from, int to, size_t len)
{
	loff_t at = (loff_t)c->at;
	bool from_file = from == c->file, has_offset = !c->is_pipe;
	struct quiet quiet;
	ssize_t n;

	quiet_begin(&quiet);
	n = splice(from, has_offset && from_file ? &at : NULL, to, has_offset && !from_file ? &at : NULL, len,
		   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	quiet_end(&quiet, n < 0 && errno == EPIPE);
	return n;
}

/* For files that splice(2) does not support. */
static ssize_t move_by_hand(struct copy *c, int from, int to, size_t len)
{
	bool from_file = from == c->file;
	struct quiet quiet;
	ssize_t n;
	int rc;

	if (!c->piece)
		c->piece = malloc(COPY_PIECE);
	if (!c->piece) {
		errno = ENOMEM;
		return -1;
	}
	len = min_u64(len, COPY_PIECE);
	n = from_file ? pread(from, c->piece, len, (off_t)c->at) : read(from, c->piece, len);
	if (n <= 0)
		return n;
	if (from_file) {
		quiet_begin(&quiet);
		n = write(to, c->piece, (size_t)n);
		quiet_end(&quiet, n < 0 && errno == EPIPE);
		return n;
	}
	rc = fd_write_all_at(to, c->piece, (size_t)n, c->at);
	errno = -rc;
	return rc < 0 ? -1 : n;
}

/* At the size limit.  -ENODATA: the source is at its end, too; -EFBIG: there is more; otherwise as carry(). */
static int check_end(int from)
{
	char byte;
	ssize_t n = read(from, &byte, 1);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n == 0 ? -ENODATA : -EFBIG;
}

/* 1: call again, 0: would block, -ENODATA: end of the source, otherwise -errno. */
static int carry(struct copy *c)
{
	int from = c->saves ? c->end.fd : c->file, to = c->saves ? (c->is_pipe ? c->next.fd : c->file) : c->end.fd;
	size_t len = (size_t)min_u64(COPY_ROOM, c->most - c->at);
	ssize_t n;

	if (len == 0)
		return check_end(from);
	n = c->by_hand ? move_by_hand(c, from, to, len) : move(c, from, to, len);
	if (n < 0 && errno == EINVAL && !c->by_hand && !c->is_pipe) {
		c->by_hand = true;
		return 1;
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	c->at += (uint64_t)n;
	return n == 0 ? -ENODATA : 1;
}

static bool has_more(const struct copy *c)
{
	int waiting = 0;

	return c->end.fd >= 0 && ioctl(c->end.fd, FIONREAD, &waiting) == 0 && waiting > 0;
}

/* Of two pipes, polls the one that blocks us: the source if it is empty, otherwise the destination, which is full. */
static void choose_source(struct session *s)
{
	struct copy *c = &s->copy;
	bool is_full = has_more(c);

	if (is_full != c->is_held) /* a source that the steward has closed would be reported all the time */
		source_hold(s, &c->end, is_full);
	c->is_held = is_full;
	source_change(s, &c->next, is_full ? EPOLLOUT : 0);
}

static void serve_end(struct session *s, void *owner UNUSED, uint32_t events UNUSED)
{
	int rc = 1;

	for (int i = 0; rc > 0 && i < PIECES_OF_A_STEP; i++)
		rc = carry(&s->copy);
	/*
	 * EPIPE is not always an error.  A steward that stops reading has sent its answer, or will.  Another reader
	 * recognizes the end of the stream itself and may have closed the pipe by then.
	 */
	if (rc == -EPIPE && (!s->copy.saves || !has_more(&s->copy)))
		rc = -ENODATA;
	if (rc < 0)
		close_end(s, rc == -ENODATA ? 0 : -rc);
	else if (s->copy.saves && s->copy.is_pipe)
		choose_source(s);
	session_set_timer(s);
}

static void serve_next(struct session *s, void *owner, uint32_t events)
{
	if (events & EPOLLERR) /* EPIPE, as in serve_end(); if the steward has more to write, its copy fails */
		close_end(s, has_more(&s->copy) ? EPIPE : 0);
	else
		serve_end(s, owner, events);
}

void copy_answered(struct session *s, uint64_t tag, const int64_t *number, int error)
{
	struct copy *c = &s->copy;

	if (c->tag != tag)
		return; /* given up at the deadline */
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

/* Our end is non-blocking, the steward's is not. */
static int open_pipe(struct session *s, bool saves, int *ret_theirs)
{
	AUTO_FD own = FD_NONE;
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	own = ends[saves ? 0 : 1];
	*ret_theirs = ends[saves ? 1 : 0];
	(void)fcntl(own, F_SETPIPE_SZ, COPY_ROOM);
	rc = fd_set_nonblock(own);
	if (rc == 0)
		rc = source_watch(s, &s->copy.end, own, saves ? EPOLLIN : EPOLLOUT, serve_end, s);
	if (rc == 0)
		(void)fd_move(&own);
	return rc;
}

static int open_both(struct session *s, int file, int *ret_theirs)
{
	struct copy *c = &s->copy;
	AUTO_FD own = fcntl(file, F_DUPFD_CLOEXEC, 3);
	struct stat st;
	int rc;

	if (own < 0 || fstat(own, &st) < 0)
		return -errno;
	c->is_pipe = S_ISFIFO(st.st_mode);
	if (c->is_pipe && !c->saves) {
		*ret_theirs = fd_move(&own);
		return 0;
	}
	if (!c->is_pipe) {
		c->file = fd_move(&own);
		return open_pipe(s, c->saves, ret_theirs);
	}
	(void)fcntl(own, F_SETPIPE_SZ, COPY_ROOM);
	rc = fd_set_nonblock(own);
	if (rc == 0)
		rc = source_watch(s, &c->next, own, 0, serve_next, s);
	if (rc < 0)
		return rc;
	(void)fd_move(&own);
	return open_pipe(s, true, ret_theirs);
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
				 .end = { .fd = FD_NONE },
				 .next = { .fd = FD_NONE } };
	head.tag = s->copy.tag;
	head.number[0] = SESSION_ENTRIES_MAX;
	head.number[1] = (int64_t)min_u64(most_bytes, INT64_MAX);
	rc = open_both(s, file, &theirs);
	rc = rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot copy the files of the session")
		    : session_send(s, &head, NULL, 0, &theirs, 1, false, err);
	fd_closep(&theirs);
	if (rc < 0)
		forget(s);
	else if (ret_tag)
		*ret_tag = head.tag;
	return rc;
}
