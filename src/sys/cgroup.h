/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell's control groups, on hosts with cgroup v1, v2 or both (hybrid): one table of operations
 * each, behind these functions.
 *
 * A struct cgroup_host is what this process may use: which controllers, where they are mounted, below which directory
 * cells may be created.  It is determined once.  A struct cgroup is one cell's groups, and does not outlive its host.
 *
 * Order of use: cgroup_host_open, cgroup_create (every limit is written before any task is inside,
 * INV-2), then either clone3 with CLONE_INTO_CGROUP on cgroup_clone_fd() or, in the child,
 * cgroup_enter_self(), both if both apply; cgroup_read while it runs; cgroup_destroy when the last
 * task is gone.  A cgroup outlives its host object.
 *
 * The child must call cgroup_enter_self() while it has one thread, and may make its cgroup namespace
 * only after it: the namespace's root is the group the task is in at that moment.
 */
#ifndef SYS_CGROUP_H
#define SYS_CGROUP_H

#include "base/err.h"
#include "sys/disk.h"

struct cgroup_host;
struct cgroup;

enum cgroup_resource {
	CGROUP_MEMORY,
	CGROUP_SWAP,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPU_TIME,
	CGROUP_SOCKET_MEMORY,
	CGROUP_DISK_IO, /* only if cgroup_host_open was told to look for it */
	CGROUP_RESOURCE_COUNT
};

/* 0: not limited. */
struct cgroup_limits {
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t cpu_percent; /* of one cpu */
	uint64_t disk_io_bps; /* bytes per second from, and as many to, each of these */
	const struct disk_list *disks;
	bool outlives_oom; /* out of memory kills one process, not all */
};

struct cgroup_usage {
	uint64_t cpu_ns;
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t pids;
	uint64_t pids_peak; /* 0: this kernel does not tell */
	uint64_t oom_kills;
	uint64_t pids_refused; /* forks refused by the limit */
};

/* One limit as the kernel has it now.  CGROUP_CPU_TIME has no limit in the kernel: its value is the ns used. */
struct cgroup_readback {
	bool known;
	uint64_t value;   /* bytes, tasks, percent of one cpu; UINT64_MAX: unlimited */
	char source[120]; /* the file it was read from; swap may be known from /proc/swaps having no device */
};

/*
 * Finds out what can be used.  Never fails for lack of cgroups: cgroup_host_has() shows what is missing.  As an
 * ordinary user on a systemd host without a delegated group, asks the user's manager for a scope and moves this process
 * into it.  with_disk_io: also for the controller of block devices, which few runs need and which on v1 is one more
 * group for each cell.
 */
int cgroup_host_open(bool with_disk_io, struct cgroup_host **ret, struct brig_error *err);
void cgroup_host_free(struct cgroup_host *h); /* NULL is fine */
bool cgroup_host_has(const struct cgroup_host *h, enum cgroup_resource r);
/* Why a resource is missing and what to do, in one sentence; "" if it is there. */
const char *cgroup_host_why(const struct cgroup_host *h, enum cgroup_resource r);
/* "v1", "v2", "hybrid", "none". */
const char *cgroup_host_version(const struct cgroup_host *h);

/* Creates the cell's groups and writes every limit that the host has a controller for; without any controller the
 * cgroup is empty and all calls on it are harmless.  On failure nothing is left behind. */
int cgroup_create(struct cgroup_host *h, const char *id, const struct cgroup_limits *limits, struct cgroup **ret,
		  struct brig_error *err);
/*
 * The same in three steps.  prepare holds all that cgroup_remove() needs and creates nothing, so that a janitor can be
 * forked before there is anything to leave behind; make makes the directories; limit writes the limits, which may cost
 * more than all the rest and can be done while the cell's own processes are already building it inside, as long as it
 * is before the first guest instruction (INV-2).  If make or limit fails, cgroup_destroy() it.
 */
int cgroup_prepare(struct cgroup_host *h, const char *id, struct cgroup **ret, struct brig_error *err);
int cgroup_make(struct cgroup *cg, struct brig_error *err);
int cgroup_limit(const struct cgroup *cg, const struct cgroup_limits *limits, struct brig_error *err);
void cgroup_free(struct cgroup *cg); /* without removing anything; NULL is fine */
#define CGROUP_NAME_MAX 64
const char *cgroup_name(const struct cgroup *cg); /* of its directories, the same in every tree */
/* In the janitor: closes every descriptor but keep and those that cgroup_remove() uses.  Async-signal-safe. */
void cgroup_close_other_fds(const struct cgroup *cg, int keep);
/* A v2 directory for CLONE_INTO_CGROUP, or -1. */
int cgroup_clone_fd(const struct cgroup *cg);
/* Whether there will be such a directory: then the groups must be created before the clone, otherwise also later. */
bool cgroup_host_enters_at_clone(const struct cgroup_host *h);
/* What a task writes "0" to, to enter what CLONE_INTO_CGROUP does not cover.  The number of them, at most max. */
#define CGROUP_ENTRIES_MAX 5
size_t cgroup_entries(const struct cgroup *cg, int *fds, size_t max);
/* The same for every group, that one included, for a process that was cloned elsewhere: the caller's descriptors, opened with the ids
 * that the caller has now.  The number, or -errno. */
