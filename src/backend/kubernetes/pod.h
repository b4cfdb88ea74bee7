/* SPDX-License-Identifier: Apache-2.0 */
/* A pod as a cell: internal interfaces of this folder.  See kubernetes.c. */
#ifndef KUBERNETES_POD_H
#define KUBERNETES_POD_H

#include "backend/backend.h"
#include "backend/container/owner.h"
#include "backend/container/pump.h"
#include "backend/kubernetes/api.h"
#include "backend/kubernetes/channels.h"

#define POD_CONTAINER "cell"
/* Time for the cluster's own work, in addition to the policy's limits for starting and removing a cell. */
#define CLUSTER_GRACE_MS 30000

static inline uint64_t cluster_patience_ms(uint64_t policy_ms)
{
	return policy_ms + min_u64(CLUSTER_GRACE_MS, 10 * policy_ms);
}

struct backend_host {
	const struct settings *set; /* outlives the host */
	struct api api;
	struct owner_self self;
};

struct cell {
	struct pump pump; /* must be first, see container_cell_*() */
	struct backend_host *host;
	const struct plan *plan;
	char name[64];
	char uid[64]; /* of the pod; "": none known */
	bool perhaps; /* the server may have created a pod, but the answer was lost */
	char image[300];
	json_t *asked;          /* the pod as requested */
	json_t *before, *after; /* the server's account when init was ready, and after the end */
	struct channels *channels;
	uint64_t oom_seen;
	bool stopped, gone;
	bool violated;
	char difference[200];
};

/*
 * map_plan.c: the only place where a plan becomes a pod.
 *
 * Protections that no cluster has: those that no engine has (user_ns to socket_memory, see docker/map_plan.c), and
 *
 *	disk_limit  the size of places in memory is limited, which is checked; the number of files is not
 *	cpu_time    no source reports a pod's CPU time often enough; RLIMIT_CPU limits each process
 */
json_t *map_plan_pod(const struct cell *c, struct brig_error *err);
#define KUBERNETES_NEVER                                                                                               \
	(PROT_BIT(PROT_user_ns) | PROT_BIT(PROT_id_separation) | PROT_BIT(PROT_time_ns) | PROT_BIT(PROT_proc_subset) | \
	 PROT_BIT(PROT_nested_userns) | PROT_BIT(PROT_user_counts) | PROT_BIT(PROT_socket_memory) |                    \
	 PROT_BIT(PROT_disk_limit) | PROT_BIT(PROT_cpu_time))
/* Since this version pods may have their own user namespace on any cluster. */
#define HOST_USERS_MINOR 33

/* map_check.c: compares the server's account of the pod with the request.  true if nothing differs. */
bool map_check_pod(const json_t *asked, const json_t *found, char *difference, size_t size);
/* An API quantity ("500m", "64Mi", "1e3") in thousandths; false: malformed. */
bool map_quantity(const char *text, uint64_t *ret);

/* status.c: what the server reports about a pod's state. */
enum pod_phase { POD_WAITS, POD_RUNS, POD_ENDED, POD_BROKEN };
struct pod_status {
	enum pod_phase phase;
	char why[300]; /* reason and message, unless it runs; cleaned; "" if not given */
	bool oom;      /* it was killed by the OOM killer */
	int64_t code;  /* exit code of the container once it has ended; -1: unknown */
	char image_id[200];
};
void pod_status_read(const json_t *pod, struct pod_status *ret);

/* life.c */
int pod_prepare(struct cell *c, struct brig_error *err);
int pod_start(struct cell *c, struct brig_error *err);
int pod_await_ready(struct cell *c, struct brig_error *err);
int pod_stop(struct cell *c, struct brig_error *err);
int pod_remove(struct cell *c, char *leftovers, size_t size);
/* For a pod whose init died without reporting the end. */
enum cell_event pod_lost(struct cell *c, struct exit_info *info, struct brig_error *err);

/* read_back.c */
/* Checks namespaces, which must not have the node's numbers, and limits; before the program starts. */
int pod_check_walls(struct cell *c, struct brig_error *err);
void pod_read_back(struct cell *c, struct facts *ret);

/* reap.c */
int pods_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int pods_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

#endif
