/* SPDX-License-Identifier: Apache-2.0 */
/* docker_requirements: packages of Python that an image has on top of what it always has. */
#ifndef DOCKER_IMAGE_PYTHON_H
#define DOCKER_IMAGE_PYTHON_H

#include "backend/docker/image_files.h"
#include "base/buf.h"
#include "model/settings.h"
#include "sys/crypto.h"

/* Into the recipe's hash, whatever their order; nothing if there are none. */
void image_python_hash(struct sha256 *h, const struct setting_list *wanted);
/* The line of a Dockerfile that installs them, and back to its user. */
void image_python_install(const struct setting_list *wanted, struct buf *dockerfile);
/* The host's own packages of these names and versions, with those that they need; BRIG_E_REFUSED: it lacks one. */
int image_python_collect(const struct setting_list *wanted, struct image_files *f, struct brig_error *err);

#endif
