/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of a notifying filter (seccomp_install_telling): calls that wait to be answered.  A caller sleeps in
 * the kernel until it is; if the listener is closed, it gets ENOSYS.
 */
#ifndef SYS_SECCOMP_LISTEN_H
#define SYS_SECCOMP_LISTEN_H

#include <linux/seccomp.h>

#include "base/util.h"

/* Whether this kernel's records fit.  If not, no notifying filter may be installed. */
bool seccomp_can_listen(void);
/* Asks for quick hand-over between caller and listener where the kernel offers it (Linux 6.6): for busy ones. */
void seccomp_listen_quickly(int listener);

struct told_call {
	uint64_t id;
	pid_t thread; /* of the caller, as seen from here */
	struct seccomp_data call;
};
/* Takes one call in.  Only after poll() said that there is one: else it sleeps.  0, or -errno (-ENOENT: the caller
 * was killed meanwhile). */
int seccomp_listen_receive(int listener, struct told_call *ret);
/* Whether the thread of a call is still the one that made it, and not a later one with its number. */
bool seccomp_listen_waits(int listener, const struct told_call *t);
/* 0 or -errno (-ENOENT: the caller has been killed, or interrupted and will call again). */
int seccomp_listen_refuse(int listener, const struct told_call *t, int error);
/* Lets the kernel make the call.  Only for calls that the filter's plain form allows. */
int seccomp_listen_allow(int listener, const struct told_call *t);

#endif
