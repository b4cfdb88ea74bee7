/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor gives to a cell's own processes: one struct, complete before the clone and never changed after
 * it.  Those processes are forked, not executed, from a process that may have threads.  So all code between clone and
 * exec must be async-signal-safe: no allocation, no stdio, only what is in here.
 */
#ifndef NATIVE_CELL_SPEC_H
#define NATIVE_CELL_SPEC_H

#include <assert.h>

#include "backend/guest/confine.h"
#include "backend/native/report.h"
#include "model/plan.h"
#include "sys/cgroup.h"

#define SYSTEM_DIRS_MAX 40
#define EXTRA_BINDS_MAX 8
#define ETC_DIRS_MAX    20
static_assert(SYSTEM_DIRS_MAX + EXTRA_BINDS_MAX + 8 <= GUEST_RULES_MAX, "a rule for each of them, and for our own");
#define CERTIFICATES_PATH "/run/brig/ca-certificates.crt" /* in the cell */

/* An entry of the cell's root: a symbolic link, or a directory that is mounted read-only. */
struct system_dir {
	char name[64];
	char link[160];   /* target; "": a directory */
	char source[320]; /* host path */
	char path[72];    /* "/name" */
};

struct extra_bind {
	char dir[160];    /* directory to create, relative to the root, "opt/brig" */
	char target[200]; /* relative to the root */
	const char *source;
	bool is_dir;
	bool checked; /* the source must be this inode: */
	dev_t device;
	ino_t inode;
};

#define MACHINE_FILES    7
#define MACHINE_CPUS_MAX 64

/* Contents of the files in /proc that describe the machine (machine.c), concatenated. */
struct machine {
	char cpus[16]; /* for /sys/devices/system/cpu */
	size_t len, end[MACHINE_FILES];
	char *text; /* allocated */
};
extern const char *const machine_names[MACHINE_FILES];
int machine_describe(struct machine *m, const struct limits *l); /* 0 or -ENOMEM */

/* Type of a hidden path of the project before the clone. */
enum hidden_kind { HIDDEN_GONE, HIDDEN_FILE, HIDDEN_DIR };

struct cell_spec {
	const struct plan *plan;
	bool has_cgroup;       /* a REPORT_ENTER will come */
	bool enters_first;     /* init enters before it changes its ids, so that its children start inside */
	bool two_ids;          /* inside 0 is init's and plan->uid the program's; otherwise both have one id */
	bool has_ptys;         /* not in the strict profile: the kernel's terminal code is large */
	bool cgroup_ns_cloned; /* clone3 has created it */
	bool joined;           /* init forks no payload: the cell is a zygote's frame, or is filled by a zygote */
	struct guest_confine confine; /* for the payload */
	struct seccomp_filter init_filter;

	struct system_dir *dirs; /* allocated, at most SYSTEM_DIRS_MAX */
	size_t n_dirs;
	bool own_etc; /* write a minimal /etc; otherwise it is one of dirs */
	int ld_cache; /* the host's /etc/ld.so.cache, or FD_NONE */
	struct extra_bind binds[EXTRA_BINDS_MAX];
	size_t n_binds;
	char root_inodes[24];
	const enum hidden_kind *hidden; /* one for each of plan->workspace->hidden */
	char time_offsets[96];
	struct machine machine;
	char *env_start, *env_end; /* the supervisor's environment strings: wiped in init */
	const char *const *envp;   /* the program's, and the variables that make an interpreter wait */

	/* child ends */
	int ctl; /* init <-> supervisor */
	int go;  /* payload <-> supervisor */
	int stdio[3];
	int wait_library; /* for an interpreter that waits; FD_NONE: the payload waits, or nothing does */
	int steward;      /* a session's program; FD_NONE: execute plan->argv */
};