int cgroup_open_entries(const struct cgroup *cg, int *fds, size_t max);
int cgroup_enter(const int *fds, size_t n); /* async-signal-safe; 0 or -errno */
/* Both in one, for a child that was forked after the groups were made. */
int cgroup_enter_self(const struct cgroup *cg);
/*
 * A group that processes of the cell can be moved into to be frozen (cgroup_freezer.c), by whoever has the three descriptors: a pid
 * written to procs moves a process; state has FROZEN and THAWED of version 1, 1 and 0 of 2; events, of 2, says when all are.
 */
struct cgroup_freezer {
	int procs, state, events;
	unsigned version;
	char source[160];
};
#define CGROUP_FREEZER_INIT                                           \
	{                                                             \
		.procs = FD_NONE, .state = FD_NONE, .events = FD_NONE \
	}
/* With the groups made.  0 or -errno; -ENOTSUP: this host has none.  It goes with the others. */
int cgroup_make_freezer(struct cgroup *cg, struct cgroup_freezer *ret);
void cgroup_freezer_close(struct cgroup_freezer *f);
/* Before what is inside is waited for to die. */
void cgroup_thaw(const struct cgroup *cg);

/* What the kernel does not count stays 0.  -ENODATA if the host gave the cell no group at all. */
int cgroup_read(struct cgroup *cg, struct cgroup_usage *ret);
/* Only the counters that end a run: cheap enough for every tick. */
int cgroup_read_cpu_ns(const struct cgroup *cg, uint64_t *ret);
int cgroup_read_memory(const struct cgroup *cg, uint64_t *ret);
int cgroup_read_oom_kills(const struct cgroup *cg, uint64_t *ret);
void cgroup_readback(const struct cgroup *cg, enum cgroup_resource r, struct cgroup_readback *ret);
/* CGROUP_DISK_IO: the most that may be moved in either direction on any of these disks. */
void cgroup_readback_disks(const struct cgroup *cg, const struct disk_list *disks, struct cgroup_readback *ret);
/* Tasks still inside, from cgroup.procs, but for one if it is not 0; -errno if unknown. */
int cgroup_count_tasks(const struct cgroup *cg, pid_t besides);
/* Whether these two tasks are in every one of the groups.  Others may be, too: the process that brought them there is
 * listed while it dies. */
bool cgroup_has_two(const struct cgroup *cg, pid_t one, pid_t two);
/*
 * Sets a short text on the group, replacing the previous one; it disappears with the group.  For cgroup_found_mark().
 * Setting it requires write access to the group, which nothing inside has.  Kernels before 5.7 do not support it; then
 * there is none.
 */
void cgroup_mark(const struct cgroup *cg, const char *text);
/* Once everything inside has been killed: dying takes cpu time too, and a throttled group would wait for it. */
void cgroup_lift_quota(const struct cgroup *cg);
/* Kills every task inside (cgroup.kill where there is one). */
void cgroup_kill(const struct cgroup *cg);
/*
 * Kills what is left, removes the directories (retrying until deadline_ns on the monotonic clock)
 * and frees cg (NULL is fine).  0, or -EBUSY if something stayed.  Async-signal-safe but for the free: see below.
 */
int cgroup_destroy(struct cgroup *cg, uint64_t deadline_ns);
/* The same without freeing: for the janitor process, which runs after the supervisor has died. */
int cgroup_remove(const struct cgroup *cg, uint64_t deadline_ns);
/* One attempt at the leaves in *left, at first CGROUP_EVERY_LEAF.  True: none is there any more.  Async-signal-safe. */
#define CGROUP_EVERY_LEAF ~0u
bool cgroup_remove_once(const struct cgroup *cg, unsigned *left);
/* One that was prepared and never made stands for another one of the same host from now on.  Async-signal-safe. */
void cgroup_take_name(struct cgroup *cg, const char *name);

/* A process that does not count as another one in our group, and is moved along with us where necessary. */
void cgroup_take_along(pid_t pid);

#endif
