/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets travel as messages in the queue of a socket pair, whose sending end is closed when all are in it.  The
 * kernel keeps them for as long as the receiving end is open anywhere.
 */
#include "sys/loopback.h"

#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define PIECE 64 /* sockets in one message; the kernel takes 253 */

union rights {
	struct cmsghdr align;
	char space[CMSG_SPACE(PIECE * sizeof(int))];
};

int loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo" };
	AUTO_FD sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || ioctl(sock, SIOCGIFFLAGS, &lo) < 0)
		return -errno;
	if (lo.ifr_flags & IFF_UP)
		return 0;
	lo.ifr_flags |= IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, &lo) < 0 ? -errno : 0;
}

static int make_socket(const struct loopback_place *p, int backlog)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(p->port),
				  .sin_addr.s_addr = htonl(p->address) };
	AUTO_FD sock = socket(AF_INET, (p->datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	if (sock < 0 || bind(sock, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (!p->datagrams && listen(sock, backlog) < 0))
		return -errno;
	return fd_move(&sock);
}

static int send_sockets(int to, const int *socks, size_t n)
{
	char word = 's'; /* descriptors need at least one byte of data */
	struct iovec iov = { .iov_base = &word, .iov_len = 1 };
	union rights rights = { .space = { 0 } };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = rights.space,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

	rights.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&rights.align), socks, n * sizeof(int));
	/* There is no reader yet: a full queue is a failure, not a reason to wait. */
	return sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

static int offer_piece(int to, const struct loopback_place *places, size_t n, int backlog)
{
	int socks[PIECE], rc = 0;
	size_t made = 0;

	while (made < n && rc >= 0) {
		rc = socks[made] = make_socket(&places[made], backlog);
		made += rc >= 0;
	}
	if (rc >= 0)
		rc = send_sockets(to, socks, n);
	while (made > 0)
		fd_closep(&socks[--made]);
	return rc;
}

int loopback_offer(const struct loopback_place *places, size_t n, int backlog)
{
	AUTO_FD out = FD_NONE;
	AUTO_FD in = FD_NONE;
	struct rlimit before, most;
	int ends[2], rc = 0;

	if (getrlimit(RLIMIT_NOFILE, &before) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	in = ends[0];
	out = ends[1];
	/* Descriptors in flight count against this limit, for all of the user's cells that are starting. */
	most = (struct rlimit){ before.rlim_max, before.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &most);
	for (size_t done = 0; done < n && rc == 0; done += PIECE)
		rc = offer_piece(out, places + done, (size_t)min_u64(n - done, PIECE), backlog);
	(void)setrlimit(RLIMIT_NOFILE, &before);
	return rc < 0 ? rc : fd_move(&in);
}

/* How many came, none at the end. */
static int take_piece(int from, int socks[PIECE])
{
	char word;
	struct iovec iov = { .iov_base = &word, .iov_len = 1 };
	union rights rights;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = rights.space, .msg_controllen = sizeof(rights.space)
	};
	const struct cmsghdr *c;
	size_t bytes;
	ssize_t n;

	do {
		n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	bytes = c->cmsg_len - CMSG_LEN(0);
	memcpy(socks, CMSG_DATA(c), bytes);
	/* Those for which no descriptor was free are silently missing. */
	return msg.msg_flags & MSG_CTRUNC ? -EMFILE : (int)(bytes / sizeof(int));
}

int loopback_take(int offered, int *ret, size_t max)
{
	int socks[PIECE], n;
	size_t have = 0;

	while ((n = take_piece(offered, socks)) > 0) {
		if ((size_t)n > max - have)
			return -E2BIG; /* the caller exits on this error, which closes them */
		memcpy(ret + have, socks, (size_t)n * sizeof(int));
		have += (size_t)n;
	}
	return n < 0 ? n : (int)have;
}
