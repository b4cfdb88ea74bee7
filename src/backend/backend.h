/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug point for isolation.  A backend turns a plan into a cell, lets it run, says what was really
 * in force, and takes it down.  To add a backend: a folder with one struct backend_ops, a row in
 * registry.c, a name in model/settings.h, and the list of what it cannot enforce in its probe().
 *
 * A host is opened when a request first needs it and closed after its last cell, or kept for others (same_host).
 * Calls on a cell come in this order: begin, finish, start, (sample | on_event)*, stop, read_back, usage, destroy.
 * Between begin and finish the caller does what needs no cell and may forbid one, reading the code above all, while
 * whoever builds the cell goes on building.  The plan is data: a backend calls nobody back but for a notice.
 * destroy accepts NULL and half-built cells, and may come at any point.  err is never NULL here.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "base/err.h"
#include "model/attempts.h"
#include "model/facts.h"
#include "model/plan.h"
#include "model/sample.h"

struct backend_host; /* what a backend knows of this host */
struct cell;

struct exit_info {
	bool exited; /* else killed by signal */
	int code;
	int signal;
	bool expired;   /* the backend itself ended it at the wall-clock limit */
	uint64_t at_ns; /* CLOCK_MONOTONIC */
};

struct cell_usage {
	uint64_t cpu_ms;
	uint64_t memory_peak_bytes;
	uint64_t pids_peak;
	uint64_t oom_kills;
	uint64_t pids_refused;
	bool disk_full; /* a writable place had no room left at some reading */
};

enum cell_event {
	CELL_NOTHING,  /* spurious wake-up */
	CELL_STARTED,  /* the program's first instruction is running */
	CELL_FINISHED, /* the main process ended; *info is filled */
	CELL_FAILED,   /* set-up or supervision failed; err is filled */
};

/* The descriptors a watcher polls; -1 where there is none.  They belong to the cell. */
struct cell_fds {
	int in;  /* write end of the program's stdin; the watcher closes it through close_stdin */
	int out; /* read ends */
	int err;
	int event; /* poll for reading, then call on_event; call it once before the first poll, too */
	/* NULL, or what may come, go and change while the cell runs and means the same as event: a program sleeps at its
	 * other end, and is answered sooner if the watcher sleeps on it directly. */
	const int *told;
	uint64_t started_ns; /* CLOCK_MONOTONIC: when the program was let go */
};
/* Until a cell has given its own: 0 would be the caller's standard input. */
#define CELL_FDS_NONE                                                           \
	{                                                                       \
		.in = FD_NONE, .out = FD_NONE, .err = FD_NONE, .event = FD_NONE \
	}

/* A cell that is there now, alive or left behind: a row of `brig ps`. */
struct cell_entry {
	char id[RUN_ID_LEN + 1];
	char name[96];     /* what the backend calls it: a control group, a container's id */
	char language[16]; /* "" if unknown */
	pid_t owner;       /* the brig that made it; 0 if unknown */
	bool orphan;       /* its owner is dead */
	bool waiting;      /* a warm cell that nobody has claimed */
	uint64_t age_ms;
};

/* Called once per cell; negative stops the walk and is handed on. */
typedef int (*cell_entry_fn)(void *arg, const struct cell_entry *entry);

/* A file of the workspace, by its path below it, which the program chose. */
typedef void (*backend_left_fn)(void *arg, const char *path, uint64_t size);

/* Called with a sentence for people about what takes long before a program starts.  fn may be NULL. */
struct backend_notice {
	void (*fn)(void *arg, const char *text);
	void *arg;
};

/* What a pool of warm cells is to keep, until stop_fd turns readable. */
struct backend_pool {
	const struct plan *const *plans; /* one for each kind */
	size_t n_plans;
	unsigned size; /* cells of each kind */
	int stop_fd;
	struct backend_notice notify;
};

/* A user by the name that cells of a language know. */
struct backend_user {
	const char *language;
	const char *name; /* "name" or "name:group" */
	struct backend_notice notify;
};

