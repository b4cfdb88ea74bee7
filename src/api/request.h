/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a caller can get wrong, found before anything is tried. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "base/err.h"

/*
 * Reads a caller's versioned struct: *ret holds the defaults and gets what both sides know.  A larger
 * struct of a newer caller is fine as long as the members that we do not know are zero.
 */
int versioned_read(void *ret, uint32_t known, const void *given, const char *what, struct brig_error *err);
/* 0 if pointers, sizes, names and descriptors are sound. */
int request_check(const struct brig_request *req, struct brig_error *err);
/* Both, for a run. */
int request_read(const struct brig_request *given, struct brig_request *ret, struct brig_error *err);
/* Likewise, for one that makes an environment. */
int environment_wish_read(const struct brig_environment *given, struct brig_environment *ret, struct brig_error *err);

#endif
