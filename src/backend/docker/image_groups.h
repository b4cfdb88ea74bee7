/* SPDX-License-Identifier: Apache-2.0 */
/* The FILES rows of images.def: what of this host goes into an image. */
#ifndef DOCKER_IMAGE_GROUPS_H
#define DOCKER_IMAGE_GROUPS_H

#include "backend/docker/image_files.h"
#include "sys/crypto.h"

enum image_group {
	GROUP_BASE = 1 << 0,
	GROUP_PYTHON = 1 << 1,
	GROUP_NODE = 1 << 2,
	GROUP_GO = 1 << 3,
	GROUP_SHELL = 1 << 4,
	GROUP_CC = 1 << 5,
};

/* Everything of these groups that this host has, and what every image needs besides.  BRIG_E_REFUSED: something that
 * the image cannot do without is not installed here; err says what. */
int image_group_collect(unsigned groups, struct image_files *f, struct brig_error *err);
/* A pattern with its @python@ or @gcc@ filled in; false: there is no room. */
bool image_group_expand(const char *pattern, char *dst, size_t size);
/* The rows themselves, for the recipe's hash. */
void image_group_hash(struct sha256 *h, unsigned groups);

#endif
