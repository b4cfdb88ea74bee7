/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of an image that is made from this host's own programs: found by pattern, followed through links, completed
 * with the libraries that they need, and written as a root file system.
 *
 * Only files that every user of the host may read are included, and only from directories for programs (/usr, /lib*,
 * /bin, /sbin, /etc/alternatives): a link that leads elsewhere is skipped.  All sizes are bounded.
 */
#ifndef DOCKER_IMAGE_FILES_H
#define DOCKER_IMAGE_FILES_H

#include "base/err.h"

struct image_files;

struct image_files *image_files_new(void); /* NULL: no memory */
void image_files_free(struct image_files *f);

/*
 * Adds the matches of a glob(7) pattern (with braces): files with the libraries that they need, links with their
 * targets, directories with everything below.  except: comma-separated names (fnmatch patterns) that are skipped
 * wherever they occur below; may be NULL.  Returns the number of matches, or negative.
 */
int image_files_add(struct image_files *f, const char *pattern, const char *except, struct brig_error *err);
/* A host file under a different path in the image. */
int image_files_add_as(struct image_files *f, const char *source, const char *path, struct brig_error *err);
/* Entries that do not come from the host.  Later ones replace earlier ones. */
int image_files_put(struct image_files *f, const char *path, unsigned mode, const void *data, size_t len,
		    struct brig_error *err);
int image_files_put_folder(struct image_files *f, const char *path, unsigned mode, struct brig_error *err);
int image_files_put_link(struct image_files *f, const char *path, const char *target, struct brig_error *err);

size_t image_files_count(const struct image_files *f);
uint64_t image_files_bytes(const struct image_files *f);
/* Writes a tar, sorted by path. */
int image_files_write(const struct image_files *f, int fd, struct brig_error *err);

#endif
