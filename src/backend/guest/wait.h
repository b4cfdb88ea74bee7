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
 */
#define GUEST_WAIT_WARM "BRIG_WARM="

/* The exit status of an interpreter that could not go on to its program. */
#define GUEST_WAIT_FAILED 125

#define GUEST_WORD_MAGIC 0x57414954u /* "WAIT" */

enum guest_word_kind {
	GUEST_WAITING = 1,
	GUEST_FAILED, /* value: which module of GUEST_WAIT_WARM could not be imported, counted from 0 */
	GUEST_CLAIM,  /* value: size of the program; carries one descriptor of it */
	GUEST_GO,
	GUEST_UNFIT, /* after the claim: a file beside the program has the name of a module that was imported already */
};

struct guest_word {
	uint32_t magic;
	uint32_t kind;
	uint64_t value; /* 0 where the kind gives it no meaning */
};

#endif
