/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's state of one native cell; shared by the files of this folder. */
#ifndef NATIVE_CELL_H
#define NATIVE_CELL_H

#include <sys/stat.h>
#include <sys/vfs.h>

#include "backend/backend.h"
#include "backend/idmap.h"
#include "backend/native/cell_spec.h"
#include "backend/native/janitor.h"
#include "backend/native/project_stream.h"

/*
 * Facts read back from a cell, in memory that children do not inherit (MADV_DONTFORK): when a keeper writes to a page
 * that it shares with forked children, the page is copied once for each of the many cells.
 */
struct looks {
	struct looks *next_free;
	struct facts early; /* read when the program was started */
	struct facts late;  /* read while the program or its cell was dying */
};

struct backend_host {
	struct cgroup_host *cgroups;
	bool has_cgroups, enters_at_clone;
	int landlock_abi;
	struct idmap ids;
	int steward;      /* guest/steward in a sealed memfd; FD_NONE: no session was created yet */
	int wait_library; /* guest/wait in a sealed memfd; FD_NONE: no waiting cell was created yet */
	struct remains *remains;
	struct janitors janitors;
	struct looks *free_looks;
	uint64_t own_filters; /* the supervisor's own system call filters; looked up together with: */
	struct stat own_ns[HANDED_COUNT - HANDED_NS_FIRST]; /* the supervisor's own namespaces */
	pid_t owner;                                        /* owner of cells made for its requests; 0: this process */
	bool asks_for_streams;                              /* another process packs projects and sends the stream */
	bool mounts_no_project;                             /* although it could */
};

/* What is left of a destroyed cell; its run waits for it when it has nothing else to do. */
struct remains {
	struct remains *next;
	pid_t init_pid;
	int init_pidfd; /* dying; FD_NONE: known to be dead */
	struct cgroup *cgroup;
	struct guarded *guarded;
	uint64_t deadline_ns;
	char id[RUN_ID_LEN + 1];
};

struct zygote;  /* zygote.c */
struct denials; /* denied.c */
struct masks_watch;

/* The supervisor's part of a project: project.c, and project_view.c after the end. */
struct project {
	enum project_way way;
	int lower;                        /* PROJECT_LOWER: the mount, kept to be examined later */
	enum hidden_kind *hidden;         /* allocated */
	bool wants_stream;                /* init waits for a stream */
	struct project_stream stream;     /* packed by this process */
	uint64_t copy_bytes, copy_inodes; /* PROJECT_STREAM: upper bounds */
	uint64_t own_bytes, own_inodes;   /* see struct report */
	size_t masks, seals;              /* seen in the cell before the program started */
	size_t uncovered;                 /* paths without a mask or seal although there was something to cover */
};

struct cell {
	struct backend_host *host;
	struct cell_spec spec; /* the child's copy was made at the clone; descriptors are closed here after it */
	struct cgroup *cgroup;
	struct disk_list disks;  /* with disk_io_bps: disks that hold what the cell shows of the host */
	bool unlimited_disk;     /* ... and part of it is elsewhere */
	struct guarded *guarded; /* the cgroups, guarded by a janitor; NULL: none were created */
	struct project project;
	pid_t init_pid;
	uint64_t id_pair;        /* number of its pair of host ids (idmap.c) */
	int init_pidfd;          /* FD_NONE once reaped, or moved to dying */
	int dying;               /* left to be reaped by settle */
	struct remains *remains; /* filled at the end; allocated at the beginning, when failure is still possible */
	pid_t payload_pid;

	char pause[16], pause_source[160]; /* how a session pauses its processes, and which file or call does that */
	int ctl, go;                       /* our ends */
	int in, out, err;
	int poll;     /* epoll set of ctl, go and init_pidfd */
	int told;     /* the listener, while we answer calls; not in the epoll set, through which the kernel would
		   * wake us on another CPU than the caller's, which then sleeps five times as long */
	int listener; /* where refused calls wait for an answer; FD_NONE: none, or no process is left to call */
	struct denials *denials;   /* NULL before the first call */
	struct masks_watch *masks; /* NULL: nothing is hidden, or no report is wanted */
	int handed[HANDED_COUNT];
	int way_out; /* the sockets of plan->egress, until native_listener() takes them */
	bool had_way_out;

