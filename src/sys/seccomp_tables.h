/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that gen-filters makes, for every architecture it knows: read by seccomp.c and by its test. */
#ifndef SYS_SECCOMP_TABLES_H
#define SYS_SECCOMP_TABLES_H

#include "sys/seccomp.h"

#define SECCOMP_CALLS 1024 /* numbers from here on are unknown everywhere */

/* Numbers only: every start of the program would have to adjust a pointer, in a page of its own. */
struct seccomp_call {
	uint16_t name;  /* where in names; 0: no such number */
	uint8_t partly; /* bit: a family that allows it, but not with all arguments */
};

struct seccomp_arch_filters {
	const char *name;
	uint32_t audit_arch;
	struct seccomp_filter init;
	struct seccomp_filter inspect;
	struct seccomp_filter front;
	struct seccomp_filter recorder;
	struct seccomp_filter link;
	struct seccomp_filter keeper;
	struct seccomp_filter family[FAMILY_COUNT][2][2]; /* default, strict; plain, telling */
	const struct seccomp_call *call;                  /* SECCOMP_CALLS of them, by number */
	const char *names;
};

extern const struct seccomp_arch_filters seccomp_arch_filters[];
extern const size_t seccomp_arch_filter_count;

#endif
