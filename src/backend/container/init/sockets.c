/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Denies the network where there is one.  A pod has an interface with an address: its node considers a pod without one
 * broken, and restarts it.  The effect of a NetworkPolicy depends on the cluster's network plugin, and cannot be
 * determined from inside.  So if there is any interface besides lo, the program may only create local sockets: one more
 * filter, installed before the usual one.  There is no other way to get a socket (io_uring is refused, no descriptor is
 * inherited, and one received over a local socket must have been created by some process).  The filter is verified with
 * each address family.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "backend/container/init/inside.h"
#include "backend/guest/facts.h"
#include "base/str.h"
#include "sys/seccomp.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else /* on other architectures the filter refuses nothing, which sockets_try() detects */
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* The usual filter refuses calls of other architectures, and of x32. */
static const struct sock_filter only_local[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 2),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
};

bool sockets_are_needless(void)
{
	struct guest_network net;

	return guest_network_read("/proc/self/net/dev", &net) && str_eq(net.interfaces.s, "lo");
}

int sockets_refuse(void)
{
	const struct seccomp_filter filter = { .insns = only_local, .n = ARRAY_LEN(only_local) };

	return seccomp_install(filter);
}

int sockets_try(void)
{
	static const int kinds[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };

	for (int family = 0; family < AF_MAX; family++)
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
			int fd = family == AF_UNIX ? -1 : socket(family, kinds[i] | SOCK_CLOEXEC, 0);

			if (fd >= 0 || (family != AF_UNIX && errno != EAFNOSUPPORT))
				return -EPERM;
		}
	return 0;
}
