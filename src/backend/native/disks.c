/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For disk_io_bps: the disks that hold the host's trees shown in a cell.  The program's writes never reach a disk,
 * since its scratch space is memory, so these are the disks that it can read from.  Contents in the host's page cache
 * cause no disk access and are not limited.
 */
#include "backend/native/cell.h"

static int judge_disk(struct cell *c, const char *what, int rc, struct brig_error *err)
{
	if (rc == 0)
		return 0;
	c->unlimited_disk = true;
	if (c->spec.plan->may_degrade & PROT_BIT(PROT_disk_io))
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, -rc,
		"disk_io_bps cannot be kept: %.200s, which the cell shows, lies on no disk whose speed can be "
		"limited (overlay, btrfs, a network); leave disk_io_bps out, or run without: --allow-degraded disk_io",
		what);
}

int cell_find_disks(struct cell *c, struct brig_error *err)
{
	const struct cell_spec *s = &c->spec;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_dirs; i++)
		if (!s->dirs[i].link[0])
			rc = judge_disk(c, s->dirs[i].source, disk_add_path(&c->disks, s->dirs[i].source), err);
	for (size_t i = 0; rc == 0 && i < s->n_binds; i++)
		rc = judge_disk(c, s->binds[i].source, disk_add_path(&c->disks, s->binds[i].source), err);
	if (rc == 0 && s->plan->workspace)
		rc = judge_disk(c, s->plan->workspace->path, disk_add(&c->disks, s->plan->workspace->fd), err);
	return rc;
}
