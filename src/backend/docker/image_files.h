/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of an image that is made from this host's own programs: found by pattern, followed through links, completed
 * with the libraries they need, and written as a root file system.
 *
 * Only what every user of the host may read goes in, and only from where programs live (/usr, /lib*, /bin, /sbin,
 * /etc/alternatives): a link that leads elsewhere is left out.  Whatever can grow has a ceiling.
 */
#ifndef DOCKER_IMAGE_FILES_H
#define DOCKER_IMAGE_FILES_H

#include "base/err.h"

struct image_files;

struct image_files *image_files_new(void); /* NULL: no memory */
void image_files_free(struct image_files *f);

/*
 * Adds what a glob(7) pattern (with braces) finds: files with the libraries they need, links with what they point at,
 * folders with everything below.  except: names, separated by commas, that are left out wherever they
 * appear below (fnmatch patterns); may be NULL.  The number of matches, or negative.
 */
int image_files_add(struct image_files *f, const char *pattern, const char *except, struct brig_error *err);
/* A host file that appears elsewhere in the image. */
int image_files_add_as(struct image_files *f, const char *source, const char *path, struct brig_error *err);
/* What is not of the host.  Later ones replace earlier ones. */
int image_files_put(struct image_files *f, const char *path, unsigned mode, const void *data, size_t len,
		    struct brig_error *err);
int image_files_put_folder(struct image_files *f, const char *path, unsigned mode, struct brig_error *err);
int image_files_put_link(struct image_files *f, const char *path, const char *target, struct brig_error *err);

size_t image_files_count(const struct image_files *f);
uint64_t image_files_bytes(const struct image_files *f);
/* As a tar, in the order of their paths. */
int image_files_write(const struct image_files *f, int fd, struct brig_error *err);

#endif
