/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Newer than the oldest headers we build with. */
#define ACCESS_REFER          ((uint64_t)1 << 13) /* ABI 2 */
#define ACCESS_TRUNCATE       ((uint64_t)1 << 14) /* ABI 3 */
#define ACCESS_IOCTL_DEV      ((uint64_t)1 << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_SOCKET ((uint64_t)1 << 0)  /* ABI 6 */
#define SCOPE_SIGNAL          ((uint64_t)1 << 1)

/* The kernel's struct as of ABI 6; older kernels accept a shorter one. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_RIGHTS                                                                                      \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |       \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | ACCESS_REFER | ACCESS_TRUNCATE)
/* What can be granted on something that is not a directory; the kernel refuses the rest there. */
#define FILE_RIGHTS                                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_TRUNCATE | \
	 ACCESS_IOCTL_DEV)
#define DEVICE_RIGHTS (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define ALL_RIGHTS    (READ_RIGHTS | WRITE_RIGHTS | DEVICE_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE | ACCESS_IOCTL_DEV)

static const struct {
	int since;
	uint64_t right;
} ladder[] = { { 2, ACCESS_REFER }, { 3, ACCESS_TRUNCATE }, { 5, ACCESS_IOCTL_DEV } };

static uint64_t rights_of_abi(int abi)
{
	uint64_t rights = ALL_RIGHTS;

	for (size_t i = 0; i < ARRAY_LEN(ladder); i++)
		if (abi < ladder[i].since)
			rights &= ~ladder[i].right;
	return rights;
}

static uint64_t rights_of_grant(unsigned grant)
{
	uint64_t rights = 0;

	if (grant & LANDLOCK_READ)
		rights |= READ_RIGHTS;
	if (grant & LANDLOCK_WRITE)
		rights |= WRITE_RIGHTS;
	if (grant & LANDLOCK_EXEC)
		rights |= LANDLOCK_ACCESS_FS_EXECUTE;
	if (grant & LANDLOCK_LIST)
		rights |= LANDLOCK_ACCESS_FS_READ_DIR;
	if (grant & LANDLOCK_WRITE_FILE)
		rights |= LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE;
	if (grant & LANDLOCK_IOCTL)
		rights |= ACCESS_IOCTL_DEV;
	return rights;
}

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static int add_rule(int ruleset, uint64_t handled, const struct landlock_rule *rule)
{
	AUTO_FD opened = rule->path ? open(rule->path, O_PATH | O_CLOEXEC | O_NOFOLLOW) : FD_NONE;
	struct landlock_path_beneath_attr attr = {
		.allowed_access = rights_of_grant(rule->grant) & handled,
		.parent_fd = rule->path ? opened : rule->fd,
	};
	struct stat st;

	if ((rule->path && opened < 0) || fstat(attr.parent_fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		attr.allowed_access &= FILE_RIGHTS;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) < 0)
		return -errno;
	return 0;
}

int landlock_confine(int abi, const struct landlock_rule *rules, size_t n)
{
	struct ruleset_attr attr = { .handled_access_fs = rights_of_abi(abi) };
	size_t size = abi < 4 ? sizeof(uint64_t) : abi < 6 ? 2 * sizeof(uint64_t) : sizeof(attr);
	AUTO_FD ruleset = FD_NONE;

	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		int rc = add_rule(ruleset, attr.handled_access_fs, &rules[i]);

		if (rc < 0)
			return rc;
	}
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
