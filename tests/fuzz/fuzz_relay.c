/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the command line's socket, as the front reads them: torn, wrong, with descriptors that were not announced, with their
 * data in files.  Whatever comes, what the runner is sent is whole: a message that it understands, with the socket of who asks
 * and without a credential; and when the client has gone nothing of it is left.
 *
 * Of the input each record is: a byte of flags, two of length, a head of 16 bytes and so many more.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "server/front/front.h"

#define HEAD 16
#define FDS  2

enum flags { WITH_FILE = 1, WITH_FD = 2, RIGHT_HEAD = 4, RIGHT_ASK = 8 };

static struct front *front;
static struct channel *runner; /* the far end */
static struct listener listener = { .is_unix = true, .is_records = true };
static struct watched_listener door;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static socklen_t address_len = sizeof(sa_family_t);
static int null, said;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void set_up(void)
{
	static const struct serve_options options;
	socklen_t len = sizeof(address);
	int ends[2];

	front = calloc(1, sizeof(*front));
	must(front && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	front->options = &options;
	front->epoll = epoll_create1(EPOLL_CLOEXEC);
	front->deadline[DEADLINE_IDLE].length_ns = UINT64_MAX / 2;
	relays_init(front);
	must(channel_new(&ends[0], &front->channel, NULL) == 0 && channel_new(&ends[1], &runner, NULL) == 0);
	listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	must(listener.fd >= 0 && bind(listener.fd, (struct sockaddr *)&address, address_len) == 0 &&
	     listen(listener.fd, 4) == 0 && getsockname(listener.fd, (struct sockaddr *)&address, &len) == 0);
	address_len = len;
	door = (struct watched_listener){ .source = { .kind = SOURCE_LISTENER, .fd = listener.fd },
					  .listener = &listener };
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	must(null >= 0 && said >= 0);
}

static int file_of(const unsigned char *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && fd_write_all(fd, data, len) == 0 &&
	     fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
	return fd;
}

/* One record of the input; how many bytes it took. */
static size_t send_one(int sock, const unsigned char *data, size_t len)
{
	unsigned flags = data[0];
	size_t n = min_u64(data[1] | (size_t)data[2] << 8, len - 3 - HEAD);
	unsigned char head[HEAD];
	struct iovec pieces[] = { { head, HEAD }, { .iov_len = flags & WITH_FILE ? 0 : n } };
	const unsigned char *rest = data + 3 + HEAD;
	int fds[FDS];
	size_t n_fds = 0;

	memcpy(head, data + 3, HEAD);
	memcpy(&pieces[1].iov_base, &rest, sizeof(rest));
	if (flags & RIGHT_HEAD) {
		const uint32_t is[] = { (uint32_t)n, flags & WITH_FILE };

		memcpy(head + 8, is, sizeof(is));
	}
	if (flags & RIGHT_ASK) {
		const uint16_t is[] = { RECORD_ASK, message_protocol() };

		memcpy(head + 4, is, sizeof(is));
	}
	if (flags & WITH_FILE)
		fds[n_fds++] = file_of(rest, n);
	if (flags & WITH_FD)
		fds[n_fds++] = null;
	(void)fd_send_record(sock, pieces, 2, fds, n_fds, MSG_DONTWAIT);
	if (flags & WITH_FILE)
		(void)close(fds[0]);
	return 3 + HEAD + n;
}

/* What the front has passed on. */
static void hear(void)
{
	struct message m;
	struct record r;
	const char *why;
	int at[BESIDE_COUNT];
	size_t n;

	while (channel_receive(runner, &r, NULL) > 0) {
		if (r.type == RECORD_ASK) {
			must(message_read(r.data, r.len, &m, &why));
			message_beside(&m, at, &n);
			must(n == r.n_fds && at[BESIDE_PEER] >= 0 && !message_has(&m, FIELD_credential));
			(void)channel_send(
				runner, &(struct record){ .type = RECORD_ANSWER, .tag = r.tag, .status = 200 }, NULL);
		} else {
			must((r.type == RECORD_GONE || r.type == RECORD_CANCEL) && r.n_fds == 0);
		}
		for (size_t i = 0; i < r.n_fds; i++)
			(void)close(r.fds[i]);
	}
}

static void turn(void)
{
	struct epoll_event ev[4];
	struct record r;
	int n = epoll_wait(front->epoll, ev, 4, 0);

	for (int i = 0; i < n; i++)
		relay_on_event(ev[i].data.ptr, ev[i].events);
	hear();
	while (channel_receive(front->channel, &r, NULL) > 0)
		(void)relay_on_record(front, &r);
	relays_free_closed(front);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	int sock, lowest;

	if (!front)
		set_up();
	must(dup2(null, STDERR_FILENO) >= 0); /* the front's log: tens of lines for each input */
	lowest = fcntl(null, F_DUPFD_CLOEXEC, 3);
	(void)close(lowest);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(sock >= 0 && connect(sock, (struct sockaddr *)&address, address_len) == 0);
	relay_accept(front, &door);
	for (size_t at = 0; len - at > 3 + HEAD;) {
		at += send_one(sock, data + at, len - at);
		turn();
	}
	(void)close(sock);
	for (int i = 0; i < 64 && front->n_relays > 0; i++)
		turn();
	turn();
	must(front->n_relays == 0 && front->pending == 0 && front->n_active == 0);
	sock = fcntl(null, F_DUPFD_CLOEXEC, 3);
	must(sock == lowest); /* no descriptor stays */
	(void)close(sock);
	must(dup2(said, STDERR_FILENO) >= 0);
	return 0;
}
