/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interfaces of the steward (see backend/guest/steward.h).  One process, one thread, one poll loop.  Besides
 * poll it blocks only on an exec, which always ends, and on the other end of a workspace copy, which the owner closes.
 */
#ifndef STEWARD_INSIDE_H
#define STEWARD_INSIDE_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "backend/guest/steward.h"
#include "base/util.h"

#define TERMINAL_PIECE 4096

/* Bytes being relayed from one descriptor to another. */
struct flow {
	int from, to; /* FD_NONE: closed */
	size_t at, len;
	char piece[TERMINAL_PIECE];
};

/* The steward's side of a process's terminal. */
struct terminal {
	int master;
	struct flow in, out; /* at the terminal their descriptor is the master */
};

struct process {
	pid_t pid; /* 0: free row */
	uint64_t tag;
	struct terminal *terminal; /* allocated; NULL: it has pipes, which are not ours */
	bool ended;                /* reported once its terminal is drained */
	int status;
	struct rusage used;
};

struct watched {
	int wd; /* inotify watch descriptor; -1: free row */
	uint64_t tag;
	bool recursive;
	char *path, *name; /* allocated: path of the directory, and name relative to the watched one ("" or "a/b/") */
};

/* A process to be started. */
struct start {
	const char *folder;
	const char *const *argv, *const *env; /* n_argv and n_env strings */
	size_t n_argv, n_env;
	bool pty;
	int64_t cpu_seconds; /* 0: the cell's limit */
	int fds[STEWARD_FDS_MAX];
	size_t n_fds;
};

/* A Python kernel started in advance (spare.c); pid 0: none. */
struct spare {
	pid_t pid;
	int sock;
};

struct steward {
	int control, signals, inotify;
	bool is_paused; /* by a PAUSE */
	struct {
		unsigned version;         /* of its cgroup; 0: none */
		int procs, state, events; /* its files */
	} freezer;
	struct spare spare;
	struct process process[STEWARD_PROCESSES_MAX];
	struct watched watched[STEWARD_WATCHES_MAX];
	struct steward_message asked; /* the request being served */
};

/* main.c: sends an answer.  number may be NULL; fd: FD_NONE or a descriptor to send with it. */
void steward_tell(const struct steward *s, enum steward_kind kind, uint64_t tag, const int64_t *number, size_t n,
		  const char *const *words, size_t n_words, int fd);
/* sys: an errno, or 0 for success. */
void steward_done(const struct steward *s, int sys);

/* process.c */
/* The child's pid, or -errno and the failed stage in *ret_stage.  Returns when the child has called exec, or failed. */
int64_t process_spawn(struct start *st, int *ret_stage);
void process_start(struct steward *s);
void process_signal(struct steward *s);
void process_resize(struct steward *s);
void process_pause(struct steward *s);
void process_resume(struct steward *s);
void process_reap(struct steward *s);
/* Stops every process except init and this one: 0, or -EAGAIN and none is stopped. */
int process_stop_others(void);
void process_continue_others(void);
/*
 * Fills the poll slots of the terminals, at most TERMINAL_SLOTS for each, and returns their number.  process_serve()
 * takes the same slots.
 */
#define TERMINAL_SLOTS 3
size_t process_fill(struct steward *s, struct pollfd *slots);
void process_serve(struct steward *s, const struct pollfd *slots);

/* freezer.c: all processes except init and this one, or the one named. */
void freezer_take(struct steward *s);
int others_stop(const struct steward *s); /* 0, or -errno and none is stopped */
void others_continue(const struct steward *s);
void others_stop_one(const struct steward *s, pid_t pid);
void others_let_die(const struct steward *s, pid_t pid); /* after SIGKILL to a process while others are stopped */

/* spare.c */
void spare_begin(struct steward *s); /* returns when the kernel waits, or could not be started */
/* The spare process for this start, already running; 0: none. */
pid_t spare_take(struct steward *s, const struct start *st);
void spare_died(struct steward *s);

/* terminal.c: 0 or -errno.  *ret_slave is the process's end, close-on-exec. */
int terminal_open(int rows, int columns, int in, int out, struct terminal **ret, int *ret_slave);
int terminal_resize(const struct terminal *t, int rows, int columns);
void terminal_fill(const struct terminal *t, struct pollfd slots[TERMINAL_SLOTS]);
void terminal_serve(struct terminal *t, const struct pollfd slots[TERMINAL_SLOTS]);
/* The output is drained after the last writer closed it, or has no reader. */
bool terminal_is_over(const struct terminal *t);
void terminal_close(struct terminal *t);

/* files.c */
void files_open(struct steward *s);
void files_stat(struct steward *s);
void files_list(struct steward *s);
void files_mkdir(struct steward *s);
void files_move(struct steward *s);
void files_remove(struct steward *s);
int files_make_folders(const char *path, mode_t mode); /* creates missing parent directories; 0 or -errno */

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
