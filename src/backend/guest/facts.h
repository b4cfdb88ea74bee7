/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers for what the kernel reports about a program's process: used by the supervisor of a cell and by a container's
 * init.  No heap memory and no stdio.
 */
#ifndef GUEST_FACTS_H
#define GUEST_FACTS_H

#include "base/util.h"

/* A short text made of words and numbers; truncated if it is too long. */
struct guest_text {
	char s[200];
	size_t len;
};
void guest_text_add(struct guest_text *t, const char *s);
void guest_text_number(struct guest_text *t, uint64_t n, unsigned base);
void guest_text_word(struct guest_text *t, const char *word); /* preceded by a space unless it is the first */

/* Parses the number at *at, after spaces, and advances *at; 0 if there is none. */
uint64_t guest_number(const char **at, unsigned base);

/* The fields of /proc/PID/status that are evidence. */
enum guest_status_number {
	STATUS_UID, /* 0 unless all four ids are the same: no program may have that */
	STATUS_GID,
	STATUS_NO_NEW_PRIVS,
	STATUS_SECCOMP,
	STATUS_SECCOMP_FILTERS,
	STATUS_CAPABILITIES, /* union of all five sets */
	STATUS_NUMBERS
};
struct guest_status {
	bool known[STATUS_NUMBERS];
	uint64_t number[STATUS_NUMBERS];
	bool has_groups;
	char groups[256]; /* as in the file, separated by spaces */
};
/* False: the file cannot be read. */
bool guest_status_read(const char *path, struct guest_status *ret);

/* The next row of a uid_map; advances *at.  False: there is none. */
struct guest_id_row {
	uint64_t inside, outside, count;
};
bool guest_id_row_next(const char **at, struct guest_id_row *ret);
/* "0->100000+1 1000->101000+1" */
void guest_id_map_text(const char *map, struct guest_text *ret);

struct guest_network {
	struct guest_text interfaces;
	uint64_t packets_out; /* over all interfaces except loopback */
};
/* Parses a file such as /proc/PID/net/dev; false: it cannot be read. */
bool guest_network_read(const char *path, struct guest_network *ret);

/* "none" or "possible", depending on the hard limit of RLIMIT_CORE and the kernel's core_pattern. */
const char *guest_core_dumps(uint64_t hard_limit);

/* The Landlock ABI in force according to guest_probe_landlock(); 0: none.  And how that is known. */
int guest_landlock_in_force(int abi, int probe);
const char *guest_landlock_source(int abi);

#endif
