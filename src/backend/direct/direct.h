/* SPDX-License-Identifier: Apache-2.0 */
/* One program without isolation, seen from the supervisor; shared by the files of this folder. */
#ifndef DIRECT_DIRECT_H
#define DIRECT_DIRECT_H

#include <sys/types.h>

#include "backend/backend.h"
#include "backend/idmap.h"

/* ---- tree.c: processes that descend from one of them ----------------------------------------- */

#define TREE_MAX 32768

struct tree_row {
	pid_t pid, parent;
	bool inside;
	uint64_t ticks;      /* cpu time, with that of children that were waited for */
	uint64_t dead_ticks; /* that of those children alone */
};

struct tree {
	struct tree_row *row; /* room for TREE_MAX */
	size_t n;
};

int tree_open(struct tree *t); /* 0 or -errno */
void tree_close(struct tree *t);
/* Reads all processes and marks the descendants of root, which is none of them.  Async-signal-safe.  0 or -errno. */
int tree_read(struct tree *t, pid_t root);

/* ---- scratch.c: the folder in which a program works ------------------------------------------- */

#define SCRATCH_PATH_MAX 96

struct scratch {
	char path[SCRATCH_PATH_MAX]; /* the folder; "": none */
	char work[SCRATCH_PATH_MAX]; /* the workspace in it */
	char temp[SCRATCH_PATH_MAX]; /* and what the program has for /tmp */
	int lock;                    /* held while the folder has an owner */
	int dir;                     /* the workspace */
};

int scratch_make(struct scratch *s, const char *id, struct brig_error *err);
/* Puts the plan's files in, and gives all to the program. */
int scratch_fill(const struct scratch *s, const struct plan *plan, uid_t uid, gid_t gid, struct brig_error *err);
int scratch_remove(struct scratch *s); /* 0 or -errno */
int scratch_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int scratch_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

/* ---- words.c: the plan's paths as they are on the host ----------------------------------------- */

/* NULL-terminated copies of argv or envp on one heap block; NULL: no memory. */
char **words_on_host(const struct plan *plan, const struct scratch *s, const char *const *words);

/* ---- guard.c: the process between supervisor and program --------------------------------------- */

enum guard_step {
#define GUARD_STEP(name, what) GUARD_##name,
#include "backend/direct/steps.def"
	GUARD_STEP_COUNT
};
extern const char *const guard_step_what[GUARD_STEP_COUNT];

enum guard_kind {
	GUARD_SAYS_FORKED = 1, /* value: the program's pid */
	GUARD_SAYS_READY,      /* the program's process waits for the word */
	GUARD_SAYS_FAILED,     /* value: the step, sys: errno */
	GUARD_SAYS_ENDED,      /* value: its wait status */
	GUARD_SAYS_EXPIRED,    /* the wall clock is over */
	GUARD_SAYS_GONE,       /* value: processes that are left, after the order to stop */
	GUARD_KIND_END
};

struct guard_report {
	uint32_t magic, kind;
	int32_t value, sys;
	uint64_t at_ns;
};
#define GUARD_MAGIC 0x62726467u

/* What guard and program need; everything is the supervisor's and copied by the fork. */
struct guard_spec {
	const struct plan *plan;
	char **argv, **envp;
	const char *work;
	int ctl, go;  /* their ends */
	int stdio[3]; /* their ends */
	int lock;     /* the scratch folder's */
	struct tree tree;
	uint64_t nproc; /* RLIMIT_NPROC */
	bool own_ids;
	uid_t uid; /* with own_ids: told over ctl, as it depends on the guard */
	gid_t gid;
};

_Noreturn void guard_main(struct guard_spec *s);

/* ---- facts.c ------------------------------------------------------------------------------------- */

struct cell {
	const struct backend_host *host;
	struct guard_spec spec;
	struct scratch scratch;
	uid_t uid; /* of the program */
	gid_t gid;
	pid_t guard, program; /* 0: not there yet */
	bool own_uts;         /* the guard has a uts namespace of its own, for its number */
	int guard_pidfd;      /* FD_NONE once reaped */
	int ctl, go, in, out, err, poll;
	bool ready, started, ended, gone;
	bool told_started, told_ended;
	bool let_go;
	uint64_t started_ns;
	struct exit_info end;
	int left; /* processes after stop; -1: not known */
	uint64_t cpu_ns_seen, memory_peak, pids_peak;
	bool too_much_memory;
	struct facts early;
};

struct backend_host {
	struct idmap ids;
};

void direct_inspect_start(struct cell *c);
void direct_read_back(struct cell *c, struct facts *ret);

/* ---- project.c: a project's copy in the scratch folder ----------------------------------------------- */

/* Copies the plan's project, if it has one, before anything else is in the workspace. */
int project_copy(const struct cell *c, struct brig_error *err);
/* With everything in it: takes the rights to write away, if the project is shown read-only. */
int project_seal(const struct cell *c, struct brig_error *err);
void project_facts(const struct cell *c, struct facts *f);
int direct_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err);
int direct_open_output(struct cell *c, const char *name);
int direct_open_folder(struct cell *c, const char *name);

#endif
