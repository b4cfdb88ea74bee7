/* SPDX-License-Identifier: Apache-2.0 */
/* One pod as a cell, seen from the files of this folder.  kubernetes.c has the story. */
#ifndef KUBERNETES_POD_H
#define KUBERNETES_POD_H

#include "backend/backend.h"
#include "backend/container/owner.h"
#include "backend/container/pump.h"
#include "backend/kubernetes/api.h"
#include "backend/kubernetes/channels.h"

#define POD_CONTAINER "cell"
/* Time for the cluster's own part, on top of what the policy gives a cell to come up and to go away. */
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
	struct pump pump; /* first: container_cell_*() */
	struct backend_host *host;
	const struct plan *plan;
	char name[64];
	char uid[64]; /* of the pod; "": there is none that we know of */
	bool perhaps; /* the server may have made one, but has not said so */
	char image[300];
	json_t *asked;          /* the pod that was asked for */
	json_t *before, *after; /* the server's account, when every wall was up and after the end */
	struct channels *channels;
	uint64_t oom_seen;
	bool stopped, gone;
	bool violated;
	char difference[200];
};

/*
 * map_plan.c: the one place where a plan becomes a pod.
 *
 * What no cluster promises: what no engine does (user_ns to socket_memory, see docker/map_plan.c), and
 *
 *	disk_limit  the bytes of a place in memory are bounded, which is checked; the number of files in it is not
 *	cpu_time    nobody reads the processor time of a pod often enough; RLIMIT_CPU bounds each process
 */
json_t *map_plan_pod(const struct cell *c, struct brig_error *err);
#define KUBERNETES_NEVER                                                                                               \
	(PROT_BIT(PROT_user_ns) | PROT_BIT(PROT_id_separation) | PROT_BIT(PROT_time_ns) | PROT_BIT(PROT_proc_subset) | \
	 PROT_BIT(PROT_nested_userns) | PROT_BIT(PROT_user_counts) | PROT_BIT(PROT_socket_memory) |                    \
	 PROT_BIT(PROT_disk_limit) | PROT_BIT(PROT_cpu_time))
/* Since then pods may have a user namespace of their own on any cluster. */
#define HOST_USERS_MINOR 33

/* map_check.c: compares the server's account of the pod with what was asked.  true if nothing differs. */
bool map_check_pod(const json_t *asked, const json_t *found, char *difference, size_t size);
/* A quantity of the API ("500m", "64Mi", "1e3") in thousandths; false: it is none. */
bool map_quantity(const char *text, uint64_t *ret);

/* status.c: what the server says of a pod's state. */
enum pod_phase { POD_WAITS, POD_RUNS, POD_ENDED, POD_BROKEN };
struct pod_status {
	enum pod_phase phase;
	char why[300]; /* of one that waits, ended or is broken: its reason and message, cleaned; "" if not said */
	bool oom;      /* it was killed for want of memory */
	int64_t code;  /* of the container, once it has ended; -1: not said */
	char image_id[200];
};
void pod_status_read(const json_t *pod, struct pod_status *ret);

/* life.c */
int pod_prepare(struct cell *c, struct brig_error *err);
int pod_start(struct cell *c, struct brig_error *err);
int pod_await_ready(struct cell *c, struct brig_error *err);
int pod_stop(struct cell *c, struct brig_error *err);
int pod_remove(struct cell *c, char *leftovers, size_t size);
/* Of a pod whose init is dead without a last word. */
enum cell_event pod_lost(struct cell *c, struct exit_info *info, struct brig_error *err);

/* read_back.c */
/* Namespaces that are the node's own by their numbers, and limits, before the program starts. */
int pod_check_walls(struct cell *c, struct brig_error *err);
void pod_read_back(struct cell *c, struct facts *ret);

/* reap.c */
int pods_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int pods_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

#endif
