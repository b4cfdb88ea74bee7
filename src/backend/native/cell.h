/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's view of one native cell; shared by the files of this folder. */
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
 * What was read back of a cell.  In memory of its own that children do not get: while a keeper writes to what it shares with
 * the many cells that it has forked, each page of it is copied once for each.
 */
struct looks {
	struct looks *next_free;
	struct facts early; /* read while the program began to run */
	struct facts late;  /* read while the program or its cell was dying */
};

struct backend_host {
	struct cgroup_host *cgroups;
	bool has_cgroups, enters_at_clone;
	int landlock_abi;
	struct idmap ids;
	int steward;      /* guest/steward, likewise; FD_NONE: no session was made yet */
	int wait_library; /* guest/wait, as a sealed file in memory; FD_NONE: no waiting cell was made yet */
	struct remains *remains;
	struct janitors janitors;
	struct looks *free_looks;
	uint64_t own_filters; /* of system calls, that the supervisor itself has; known with the next ones: */
	struct stat own_ns[HANDED_COUNT - HANDED_NS_FIRST]; /* the supervisor's, once they were looked up */
	pid_t owner;            /* of cells that are made for its requests; 0: this process */
	bool asks_for_streams;  /* of projects: others pack them */
	bool mounts_no_project; /* though it could */
};

/* What is left of a cell: waited for when its run has nothing else to do. */
struct remains {
	struct remains *next;
	pid_t init_pid;
	int init_pidfd; /* dying; FD_NONE: it was seen dead */
	struct cgroup *cgroup;
	struct guarded *guarded;
	uint64_t deadline_ns;
	char id[RUN_ID_LEN + 1];
};

struct zygote;  /* zygote.c */
struct denials; /* denied.c */
struct masks_watch;

/* The supervisor's half of a project: project.c, and project_view.c after the end. */
struct project {
	enum project_way way;
	int lower;                        /* PROJECT_LOWER: the mount, kept to be looked at */
	enum hidden_kind *hidden;         /* heap */
	bool wants_stream;                /* and init waits for it */
	struct project_stream stream;     /* that this process packs */
	uint64_t copy_bytes, copy_inodes; /* PROJECT_STREAM: at most */
	uint64_t own_bytes, own_inodes;   /* struct report */
	size_t masks, seals;              /* found in the cell before the program started */
	size_t uncovered;                 /* paths that had neither, and something to cover */
};

struct cell {
	struct backend_host *host;
	struct cell_spec spec; /* what the child was given; its descriptors are closed here after the clone */
	struct cgroup *cgroup;
	struct disk_list disks;  /* with disk_io_bps: what the cell shows of the host lies on these */
	bool unlimited_disk;     /* and some of it elsewhere */
	struct guarded *guarded; /* the groups, in the care of a janitor; NULL: none was made */
	struct project project;
	pid_t init_pid;
	uint64_t id_pair;        /* which of the host's pairs of ids it has (idmap.c) */
	int init_pidfd;          /* FD_NONE once reaped, or left to settle */
	int dying;               /* ... and then this */
	struct remains *remains; /* to be filled in the end; made at the beginning, when there is a way to refuse */
	pid_t payload_pid;

	char pause[16], pause_source[160]; /* how a session stops its processes, and where that is set */
	int ctl, go;                       /* our ends */
	int in, out, err;
	int poll; /* epoll over ctl, go and init_pidfd */
	int told; /* the listener, while calls are answered: not in the epoll, through which the kernel would wake us
		       * on another cpu than the caller's, which then sleeps five times as long */
	int listener; /* where refused calls wait for an answer; FD_NONE: none, or nobody left who could call */
	struct denials *denials;   /* NULL before the first */
	struct masks_watch *masks; /* NULL: nothing is hidden, or nobody wants to know */
	int handed[HANDED_COUNT];
	int way_out; /* the sockets of plan->egress, until they are asked for */
	bool had_way_out;

