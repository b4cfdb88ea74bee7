/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_PROTECTION_H
#define MODEL_PROTECTION_H

#include "base/util.h"

enum protection {
#define PROTECTION(name, need, lost, fix) PROT_##name,
#include "model/protections.def"
	PROT_COUNT
};

struct protection_info {
	const char *name;
	bool essential; /* allow_degraded cannot name it */
	const char *lost, *fix;
};
extern const struct protection_info protection_info[PROT_COUNT];

/* A set of protections. */
typedef uint64_t protection_set;
#define PROT_BIT(p) ((protection_set)1 << (p))

/* PROT_COUNT if there is no such name. */
enum protection protection_from_name(const char *name);

#endif
