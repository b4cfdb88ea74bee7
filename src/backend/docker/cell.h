/* SPDX-License-Identifier: Apache-2.0 */
/* A container as a cell: internal interfaces of this folder.  See docker.c. */
#ifndef DOCKER_CELL_H
#define DOCKER_CELL_H

#include "backend/backend.h"
#include "backend/docker/engine.h"
#include "backend/container/owner.h"
#include "backend/container/pump.h"
#include "backend/docker/frames.h"
#include "base/buf.h"

/* Time for the engine's own work, in addition to the policy's limits for starting and removing a cell. */
#define ENGINE_GRACE_MS 30000

/*
 * At most ten times the policy's limit: a policy with short limits does not want to wait half a minute for the engine.
 */
static inline uint64_t engine_patience_ms(uint64_t policy_ms)
{
	return policy_ms + min_u64(ENGINE_GRACE_MS, 10 * policy_ms);
}

struct backend_host {
	const struct settings *set; /* outlives the host */
	struct engine *engine;
	bool podman, local; /* as in engine_about */
	char disk[64];      /* with disk_io_bps: device node of the disk that has the engine's images */
	struct owner_self self;
};

struct cell {
	struct pump pump; /* must be first, see container_cell_*() */
	struct backend_host *host;
	const struct plan *plan;
	struct backend_notice notify;
	char id[ENGINE_ID_LEN + 1]; /* "": no container */
	char name[64];
	bool perhaps; /* the engine may have created a container, but the answer with its id was lost */
	char image[ENGINE_IMAGE_LEN + 1];
	bool cold;         /* do not take it from a pool */
	bool left_to_pool; /* the pool removes it when the connection closes */
	int pool;          /* connection to the pool that it came from; FD_NONE: created for this run */
	json_t *asked;     /* the body of the create call */
	int profile;       /* Podman: memfd with the seccomp profile, which it opens by path; FD_NONE */
	json_t *before;    /* the engine's account when init was ready */
	json_t *after;     /* and after the end */
	struct http_call *wait;
	struct frames frames;

	/* cgroups of the container, if the engine is on this host */
	int memory, cpu, pids; /* directories */
	bool v2;
	uint64_t cpu_base_ns, oom_seen, cpu_seen_ns;
	struct engine_stats stats; /* from the engine, if there are no directories */
	struct http_call *asking;  /* a request for the next ones, in progress */
	bool no_stats;             /* the engine provides none */

	uint64_t changes;         /* in the container's root, outside of its writable places */
	const char *changes_from; /* NULL: unknown */
	bool stopped;
	bool violated;
	char difference[200];
};

/* map_plan.c: the only place where a plan becomes container settings. */
int map_plan_offer_profile(struct cell *c, struct brig_error *err); /* for Podman, before map_plan_body */
json_t *map_plan_body(const struct cell *c, struct brig_error *err);
#define DOCKER_NEVER                                                                                                   \
	(PROT_BIT(PROT_user_ns) | PROT_BIT(PROT_id_separation) | PROT_BIT(PROT_time_ns) | PROT_BIT(PROT_proc_subset) | \
	 PROT_BIT(PROT_nested_userns) | PROT_BIT(PROT_user_counts) | PROT_BIT(PROT_socket_memory))

/* map_check.c: compares the engine's account of the container with the request.  true if nothing differs. */
bool map_check(const json_t *asked, const json_t *found, bool podman, bool ended, char *difference, size_t size);

/* owner.c: containers of dead owners. */
/* Whether an engine lists a container that it has already removed. */
bool owner_is_ghost(const json_t *row);
void owner_sweep(struct backend_host *h);
int owner_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int owner_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

/* container.c: life cycle. */
int container_prepare(struct cell *c, struct brig_error *err); /* everything that needs no container */
int container_create(struct cell *c, struct brig_error *err);
int container_start(struct cell *c, struct brig_error *err);
int container_await_ready(struct cell *c, struct brig_error *err);
int container_stop(struct cell *c, struct brig_error *err);
int container_remove(struct cell *c, char *leftovers, size_t size);

/* way_out.c */
int docker_listener(struct cell *c, struct brig_error *err);

/* changes.c */
void changes_count(struct cell *c);

/* stats.c */
void stats_open(struct cell *c, uint64_t pid);
void stats_close(struct cell *c);
int stats_sample(struct cell *c, struct sample *ret);
uint64_t stats_cpu_ns(struct cell *c);
uint64_t stats_oom_kills(struct cell *c);

/* read_back.c */
void docker_read_back(struct cell *c, struct facts *ret);

#endif
