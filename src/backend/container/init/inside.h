/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a container, seen from its own source files.
 *
 * It has the same user id as the program that it guards, so it owes its safety to four things: it is not dumpable
 * (no ptrace, no /proc/1/mem, no environ), the kernel delivers no fatal signal to PID 1 from its own namespace, it
 * gives no meaning to any signal but "look whether a child ended" (clocks are timerfds), and the program cannot
 * change its resource limits (data/syscalls refuses what is aimed at PID 1).  After the program has started it opens nothing by path that
 * the program could have put there, and allocates nothing.
 */
#ifndef INIT_INSIDE_H
#define INIT_INSIDE_H

#include <signal.h>
#include <sys/types.h>

#include "backend/container/wire.h"

/* How init itself ends when it cannot even say why: seen in the container's exit code. */
enum { INIT_DONE = 0, INIT_LOST = 117, INIT_NO_JOB = 118, INIT_NOT_FIRST = 119 };

#define PLACE_COUNT 3 /* writable places: the workspace, /tmp, /dev/shm */
extern const char *const place_name[PLACE_COUNT];

struct inside {
	struct wire_job job;
	int place[PLACE_COUNT]; /* opened before the program exists */
	pid_t payload;
	int input;         /* write end of the program's stdin */
	int go;            /* one byte lets the program start */
	int status;        /* what its process says before exec: struct wire_failure, or end of file */
	int landlock_abi;  /* in force */
	int landlock_said; /* errno of the probe inside the domain */
	bool local_only;   /* the program may make no socket but local ones */
	bool disk_full;
	bool tried_processes; /* so that their peak is init's own */
	struct wire_out out;
};

/* What the payload's process says through the status pipe. */
struct payload_word {
	uint32_t step; /* WIRE_STEPS: every wall is up */
	uint32_t sys;
	uint32_t abi;
	uint32_t probe;
};

/* job.c: reads exactly the job and its files from stdin. */
void job_read(struct inside *in);
int job_stage_files(struct inside *in);

/* tree.c: a project on its way in, and what the program made of it on its way out. */
int tree_take(struct inside *in);
int tree_show(struct inside *in);
void tree_send(struct inside *in);
void tree_name_left(struct inside *in);

/* payload.c */
int payload_fork(struct inside *in);

/* facts.c: adds what can be read now; ended: the payload is a zombie and nobody else is left. */
void facts_add(struct inside *in, bool ended);
void facts_note_disk(struct inside *in);

/* processes.c: says FACT_pids_max by trying; before the program starts. */
void processes_try(struct inside *in);

/* sockets.c: whether there is nothing but lo, so that sockets lead nowhere; the wall; and whether it stands.  0 or -errno. */
bool sockets_are_needless(void);
int sockets_refuse(void);
int sockets_try(void);

/* counters.c; ended: as for facts_add. */
void counters_say_limits(struct inside *in, bool ended);
uint64_t counters_cpu_ns(void);
void counters_read(struct wire_exit *ret);

/* speak.c: stdout and stderr belong to the program too, which may have made them non-blocking. */
void speak(struct inside *in);
void speak_bytes(int fd, const char *data, size_t len);
_Noreturn void fail(struct inside *in, enum wire_step step, int rc);
_Noreturn void end(int code);

/* watch.c: from the word to start until everybody is dead. */
void watch(struct inside *in, struct wire_exit *ret);
/* When everything is said: until brig has read what the engine and the kernel count for this container. */
void watch_bye(void);
void kill_all(void);
/* Whether a message came; false at end of file. */
bool control_read(char *dst, size_t len);
/* Sends the output file, if it is one. */
void send_output(struct inside *in);

#endif
