/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - the capabilities of the runner
 *
 * The runner starts inspectors and proxies and reads what programs leave (docs/ARCHITECTURE.md), so it needs some of
 * root's capabilities, but only those of server/capabilities.def.  It creates no cells; keepers do, which the master
 * starts (keepers.h).  Above all it lacks CAP_SYS_ADMIN: file systems for unpacking are mounted in user namespaces,
 * whose creator has the capabilities for that.  The others are dropped at startup, so that no child has them.
 *
 * Some hosts allow only processes with CAP_SYS_ADMIN to create user namespaces or to have capabilities in them (sysctl,
 * AppArmor, other means).  This is tested by a child that has dropped everything else: if it cannot mount, the runner
 * keeps CAP_SYS_ADMIN and logs that.
 *
 * Direct runs need more capabilities; these are dropped as well unless the policy permits direct runs.
 */
#include "server/runner/confine.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "server/report.h"
#include "server/rights.h"
#include "sys/private_fs.h"
#include "sys/proc.h"

static unsigned kept; /* as in rights.h */

/* Tries to mount in a new user namespace with only the capabilities that would be kept. */
static bool can_do_without_fallback(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(rights_keep(RIGHTS_RUNNER) < 0 || private_fs(MiB, 16) < 0);
	status = pid < 0 ? -errno : proc_wait(pid);
	return status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int keep(unsigned rights, struct brig_error *err)
{
	int rc = rights_keep(rights);

	kept = rights;
	return rc < 0 ? err_set(err, BRIG_E_REFUSED, -rc,
				"the runner cannot give up capabilities that it does not need")
		      : 0;
}

int runner_confine(struct brig_error *err)
{
	bool falls_back = geteuid() == 0 && !can_do_without_fallback();

	if (falls_back)
		report("this host lets only CAP_SYS_ADMIN make user namespaces: the runner keeps it");
	return keep(RIGHTS_RUNNER | RIGHTS_DIRECT | (falls_back ? RIGHTS_FALLBACK : 0), err);
}

int runner_confine_to_policy(bool has_direct_runs, struct brig_error *err)
{
	if (!has_direct_runs)
		return kept & RIGHTS_DIRECT ? keep(kept & ~(unsigned)RIGHTS_DIRECT, err) : 0;
	if (kept & RIGHTS_DIRECT || geteuid() != 0)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the policy lets runs be direct, which takes rights that the runner has given up under the one before: "
		"start the service anew");
}