struct backend_ops {
	const char *name;
	/* The interpreters come with the cell (an image) and are not looked for on the host. */
	bool brings_runtimes;
	const char *certificates; /* path in the cell of what plan->egress brings by that name */
	/* plan_workspace.held: it can keep a program from changing them. */
	bool holds_files;
	bool has_sessions; /* plan.session */
	/* Protections that this backend gives on no host: missing ones that need no probing. */
	protection_set never;
	/* Finds out, cheaply, which protections this host cannot give (those of never included). */
	int (*open)(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
		    struct brig_error *err);
	/* Whether open would find the same with either: then one host serves both, also at the same time.  NULL: a host
	 * knows one request, and is closed after it. */
	bool (*same_host)(const struct settings *a, const struct settings *b);
	/* After the last destroy of a run: waits for what was left to others, which best comes after something else was done,
	 * and names what stayed; the number of such things.  NULL: destroy waits itself. */
	int (*settle)(struct backend_host *h, const char *run_id, char *leftovers, size_t size);
	void (*close)(struct backend_host *h); /* NULL is fine */
	/* The numbers of a user that is known by name in the cells that would be made; never 0.  NULL: cells have one
	 * user, PLAN_USER. */
	int (*find_user)(struct backend_host *h, const struct backend_user *user, uint32_t *ret_uid, uint32_t *ret_gid,
			 struct brig_error *err);
	/* What programs of a language are run by in its cells, told from any other: an image's id.  notify may be NULL.
	 * NULL: by the host's own tools. */
	int (*identify)(struct backend_host *h, const char *language, const struct backend_notice *notify, char *dst,
			size_t size, struct brig_error *err);
	/* Begins to build a cell, and returns while others still do, if others do.  No guest instruction runs before finish.
	 * notify may be NULL, and is not kept beyond finish. */
	int (*begin)(struct backend_host *h, const struct plan *plan, const struct backend_notice *notify,
		     struct cell **ret, struct brig_error *err);
	/* Every limit is in force before the first guest instruction.  None has run when this returns, unless the plan
	 * says start_at_once: then the program may be running, and start only says where to watch it.  Negative: the cell
	 * is of no use, and destroy still is the caller's to call. */
	int (*finish)(struct cell *c, struct brig_error *err);
	int (*start)(struct cell *c, struct cell_fds *ret, struct brig_error *err);
	enum cell_event (*on_event)(struct cell *c, struct exit_info *info, struct brig_error *err);
	void (*close_stdin)(struct cell *c);
	/* Between start and stop: sends the program a signal, which it may catch; it may have ended already.  Never waits.
	 * NULL: it cannot. */
	void (*send_signal)(struct cell *c, int signal);
	int (*sample)(struct cell *c, struct sample *ret); /* output_bytes and at_ms are the watcher's */
	uint64_t (*cpu_ns)(struct cell *c);                /* cheap: asked often */
	uint64_t (*oom_kills)(struct cell *c);
	/* What its files took at the last sample.  NULL: nobody knows. */
	uint64_t (*disk_bytes)(struct cell *c);
	/* Reads back what is in force, while the cell still exists and the program has ended or been stopped. */
	void (*read_back)(struct cell *c, struct facts *ret);
	/* Kills every process of the cell and waits for the last one.  Output pipes reach end of file. */
	int (*stop)(struct cell *c, struct brig_error *err);
	void (*usage)(struct cell *c, struct cell_usage *ret);
	/* Opens a regular file that the program left in its workspace, without following links. -errno. */
	int (*open_output)(struct cell *c, const char *name);
	/* After stop: a folder that the program left there, likewise.  NULL: it cannot be had. */
	int (*open_folder)(struct cell *c, const char *name);
	/* After stop: what the program made of the plan's workspace or, with wants_view and none, left in its own (whole). */
	int (*workspace)(struct cell *c, struct workspace_view *ret, struct brig_error *err);
	/* After stop, of a run without a workspace and without wants_view: the first files that the program left in its own.
	 * NULL: open_folder shows them, or nothing does. */
	void (*left)(struct cell *c, backend_left_fn each, void *arg);
	/* After finish, once: the sockets of plan->egress, as one descriptor of loopback_offer(); the caller's to close.
	 * NULL: it cannot be had. */
	int (*listener)(struct cell *c, struct brig_error *err);
	/* After stop: what the program was refused, as far as this backend sees it.  NULL: it sees nothing. */
	void (*denied)(struct cell *c, struct denied *ret);
	/* Every cell of this backend on this host that the caller may see, whoever made it.  NULL: it has none.
	 * BRIG_E_REFUSED, from reap too: it is not to be had here (no engine, say), which is no fault. */
	int (*list)(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
	/* Removes those whose owner is dead; each is called for what was removed.  NULL: nothing can be left. */
	int (*reap)(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
	/* Keeps warm cells for other processes of this user.  NULL: it has none. */
	int (*pool)(struct backend_host *h, const struct backend_pool *want, struct brig_error *err);
	/* Undo everything.  Returns how many things could not be removed; leftovers says which. */
	int (*destroy)(struct cell *c, char *leftovers, size_t size);
};

extern const struct backend_ops native_backend, docker_backend, kubernetes_backend, direct_backend;

/* The backend for a name of the policy; NULL and a reason if this build or host has none. */
const struct backend_ops *backend_find(enum backend_kind kind, struct brig_error *err);
/* The i-th backend of this build, each once; NULL past the last one. */
const struct backend_ops *backend_at(size_t i);

#endif
