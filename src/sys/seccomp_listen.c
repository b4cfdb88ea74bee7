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

/* The kernel reads and writes records of its own size, whatever the size of ours: leave room for those of newer
 * kernels. */
#define ROOM 512
union notif {
	struct seccomp_notif n;
	char room[ROOM];
};
union response {
	struct seccomp_notif_resp r;
	char room[ROOM];
};

bool seccomp_can_listen(void)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
		return false;
	return sizes.seccomp_notif <= ROOM && sizes.seccomp_notif_resp <= ROOM &&
	       sizes.seccomp_data == sizeof(struct seccomp_data);
}

void seccomp_listen_quickly(int listener)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

int seccomp_listen_receive(int listener, struct told_call *ret)
{
	union notif u;

	memset(&u, 0, sizeof(u)); /* the kernel insists */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &u) < 0)
		return -errno;
	*ret = (struct told_call){ .id = u.n.id, .thread = (pid_t)u.n.pid, .call = u.n.data };
	return 0;
}

bool seccomp_listen_waits(int listener, const struct told_call *t)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &t->id) == 0;
}

static int answer(int listener, struct seccomp_notif_resp r)
{
	union response u;

	memset(&u, 0, sizeof(u));
	u.r = r;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &u) < 0 ? -errno : 0;
}

int seccomp_listen_refuse(int listener, const struct told_call *t, int error)
{
	return answer(listener, (struct seccomp_notif_resp){ .id = t->id, .error = -error });
}

int seccomp_listen_allow(int listener, const struct told_call *t)
{
	return answer(listener, (struct seccomp_notif_resp){ .id = t->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE });
}
