/* SPDX-License-Identifier: Apache-2.0 */
/* A program without isolation, as seen from the supervisor; shared by the files of this folder. */
#ifndef DIRECT_DIRECT_H
#define DIRECT_DIRECT_H

#include <sys/types.h>

#include "backend/backend.h"
#include "backend/idmap.h"

/* ---- tree.c: descendants of a process ---------------------------------------------------------- */

#define TREE_MAX 32768

struct tree_row {
	pid_t pid, parent;
	bool inside;
	uint64_t ticks;      /* CPU time, including reaped children */
	uint64_t dead_ticks; /* CPU time of reaped children only */
};

struct tree {
	struct tree_row *row; /* room for TREE_MAX */
	size_t n;
};

int tree_open(struct tree *t); /* 0 or -errno */
void tree_close(struct tree *t);
/* Reads all processes and marks the descendants of root, excluding root.  Async-signal-safe.  0 or -errno. */
int tree_read(struct tree *t, pid_t root);

/* ---- scratch.c: a program's working directory -------------------------------------------------- */

#define SCRATCH_PATH_MAX 96

struct scratch {
	char path[SCRATCH_PATH_MAX]; /* the directory; "": none */
	char work[SCRATCH_PATH_MAX]; /* its workspace */
	char temp[SCRATCH_PATH_MAX]; /* what the program gets instead of /tmp */
	int lock;                    /* held while the directory has an owner */
	int dir;                     /* the workspace */
};

int scratch_make(struct scratch *s, const char *id, struct brig_error *err);
/* Writes the plan's files, and gives everything to the program's user. */
int scratch_fill(const struct scratch *s, const struct plan *plan, uid_t uid, gid_t gid, struct brig_error *err);
int scratch_remove(struct scratch *s); /* 0 or -errno */
int scratch_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int scratch_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

/* ---- words.c: the plan's paths as paths of the host -------------------------------------------- */

/* NULL-terminated copy of argv or envp in one allocation; NULL: no memory. */
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
	GUARD_SAYS_READY,      /* the program's process waits to be started */
	GUARD_SAYS_FAILED,     /* value: the step, sys: errno */
	GUARD_SAYS_ENDED,      /* value: its wait status */
	GUARD_SAYS_EXPIRED,    /* the wall clock has expired */
	GUARD_SAYS_GONE,       /* value: processes left after the order to stop */
	GUARD_KIND_END
};

struct guard_report {
	uint32_t magic, kind;
	int32_t value, sys;
	uint64_t at_ns;
};
#define GUARD_MAGIC 0x62726467u

/* Data for guard and program, owned by the supervisor and copied by the fork. */
struct guard_spec {
	const struct plan *plan;
	char **argv, **envp;
	const char *work;
	int ctl, go;  /* child ends */
	int stdio[3]; /* child ends */
	int lock;     /* of the scratch directory */
	struct tree tree;
	uint64_t nproc; /* RLIMIT_NPROC */
	bool own_ids;
	uid_t uid; /* with own_ids: sent over ctl, since it depends on the guard's pid or namespace */
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
	pid_t guard, program; /* 0: not started yet */
	bool own_uts;         /* the guard has its own uts namespace, whose number determines the ids */
	int guard_pidfd;      /* FD_NONE once reaped */
	int ctl, go, in, out, err, poll;
	bool ready, started, ended, gone;
	bool told_started, told_ended;
	bool let_go;
	uint64_t started_ns;
	struct exit_info end;
	int left; /* processes left after stop; -1: unknown */
	uint64_t cpu_ns_seen, memory_peak, pids_peak;
	bool too_much_memory;
	struct facts early;
};

struct backend_host {
	struct idmap ids;
};

void direct_inspect_start(struct cell *c);
void direct_read_back(struct cell *c, struct facts *ret);

/* ---- project.c: a project's copy in the scratch directory ---------------------------------------------- */

/* Copies the plan's project, if any; called before anything else is in the workspace. */
int project_copy(const struct cell *c, struct brig_error *err);
/* Makes the workspace read-only if the project is; called when everything is in it. */
int project_seal(const struct cell *c, struct brig_error *err);
void project_facts(const struct cell *c, struct facts *f);
int direct_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err);
int direct_open_output(struct cell *c, const char *name);
int direct_open_folder(struct cell *c, const char *name);

#endif
