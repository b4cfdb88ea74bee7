/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error convention: a function that can fail returns 0 or a negative value and fills the caller's struct brig_error
 * (declared in the public header, so that it crosses the library boundary unchanged).  Filling never allocates, logs or
 * exits.  Context is added while unwinding.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <brig/brig.h>

#include "base/util.h"

/* Fills *err and returns -code.  sys is an errno value whose text is appended, or 0.  err may be NULL. */
int err_set(struct brig_error *err, enum brig_code code, int sys, const char *fmt, ...) PRINTF(4, 5);
/* Prepends "context: " to the message in *err; returns -err->code. */
int err_wrap(struct brig_error *err, const char *fmt, ...) PRINTF(2, 3);
int err_nomem(struct brig_error *err);

/* clang's analyser reads one file at a time: it has to be told that these never return 0. */
#ifdef __clang_analyzer__
#define err_set(err, code, ...) (err_set((err), (code), __VA_ARGS__), -(int)(code))
#define err_nomem(err)          (err_nomem(err), -(int)BRIG_E_NOMEM)
#endif

#endif
