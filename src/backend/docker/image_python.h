/* SPDX-License-Identifier: Apache-2.0 */
/* docker_requirements: Python packages that an image has in addition to its usual contents. */
#ifndef DOCKER_IMAGE_PYTHON_H
#define DOCKER_IMAGE_PYTHON_H

#include "backend/docker/image_files.h"
#include "base/buf.h"
#include "model/settings.h"
#include "sys/crypto.h"

/* Adds them to the recipe's hash, in any order with the same result; nothing if there are none. */
void image_python_hash(struct sha256 *h, const struct setting_list *wanted);
/* Adds the Dockerfile line that installs them, and restores the user. */
void image_python_install(const struct setting_list *wanted, struct buf *dockerfile);
/* Collects the host's packages of these names and versions, with their dependencies; BRIG_E_REFUSED: one is missing. */
int image_python_collect(const struct setting_list *wanted, struct image_files *f, struct brig_error *err);

#endif
