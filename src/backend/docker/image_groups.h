/* SPDX-License-Identifier: Apache-2.0 */
/* The FILES rows of images.def: which of this host's files go into an image. */
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

/*
 * Collects the files of these groups that this host has, and those that every image needs.  BRIG_E_REFUSED: something
 * required is not installed on this host; err says what.
 */
int image_group_collect(unsigned groups, struct image_files *f, struct brig_error *err);
/* Replaces @python@ and @gcc@ in a pattern; false: dst is too small. */
bool image_group_expand(const char *pattern, char *dst, size_t size);
/* Adds the rows themselves, for the recipe's hash. */
void image_group_hash(struct sha256 *h, unsigned groups);

#endif
