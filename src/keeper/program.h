/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's program as bytes, and what it is started with: no argument, no environment, one descriptor or two. */
#ifndef KEEPER_PROGRAM_H
#define KEEPER_PROGRAM_H

#include <stddef.h>

#define KEEPER_CALLER_FD 3 /* the SOCK_SEQPACKET socket to whoever asks for cells */
/* A sealed file with a struct keep_hello, if whoever asks for cells is not to choose the ceilings; not open: it is. */
#define KEEPER_CEILINGS_FD 4

/* All of it: returns when the caller is gone, and every cell. */
int keeper_main(void);

extern const unsigned char keeper_program_bytes[];
extern const size_t keeper_program_size;

#endif
