/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/listen_fds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

#define FIRST_FD 3

/* The value of a variable; 0 if it is not set or not a number. */
static uint64_t number_of(const char *name)
{
	const char *text = secure_getenv(name);
	uint64_t number = 0;

	return text && str_to_u64(text, &number) ? number : 0;
}

static bool has_option(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

static int check_socket(int fd, struct brig_error *err)
{
	if (has_option(fd, SO_TYPE, SOCK_STREAM) && has_option(fd, SO_ACCEPTCONN, 1))
		return 0;
	return err_set(
		err, BRIG_E_USAGE, 0,
		"descriptor %d, which $LISTEN_FDS counts, is no stream socket that listens: use ListenStream= and "
		"Accept=no in the unit of the socket",
		fd);
}

static int adopt(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno
													     : 0;
}

int listen_fds_take(struct listen_fds *ret, struct brig_error *err)
{
	uint64_t n = number_of("LISTEN_FDS");
	int rc = 0;

	ret->n = 0;
	if (n == 0 || number_of("LISTEN_PID") != (uint64_t)getpid())
		return 0;
	if (n > LISTEN_FDS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "$LISTEN_FDS is %llu: at most %d sockets are taken",
			       (unsigned long long)n, LISTEN_FDS_MAX);
	for (int fd = FIRST_FD; rc == 0 && fd < FIRST_FD + (int)n; fd++)
		rc = check_socket(fd, err);
	if (rc < 0)
		return rc;
	for (int fd = FIRST_FD; fd < FIRST_FD + (int)n; fd++) {
		rc = adopt(fd);
		if (rc < 0)
			return err_set(err, BRIG_E_SYSTEM, -rc, "cannot take the socket of descriptor %d", fd);
		ret->fd[ret->n++] = fd;
	}
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	return 0;
}
