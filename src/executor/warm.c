/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs get a cell of the keeper's, and how the keeper is started.
 *
 * A run gets one if its cell differs from others of its kind in nothing but the program: code without a project, arguments,
 * variables or a network of its own.  Everything else runs in a cell
 * that is made for it; so does whatever the keeper cannot serve, since the two are the same cell (INV-6) and differ in time only.
 *
 * The keeper is started by the first such run of a handle that wants warm cells, with ceilings made of the policy as it
 * was read then: the most that any trust level could have, the root, the folders below which packages lie.
 */
#include "executor/warm.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "executor/record.h"
#include "keeper/keeper.h"
#include "policy/policy.h"

#define STARTS_MAX      8
#define CELLS_MAX       1024
#define WAITING_MAX     64
#define WAITING_SECONDS 60

void warm_release(struct warm *w)
{
	keeper_backend.close(MOVE_PTR(w->keeper)); /* which may give way to another run of this handle */
}

static uint64_t most(enum setting_key key)
{
	return setting_info[key].max;
}

static struct limits most_limits(void)
{
	return (struct limits){ .cpu_percent = most(SET_cpu_quota_percent),
				.cpu_time_ms = most(SET_cpu_time_ms),
				.memory_bytes = most(SET_mem_limit),
				.pids = most(SET_pids_limit),
				.disk_bytes = most(SET_disk_limit),
				.inodes = most(SET_inodes_limit),
				.output_bytes = most(SET_output_limit),
				.open_files = most(SET_open_files),
				.startup_ms = most(SET_startup_timeout_ms),
				.wall_ms = most(SET_execution_timeout_ms),
				.cleanup_ms = most(SET_cleanup_timeout_ms) };
}

/* Packages lie in the state folder, and nowhere else. */
static void name_shown(struct recorder *recorder, struct keep_hello *h)
{
	const struct statedir *dir;
	struct brig_error err = BRIG_ERROR_INIT;

	if (recorder_dir(recorder, &dir, &err) == 0)
		(void)str_copy(h->shown[0], sizeof(h->shown[0]), dir->path);
}

static int start(struct warm *w, const struct warm_ask *ask, const struct plan *plan)
{
	const struct settings *set = &ask->request->resolved.set;
	AUTO_FREE struct keep_hello *h = calloc(1, sizeof(*h));
	struct brig_error err = BRIG_ERROR_INIT;

	if (!h || w->starts >= STARTS_MAX)
		return -EAGAIN;
	w->starts++;
	h->most = most_limits();
	h->disk_io_bps = limits_disk_io(set) ? set->disk_io_bps : 0;
	h->may_degrade = plan->may_degrade;
	h->cells = CELLS_MAX;
	h->waiting = WAITING_MAX;
	h->waiting_of_kind = w->wanted;
	h->forks = (uint32_t)set->warm_forks;
	h->waiting_bytes = set->warm_memory;
	h->waiting_seconds = WAITING_SECONDS;
	(void)str_copy(h->rootfs, sizeof(h->rootfs), plan->rootfs);
	name_shown(ask->recorder, h);
	return keeper_start(h, &w->keeper, &err);
}

/* It comes in by a write of the program's own process, which the limits are for: that there is no room is better said by others. */
static bool fits(const struct plan *plan)
{
	return plan->files[0].len <= plan->limits.disk_bytes / 2;
}

/* Nothing of the request but its program is in the cell; packages are the same for all who ask for them. */
static bool can_wait(const struct warm_ask *ask, const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_binds; i++)
		if (plan->binds[i].checked)
			return false;
	return ask->chosen->ops == &native_backend && ask->req->kind == BRIG_KIND_CODE && !plan->workspace &&
	       !plan->wants_view && !plan->egress && plan->n_files == 1 && fits(plan) &&
	       ask->request->subject.n_args == 0 && ask->req->n_env == 0;
}

/* Which word names the program's file: an argument of its interpreter, or what is executed; NULL: none does. */
static const char *program_path(const struct plan *plan)
{
	static const char folder[] = PLAN_WORKSPACE "/";

	for (size_t i = 0; plan->argv[i]; i++)
		if (strncmp(plan->argv[i], folder, strlen(folder)) == 0 &&
		    str_eq(plan->argv[i] + strlen(folder), plan->files[0].name))
			return plan->argv[i];
	return NULL;
}

/*
 * Whether the program may be a fork of an interpreter that serves others, too.  Packages that a request brought are nobody
 * else's business: what they do when they are loaded is done in a cell of that request only.
 */
static bool may_fork(const struct warm_ask *ask, const struct plan *plan)
{
	const struct prepared_request *pr = ask->request;

	return pr->resolved.set.warm_forks > 0 && pr->lang->run.forks && (plan->n_binds == 0 || ask->named_packages);
}

struct backend_host *warm_keeper(struct warm *w, const struct warm_ask *ask, struct plan *plan)
{
	const char *path = can_wait(ask, plan) ? program_path(plan) : NULL;

	if (!w->wanted || !path)
		return NULL;
	if (w->keeper && !keeper_is_alive(w->keeper))
		warm_release(w);
	if (!w->keeper && start(w, ask, plan) < 0)
		return NULL;
	plan->waits_at = path;
	plan->interpreter_waits = ask->request->lang->run.waits;
	plan->forks = may_fork(ask, plan);
	return w->keeper;
}
