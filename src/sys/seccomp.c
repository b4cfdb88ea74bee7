/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses and installs the filters made by tools/gen-filters.
 *
 * A filter is installed last, by the single-threaded process that is about to exec: there are no other threads to
 * synchronise with (no TSYNC), and SPEC_ALLOW is not asked for, so that kernels which couple speculation control to
 * filters keep the safer setting.  brig built for an architecture without filters has empty ones, and installing an
 * empty filter fails: a run never continues without.
 */
#include "sys/seccomp.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "sys/seccomp_tables.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#define OWN_AUDIT_ARCH 0
#endif

const char *const syscall_family_name[FAMILY_COUNT] = {
	[FAMILY_GENERIC] = "generic",
	[FAMILY_INTERPRETER] = "interpreter",
	[FAMILY_JIT] = "jit",
	[FAMILY_TOOLCHAIN] = "toolchain",
};

static const struct seccomp_arch_filters *own_filters(void)
{
	static const struct seccomp_arch_filters none = { .name = "none" };

	for (size_t i = 0; i < seccomp_arch_filter_count; i++)
		if (seccomp_arch_filters[i].audit_arch == OWN_AUDIT_ARCH)
			return &seccomp_arch_filters[i];
	return &none;
}

struct seccomp_filter seccomp_filter_for(enum syscall_family family, bool strict)
{
	if ((unsigned)family >= FAMILY_COUNT)
		return (struct seccomp_filter){ .n = 0 };
	return own_filters()->family[family][strict];
}

struct seccomp_filter seccomp_filter_init(void)
{
	return own_filters()->init;
}

struct seccomp_filter seccomp_filter_inspect(void)
{
	return own_filters()->inspect;
}

int seccomp_install(struct seccomp_filter filter)
{
	struct sock_fprog prog = { .len = filter.n };

	if (filter.n == 0)
		return -EOPNOTSUPP;
	/* The kernel only reads the program, but its structure has no const. */
	prog.filter = (struct sock_filter *)(uintptr_t)filter.insns;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0 ? 0 : -errno;
}
