/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Installs filters, wherever they come from: without the tables of seccomp.c, for what is loaded into a guest.
 *
 * A filter is installed last, by the single-threaded process that is about to exec: there are no other threads to
 * synchronise with (no TSYNC), and SPEC_ALLOW is not asked for, so that kernels which couple speculation control to
 * filters keep the safer setting.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "sys/seccomp.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* What seccomp(2) says: 0 or a descriptor, or -errno. */
static int install(struct seccomp_filter filter, unsigned flags)
{
	struct sock_fprog prog = { .len = filter.n };
	long rc;

	if (filter.n == 0)
		return -EOPNOTSUPP;
	/* The kernel only reads the program, but its structure has no const. */
	prog.filter = (struct sock_filter *)(uintptr_t)filter.insns;
	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	return rc < 0 ? -errno : (int)rc;
}

int seccomp_install(struct seccomp_filter filter)
{
	return install(filter, 0);
}

int seccomp_install_telling(struct seccomp_filter filter, int *ret_listener)
{
	/* WAIT_KILLABLE_RECV, since Linux 5.19: a signal does not cancel a call that the listener is handling. */
	int fd = install(filter, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	if (fd == -EINVAL)
		fd = install(filter, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (fd < 0)
		return fd;
	*ret_listener = fd;
	return 0;
}
