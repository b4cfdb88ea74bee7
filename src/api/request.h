/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of everything that a caller can get wrong, before anything runs. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "base/err.h"

/*
 * Reads a caller's versioned struct: *ret holds the defaults and receives the members known to both sides. A larger
 * struct of a newer caller is fine if the unknown members are zero.
 */
int versioned_read(void *ret, uint32_t known, const void *given, const char *what, struct brig_error *err);
/* 0 if pointers, sizes, names and descriptors are valid. */
int request_check(const struct brig_request *req, struct brig_error *err);
/* Both in turn, for a run. */
int request_read(const struct brig_request *given, struct brig_request *ret, struct brig_error *err);
/* The same for the creation of an environment. */
int environment_wish_read(const struct brig_environment *given, struct brig_environment *ret, struct brig_error *err);

#endif
