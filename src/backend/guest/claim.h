/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting side of guest/wait.h: receives a claim, writes the program into its file, receives the permission to
 * continue.  Used by the library in an interpreter, and by the program's process before exec.  Makes only calls that
 * the filters of all languages allow (sendfile is not among them), and uses no C library function that the library
 * interposes.
 *
 * All return 0 or -errno; -EPROTO: a malformed record, or end of file.  After an error the process must exit:
 * continuing without a claim would run an empty program, and without GUEST_GO one that has not passed the inspection.
 */
#ifndef GUEST_CLAIM_H
#define GUEST_CLAIM_H

#include <stdbool.h>

/* Fills the existing file at path; *ret_go: GUEST_GO came with the claim.  path NULL: there is no program. */
int guest_claim_take(int sock, const char *path, bool *ret_go);
int guest_claim_await_go(int sock);

#endif
