/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steward inside (backend/guest/steward.h says what it is for).  One process, one thread, one poll loop; the only things that
 * it waits for besides are an exec, which has its own end, and the other end of a workspace that is copied, which has the owner's.
 */
#ifndef STEWARD_INSIDE_H
#define STEWARD_INSIDE_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "backend/guest/steward.h"
#include "base/util.h"

#define TERMINAL_PIECE 4096

/* Bytes on their way from one descriptor to another. */
struct flow {
	int from, to; /* FD_NONE: that side is closed */
	size_t at, len;
	char piece[TERMINAL_PIECE];
};

/* A process that was started on a terminal: what moves the bytes. */
struct terminal {
	int master;
	struct flow in, out; /* their ends at the terminal are the master */
};

struct process {
	pid_t pid; /* 0: a free row */
	uint64_t tag;
	struct terminal *terminal; /* heap; NULL: it has pipes, and they are not ours */
	bool ended;                /* what its terminal still holds goes out before that is told: */
	int status;
	struct rusage used;
};

struct watched {
	int wd; /* inotify's; -1: a free row */
	uint64_t tag;
	bool recursive;
	char *path, *name; /* heap: of the folder, and below the one that was asked for ("" or "a/b/") */
};

/* A process that is to be started. */
struct start {
	const char *folder;
	const char *const *argv, *const *env; /* n of each */
	size_t n_argv, n_env;
	bool pty;
	int64_t cpu_seconds; /* 0: as the cell has it */
	int fds[STEWARD_FDS_MAX];
	size_t n_fds;
};

/* A kernel that nobody has asked for yet (spare.c); pid 0: there is none. */
struct spare {
	pid_t pid;
	int sock;
};

struct steward {
	int control, signals, inotify;
	bool is_paused; /* by the owner */
	struct {
		unsigned version;         /* of its control group; 0: there is none */
		int procs, state, events; /* its files */
	} freezer;
	struct spare spare;
	struct process process[STEWARD_PROCESSES_MAX];
	struct watched watched[STEWARD_WATCHES_MAX];
	struct steward_message asked; /* the one that is being answered */
};

/* main.c: an answer.  number may be NULL; fd: FD_NONE or what goes with it. */
void steward_tell(const struct steward *s, enum steward_kind kind, uint64_t tag, const int64_t *number, size_t n,
		  const char *const *words, size_t n_words, int fd);
/* errno, 0: it was done. */
void steward_done(const struct steward *s, int sys);

/* process.c */
/* The child's pid, or -errno; *ret_stage says where it failed.  Returns when it has become its program, or could not. */
int64_t process_spawn(struct start *st, int *ret_stage);
void process_start(struct steward *s);
void process_signal(struct steward *s);
void process_resize(struct steward *s);
void process_pause(struct steward *s);
void process_resume(struct steward *s);
void process_reap(struct steward *s);
/* Every process but init and this one: 0 or -EAGAIN, and none is stopped. */
int process_stop_others(void);
void process_continue_others(void);
/* The terminals' descriptors, at most 3 for each; how many.  Then, with the same rows, what is to be done. */
#define TERMINAL_SLOTS 3
size_t process_fill(struct steward *s, struct pollfd *slots);
void process_serve(struct steward *s, const struct pollfd *slots);

/* freezer.c: all processes but init and this one, or those that are named. */
void freezer_take(struct steward *s);
int others_stop(const struct steward *s); /* 0 or -errno: then none is stopped */
void others_continue(const struct steward *s);
void others_stop_one(const struct steward *s, pid_t pid);
void others_let_die(const struct steward *s, pid_t pid); /* one that was killed while they are stopped */

/* spare.c */
void spare_begin(struct steward *s); /* returns when it waits, or there is none */
/* The process that this start gets, which is started already; 0: none. */
pid_t spare_take(struct steward *s, const struct start *st);
void spare_died(struct steward *s);

/* terminal.c: 0 or -errno.  *ret_slave is the process's end, close-on-exec. */
int terminal_open(int rows, int columns, int in, int out, struct terminal **ret, int *ret_slave);
int terminal_resize(const struct terminal *t, int rows, int columns);
void terminal_fill(const struct terminal *t, struct pollfd slots[TERMINAL_SLOTS]);
void terminal_serve(struct terminal *t, const struct pollfd slots[TERMINAL_SLOTS]);
/* Nobody writes to it any more, or nobody reads. */
bool terminal_is_over(const struct terminal *t);
void terminal_close(struct terminal *t);

/* files.c */
void files_open(struct steward *s);
void files_stat(struct steward *s);
void files_list(struct steward *s);
void files_mkdir(struct steward *s);
void files_move(struct steward *s);
void files_remove(struct steward *s);
int files_make_folders(const char *path, mode_t mode); /* those that lead to it; 0 or -errno */

/* watches.c */
void watches_begin(struct steward *s);
void watches_end(struct steward *s);
void watches_serve(struct steward *s);

/* ports.c */
void ports_connect(struct steward *s);

/* usage.c */
void usage_cpu(struct steward *s);

/* copies.c */
void copies_save(struct steward *s);
void copies_load(struct steward *s);

#endif
