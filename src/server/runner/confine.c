/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - what is taken from the runner
 *
 * It starts keepers, opens what requests name and reads what programs leave (docs/ARCHITECTURE.md), so it cannot be without
 * rights; but of root's it keeps only those of capabilities.def.  It has no CAP_SYS_ADMIN above all: what is mounted is mounted
 * in user namespaces, which whoever makes them owns.  It is done at its birth, so that everything below is born without them.
 *
 * Hosts may let only CAP_SYS_ADMIN make user namespaces, or have rights in them; how is theirs to choose (a sysctl, AppArmor).
 * So it is tried, by a child that has given up the rest: where such a one cannot mount, the runner keeps that capability,
 * and says so.
 *
 * The keeper is forked before, and has that capability: it reads nothing that anybody wrote, and only with it can a zygote be put
 * into the namespaces of a cell.  One that takes its place when it was killed is without, and so are its cells without forks.
 *
 * An ordinary user has no capability, and needs newuidmap, a program with rights of its own: no_new_privs is for root only.
 */
#include "server/runner/confine.h"

#include <brig/brig.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/caps.h"
#include "sys/private_fs.h"
#include "sys/proc.h"

enum capability_need { IS_NEEDED, IS_STRICTER, IS_FALLBACK, IS_KEEPERS };

static const struct {
	unsigned number;
	enum capability_need need;
} capabilities[] = {
#define CAPABILITY(name, need, reason) { CAP_##name, need },
#include "server/runner/capabilities.def"
};

static uint64_t set_of(enum capability_need least)
{
	uint64_t set = 0;

	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		if (capabilities[i].need <= least)
			set |= (uint64_t)1 << capabilities[i].number;
	return set;
}

/* What cells are made of, with no more than would be kept: a user namespace, and a mount in it. */
static bool can_do_without_fallback(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(caps_keep(set_of(IS_STRICTER)) < 0 || private_fs(MiB, 16) < 0);
	status = pid < 0 ? -errno : proc_wait(pid);
	return status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int runner_confine(struct brig_error *err)
{
	bool is_root = geteuid() == 0, falls_back;
	int rc = caps_keep(set_of(IS_KEEPERS));

	if (rc == 0 && is_root && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		rc = -errno;
	if (rc == 0 && is_root)
		brig_fork_keeper();
	falls_back = rc == 0 && is_root && !can_do_without_fallback();
	if (rc == 0)
		rc = caps_keep(set_of(falls_back ? IS_FALLBACK : IS_STRICTER));
	if (falls_back)
		(void)fprintf(stderr,
			      "brig serve: runner: this host lets only CAP_SYS_ADMIN make namespaces for cells: "
			      "the runner keeps it\n");
	return rc < 0 ? err_set(err, BRIG_E_REFUSED, -rc,
				"the runner cannot give up capabilities that it does not need")
		      : 0;
}
