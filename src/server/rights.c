/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/caps.h"

enum capability_need { IS_NEEDED, IS_STRICTER, IS_DIRECT, IS_FALLBACK, IS_FORKS };

static const unsigned whose[] = {
	[IS_NEEDED] = RIGHTS_RUNNER | RIGHTS_KEEPER,
	[IS_STRICTER] = RIGHTS_RUNNER,
	[IS_DIRECT] = RIGHTS_DIRECT | RIGHTS_KEEPER,
	[IS_FALLBACK] = RIGHTS_FALLBACK | RIGHTS_KEEPER,
	[IS_FORKS] = RIGHTS_KEEPER,
};

static const struct {
	unsigned number;
	enum capability_need need;
} capabilities[] = {
#define CAPABILITY(name, need, reason) { CAP_##name, need },
#include "server/capabilities.def"
};

int rights_keep(unsigned wanted)
{
	uint64_t set = 0;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		if (whose[capabilities[i].need] & wanted)
			set |= (uint64_t)1 << capabilities[i].number;
	rc = caps_keep(set);
	/* Not for an ordinary user, who has no capabilities and needs newuidmap, which is setuid. */
	if (rc == 0 && geteuid() == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		rc = -errno;
	return rc;
}