	bool ready, confined, started, ended; /* what the cell has reported ... */
	bool told_started, told_ended;        /* ... and what of it the watcher knows */
	bool waiting, seen_waiting;           /* ... of a waiting cell: its interpreter has stopped ... */
	bool cannot_wait;                     /* ... or has said that it does not */
	struct zygote *zygote;      /* whose child is the program's process; NULL: it is started in the cell */
	bool sealed, ordered, came; /* ... init stands behind its own walls; the zygote was told; its child is there */
	bool tells;                 /* the payload's filter is the telling form */
	bool limited;               /* every limit of its control groups is written */
	bool let_go;
	bool silent; /* nobody is left who could make a call: the program has run its last instruction ... */
	bool parted; /* ... and init has been told that we have seen enough */
	bool alone;  /* ... and nobody but init is left */
	uint64_t started_ns;
	struct exit_info end;
	int landlock_probe;
	uint64_t root_free_blocks, root_free_inodes; /* when it was sealed */
	bool disk_full;
	uint64_t disk_bytes; /* in use at the last sample */
	uint64_t cpu_ns_seen;
	uint64_t cpu_ns_before; /* of a waiting cell: what its interpreter used to come to where it waits */
	struct looks *looks;
	struct cgroup_usage last_usage;
	int tasks_left; /* after stop; -1: not stopped yet */
	char *wait_env; /* of a waiting cell: what spec.envp and the strings that it adds lie in */
};

/* idmap.c */
int idmap_write(struct cell *c);                                                   /* 0 or -errno */
uint64_t idmap_of_init(const struct cell *c);                                      /* likewise */
void idmap_of_program(const struct cell *c, uint64_t *ret_uid, uint64_t *ret_gid); /* host ids; not with IDMAP_OWN */
/* In the user namespace of this process each id of the range, and our own, is from now on what it is here.  0 or -errno. */
int idmap_write_range(const struct idmap *ids, pid_t pid);
/* Until idmap_act_as_ourselves(), which is told who that is: our effective id is this one, and files are opened as ever.  0 or -errno. */
int idmap_act_as(uint64_t uid);
void idmap_act_as_ourselves(uid_t own);
/* spawn.c */
int cell_open_pipes(struct cell *c, struct brig_error *err);
int cell_clone_init(struct cell *c, struct brig_error *err); /* closes the child's ends here, if it succeeds */
void cell_close_child_ends(struct cell *c);
/* hosttree.c: fills spec.dirs, spec.binds and the rules of spec.confine. */
int cell_find_host_trees(struct cell *c, struct brig_error *err);
/* events.c */
int cell_pump(struct cell *c, struct brig_error *err); /* takes in all that the cell has said; negative: it failed */
enum cell_event cell_on_event(struct cell *c, struct exit_info *info, struct brig_error *err);
/* Once it is built: from here on its reports wake whoever polls. */
int cell_listen_to_init(struct cell *c, struct brig_error *err);
/* Until init has built the cell and the payload stands behind its walls, or the start-up time is over. */
int cell_await_confined(struct cell *c, struct brig_error *err);
/* denied.c */
/* Whether the program may start as soon as its walls are up; else we have something to do first. */
bool cell_starts_at_once(const struct cell *c);
void cell_denied_ready(struct cell *c);                /* the tree is there, and the program has not started */
void cell_denied_stopped(struct cell *c);              /* every process is dead */
void cell_denied_begin(struct cell *c, int *listener); /* takes it */
void cell_denied_pump(struct cell *c, short listener); /* what poll says of it; answers whoever waits */
void cell_denied_end(struct cell *c);
void native_denied(struct cell *c, struct denied *ret);
/* zygote.c */
/* A file in memory that nobody can change any more, out of the way of a child's first descriptors; or -errno. */
int zygote_sealed_file(const char *name, const void *bytes, size_t size, unsigned flags);
/* Until zygote_leave_owner(): we are whom the cell's user namespace belongs to.  0 or -errno; nothing is done without a zygote. */
int zygote_enter_owner(const struct zygote *z);
void zygote_leave_owner(const struct zygote *z);
void zygote_keep(struct zygote *z);       /* for a cell that it is to fill */
void zygote_child_came(struct zygote *z); /* or never will */
void zygote_let_go(struct zygote *z);     /* the cell is gone */
/* The program's process is to come into the cell, of which every limit is written. */
int zygote_order(struct cell *c);
/* Whether the process that came is where it should be: in all of the cell's namespaces and groups.  0, or the step that it missed. */
int zygote_check_child(const struct cell *c, enum step *ret_missed);
/* waiting.c */
int cell_wait_prepare(struct cell *c, struct brig_error *err); /* fills spec.envp, and spec.wait_library */
/* read_back.c */
struct looks *looks_take(struct backend_host *h); /* zeroed; NULL: no memory */
void looks_give_back(struct backend_host *h, struct looks *l);
void looks_free_all(struct backend_host *h);
void cell_read_back_ready(struct cell *c);  /* the file tree is complete, the program waits */
void cell_read_back_start(struct cell *c);  /* the program has just been let go */
void cell_read_back_silent(struct cell *c); /* the program is dying */
void cell_read_back_dying(struct cell *c);  /* the cell is dying, or was told to */
void cell_read_back(struct cell *c, struct facts *ret);
/* project.c */
void cell_project_init(struct project *p);
int cell_look_at_project(struct cell *c, struct brig_error *err); /* before the clone */
/* With disk_io_bps: fills disks; refused if something lies on none that can be limited. */
int cell_find_disks(struct cell *c, struct brig_error *err);
int cell_offer_project(struct cell *c, struct brig_error *err);
/* Of a cell that wants one; the descriptor stays the caller's. */
int cell_offer_stream(struct cell *c, int source, uint64_t bytes, uint64_t inodes, struct brig_error *err);
void cell_project_release(struct project *p); /* init must be dead */
/* user_counts.c */
void user_counts_read(struct cell *c, struct facts *f);
/* project_view.c */
bool cell_project_needs(const struct cell *c, enum handed_fd which); /* after stop */
int cell_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err);
/* host.c */
int native_open(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
		struct brig_error *err);
