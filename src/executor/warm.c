/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process creates the cell of a run.
 *
 * Native cells are created by a keeper (src/keeper), a separate process that reads jobs and no text, if a job can
 * describe the plan, projects included. Plans too large for a job are executed by this process, and so is everything on
 * hosts that forbid execution from memory. The cell is the same in both cases (INV-6).
 *
 * Cells are created ahead for runs that differ only in their program: code without a project, arguments, variables or a
 * network of its own; for compilers, whatever the program is given later; and for sessions without variables and
 * network, with their steward and a Python started.
 *
 * A keeper is started by the first run that needs it, with upper limits computed from the policy at that time: the most
 * that any trust level could have, the root, the protections that may be missing, the folders that contain packages. A
 * run that exceeds them gets another keeper.
 *
 * In a service, this process handles untrusted requests and must not choose those limits: another process starts the
 * keeper (struct keeper_starter) with what the policy gives anyone at all, and a run that exceeds that is refused.
 */
#include "executor/warm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "executor/record.h"
#include "keeper/keeper.h"
#include "lang/lang.h"
#include "policy/policy.h"

#define STARTS_MAX      8
#define KEEPERS_MAX     8
#define CELLS_MAX       4096
#define WAITING_MAX     64
#define WAITING_SECONDS 60

/* What a keeper was started for, where keepers differ. */
struct keeper_use {
	struct keeper_use *next;
	struct backend_host *host;
	unsigned users;
	pid_t started_by; /* after a fork the child starts its own, because children are not shared */
	protection_set may_degrade;
	bool limits_disks, waits;
	bool fits_all; /* if this keeper cannot create a cell, no one may */
	char rootfs[KEEP_PATH_MAX];
};

/* Removes it from the list before anything that waits, since another run of this handle may walk the list meanwhile. */
static void drop(struct keeper_use **at)
{
	struct keeper_use *k = *at;

	*at = k->next;
	if (k->started_by == getpid())
		keeper_backend.close(k->host);
	free(k);
}

void warm_release(struct warm *w)
{
	while (w->keepers)
		drop(&w->keepers);
}

void warm_hang_up(struct warm *w)
{
	keeper_fork_end();
	for (struct keeper_use *k = w->keepers; k; k = k->next)
		keeper_hang_up(k->host);
}

/* A keeper that was killed is dropped with the last run that uses it. */
void warm_put(struct warm *w, struct keeper_use **use)
{
	struct keeper_use *k = MOVE_PTR(*use);

	if (!k || --k->users > 0 || keeper_is_alive(k->host))
		return;
	for (struct keeper_use **at = &w->keepers; *at; at = &(*at)->next)
		if (*at == k) {
			drop(at);
			return;
		}
}

size_t warm_pools(struct warm *w, struct keep_pool *rows, size_t room)
{
	size_t n = 0;

	for (struct keeper_use *k = w->keepers; k && room - n >= KEEP_POOLS_MAX; k = k->next)
		if (k->started_by == getpid())
			n += keeper_pools(k->host, rows + n);
	return n;
}

