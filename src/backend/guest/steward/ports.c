/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to servers that programs of the cell have started, on the cell's own loopback. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/guest/steward/inside.h"

#define CONNECT_MS \
	200 /* on loopback it takes longer only if the server does not accept; the owner then sees the result */

/* A socket that is connected or still connecting; or -errno. */
static int connect_to(const void *address, socklen_t len, int family)
{
	AUTO_FD fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int trouble = 0;
	socklen_t size = sizeof(trouble);

	if (fd < 0)
		return -errno;
	if (connect(fd, address, len) == 0)
		return fd_move(&fd);
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&p, 1, CONNECT_MS) > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &trouble, &size) == 0 && trouble)
		return -trouble;
	return fd_move(&fd);
}

void ports_connect(struct steward *s)
{
	const int64_t port = s->asked.head.number[0], done = 0;
	const uint16_t number = htons((uint16_t)port);
	const struct sockaddr_in four = { .sin_family = AF_INET,
					  .sin_port = number,
					  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
					  .sin6_port = number,
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	AUTO_FD fd = FD_NONE;

	if (port < 1 || port > UINT16_MAX) {
		steward_done(s, EINVAL);
		return;
	}
	fd = connect_to(&four, sizeof(four), AF_INET);
	if (fd == -ECONNREFUSED) {
		int other = connect_to(&six, sizeof(six), AF_INET6);

		fd = other >= 0 ? other : fd;
	}
	if (fd < 0)
		steward_done(s, -fd);
	else
		steward_tell(s, STEWARD_DONE, s->asked.head.tag, &done, 1, NULL, 0, fd);
}