bool native_same_host(const struct settings *a, const struct settings *b);
void cell_kill_init(struct cell *c);
int native_settle(struct backend_host *h, const char *id, char *leftovers, size_t size);
void native_close(struct backend_host *h);

/* cells.c */
#define CELL_GROUP_ID_MAX 59 /* with "brig-" before it, what cgroup.c takes as a name */
void cell_group_id(const char *id, pid_t owner, char dst[CELL_GROUP_ID_MAX]);
/* On the group of a cell that was made before its run: this, then "<run id> <pid of the keeper's caller>". */
#define CELL_MARK_WAITING "waiting"
#define CELL_MARK_MAX     40
/* The run id, and the owner's pid, the cell's age and its pid namespace; false: no name of a cell. */
bool cell_group_parse(const char *name, char id[RUN_ID_LEN + 1], uint64_t ret[3]);
int native_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int native_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

/* native.c */
/* joined: init forks nobody; from: the zygote that will, or NULL. */
int cell_begin(struct backend_host *h, const struct plan *plan, bool joined, struct zygote *from, struct cell **ret,
	       struct brig_error *err);
/* The word that the payload waits for behind its walls; it may be there before the payload is. */
int cell_let_go(struct cell *c, struct brig_error *err);
/* Init's wall clock runs from now on.  0 or -errno. */
int cell_begin_time(struct cell *c);
/* What is counted until the program's end, read when it is there. */
void cell_note_end(struct cell *c);
/* Whether init ends when the cell is destroyed, and not before, if nobody else is left. */
bool cell_dies_last(const struct cell *c);
/* After the last look at them: with our descriptors gone, namespaces and mounts are taken down by the dying, not by us
 * afterwards. */
void cell_let_go_of(struct cell *c);
/* Init does not answer.  If it left word why, that is the reason; else rc is. */
int cell_lost_init(struct cell *c, enum step step, int rc, struct brig_error *err);
/* "cannot <what>": refused if the step carries a protection, else failed. */
int cell_step_failed(enum step step, int sys, struct brig_error *err);

#endif
