/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the runner
 *
 * It starts inspectors and proxies, and reads what programs leave (docs/ARCHITECTURE.md), so it cannot be without rights; but of
 * root's it keeps only those of server/capabilities.def.  It makes no cell: whoever does is started by the master (keepers.h).  It
 * has no CAP_SYS_ADMIN above all: what it mounts, to unpack something there, is mounted in user namespaces, which whoever makes
 * them owns.  It is done at its args, so that everything below starts without them.
 *
 * Hosts may let only CAP_SYS_ADMIN make user namespaces, or have rights in them; how is theirs to choose (a sysctl, AppArmor).
 * So it is tried, by a child that has given up the rest: where such a one cannot mount, the runner keeps that capability,
 * and says so.
 *
 * Direct runs take more, and are nobody's by default: when the policy is read, and says nothing of them, that goes, too.
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

static unsigned kept; /* of rights.h */

/* A user namespace, and a mount in it, with no more than would be kept. */
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