/* State of the child while it builds: descriptors that later steps use. */
struct cell_build {
	const struct cell_spec *spec;
	int root, scratch, workspace, nested_userns;
	int user_count[USER_COUNT_COUNT]; /* FD_NONE: the kernel lacks this count, or it could not be bounded */
	struct project_build {
		enum project_way way;
		int source; /* the mount or the stream */
		int upper, masks;
		uint64_t copy_bytes, copy_inodes; /* upper bounds */
		uint64_t own_bytes, own_inodes;   /* see struct report */
	} project;
	int dir_tree[SYSTEM_DIRS_MAX], bind_tree[EXTRA_BINDS_MAX], etc_tree[ETC_DIRS_MAX];
	pid_t payload;
	int payload_pidfd;
	struct guest_confine confine; /* the payload's own copy */
	int mate;                     /* socket between init and payload, for enum mate_word */
};

/* Messages between init and payload, which build the cell in parallel. */
enum mate_word {
	MATE_NAMESPACES = 'n', /* from the payload: its namespaces exist and can be joined */
	MATE_TREE = 't',       /* from init: the payload's root is now the cell's; with the root's device and inode */
	MATE_SEALED = 's',     /* from init: it has detached the host's tree and confined itself */
};
struct mate_message {
	char word;
	uint64_t root_dev, root_ino; /* MATE_TREE */
};
int mate_send(int mate, enum mate_word word, uint64_t dev, uint64_t ino);
/* 0, or -ECANCELED if the peer is gone: it has reported its own reason. */
int mate_receive(int mate, enum mate_word word, struct mate_message *ret);
/* Steps that init and payload each take for themselves. */
int build_enter_cgroup(const struct cell_spec *spec, int sock);
int build_cgroup_ns(struct cell_build *b);

/* Exactly one of run and confine is set; 0 or -errno. */
struct build_step {
	enum step step;
	int (*run)(struct cell_build *b);
	int (*confine)(struct guest_confine *c);
};

/* Runs the steps in order.  On failure *ret_failed is the step; the value is 0 or -errno. */
int build_run(struct cell_build *b, const struct build_step *steps, size_t n, enum step *ret_failed);

/* user_counts.c */
int user_counts_bound(struct cell_build *b);

/* rootfs.c: the steps that build the file tree. */
int root_open_trees(struct cell_build *b);
int root_make(struct cell_build *b);
int root_show_system(struct cell_build *b);
int root_write_etc(struct cell_build *b);
int root_write_certificates(struct cell_build *b);
int root_write_sys(struct cell_build *b);
int root_show_devices(struct cell_build *b);
int root_mount_proc(struct cell_build *b);
int root_mount_scratch(struct cell_build *b);
int root_show_extra(struct cell_build *b);
int root_stage_files(struct cell_build *b);
int root_stage_files_in(struct cell_build *b, int dir, bool covering); /* covering: those that replace a file */
int root_seal(struct cell_build *b);
int root_enter(struct cell_build *b);
int root_detach_host(struct cell_build *b);

int root_write_file(int dir, const char *name, mode_t mode, const void *data, size_t len);
/* Mounts a directory of the scratch tmpfs at its place in the root, with its own flags. */
int root_show_scratch(struct cell_build *b, const char *name, const char *target, mode_t mode, unsigned flags);
int root_open_workspace(struct cell_build *b);

/* root_project.c: the same for a cell with a project. */
int root_take_project(struct cell_build *b);
int root_show_project(struct cell_build *b);
int root_mask_project(struct cell_build *b);
/* Mount options of the scratch space: the limits, plus the size of a copied project. */
struct scratch_room {
	char size[24], inodes[24];
};
void root_scratch_room(const struct cell_build *b, struct scratch_room *ret);

/* PID 1 of the cell, from its first instruction to its last. */
_Noreturn void cell_init_main(const struct cell_spec *spec);
/* The program's process, from fork to exec. */
_Noreturn void payload_main(struct cell_build *b);

/* Only in builds with -Dfaults=true: makes one step fail, for the fault suite. */
#ifdef BRIG_FAULTS
extern enum step fault_step;
extern int fault_errno;
#define FAULT_HIT(s) ((s) == fault_step)
#define FAULT_ERRNO  fault_errno
void fault_arm(void);
#else
#define FAULT_HIT(s) false
#define FAULT_ERRNO  0
static inline void fault_arm(void)
{
}
#endif

#endif
