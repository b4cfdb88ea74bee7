/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio.c - one message per line on standard input and output.
 *
 * The loop never blocks on a single descriptor. Output that the client does not read is queued; above CROWDED, no
 * requests and no output of children are read until the queue shrinks, so memory is bounded by a few answers. When the
 * input ends, all calls are ended, because the client kills the server after two seconds.
 */
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "mcp/server.h"

#define CROWDED   (4 * MiB)
#define OUT_MAX   (256 * MiB) /* answers in progress when the client stopped reading */
#define PIECE     (16 * 1024) /* hundreds of requests, whose answers are queued as well */
#define ENDING_NS (1200 * NS_PER_MS)

struct stdio {
	struct server server;
	struct rpc_lines lines;
	struct buf out;
	size_t written; /* bytes of out already written */
	bool input_ended, output_broken;
	uint64_t end_ns; /* when whatever still runs is abandoned; 0: not ending */
};

static void on_send(void *user, const json_t *message, const json_t *about UNUSED)
{
	struct stdio *io = user;
	AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);

	if (!text || buf_adds(&io->out, text) != strlen(text) || buf_adds(&io->out, "\n") != 1)
		io->output_broken = true; /* half a message, or a missing one */
}

static void on_line(void *user, const char *line, size_t len)
{
	struct stdio *io = user;

	server_receive(&io->server, line, len);
}

static void read_input(struct stdio *io)
{
	char piece[PIECE];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n > 0)
		rpc_lines_feed(&io->lines, piece, (size_t)n, on_line, io);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		io->input_ended = true;
}

/*
 * A descriptor that polls writable accepts PIPE_BUF bytes without blocking; for a socket, MSG_DONTWAIT avoids blocking.
 * The descriptor's flags are shared with other processes, so they are not changed.
 */
static void write_output(struct stdio *io)
{
	size_t left = io->out.len - io->written;
	ssize_t n = send(STDOUT_FILENO, io->out.data + io->written, left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = write(STDOUT_FILENO, io->out.data + io->written, left < PIPE_BUF ? left : PIPE_BUF);
	if (n > 0)
		io->written += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		io->output_broken = true;
	if (io->written == io->out.len) {
		io->written = io->out.len = 0;
	} else if (io->written > CROWDED) { /* keeps out from growing if the client always lags a little */
		memmove(io->out.data, io->out.data + io->written, io->out.len - io->written);
		io->out.len -= io->written;
		io->written = 0;
	}
}

static void begin_ending(struct stdio *io)
{
	io->end_ns = clock_now_ns() + ENDING_NS;
	server_stop(&io->server, false);
}

/* True if there is nothing left to wait for. */
static bool is_over(const struct stdio *io)
{
	if (io->server.failed || io->output_broken)
		return io->server.n_calls == 0 || (io->end_ns && clock_now_ns() >= io->end_ns);
	if (!io->end_ns)
		return false;
	return (io->server.n_calls == 0 && io->out.len == 0) || clock_now_ns() >= io->end_ns;
}

static void wait_and_serve(struct stdio *io, int stop_fd)
{
	struct pollfd fds[3 + CALLS_MAX * CHILD_FDS];
	size_t left = io->out.len - io->written;
	int ms;
	size_t n;

	io->server.crowded = left > CROWDED;
	n = 3 + server_poll(&io->server, fds + 3, &ms);
	if (io->end_ns)
		ms = 50;
	/* without events, poll() still reports that the client has gone */
	fds[0] = (struct pollfd){ .fd = io->end_ns ? -1 : STDIN_FILENO, .events = io->server.crowded ? 0 : POLLIN };
	fds[1] = (struct pollfd){ .fd = left > 0 && !io->output_broken ? STDOUT_FILENO : -1, .events = POLLOUT };
	fds[2] = (struct pollfd){ .fd = io->end_ns ? -1 : stop_fd, .events = POLLIN };
	if (poll(fds, n, ms) < 0)
		return; /* a signal, which makes stop_fd readable */
	if (fds[1].revents)
		write_output(io);
	if (fds[0].revents && io->server.crowded)
		io->input_ended = true;
	else if (fds[0].revents)
		read_input(io);
	server_work(&io->server);
	if (!io->end_ns && (io->input_ended || fds[2].revents || io->output_broken || io->server.failed))
		begin_ending(io);
}

int mcp_serve_stdio(const struct mcp_options *options, int stop_fd, struct brig_error *err)
{
	struct stdio io = { .lines = RPC_LINES_INIT, .out = BUF_INIT(OUT_MAX) };
	int rc = server_init(&io.server, options, on_send, &io, err);

	while (rc == 0 && !is_over(&io))
		wait_and_serve(&io, stop_fd);
	if (rc == 0 && (io.server.failed || (io.output_broken && !io.input_ended)))
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the client cannot be written to any longer");
	server_release(&io.server);
	rpc_lines_release(&io.lines);
	buf_release(&io.out);
	return rc;
}
