/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a container: a small static program of our own (init/), compiled with brig and carried inside it
 * as bytes.  Images have it at DOCKER_INIT_PATH, mode 0755, owned by root, and say which one in the label
 * DOCKER_INIT_LABEL: an image whose label is not docker_init_hash was made by another brig and is derived anew.
 */
#ifndef DOCKER_INIT_H
#define DOCKER_INIT_H

#include "base/util.h"

#define DOCKER_INIT_PATH  "/.brig/init"
#define DOCKER_INIT_LABEL "brig.init"

extern const unsigned char docker_init_bytes[];
extern const size_t docker_init_size;
extern const char docker_init_hash[]; /* SHA-256 of the bytes, 64 lower-case hex digits */

#endif
