/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_transfers.c - copying of file contents out of a cell and into it
 *
 * The runner's loop serves all clients, so a large file is not copied at once: each turn copies STEP_BYTES of each
 * transfer.  A file read from the cell is copied into a file in memory that already has the answer's other fields and
 * is passed to the front as it is; a file written to the cell is copied from one that the front has sent.  An eventfd
 * in the sessions' epoll set is readable while there is something to copy.
 *
 *	begin -> step ... step -> done: answered, and the wait freed
 *	   `-- a small file is done at once
 *
 * A transfer belongs to its wait and ends with it, when the client disconnects or the session ends.  If the program
 * changes the file meanwhile: its initial size is what is copied, and truncation is an error.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define STEP_BYTES (1 * MiB)
#define PIECE      (128 * KiB)

struct session_transfer {
	TAILQ_ENTRY(session_transfer) in_all;
	struct server_session *session;
	struct session_wait *wait;
	bool reads; /* from the cell */
	int from, to;
	uint64_t at, size; /* position in the file, and its size */
	uint64_t before;   /* size of the answer before the contents */
};

int session_transfers_open(struct sessions *t, struct brig_error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = NULL } };

	TAILQ_INIT(&t->transfers);
	t->more = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->more < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->more, &ev) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for files of sessions");
	return 0;
}

void session_transfer_free(struct sessions *t, struct session_transfer *f)
{
	uint64_t n;

	if (!f)
		return;
	TAILQ_REMOVE(&t->transfers, f, in_all);
	if (TAILQ_EMPTY(&t->transfers))
		(void)!read(t->more, &n, sizeof(n));
	f->wait->transfer = NULL;
	fd_closep(&f->from);
	fd_closep(&f->to);
	free(f);
}

/* 1: not finished; 0: done; -errno. */
static int carry(struct session_transfer *f)
{
	static char piece[PIECE];
	uint64_t end = min_u64(f->size, f->at + STEP_BYTES);

	while (f->at < end) {
		ssize_t n = pread(f->from, piece, (size_t)min_u64(sizeof(piece), end - f->at), (off_t)f->at);
		int rc;

		if (n <= 0)
			return n < 0 ? -errno : -EBUSY;
		rc = fd_write_all_at(f->to, piece, (size_t)n, f->before + f->at);
		if (rc < 0)
			return rc;
		f->at += (uint64_t)n;
	}
	return f->at < f->size;
}

/* Answers the request and frees the transfer. */
static void end(struct service *s, struct session_transfer *f, int rc)
{
	struct server_session *x = f->session;
	struct session_wait *w = f->wait;

	if (rc == 0 && f->reads)
		answer_send_file(s, w->tag, 200, f->to, f->before + f->size);
	else
		session_file_carried(x, w, rc, f->at);
	session_wait_free(x, w); /* frees the transfer, too */
}

void session_transfers_go_on(struct service *s)
{
	struct session_transfer *f, *next;

	for (f = TAILQ_FIRST(&s->sessions.transfers); f; f = next) {
		int rc = carry(f);

		next = TAILQ_NEXT(f, in_all);
		if (rc <= 0)
			end(s, f, rc);
	}
}

/* Opens source and destination: 0 or -errno. */
static int open_ends(struct session_transfer *f, struct session_wait *w, int fd)
{
	struct stat st;

	if (f->reads) {
		f->from = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (f->from < 0 || fstat(f->from, &st) < 0)
			return -errno;
		f->size = (uint64_t)st.st_size;
		if (f->size > SESSION_FILE_MAX)
			return -EFBIG;
		f->to = answer_begin_file("application/octet-stream", w->who,
					  st.st_mtime > 0 ? (uint64_t)st.st_mtime : 0, f->size, &f->before);
		return f->to < 0 ? f->to : 0;
	}
	f->to = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	f->from = fd_move(&w->body);
	if (f->to < 0 || fstat(f->from, &st) < 0)
		return -errno;
	f->size = (uint64_t)st.st_size;
	return f->size > SESSION_FILE_MAX ? -EFBIG : 0;
}

void session_transfer_begin(struct server_session *x, struct session_wait *w, int fd, bool reads)
{
	struct sessions *t = &x->service->sessions;
	struct session_transfer *f = calloc(1, sizeof(*f));
	const uint64_t one = 1;
	int rc;

	if (!f) {
		session_file_carried(x, w, -ENOMEM, 0);
		session_wait_free(x, w);
		return;
	}
	f->session = x;
	f->wait = w;
	f->reads = reads;
	f->from = f->to = FD_NONE;
	w->transfer = f;
	if (TAILQ_EMPTY(&t->transfers))
		(void)!write(t->more, &one, sizeof(one));
	TAILQ_INSERT_TAIL(&t->transfers, f, in_all);
	rc = open_ends(f, w, fd);
	if (rc == 0)
		rc = carry(f);
	if (rc <= 0)
		end(x->service, f, rc);
}
