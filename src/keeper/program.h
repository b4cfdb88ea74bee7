/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's program as bytes.  It is started without arguments or environment, with one or two descriptors. */
#ifndef KEEPER_PROGRAM_H
#define KEEPER_PROGRAM_H

#include <stddef.h>

#define KEEPER_CALLER_FD 3 /* the SOCK_SEQPACKET socket to the caller */
/*
 * A sealed file with a struct keep_hello, if the caller must not choose the ceilings.  Not open: the caller sends them.
 */
#define KEEPER_CEILINGS_FD 4

/* The keeper's main function: returns when the caller and all cells are gone. */
int keeper_main(void);

extern const unsigned char keeper_program_bytes[];
extern const size_t keeper_program_size;

#endif
