/* SPDX-License-Identifier: Apache-2.0 */
#include "model/protection.h"

#include <assert.h>

#include "base/str.h"

const struct protection_info protection_info[] = {
#define ESSENTIAL                         true
#define OPTIONAL                          false
#define PROTECTION(name, need, lost, fix) { #name, need, lost, fix },
#include "model/protections.def"
};
static_assert(ARRAY_LEN(protection_info) == PROT_COUNT, "protection_info[] misses a row");
static_assert(PROT_COUNT <= 64, "protection_set is too small");

enum protection protection_from_name(const char *name)
{
	enum protection p;

	for (p = 0; p < PROT_COUNT; p++)
		if (str_eq(protection_info[p].name, name))
			break;
	return p;
}
