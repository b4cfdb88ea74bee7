/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal inside the cell, between a process and two pipes of the owner.  The owner never holds the device: whatever
 * a program does to it affects only the steward.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "backend/guest/steward/inside.h"
#include "base/fd.h"

#define SIZE_MAX_CELLS 4096

int terminal_resize(const struct terminal *t, int rows, int columns)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };

	if (rows < 1 || columns < 1 || rows > SIZE_MAX_CELLS || columns > SIZE_MAX_CELLS)
		return -EINVAL;
	return ioctl(t->master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

static int open_pair(struct terminal *t, int *ret_slave)
{
	int unlocked = 0;

	t->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (t->master < 0 || ioctl(t->master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	*ret_slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return *ret_slave < 0 ? -errno : 0;
}

int terminal_open(int rows, int columns, int in, int out, struct terminal **ret, int *ret_slave)
{
	struct terminal *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->in.from = t->out.to = FD_NONE;
	rc = open_pair(t, ret_slave);
	if (rc == 0)
		rc = terminal_resize(t, rows, columns);
	if (rc < 0) {
		fd_closep(ret_slave);
		terminal_close(t);
		return rc;
	}
	t->in.from = in;
	t->in.to = t->out.from = t->master;
	t->out.to = out;
	(void)fd_set_nonblock(in);
	(void)fd_set_nonblock(out);
	*ret = t;
	return 0;
}

enum { SLOT_IN, SLOT_MASTER, SLOT_OUT };

/* Each flow has one buffer, which is either being filled or being drained. */
void terminal_fill(const struct terminal *t, struct pollfd slots[TERMINAL_SLOTS])
{
	bool in_full = t->in.len > 0, out_full = t->out.len > 0;
	short master = 0;

	if (t->out.from >= 0 && !out_full)
		master |= POLLIN;
	if (in_full)
		master |= POLLOUT;
	slots[SLOT_IN] = (struct pollfd){ .fd = in_full ? -1 : t->in.from, .events = POLLIN };
	slots[SLOT_MASTER] = (struct pollfd){ .fd = t->out.from >= 0 && master ? t->master : -1, .events = master };
	slots[SLOT_OUT] = (struct pollfd){ .fd = out_full ? t->out.to : -1, .events = POLLOUT };
}

/* True: end of file or error on that side. */
static bool take(struct flow *f)
{
	ssize_t n = read(f->from, f->piece, sizeof(f->piece));

	f->at = 0;
	f->len = n > 0 ? (size_t)n : 0;
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* True: that side accepts no more data. */
static bool give(struct flow *f)
{
	ssize_t n = write(f->to, f->piece + f->at, f->len);

	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	f->at += (size_t)n;
	f->len -= (size_t)n;
	return false;
}

static void end_input(struct terminal *t)
{
	fd_closep(&t->in.from);
	t->in.len = 0;
}

static void end_output(struct terminal *t)
{
	t->out.from = FD_NONE;
	if (t->out.len == 0)
		fd_closep(&t->out.to);
	end_input(t);
}

void terminal_serve(struct terminal *t, const struct pollfd slots[TERMINAL_SLOTS])
{
	if (slots[SLOT_IN].revents && take(&t->in))
		end_input(t);
	if (t->in.len > 0 && give(&t->in))
		end_input(t);
	if (slots[SLOT_MASTER].revents & (POLLIN | POLLHUP) && t->out.len == 0 && take(&t->out))
		end_output(t);
	if (t->out.len > 0 && t->out.to >= 0 && give(&t->out)) { /* no reader: discards the output */
		t->out.len = 0;
		fd_closep(&t->out.to);
		t->out.from = FD_NONE;
	}
	if (t->out.from < 0 && t->out.len == 0)
		fd_closep(&t->out.to);
}

bool terminal_is_over(const struct terminal *t)
{
	return t->out.from < 0 && t->out.len == 0;
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	fd_closep(&t->in.from);
	fd_closep(&t->out.to);
	fd_closep(&t->master);
	free(t);
}
