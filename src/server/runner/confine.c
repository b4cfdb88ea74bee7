/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the runner
 *
 * It makes cells of projects itself and starts the keepers of all others (docs/ARCHITECTURE.md), so it cannot be without
 * rights; but of root's it keeps only those of capabilities.def.  It has no CAP_SYS_ADMIN above all: what is mounted is mounted
 * in user namespaces, which whoever makes them owns.  It is done at its birth, so that everything below is born without them.
 *
 * An ordinary user has no capability, and needs newuidmap, a program with rights of its own: no_new_privs is for root only.
 */
#include "server/runner/confine.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/caps.h"

static const uint64_t kept = 0
#define CAPABILITY(name, need, reason) | (uint64_t)1 << CAP_##name
#include "server/runner/capabilities.def"
	;

int runner_confine(struct brig_error *err)
{
	int rc = caps_keep(kept);

	if (rc == 0 && geteuid() == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		rc = -errno;
	return rc < 0 ? err_set(err, BRIG_E_REFUSED, -rc,
				"the runner cannot give up capabilities that it does not need")
		      : 0;
}
