/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/caps.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/util.h"

#define LOCKED_BITS                                                                                      \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | \
	 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int caps_clear(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int caps_use_permitted(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		sets[i].effective = sets[i].permitted;
	return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

int caps_lock(void)
{
	/* EINVAL marks the end of what this kernel knows, whatever our headers say. */
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break;
			return -errno;
		}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECUREBITS, LOCKED_BITS, 0, 0, 0) < 0 ? -errno : 0;
}
