/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a container: a small static program of our own (init/), compiled with brig and embedded in it as bytes.
 * Images have it at CONTAINER_INIT_PATH, mode 0755, owned by root, and name its hash in the label CONTAINER_INIT_LABEL:
 * an image whose label differs from container_init_hash was made by another brig and is derived again.
 */
#ifndef CONTAINER_INIT_H
#define CONTAINER_INIT_H

#include "base/util.h"

#define CONTAINER_INIT_PATH  "/.brig/init"
#define CONTAINER_INIT_LABEL "brig.init"

extern const unsigned char container_init_bytes[];
extern const size_t container_init_size;
extern const char container_init_hash[]; /* SHA-256 of the bytes, 64 lower-case hex digits */

#endif
