/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cell's own processes are given by the supervisor: one struct, complete before the clone and
 * never changed after it.  The cell's processes are forked, not executed, from a process that may have
 * threads; so whatever runs between clone and exec is async-signal-safe: no allocation, no stdio, only
 * what is in here.
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

/* One entry of the cell's root: a symbolic link to make, or a directory to show read-only. */
struct system_dir {
	char name[64];
	char link[160];   /* target; "": a directory */
	char source[320]; /* host path */
	char path[72];    /* "/name" */
};

struct extra_bind {
	char dir[160];    /* directories to make, relative to the root, "opt/brig" */
	char target[200]; /* relative to the root */
	const char *source;
	bool is_dir;
	bool checked; /* it must be this one: */
	dev_t device;
	ino_t inode;
};

#define MACHINE_FILES    7
#define MACHINE_CPUS_MAX 64

/* What /proc tells of the machine (machine.c): one text after the other. */
struct machine {
	char cpus[16]; /* of /sys/devices/system/cpu */
	size_t len, end[MACHINE_FILES];
	char *text; /* heap */
};
extern const char *const machine_names[MACHINE_FILES];
int machine_describe(struct machine *m, const struct limits *l); /* 0 or -ENOMEM */

/* What is to be hidden of a project, as it was before the clone. */
enum hidden_kind { HIDDEN_GONE, HIDDEN_FILE, HIDDEN_DIR };

struct cell_spec {
	const struct plan *plan;
	bool has_cgroup;       /* REPORT_ENTER will come */
	bool enters_first;     /* ... and init enters before it changes its ids, and has its children inside */
	bool two_ids;          /* inside 0 is init's, inside plan->uid the program's; else one id for both */
	bool has_ptys;         /* not in the strict profile: the kernel's terminals are much code */
	bool cgroup_ns_cloned; /* clone3 has made it already */
	bool joined; /* init forks nobody: a zygote is the program's, or its child comes into the cell when it stands */
	struct guest_confine confine; /* the payload's */
	struct seccomp_filter init_filter;

	struct system_dir *dirs; /* heap, at most SYSTEM_DIRS_MAX */
	size_t n_dirs;
	bool own_etc; /* write a minimal /etc; else it is one of dirs */
	int ld_cache; /* the host's /etc/ld.so.cache, or FD_NONE */
	struct extra_bind binds[EXTRA_BINDS_MAX];
	size_t n_binds;
	char root_inodes[24];
	const enum hidden_kind *hidden; /* of plan->workspace->hidden */
	char time_offsets[96];
	struct machine machine;
	char *env_start, *env_end; /* the supervisor's own environment strings: wiped in init */
	const char *const *envp;   /* the program's, and what makes an interpreter wait */

	/* child ends */
	int ctl; /* init <-> supervisor */
	int go;  /* payload <-> supervisor */
	int stdio[3];
	int wait_library; /* of a cell whose interpreter waits; FD_NONE: the payload does, or nobody */
	int steward;      /* of a session's cell: its program; FD_NONE: plan->argv names it */
};

/* State of the child while it builds: descriptors that later steps need. */
struct cell_build {
	const struct cell_spec *spec;
	int root, scratch, workspace, nested_userns;
	int user_count[USER_COUNT_COUNT]; /* FD_NONE: the kernel has no such count, or it could not be bounded */
	struct project_build {
		enum project_way way;
		int source; /* the mount or the stream */
		int upper, masks;
		uint64_t copy_bytes, copy_inodes; /* at most */
		uint64_t own_bytes, own_inodes;   /* struct report */
	} project;
	int dir_tree[SYSTEM_DIRS_MAX], bind_tree[EXTRA_BINDS_MAX], etc_tree[ETC_DIRS_MAX];
	pid_t payload;
	int payload_pidfd;
	struct guest_confine confine; /* the payload's own copy */
	int mate;                     /* init <-> payload: the words of enum mate_word */
};

/* What init and payload, which build the cell side by side, tell each other. */
enum mate_word {
	MATE_NAMESPACES = 'n', /* payload: the namespaces that it makes are there to be joined */
	MATE_TREE = 't',       /* init: you are in the cell's own root now; says which one that is */
	MATE_SEALED = 's',     /* init: I have left the host's tree and confined myself */
};
struct mate_message {
	char word;
	uint64_t root_dev, root_ino; /* MATE_TREE */
};
int mate_send(int mate, enum mate_word word, uint64_t dev, uint64_t ino);
/* 0, or -ECANCELED if the other is gone: it has given its own reason. */
int mate_receive(int mate, enum mate_word word, struct mate_message *ret);
/* Steps that each of the two takes for itself. */
int build_enter_cgroup(const struct cell_spec *spec, int sock);
int build_cgroup_ns(struct cell_build *b);

/* One of the two; 0 or -errno. */
struct build_step {
	enum step step;
	int (*run)(struct cell_build *b);
	int (*confine)(struct guest_confine *c);
};

/* Runs the steps in order.  On failure *ret_failed is the step; the value is 0 or -errno. */
int build_run(struct cell_build *b, const struct build_step *steps, size_t n, enum step *ret_failed);

/* user_counts.c */
int user_counts_bound(struct cell_build *b);

/* rootfs.c: the steps that make the file tree. */
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
int root_stage_files_in(struct cell_build *b, int dir, bool covering); /* those that cover a file, or the others */
int root_seal(struct cell_build *b);
int root_enter(struct cell_build *b);
int root_detach_host(struct cell_build *b);

int root_write_file(int dir, const char *name, mode_t mode, const void *data, size_t len);
/* A directory of the scratch tmpfs, mounted on its place in the root with flags of its own. */
int root_show_scratch(struct cell_build *b, const char *name, const char *target, mode_t mode, unsigned flags);
int root_open_workspace(struct cell_build *b);

/* root_project.c: the same for a project. */
int root_take_project(struct cell_build *b);
int root_show_project(struct cell_build *b);
int root_mask_project(struct cell_build *b);
/* Parameters of the scratch space: the limits, and what a copied project takes besides. */
struct scratch_room {
	char size[24], inodes[24];
};
void root_scratch_room(const struct cell_build *b, struct scratch_room *ret);

/* PID 1 of the cell, from its first instruction to its last. */
_Noreturn void cell_init_main(const struct cell_spec *spec);
/* The program's process, from fork to exec. */
_Noreturn void payload_main(struct cell_build *b);

/* Only in a build with -Dfaults=true: makes one step fail, for the fault suite. */
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
