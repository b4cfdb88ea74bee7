/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses and reads the filters made by tools/gen-filters.  brig built for an architecture without filters has empty ones,
 * and installing an empty filter fails: a run never continues without.
 */
#include "sys/seccomp.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "sys/seccomp_tables.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#define OWN_AUDIT_ARCH 0
#endif

const char *const syscall_family_name[FAMILY_COUNT] = {
	[FAMILY_GENERIC] = "generic", [FAMILY_INTERPRETER] = "interpreter",
	[FAMILY_JIT] = "jit",         [FAMILY_TOOLCHAIN] = "toolchain",
	[FAMILY_PROXY] = "proxy",     [FAMILY_SESSION] = "session",
};

static const struct seccomp_arch_filters *own_filters(void)
{
	static const struct seccomp_arch_filters none = { .name = "none" };

	for (size_t i = 0; i < seccomp_arch_filter_count; i++)
		if (seccomp_arch_filters[i].audit_arch == OWN_AUDIT_ARCH)
			return &seccomp_arch_filters[i];
	return &none;
}

static struct seccomp_filter family_filter(enum syscall_family family, bool strict, bool tells)
{
	if ((unsigned)family >= FAMILY_COUNT)
		return (struct seccomp_filter){ .n = 0 };
	return own_filters()->family[family][strict][tells];
}

struct seccomp_filter seccomp_filter_for(enum syscall_family family, bool strict)
{
	return family_filter(family, strict, false);
}

struct seccomp_filter seccomp_filter_telling(enum syscall_family family, bool strict)
{
	return family_filter(family, strict, true);
}

struct seccomp_filter seccomp_filter_init(void)
{
	return own_filters()->init;
}

struct seccomp_filter seccomp_filter_inspect(void)
{
	return own_filters()->inspect;
}

struct seccomp_filter seccomp_filter_front(void)
{
	return own_filters()->front;
}

struct seccomp_filter seccomp_filter_recorder(void)
{
	return own_filters()->recorder;
}

struct seccomp_filter seccomp_filter_link(void)
{
	return own_filters()->link;
}

struct seccomp_filter seccomp_filter_keeper(void)
{
	return own_filters()->keeper;
}

static bool jumps(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGT:
		return a > k;
	case BPF_JGE:
		return a >= k;
	default:
		return (a & k) != 0; /* BPF_JSET */
	}
}

/* As much of classic BPF as gen-filters-bpf.c writes. */
uint32_t seccomp_decide(struct seccomp_filter filter, const struct seccomp_data *call)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < filter.n; pc++) {
		const struct sock_filter *in = &filter.insns[pc];

		if (in->code == (BPF_RET | BPF_K))
			return in->k;
		if (in->code == (BPF_LD | BPF_W | BPF_ABS) && in->k <= sizeof(*call) - sizeof(a))
			memcpy(&a, (const char *)call + in->k, sizeof(a));
		else if (in->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= in->k;
		else if (in->code == (BPF_JMP | BPF_JA))
			pc += in->k;
		else if (BPF_CLASS(in->code) == BPF_JMP)
			pc += jumps(in->code, a, in->k) ? in->jt : in->jf;
		else
			break;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static const struct seccomp_call *call_of(int nr)
{
	static const struct seccomp_call none = { .name = 0 };
	const struct seccomp_call *calls = own_filters()->call;

	return calls && nr >= 0 && nr < SECCOMP_CALLS ? &calls[nr] : &none;
}

const char *seccomp_call_name(int nr)
{
	uint16_t name = call_of(nr)->name;

	return name ? own_filters()->names + name : NULL;
}

bool seccomp_call_is_partly_allowed(enum syscall_family family, int nr)
{
	return call_of(nr)->partly >> family & 1;
}
