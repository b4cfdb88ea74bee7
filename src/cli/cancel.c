/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns signals into one readable descriptor, so that the library, which must not touch signals, can be cancelled.
 * Handlers rather than a blocked mask: a mask would be inherited by what is executed.
 */
#include "cli/cancel.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/util.h"

static int cancel_fd = FD_NONE; /* global, since signal handlers have no argument */

void cancel_now(void)
{
	const uint64_t one = 1;
	int saved = errno;

	/* A full counter means that it is readable already. */
	(void)!write(cancel_fd, &one, sizeof(one));
	errno = saved;
}

static void on_signal(int sig UNUSED)
{
	cancel_now();
}

int cancel_open(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction act = { .sa_handler = on_signal };

	cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cancel_fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction was;

		if (sigaction(signals[i], NULL, &was) < 0)
			return -errno;
		if (was.sa_handler != SIG_IGN && sigaction(signals[i], &act, NULL) < 0)
			return -errno;
	}
	return cancel_fd;
}

/* An epoll descriptor is readable when one of its own has news; a hang-up of the reader is always reported. */
int cancel_open_for_reader(int fd)
{
	struct epoll_event signals = { .events = EPOLLIN }, reader = { .events = 0 };
	AUTO_FD both = FD_NONE;
	int rc = cancel_open();

	if (rc < 0)
		return rc;
	both = epoll_create1(EPOLL_CLOEXEC);
	if (both < 0 || epoll_ctl(both, EPOLL_CTL_ADD, cancel_fd, &signals) < 0)
		return -errno;
	if (epoll_ctl(both, EPOLL_CTL_ADD, fd, &reader) < 0 && errno != EPERM)
		return -errno;
	return fd_move(&both);
}
