/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System call filters.  They are written as lists of names in data/syscalls, compiled with libseccomp
 * when brig is built (tools/gen-filters) and are plain constant bytes at run time: a run pays for
 * installing a filter, never for making one.
 */
#ifndef SYS_SECCOMP_H
#define SYS_SECCOMP_H

#include "base/util.h"

struct sock_filter;
struct seccomp_data;

/* What a program's runtime needs of the kernel. */
enum syscall_family {
	FAMILY_GENERIC,     /* shells, compiled programs */
	FAMILY_INTERPRETER, /* CPython */
	FAMILY_JIT,         /* Node: event loops, write+execute memory */
	FAMILY_TOOLCHAIN,   /* compilers and linkers */
	FAMILY_PROXY,       /* brig's own egress proxy: sockets and what resolvers read, no new process */
	FAMILY_SESSION,     /* the steward of a session, and whatever it starts */
	FAMILY_COUNT
};
extern const char *const syscall_family_name[FAMILY_COUNT];

struct seccomp_filter {
	const struct sock_filter *insns;
	unsigned short n;
};

/* strict: what the default profile answers with EPERM for calls that no program needs kills instead. */
struct seccomp_filter seccomp_filter_for(enum syscall_family family, bool strict);
/* The same filter in the form that notifies a listener (seccomp_listen.h) of refused calls instead of answering itself.
 */
struct seccomp_filter seccomp_filter_telling(enum syscall_family family, bool strict);
/* The filter of cell init itself: wait, report, exit. */
struct seccomp_filter seccomp_filter_init(void);
/* The filter of the process that parses foreign text: memory, one answer, exit. */
struct seccomp_filter seccomp_filter_inspect(void);
/* The filter of the process that speaks HTTP: existing sockets, memory, no files. */
struct seccomp_filter seccomp_filter_front(void);
/* The filter of the process that writes audit log and history: files of one folder, children, no socket. */
struct seccomp_filter seccomp_filter_recorder(void);
struct seccomp_filter seccomp_filter_link(void);
/* The filter of the keeper, which its cells inherit: it refuses nothing that the filters of programs allow. */
struct seccomp_filter seccomp_filter_keeper(void);
/* Async-signal-safe; needs no_new_privs or CAP_SYS_ADMIN.  0 or -errno. */
int seccomp_install(struct seccomp_filter filter);
/* The same for a notifying filter; *ret_listener is close-on-exec.  On failure nothing is installed. */
int seccomp_install_telling(struct seccomp_filter filter, int *ret_listener);

/* What a filter answers to a call, a SECCOMP_RET_ value.  One that is not of gen-filters' making kills. */
uint32_t seccomp_decide(struct seccomp_filter filter, const struct seccomp_data *call);
/* NULL: no such call on this architecture. */
const char *seccomp_call_name(int nr);
/* The family allows the call, but not with all arguments. */
bool seccomp_call_is_partly_allowed(enum syscall_family family, int nr);

#endif
