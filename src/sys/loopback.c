/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/loopback.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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

int loopback_listen(uint16_t port, int backlog)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	AUTO_FD sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || bind(sock, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(sock, backlog) < 0)
		return -errno;
	return fd_move(&sock);
}