int warm_settle(struct keeper_use *use, const char *run_id, char *leftovers, size_t size)
{
	*leftovers = '\0';
	return use ? keeper_backend.settle(use->host, run_id, leftovers, size) : 0;
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

/* Packages are only in the state directory. The files that TypeScript contexts need are visible in every session. */
static void name_shown(struct recorder *recorder, struct keep_hello *h)
{
	const struct language *typescript = lang_by_name("typescript");
	const struct statedir *dir;
	struct brig_error err = BRIG_ERROR_INIT;
	char tool[PATH_MAX];
	bool is_elsewhere = false;

	if (recorder_dir(recorder, &dir, &err) == 0)
		(void)str_copy(h->shown[0], sizeof(h->shown[0]), dir->path);
	if (typescript &&
	    lang_find_tool(typescript, &typescript->compile, tool, sizeof(tool), &is_elsewhere, NULL) == 0 &&
	    is_elsewhere)
		(void)str_copy(h->shown[1], sizeof(h->shown[1]), tool);
}

static bool fits(const struct keeper_use *k, const struct plan *plan, bool limits_disks)
{
	return k->started_by == getpid() && keeper_is_alive(k->host) && (k->limits_disks || !limits_disks) &&
	       (k->fits_all || ((plan->may_degrade & ~k->may_degrade) == 0 && str_eq(k->rootfs, plan->rootfs)));
}

/* Drops unused keepers; any more than KEEPERS_MAX are in use. */
static void make_room(struct warm *w)
{
	struct keeper_use **at = &w->keepers;
	size_t n = 0;

	while (*at) {
		if ((*at)->users == 0 && (n >= KEEPERS_MAX - 1 || !keeper_is_alive((*at)->host))) {
			drop(at);
			at = &w->keepers; /* the list may have changed */
			n = 0;
			continue;
		}
		at = &(*at)->next;
		n++;
	}
}

static void fill_waiting(struct keep_hello *h, unsigned wanted, const struct settings *set)
{
	h->cells = CELLS_MAX;
	h->waiting = wanted > 0 ? WAITING_MAX : 0;
	h->waiting_of_kind = wanted;
	h->waiting_bytes = set->warm_memory;
	h->forks = (uint32_t)set->warm_forks;
	h->waiting_seconds = WAITING_SECONDS;
}

/* Starts a keeper from this process, for one plan and all that need no more than it. */
static int start_own(const struct warm *w, const struct warm_ask *ask, const struct plan *plan, struct keeper_use *k)
{
	const struct settings *set = &ask->request->resolved.set;
	AUTO_FREE struct keep_hello *h = calloc(1, sizeof(*h));
	struct brig_error err = BRIG_ERROR_INIT;

	if (!h)
		return -ENOMEM;
	k->may_degrade = h->may_degrade = plan->may_degrade;
	h->most = most_limits();
	h->disk_io_bps = k->limits_disks ? set->disk_io_bps : 0;
	h->maps_projects = 1;
	h->n_roots = 1;
	fill_waiting(h, k->waits ? w->wanted : 0, set);
	name_shown(ask->recorder, h);
	if (!str_copy(k->rootfs, sizeof(k->rootfs), plan->rootfs) ||
	    !str_copy(h->root[0], sizeof(h->root[0]), plan->rootfs))
		return -ENAMETOOLONG;
	return keeper_start(h, &k->host, &err);
}

static int start_elsewhere(const struct warm *w, struct keeper_use *k)
{
	struct brig_error err = BRIG_ERROR_INIT;

	k->fits_all = true;
	return keeper_request(&w->starter, k->limits_disks, &k->host, &err);
}

static struct keeper_use *start(struct warm *w, const struct warm_ask *ask, const struct plan *plan)
{
	AUTO_FREE struct keeper_use *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	make_room(w);
	k->waits = w->wanted && w->starts++ < STARTS_MAX;
	k->started_by = getpid();
	k->limits_disks = limits_disk_io(&ask->request->resolved.set);
	if ((w->starter.start ? start_elsewhere(w, k) : start_own(w, ask, plan, k)) < 0)
		return NULL;
	k->next = w->keepers;
	w->keepers = k;
	return MOVE_PTR(k);
}

static void raise_ceilings(struct keep_hello *h, const struct settings *most)
{
	prepare_raise_limits(&h->most, most);
	for (size_t i = 0; i < h->n_roots; i++)
		if (str_eq(h->root[i], most->rootfs))
			return;
	if (h->n_roots < KEEP_ROOTS_MAX && str_copy(h->root[h->n_roots], KEEP_PATH_MAX, most->rootfs))
		h->n_roots++;
}

void warm_ceilings(const struct policy *policy, struct recorder *recorder, unsigned wanted, bool limits_disks,
		   struct keep_hello *ret)
{
	AUTO_FREE struct settings *most = calloc(1, sizeof(*most));
	bool any;

	/* a client may be allowed to open more than it may read, so projects come packed */
	*ret = (struct keep_hello){ .maps_projects = 0 };
	for (enum trust t = 0; most && t < TRUST_COUNT; t++) {
		if (!policy_most(policy, t, most, &any))
			continue;
		raise_ceilings(ret, most);
		ret->may_degrade |= any ? ~(protection_set)0 : prepare_degradable(&most->allow_degraded);
	}
	ret->disk_io_bps = limits_disks ? setting_info[SET_disk_io_bps].max - 1 : 0;
	fill_waiting(ret, wanted, policy_base(policy));
	name_shown(recorder, ret);
}

static struct keeper_use *find(struct warm *w, const struct warm_ask *ask, const struct plan *plan)
{
	for (struct keeper_use *k = w->keepers; k; k = k->next)
		if (fits(k, plan, limits_disk_io(&ask->request->resolved.set)))
			return k;
	return start(w, ask, plan);
}

/*
 * A waiting cell gets the program by a write of its own process, which is subject to its limits; a program that may not
 * fit is better reported by a new cell.
 */
static bool is_small(const struct plan *plan)
{
	return plan->files[0].len <= plan->limits.disk_bytes / 2;
}

static bool is_compiler(const struct plan *plan)
{
	return plan->output != NULL;
}

/* True if the request gives its program anything besides the code; compilers get none of it. */
static bool has_words(const struct warm_ask *ask, const struct plan *plan)
{
	return !is_compiler(plan) && (ask->req->n_env > 0 || ask->request->subject.n_args > 0);
}

/* True if the cell would contain nothing of the request but its program; packages are the same for all requests. */
static bool can_wait(const struct warm_ask *ask, const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_binds; i++)
		if (plan->binds[i].checked)
			return false;
	if (!ask->may_wait || plan->workspace || plan->wants_view || plan->egress || has_words(ask, plan))
		return false;
	if (plan->session)
		return plan->n_files == 0;
	return ask->req->kind == BRIG_KIND_CODE && plan->n_files == 1 && is_small(plan);
}