	bool ready, confined, started, ended; /* reported by the cell ... */
	bool told_started, told_ended;        /* ... and returned by on_event */
	bool waiting, seen_waiting;           /* waiting cell: the interpreter has stopped; its state was read */
	bool cannot_wait;                     /* waiting cell: the interpreter reported that it cannot wait */
	struct zygote *zygote;                /* forks the program's process; NULL: it is started in the cell */
	bool sealed, ordered, came; /* init has confined itself; the zygote was told to fork; its child has arrived */
	bool tells;                 /* the payload's filter is the form with a listener */
	bool limited;               /* all cgroup limits are written */
	bool let_go;
	bool silent; /* no process is left that could make a call: the program has run its last instruction */
	bool parted; /* init was told that it need not wait for us */
	bool alone;  /* no process but init is left */
	uint64_t started_ns;
	struct exit_info end;
	int landlock_probe;
	uint64_t root_free_blocks, root_free_inodes; /* when the root was sealed */
	bool disk_full;
	uint64_t disk_bytes; /* at the last sample */
	uint64_t cpu_ns_seen;
	uint64_t cpu_ns_before; /* waiting cell: CPU time of the interpreter before it stopped */
	struct looks *looks;
	struct cgroup_usage last_usage;
	int tasks_left; /* processes left after stop; -1: not stopped yet */
	char *wait_env; /* waiting cell: memory for spec.envp and the strings added to it */
};

/* idmap.c */
int idmap_write(struct cell *c);                                                   /* 0 or -errno */
uint64_t idmap_of_init(const struct cell *c);                                      /* init's host id */
void idmap_of_program(const struct cell *c, uint64_t *ret_uid, uint64_t *ret_gid); /* host ids; not with IDMAP_OWN */
/*
 * Writes the maps of that process's user namespace: our own id and each id of the range, mapped to itself.  0 or
 * -errno.
 */
int idmap_write_range(const struct idmap *ids, pid_t pid);
/*
 * Changes our effective uid to uid, but not the ids with which files are opened; idmap_act_as_ourselves() changes it
 * back to own.  0 or -errno.
 */
int idmap_act_as(uint64_t uid);
void idmap_act_as_ourselves(uid_t own);
/* spawn.c */
int cell_open_pipes(struct cell *c, struct brig_error *err);
int cell_clone_init(struct cell *c, struct brig_error *err); /* on success closes the child's ends here */
void cell_close_child_ends(struct cell *c);
/* hosttree.c: fills spec.dirs, spec.binds and the rules of spec.confine. */
int cell_find_host_trees(struct cell *c, struct brig_error *err);
/* events.c */
int cell_pump(struct cell *c, struct brig_error *err); /* takes in all queued records; negative: the cell failed */
enum cell_event cell_on_event(struct cell *c, struct exit_info *info, struct brig_error *err);
/* Once the cell is built: init's reports wake the process that polls from now on. */
int cell_listen_to_init(struct cell *c, struct brig_error *err);
/* Waits until init has built the cell and the payload has confined itself, or the startup time is over. */
int cell_await_confined(struct cell *c, struct brig_error *err);
/* denied.c */
/* Whether the program may start as soon as it is confined, without any step of ours in between. */
bool cell_starts_at_once(const struct cell *c);
void cell_denied_ready(struct cell *c);                /* the tree is complete, and the program has not started */
void cell_denied_stopped(struct cell *c);              /* every process is dead */
void cell_denied_begin(struct cell *c, int *listener); /* takes it */
void cell_denied_pump(struct cell *c, short listener); /* listener: its poll events; answers waiting calls */
void cell_denied_end(struct cell *c);
void native_denied(struct cell *c, struct denied *ret);
/* zygote.c */
/* A sealed memfd with these bytes, at a number that does not collide with a child's first descriptors; or -errno. */
int zygote_sealed_file(const char *name, const void *bytes, size_t size, unsigned flags);
/*
 * Makes us the owner of the cell's user namespace (the zygote's id) until zygote_leave_owner().  0 or -errno; no effect
 * without a zygote.
 */
