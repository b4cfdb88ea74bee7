/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/util.h"

#define ID_ALPHABET "abcdefghijklmnopqrstuvwxyz234567"

/* Fills len characters of lower-case base32 (5 random bits each) and a NUL.  0 or -errno. */
int id_random(char *dst, size_t len);

#endif
