/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between an interpreter that waits for its program and the supervisor of its cell: records on a
 * SOCK_SEQPACKET socket.
 *
 *	interpreter                 supervisor
 *	GUEST_WAITING      ------>  the cell may be claimed; or GUEST_FAILED, and the interpreter exits
 *	                   <------  GUEST_CLAIM with one descriptor: the program, a file of `value` bytes
 *	fills its program file; or GUEST_UNFIT, and the interpreter exits: the program needs a cold cell
 *	                   <------  GUEST_GO, in the same record as the claim or in a separate one
 *	closes the socket, opens its program file
 *
 * A zygote is an interpreter that never runs a program itself: where others wait for one, it forks children that do.
 *
 *	zygote                      supervisor
 *	GUEST_WAITING      ------>  cells may be filled from it; or GUEST_FAILED, and it exits
 *	                   <------  GUEST_FORK with the descriptors of a cell without a payload (enum guest_fork_fd)
 *	its child, on the cell's own socket
 *	GUEST_CONFINED     ------>  it is in the cell and confined (guest/walls.h); or GUEST_NOT_JOINED
 *	GUEST_WAITING      ------>  from here on as above
 *
 * Both ends include this file: plain C, nothing but sizes and names.
 */
#ifndef GUEST_WAIT_H
#define GUEST_WAIT_H

#include <stddef.h>
#include <stdint.h>

/* The library, for a memfd. */
extern const unsigned char guest_wait_bytes[];
extern const size_t guest_wait_size;

/*
 * Descriptors and variables with which the interpreter is executed.  The variables come after the program's own:
 * GUEST_WAIT_PRELOAD, then the others.
 */
#define GUEST_WAIT_SOCKET  3
#define GUEST_WAIT_LIBRARY 4 /* a memfd with guest_wait_bytes */
#define GUEST_WAIT_PRELOAD "LD_PRELOAD=/proc/self/fd/4"
/* Absolute paths separated by ':': the program file, then others at whose opening the interpreter may wait as well. */
#define GUEST_WAIT_PATHS "BRIG_WAIT="
/*
 * Comma-separated modules that Python imports before it waits; then all live objects are moved out of reach of its
 * garbage collector, which makes its exit faster and is visible in the module gc.  Empty: only the latter.  Missing:
 * neither.  If it is set, Node loads some modules of its own (wait/node.c).
 */
#define GUEST_WAIT_WARM "BRIG_WARM="

/* For a zygote: "BRIG_FORKS=1", and the confinement of its children as a memfd. */
#define GUEST_WAIT_FORKS "BRIG_FORKS="
#define GUEST_WAIT_WALLS 5

/* Exit status of an interpreter that could not continue to its program. */
#define GUEST_WAIT_FAILED 125

#define GUEST_WORD_MAGIC 0x57414954u /* "WAIT" */

enum guest_word_kind {
	GUEST_WAITING = 1,
	GUEST_FAILED, /* value: index of the module of GUEST_WAIT_WARM that could not be imported */
	GUEST_CLAIM,  /* value: size of the program; with one descriptor of it */
	GUEST_GO,
	GUEST_UNFIT, /* after the claim: a file beside the program has the name of a module that was imported already */
	GUEST_FORK,  /* value: number of cgroups that the child has to enter, through the last descriptors */
	GUEST_CONFINED,   /* value: errno of the Landlock probe; may carry the listener of its filter */
	GUEST_NOT_JOINED, /* value: failed step (enum guest_join) in the upper 32 bits, errno in the lower */
};

/*
 * Descriptors of GUEST_FORK.  The namespaces come first, in the order in which they are joined; those of the cgroups
 * come last.
 */
enum guest_fork_fd {
	GUEST_FD_USER, /* gives the capabilities to join the others */
	GUEST_FD_MNT,
	GUEST_FD_NET,
	GUEST_FD_IPC,
	GUEST_FD_UTS,
	GUEST_FD_CGROUP,
	GUEST_FD_PID,  /* for children: the program's process is created in it */
	GUEST_FD_TIME, /* joined by that process itself: setns() requires that its memory is not shared */
	GUEST_FD_IN,
	GUEST_FD_OUT,
	GUEST_FD_ERR,
	GUEST_FD_SOCKET,
	GUEST_FD_GROUPS,
};
#define GUEST_GROUPS_MAX   16
#define GUEST_FORK_FDS_MAX (GUEST_FD_GROUPS + GUEST_GROUPS_MAX)

/* The pid that a zygote's child has in its cell, as a payload forked by init has. */
#define GUEST_PROGRAM_PID 2

struct guest_word {
	uint32_t magic;
	uint32_t kind;
	uint64_t value; /* 0 if the kind does not use it */
};

#endif
