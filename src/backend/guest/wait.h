/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an interpreter that waits for its program and the supervisor of its cell speak: records over a SOCK_SEQPACKET socket.
 *
 *	interpreter                 supervisor
 *	GUEST_WAITING      ------>  the cell may be claimed; or GUEST_FAILED, and the interpreter ends
 *	                   <------  GUEST_CLAIM with one descriptor: the program, a file of `value` bytes
 *	fills its program file; or GUEST_UNFIT, and the interpreter ends: the program is for a cold cell
 *	                   <------  GUEST_GO, in the same record as the claim or in one of its own
 *	closes the socket, opens its program file
 *
 * A zygote is an interpreter that never runs a program itself: where others wait for one it has children who do.
 *
 *	zygote                      supervisor
 *	GUEST_WAITING      ------>  cells may be filled from it; or GUEST_FAILED, and it ends
 *	                   <------  GUEST_FORK with the descriptors of a cell that nobody is in (enum guest_fork_fd)
 *	its child, over the cell's own socket
 *	GUEST_CONFINED     ------>  it stands in the cell behind all its walls (guest/walls.h); or GUEST_NOT_JOINED
 *	GUEST_WAITING      ------>  and so on as above
 *
 * Both ends include this: plain C, nothing but sizes and names.
 */
#ifndef GUEST_WAIT_H
#define GUEST_WAIT_H

#include <stddef.h>
#include <stdint.h>

/* The library, for a memfd. */
extern const unsigned char guest_wait_bytes[];
extern const size_t guest_wait_size;

/* What the interpreter is executed with.  The variables come last, behind the program's own: GUEST_WAIT_PRELOAD, then the others. */
#define GUEST_WAIT_SOCKET  3
#define GUEST_WAIT_LIBRARY 4 /* a memfd with guest_wait_bytes */
#define GUEST_WAIT_PRELOAD "LD_PRELOAD=/proc/self/fd/4"
/* Absolute paths with ':' between them: the program file, then others whose opening is as good a place to wait. */
#define GUEST_WAIT_PATHS "BRIG_WAIT="
/*
 * Modules with ',' between them that a Python imports before it waits; then what lives is put aside from its garbage
 * collector, which makes its end faster and is visible in the module gc.  Empty: only the latter.  Missing: neither.
 * A Node loads some modules of its own if it is there (wait/node.c).
 */
#define GUEST_WAIT_WARM "BRIG_WARM="

/* Of a zygote: "BRIG_FORKS=1", and the walls of its children as a memfd. */
#define GUEST_WAIT_FORKS "BRIG_FORKS="
#define GUEST_WAIT_WALLS 5

/* The exit status of an interpreter that could not go on to its program. */
#define GUEST_WAIT_FAILED 125

#define GUEST_WORD_MAGIC 0x57414954u /* "WAIT" */

enum guest_word_kind {
	GUEST_WAITING = 1,
	GUEST_FAILED, /* value: which module of GUEST_WAIT_WARM could not be imported, counted from 0 */
	GUEST_CLAIM,  /* value: size of the program; carries one descriptor of it */
	GUEST_GO,
	GUEST_UNFIT, /* after the claim: a file beside the program has the name of a module that was imported already */
	GUEST_FORK,  /* value: how many control groups the child is to enter, by the descriptors behind the others */
	GUEST_CONFINED, /* value: errno of a probe of Landlock; may carry one descriptor, the listener of its filter */
	GUEST_NOT_JOINED, /* value: which step (enum guest_join) failed, and behind its 32 bits errno */
};

/* Descriptors beside GUEST_FORK.  The namespaces come first, in the order in which they are joined; those of control groups last. */
enum guest_fork_fd {
	GUEST_FD_USER, /* the others may be joined with the rights that this one gives */
	GUEST_FD_MNT,
	GUEST_FD_NET,
	GUEST_FD_IPC,
	GUEST_FD_UTS,
	GUEST_FD_CGROUP,
	GUEST_FD_PID,  /* of children: the program's process is born in it */
	GUEST_FD_TIME, /* joined by that process itself: the kernel wants memory that nobody shares */
	GUEST_FD_IN,
	GUEST_FD_OUT,
	GUEST_FD_ERR,
	GUEST_FD_SOCKET,
	GUEST_FD_GROUPS,
};
#define GUEST_GROUPS_MAX   16
#define GUEST_FORK_FDS_MAX (GUEST_FD_GROUPS + GUEST_GROUPS_MAX)

/* The pid that a zygote's child has in its cell, as in one that was started there. */
#define GUEST_PROGRAM_PID 2

struct guest_word {
	uint32_t magic;
	uint32_t kind;
	uint64_t value; /* 0 where the kind gives it no meaning */
};

#endif
