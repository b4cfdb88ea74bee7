/* SPDX-License-Identifier: Apache-2.0 */
/* Strict readers of the line-based tables below /proc.  Lines are taken apart in place: no allocation. */
#ifndef SYS_PROC_H
#define SYS_PROC_H

#include <signal.h>

#include "base/util.h"

/* One line of /proc/PID/mountinfo; the strings lie inside the parsed line, octal escapes undone. */
struct mount_line {
	uint64_t id;
	uint64_t parent;
	char *root;    /* which directory of its filesystem is mounted */
	char *point;   /* where */
	char *options; /* of the mount: "ro,nosuid,..." */
	char *fstype;
	char *source;
	char *super; /* options of the filesystem */
};

/* One line of /proc/PID/cgroup. */
struct cgroup_line {
	uint64_t id;       /* 0: cgroup v2 */
	char *controllers; /* comma-separated, "name=..." for hierarchies without one, "" for v2 */
	char *path;        /* of the group, seen from the root of the cgroup namespace */
};

/* Both overwrite the line; false if it is not exactly of its form. */
bool proc_parse_mount(char *line, struct mount_line *ret);
bool proc_parse_cgroup(char *line, struct cgroup_line *ret);
/* Whether a list such as "ro,nosuid" has the word. */
bool proc_list_has(const char *list, char separator, const char *word);

/*
 * Hands each line (without its newline) to visit until that returns false.  Lines longer than
 * PROC_LINE_MAX are left out: one endless overlay mount must not hide the others.
 * 0, -errno, or -EFBIG when the file is longer than PROC_FILE_MAX.
 */
#define PROC_LINE_MAX 16384
#define PROC_FILE_MAX (16 * MiB)
int proc_each_line(const char *path, bool (*visit)(char *line, void *arg), void *arg);
/* The same for callers that must know whether one was skipped. */
int proc_each_short_line(const char *path, bool (*visit)(char *line, void *arg), void *arg, bool *ret_left_out);

/* Address space that this process uses, in bytes; 0: not known. */
uint64_t proc_address_space(void);
/* Lowers a limit of this process, soft and hard, to max (RLIMIT_, bytes or counts); one that is lower already stays.  0 or
 * -errno. */
int proc_lower_limit(int resource, uint64_t max);

/*
 * The kernel's own number, counted from 0, for a namespace ("user", "uts" ...) of a process.  One allocator gives them to
 * namespaces of every kind, lowest first, so no two that exist have the same, from wherever they are seen.  0 or -errno;
 * -ERANGE: this kernel numbers them in another way.
 */
int proc_ns_number(pid_t pid, const char *kind, uint64_t *ret);

/* Waits for the end of any process by its pidfd.  0, -ETIMEDOUT after deadline_ns on the monotonic clock, or -errno. */
int proc_await(int pidfd, uint64_t deadline_ns);
/*
 * Waits for the end of a child by its pidfd, whatever its exit signal, reaps it and closes the descriptor.
 * 0, -ETIMEDOUT after deadline_ns on the monotonic clock, or -errno.  ret may be NULL.
 */
int proc_reap(int *pidfd, uint64_t deadline_ns, siginfo_t *ret);
/* Waits for a child, however long, and reaps it.  Its status as waitpid(2) gives it, or -errno. */
int proc_wait(pid_t pid);
/*
 * Gives up waiting for a child that did not exit in time, and takes its descriptor (FD_NONE is fine).  Something must
 * reap it once it exits, or it stays a zombie for as long as this process lives: proc_reap_late() does, which costs
 * nothing while there is none.  Safe from any thread.
 */
void proc_leave(int *pidfd);
void proc_reap_late(void);

#endif
