/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen-filters: data/syscalls in, constant filter programs out.  Runs when brig is built.
 *
 *   gen-filters-policy.c   reads the lists and says what each number of an architecture is answered
 *   gen-filters-bpf.c      turns those answers into a classic BPF program
 *   gen-filters.c          writes the programs as C, or a policy as a Docker profile
 *
 * libseccomp knows the names and numbers of every architecture and is used for those alone.  Its own compiler
 * cannot express this policy: it compares all 64 bits of an argument where the kernel reads 32, it has one default
 * for the unmatched arguments of a known call (EPERM here) and for unknown numbers (ENOSYS here), and it spends an
 * instruction on each name where neighbours share one range.  tests/unit/test_seccomp.c interprets every program
 * that comes out of here over every number.
 */
#ifndef TOOLS_GEN_FILTERS_H
#define TOOLS_GEN_FILTERS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_VALUES       64
#define MAX_TERMS        4
#define MAX_ALTERNATIVES 16
#define MAX_CALLS        420
#define MAX_GROUPS       8
#define MAX_INSNS        BPF_MAXINSNS
#define PROFILES         2 /* default, strict */
#define FORMS            2 /* plain, telling */
/* No architecture has numbers near this; all from here on are unknown. */
#define NR_LIMIT 1024

enum term_kind { TERM_IN, TERM_NOT, TERM_NO_BITS, TERM_NULL };

struct term {
	enum term_kind kind;
	unsigned arg;
	uint32_t mask;
	uint32_t values[MAX_VALUES];
	unsigned n;
};

struct alternative {
	struct term terms[MAX_TERMS];
	unsigned n;
};

struct call {
	char name[40];
	uint32_t action[PROFILES];
	struct alternative alternatives[MAX_ALTERNATIVES];
	unsigned n; /* 0: the action holds whatever the arguments */
};

struct call_set {
	struct call calls[MAX_CALLS];
	unsigned n;
};

struct arch {
	const char *name;
	uint32_t seccomp; /* libseccomp's and the kernel's number for it */
	bool x32;
};

/* What one filter answers: by number below NR_LIMIT, and for all other numbers. */
struct policy {
	const struct arch *arch;
	struct {
		uint32_t action;         /* when call is NULL */
		const struct call *call; /* conditional: allowed if an alternative holds, else refusal */
	} by_nr[NR_LIMIT];
	uint32_t refusal;
	uint32_t otherwise;
};

struct program {
	struct sock_filter insns[MAX_INSNS];
	unsigned top; /* the program is insns[top .. MAX_INSNS - 1]: it grows downwards */
};

#define ERRNO_ACTION(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))

_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Adds the groups of a family to an empty set; every call is then allowed, some under conditions. */
void family_load(struct call_set *set, const char *folder, const char *family);
void group_load(struct call_set *set, const char *folder, const char *group);
void deny_load(struct call_set *set, const char *folder);
void policy_for_family(struct policy *p, const struct arch *arch, const struct call_set *allowed,
		       const struct call_set *denied, bool strict);
/*
 * Turns a family's policy into its telling form: what the supervisor is to hear of becomes SECCOMP_RET_USER_NOTIF.
 * That is every refusal with EPERM, every call that the strict profile kills for (where this one does not), and the
 * calls of the set told.  Not what libraries try first and do well without: other answers, unknown numbers.
 */
void policy_tell(struct policy *p, const struct call_set *denied, const struct call_set *told);
void policy_for_own(struct policy *p, const struct arch *arch, const struct call_set *allowed);
/* Adds the calls that the set does not have; where both have conditions, those of the longer list are kept. */
void set_add(struct call_set *set, const struct call_set *more);
/*
 * A filter that others are put behind: what it does not allow becomes SECCOMP_RET_TRACE, which the kernel answers with
 * ENOSYS where no debugger asks for it, and which gives way to every answer of a later filter but "allowed".
 */
void policy_for_keeper(struct policy *p, const struct arch *arch, const struct call_set *allowed);

void program_compile(struct program *prog, const struct policy *policy);

#endif
