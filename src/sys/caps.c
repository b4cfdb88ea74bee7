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

/* EINVAL marks the end of what this kernel knows, whatever our headers say. */
static int drop_bounds(uint64_t keep)
{
	for (unsigned long cap = 0; cap < 64; cap++)
		if (!(keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -errno;
	return 0;
}

int caps_keep(uint64_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];
	int rc;

	if (syscall(SYS_capget, &header, sets) < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	rc = sets[0].effective >> CAP_SETPCAP & 1 ? drop_bounds(keep) : 0;
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		sets[i].permitted &= (uint32_t)(keep >> 32 * i);
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	if (rc == 0 && syscall(SYS_capset, &header, sets) < 0)
		rc = -errno;
	return rc;
}

int caps_lock(void)
{
	int rc = drop_bounds(0);

	if (rc < 0)
		return rc;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECUREBITS, LOCKED_BITS, 0, 0, 0) < 0 ? -errno : 0;
}
