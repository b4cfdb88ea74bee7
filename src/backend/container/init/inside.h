/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a container: internal interfaces.
 *
 * Init has the same user id as the program that it supervises.  It is safe from it for four reasons: it is not dumpable
 * (no ptrace, no /proc/1/mem, no environ); the kernel delivers no fatal signal to PID 1 from its own namespace; the
 * only signal that init uses means "check for exited children" (clocks are timerfds); and the program cannot change its
 * resource limits (data/syscalls refuses calls aimed at PID 1).  After the program has started, init opens no path that
 * the program could have created, and allocates nothing.
 */
#ifndef INIT_INSIDE_H
#define INIT_INSIDE_H

#include <signal.h>
#include <sys/types.h>

#include "backend/container/wire.h"

/* Init's own exit codes for failures that it cannot report otherwise; shown as the container's exit code. */
enum { INIT_DONE = 0, INIT_LOST = 117, INIT_NO_JOB = 118, INIT_NOT_FIRST = 119 };

#define PLACE_COUNT 3 /* writable places: the workspace, /tmp, /dev/shm */
extern const char *const place_name[PLACE_COUNT];

struct inside {
	struct wire_job job;
	int place[PLACE_COUNT]; /* opened before the program exists */
	pid_t payload;
	int input;         /* our end of the program's stdin */
	int go;            /* one byte lets the program start */
	int status;        /* pipe from the payload, before exec: struct payload_word, or end of file */
	int landlock_abi;  /* in force */
	int landlock_said; /* errno of the probe inside the Landlock domain */
	bool local_only;   /* the program may only create local sockets */
	bool disk_full;
	bool tried_processes; /* our own probing, so the peak of processes is not the program's */
	struct wire_out out;
};

/* What the payload reports through the status pipe. */
struct payload_word {
	uint32_t step; /* WIRE_STEPS: it is confined */
	uint32_t sys;
	uint32_t abi;
	uint32_t probe;
};

/* job.c: reads exactly the job from stdin; job_stage_files() reads its files. */
void job_read(struct inside *in);
int job_stage_files(struct inside *in);

/* tree.c: receives a project and packages; sends the workspace back. */
int tree_take(struct inside *in);
int tree_show(struct inside *in);
void tree_send(struct inside *in);
void tree_name_left(struct inside *in);

/* payload.c */
int payload_fork(struct inside *in);

/* facts.c: adds what can be read now; ended: the payload is a zombie and no other process is left. */
void facts_add(struct inside *in, bool ended);
void facts_note_disk(struct inside *in);

/* processes.c: determines FACT_pids_max by forking; call it before the program starts. */
void processes_try(struct inside *in);

/* sockets.c: whether there is only lo, so that sockets lead nowhere; installs the filter; verifies it.  0 or -errno. */
bool sockets_are_needless(void);
int sockets_refuse(void);
int sockets_try(void);

/* counters.c; ended: as for facts_add. */
void counters_say_limits(struct inside *in, bool ended);
uint64_t counters_cpu_ns(void);
void counters_read(struct wire_exit *ret);

/* speak.c: writes to stdout and stderr, which the program shares and may have made non-blocking. */
void speak(struct inside *in);
void speak_bytes(int fd, const char *data, size_t len);
_Noreturn void fail(struct inside *in, enum wire_step step, int rc);
_Noreturn void end(int code);

/* watch.c: from WIRE_GO until all other processes are dead. */
void watch(struct inside *in, struct wire_exit *ret);
/* After section 2: serves messages until brig has read the counters of engine and kernel for this container. */
void watch_bye(void);
void kill_all(void);
/* Receives exactly len bytes; false at end of file. */
bool control_read(char *dst, size_t len);
/* Sends the output file, if it is a regular file. */
void send_output(struct inside *in);

#endif
