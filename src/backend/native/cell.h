/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's view of one native cell; shared by the files of this folder. */
#ifndef NATIVE_CELL_H
#define NATIVE_CELL_H

#include <sys/vfs.h>

#include "backend/backend.h"
#include "backend/native/cell_spec.h"
#include "backend/native/janitor.h"

struct cell {
	struct cell_spec spec; /* what the child was given; its descriptors are closed here after the clone */
	struct cgroup_host *host;
	struct cgroup *cgroup;
	struct janitor janitor;
	pid_t init_pid;
	int init_pidfd; /* FD_NONE once reaped */
	pid_t payload_pid;

	int ctl, go; /* our ends */
	int in, out, err;
	int poll; /* epoll over ctl, go and init_pidfd */
	int handed[HANDED_COUNT];

	bool ready, confined, started, ended;
	struct exit_info end;
	int landlock_probe;
	struct statfs root_sealed;
	bool disk_full;
	uint64_t cpu_ns_seen;
	struct facts early; /* read before the program ran, or while it began to */
	struct cgroup_usage last_usage;
	int tasks_left; /* after stop; -1: not stopped yet */
};

/* idmap.c */
bool idmap_has_two(void);
int idmap_write(struct cell *c);
/* spawn.c */
int cell_open_pipes(struct cell *c, struct brig_error *err);
int cell_clone_init(struct cell *c, struct brig_error *err);
/* hosttree.c: fills spec.dirs, spec.binds, spec.rules. */
int cell_find_host_trees(struct cell *c, struct brig_error *err);
/* inspect.c */
int cell_inspect_early(struct cell *c, struct brig_error *err); /* the program waits */
void cell_inspect_start(struct cell *c); /* the program has just been let go */
void cell_inspect(struct cell *c, struct facts *ret);
/* probe.c */
int native_probe(protection_set *ret_missing, const char *ret_why[PROT_COUNT], struct brig_error *err);

/* "cannot <what>": refused if the step carries a protection, else failed. */
int cell_step_failed(enum step step, int sys, struct brig_error *err);

#endif
