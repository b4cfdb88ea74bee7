/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/seccomp_listen.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* Newer than the headers that brig must build with. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

bool seccomp_can_listen(void)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
		return false;
	/* The kernel writes and reads records of its own size, whatever the size of ours. */
	return sizes.seccomp_notif == sizeof(struct seccomp_notif) &&
	       sizes.seccomp_notif_resp == sizeof(struct seccomp_notif_resp) &&
	       sizes.seccomp_data == sizeof(struct seccomp_data);
}

void seccomp_listen_quickly(int listener)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

int seccomp_listen_receive(int listener, struct told_call *ret)
{
	struct seccomp_notif n;

	memset(&n, 0, sizeof(n)); /* the kernel insists */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
		return -errno;
	*ret = (struct told_call){ .id = n.id, .thread = (pid_t)n.pid, .call = n.data };
	return 0;
}

bool seccomp_listen_waits(int listener, const struct told_call *t)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &t->id) == 0;
}

static int answer(int listener, struct seccomp_notif_resp resp)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) < 0 ? -errno : 0;
}

int seccomp_listen_refuse(int listener, const struct told_call *t, int error)
{
	return answer(listener, (struct seccomp_notif_resp){ .id = t->id, .error = -error });
}

int seccomp_listen_allow(int listener, const struct told_call *t)
{
	return answer(listener, (struct seccomp_notif_resp){ .id = t->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE });
}
