/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

/* Creates missing directories; whoever may read the file may search them. */
static int make_folders(const char *path, mode_t file_mode)
{
	mode_t mode = 0700 | (file_mode & 0044) | (file_mode & 0044) >> 2;
	char folder[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (!str_copy(folder, sizeof(folder), path))
			return -ENAMETOOLONG;
		folder[slash - path] = '\0';
		if (mkdir(folder, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int put_new(const char *path, mode_t mode, const struct buf *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ui_put_bytes(fd, text, false);
	if (rc < 0)
		(void)unlink(path);
	return rc;
}

/* Replaces the file atomically. */
static int put_over(const char *path, mode_t mode, const struct buf *text)
{
	char beside[PATH_MAX];
	int rc;

	if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	if (unlink(beside) < 0 && errno != ENOENT) /* left by a process that was killed */
		return -errno;
	rc = put_new(beside, mode, text);
	if (rc == 0 && rename(beside, path) < 0) {
		rc = -errno;
		(void)unlink(beside);
	}
	return rc;
}

int policy_file_write(const struct policy_file *file, const struct buf *text)
{
	int rc = make_folders(file->path, file->mode);

	if (rc == 0)
		rc = file->replace ? put_over(file->path, file->mode, text) : put_new(file->path, file->mode, text);
	if (rc == -EEXIST)
		ui_say("'%.200s' is there already and is not replaced: %s", file->path, file->advice);
	else if (rc < 0)
		ui_say("cannot write '%.200s': %s", file->path, strerrordesc_np(-rc));
	else
		ui_say("wrote '%.200s'%s", file->path, file->next);
	return rc < 0 ? EXIT_FAILED : EXIT_SUCCESS;
}