/* The word that names the program's file: an argument of its interpreter, or the program itself; NULL: none. */
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
 * True if the program may be forked from an interpreter that serves others, too. Packages that a request brought remain
 * private: what they do on loading happens only in a cell of that request.
 */
static bool may_fork(const struct warm_ask *ask, const struct plan *plan)
{
	const struct prepared_request *pr = ask->request;

	return pr->resolved.set.warm_forks > 0 && pr->lang->run.forks && (plan->n_binds == 0 || ask->named_packages);
}

/* Lets the program, or its interpreter, exist before the request. */
static void make_wait(const struct warm_ask *ask, struct plan *plan)
{
	if (plan->session) {
		plan->waits_at = plan->argv[0];
		plan->interpreter_waits = true;
		return;
	}
	plan->waits_at = program_path(plan);
	if (!plan->waits_at || is_compiler(plan)) /* its process waits before it is executed */
		return;
	plan->interpreter_waits = ask->request->lang->run.waits;
	plan->forks = may_fork(ask, plan);
}

static bool is_served(const struct warm_ask *ask, const struct plan *plan)
{
	return ask->chosen->ops == &native_backend && !job_lacks(plan);
}

struct backend_host *warm_take(struct warm *w, const struct warm_ask *ask, struct plan *plan, struct keeper_use **use)
{
	struct keeper_use *k = is_served(ask, plan) ? find(w, ask, plan) : NULL;

	if (!k)
		return NULL;
	k->users++;
	warm_put(w, use);
	*use = k;
	plan->waits_at = NULL;
	plan->interpreter_waits = plan->forks = false;
	if (k->waits && can_wait(ask, plan))
		make_wait(ask, plan);
	return k->host;
}
