/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cgroup*.c share.  A host has trees: hierarchies in which cells may be made.  A cell has one
 * leaf, a directory, in each.  What v1 and v2 do differently is a struct cgroup_ops: tables of file
 * names, and functions only where a table cannot say it.
 */
#ifndef SYS_CGROUP_INTERNAL_H
#define SYS_CGROUP_INTERNAL_H

#include "sys/cgroup.h"

enum cgroup_controller {
	CONTROLLER_CPU,
	CONTROLLER_CPUACCT,
	CONTROLLER_MEMORY,
	CONTROLLER_PIDS,
	CONTROLLER_IO,
	CONTROLLER_COUNT
};
extern const char *const cgroup_v1_name[CONTROLLER_COUNT], *const cgroup_v2_name[CONTROLLER_COUNT];
#define CONTROLLER_BIT(c) (1u << (c))
#define CONTROLLERS_ALL   (CONTROLLER_BIT(CONTROLLER_COUNT) - 1)

#define CGROUP_PATH_MAX  1024
#define CGROUP_WHY_MAX   320
#define CGROUP_PERIOD_US 100000 /* the kernel's default for new groups, so that it need not be written */

#define CGROUP_MARK "user.brig.mark"

struct cgroup_leaf;

/* A limit to write into a new leaf.  value() says false if there is nothing to limit. */
struct cgroup_limit_file {
	enum cgroup_controller controller;
	const char *file;
	bool (*value)(const struct cgroup_limits *limits, uint64_t *ret);
	bool optional; /* not in every kernel: cgroup_host_has() tells, so its absence is not an error here */
};

/* A number of struct cgroup_usage: a file's only number, or the one behind key; times factor. */
struct cgroup_counter {
	size_t field;
	enum cgroup_controller controller;
	const char *file;
	const char *key;
	uint64_t factor;
};

struct cgroup_ops {
	const char *entry_file; /* where a task writes "0" to enter; NULL: CLONE_INTO_CGROUP */
	const struct cgroup_limit_file *limits;
	size_t n_limits;
	const struct cgroup_counter *counters;
	size_t n_counters;
	/* A limit that the kernel refused with EINVAL but that an outer group already keeps. */
	bool (*is_kept_outside)(const struct cgroup_leaf *leaf, const struct cgroup_limit_file *limit, uint64_t value);
	/* Fills *ret if this leaf knows the resource. */
	void (*readback)(const struct cgroup_leaf *leaf, enum cgroup_resource r, struct cgroup_readback *ret);
	/* Of CONTROLLER_IO.  0 or -errno. */
	int (*limit_disk)(const struct cgroup_leaf *leaf, dev_t disk, uint64_t bps);
	int (*read_disk)(const struct cgroup_leaf *leaf, dev_t disk, uint64_t *ret); /* UINT64_MAX: unlimited */
	const char *disk_file;                                                       /* where that is read from */
	bool (*kill_all)(const struct cgroup_leaf *leaf); /* false: signal the tasks one by one.  May be NULL. */
	const char *quota_file, *no_quota;                /* of the cpu controller, and what to write there for none */
};
extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops;

struct cgroup_tree {
	const struct cgroup_ops *ops;
	int dir;              /* leaves are made below it, or below base in it */
	const char *base;     /* a group made with the first leaf and removed with the last; NULL: none */
	unsigned controllers; /* bits; v2 always has CPUACCT: cpu.stat needs no controller */
	char path[CGROUP_PATH_MAX];
};

struct cgroup_host {
	const char *version;
	struct cgroup_tree tree[CONTROLLER_COUNT];
	size_t n_trees;
	struct cgroup_tree freezer; /* of v1; dir FD_NONE: none */
	bool has[CGROUP_RESOURCE_COUNT];
	char why[CGROUP_RESOURCE_COUNT][CGROUP_WHY_MAX];
};

struct cgroup_leaf {
	const struct cgroup_ops *ops;
	const char *base;
	int top;    /* holds base, if there is one */
	int parent; /* holds the leaf */
	int dir;
	int entry; /* open for writing, so that the child only writes */
	unsigned controllers;
	const char *name; /* inside struct cgroup */
	const char *path; /* the tree's, which the host keeps */
};

struct cgroup {
	char name[CGROUP_NAME_MAX];
	struct cgroup_leaf leaf[CONTROLLER_COUNT];
	size_t n_leaves;
	struct cgroup_leaf freezer; /* of v1: nothing is in it until it is paused; parent FD_NONE: none */
	uint64_t memory_peak_seen;  /* for kernels that keep no peak */
};

/* A cgroup2 mount and our group in that hierarchy, as found by the discovery. */
struct cgroup_v2_mount {
	char own[CGROUP_PATH_MAX]; /* as in /proc/self/cgroup; "": none */
	char point[CGROUP_PATH_MAX];
	char root[CGROUP_PATH_MAX];
	bool read_only;
};

/* Text from /proc/self/cgroup made relative to a mount: "" or "/a/b"; NULL if the mount does not show it. */
const char *cgroup_path_in_mount(const char *own, const char *mount_root);
/* Of cgroup v2, into dst.  0 or -errno. */
int cgroup_v2_own_path(char *dst, size_t size);
/*
 * Finds a place for leaves in the v2 hierarchy and adds it to h->tree.  why gets a sentence if a wanted controller, or
 * the whole tree, is not available.
 */
void cgroup_v2_place(struct cgroup_host *h, const struct cgroup_v2_mount *m, unsigned wanted, char why[CGROUP_WHY_MAX]);
/* Enables controllers for the children of a v2 group.  0 or -errno. */
int cgroup_v2_enable(int dir, unsigned controllers);

/* cgroup_freezer.c; those of leaves are harmless for leaves that have none, and async-signal-safe. */
void cgroup_find_freezer(struct cgroup_host *h);
void cgroup_thaw_leaf(const struct cgroup_leaf *leaf);
void cgroup_remove_programs(const struct cgroup_leaf *leaf);
int cgroup_count_programs(const struct cgroup_leaf *leaf, int (*count)(const struct cgroup_leaf *leaf));

/* The number behind "key " in a file of such lines.  0 or -errno.  Async-signal-safe. */
int cgroup_get_keyed(int dir, const char *file, const char *key, uint64_t *ret);
/* Fills in a read-back value and its source. */
void cgroup_known(const struct cgroup_leaf *leaf, const char *file, uint64_t value, struct cgroup_readback *ret);
/* Whether the host has no swap device at all: then swap needs no limit. */
bool cgroup_no_swap_device(void);
static inline bool cgroup_leaf_has(const struct cgroup_leaf *leaf, enum cgroup_controller c)
{
	return leaf->controllers & CONTROLLER_BIT(c);
}

/* The values of limits, shared by both versions. */
bool cgroup_limit_memory(const struct cgroup_limits *limits, uint64_t *ret);
bool cgroup_limit_pids(const struct cgroup_limits *limits, uint64_t *ret);
bool cgroup_limit_cpu(const struct cgroup_limits *limits, uint64_t *ret); /* quota in us per CGROUP_PERIOD_US */

#endif