int zygote_enter_owner(const struct zygote *z);
void zygote_leave_owner(const struct zygote *z);
void zygote_keep(struct zygote *z);       /* reference for a cell that it is going to fill */
void zygote_child_came(struct zygote *z); /* or will never arrive */
void zygote_let_go(struct zygote *z);     /* releases the reference: the cell is gone */
/* Tells the zygote to fork the program's process into the cell, whose limits must all be written. */
int zygote_order(struct cell *c);
/* Checks that the child is in all of the cell's namespaces and groups.  0, or negative and the step that it missed. */
int zygote_check_child(const struct cell *c, enum step *ret_missed);
/* waiting.c */
int cell_wait_prepare(struct cell *c, struct brig_error *err); /* fills spec.envp and spec.wait_library */
/* read_back.c */
struct looks *looks_take(struct backend_host *h); /* zeroed; NULL: no memory */
void looks_give_back(struct backend_host *h, struct looks *l);
void looks_free_all(struct backend_host *h);
void cell_read_back_ready(struct cell *c);  /* the tree is complete, the program has not started */
void cell_read_back_start(struct cell *c);  /* the program has just been started */
void cell_read_back_silent(struct cell *c); /* the program is dying */
void cell_read_back_dying(struct cell *c);  /* the cell is dying, or was told to die */
void cell_read_back(struct cell *c, struct facts *ret);
/* project.c */
void cell_project_init(struct project *p);
int cell_look_at_project(struct cell *c, struct brig_error *err); /* called before the clone */
/* With disk_io_bps: fills disks; refused if something is on a disk that cannot be limited. */
int cell_find_disks(struct cell *c, struct brig_error *err);
int cell_offer_project(struct cell *c, struct brig_error *err);
/* For a cell with wants_stream; source stays the caller's. */
int cell_offer_stream(struct cell *c, int source, uint64_t bytes, uint64_t inodes, struct brig_error *err);
void cell_project_release(struct project *p); /* call when init is dead */
/* user_counts.c */
void user_counts_read(struct cell *c, struct facts *f);
/* project_view.c */
bool cell_project_needs(const struct cell *c, enum handed_fd which); /* valid after stop */
int cell_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err);
/* host.c */
int native_open(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
		struct brig_error *err);
bool native_same_host(const struct settings *a, const struct settings *b);
void cell_kill_init(struct cell *c);
int native_settle(struct backend_host *h, const char *id, char *leftovers, size_t size);
void native_close(struct backend_host *h);

/* cells.c */
#define CELL_GROUP_ID_MAX 59 /* with the prefix "brig-" the longest name that cgroup.c accepts */
void cell_group_id(const char *id, pid_t owner, char dst[CELL_GROUP_ID_MAX]);
/* Mark on the cgroup of a warm cell: this word, and from its claim "<run id> <pid of the keeper's caller>". */
#define CELL_MARK_WAITING "waiting"
#define CELL_MARK_MAX     40
/* Parses a group name: run id, the owner's pid, creation time and pid namespace.  False: not the name of a cell. */
bool cell_group_parse(const char *name, char id[RUN_ID_LEN + 1], uint64_t ret[3]);
int native_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int native_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

/* native.c */
/* joined: init forks no payload; from: the zygote that forks it instead, or NULL. */
int cell_begin(struct backend_host *h, const struct plan *plan, bool joined, struct zygote *from, struct cell **ret,
	       struct brig_error *err);
/* Tells the payload to start the program once it is confined.  May be called before the payload exists. */
int cell_let_go(struct cell *c, struct brig_error *err);
/* Starts init's wall clock.  0 or -errno. */
int cell_begin_time(struct cell *c);
/* Reads the counters that are complete when the program has ended. */
void cell_note_end(struct cell *c);
/* Whether init exits only when the cell is destroyed, if no other process is left. */
bool cell_dies_last(const struct cell *c);
/*
 * Closes our descriptors of the cell after they were last read, so that the dying processes tear down its namespaces
 * and mounts instead of us.
 */
void cell_let_go_of(struct cell *c);
/* Init does not answer.  The error is the failure that init reported, if any; otherwise rc. */
int cell_lost_init(struct cell *c, enum step step, int rc, struct brig_error *err);
/* "cannot <what>": refused if the step provides a protection, otherwise failed. */
int cell_step_failed(enum step step, int sys, struct brig_error *err);

#endif
