/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting side of guest/wait.h: hears a claim, writes the program into its file, hears the word to go on.  Used by the
 * library in an interpreter and by the program's process before exec.  Only calls that the filters of all languages allow
 * (sendfile is not among them), and no function of the C library that the library interposes.
 *
 * Each gives 0 or -errno; -EPROTO: a record that nobody sane sends, or the end.  Whoever gets an error must end: to go on
 * without a claim is to run an empty program, and without the last word what the inspection has not passed.
 */
#ifndef GUEST_CLAIM_H
#define GUEST_CLAIM_H

#include <stdbool.h>

/* Fills the file at path, which is there; *ret_go: the word to go on came with the claim.  path NULL: there is no program. */
int guest_claim_take(int sock, const char *path, bool *ret_go);
int guest_claim_await_go(int sock);

#endif
