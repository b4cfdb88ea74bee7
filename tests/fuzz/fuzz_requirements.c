/* SPDX-License-Identifier: Apache-2.0 */
/* Requirement files: whatever they say, only files beneath the project are read, under names of our own. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "packages/packages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/brig-fuzz-XXXXXX";
static int dir = -1;

static void forget(void)
{
	(void)unlinkat(dir, "requirements.txt", 0);
	(void)unlinkat(dir, "b.txt", 0);
	(void)rmdir(path);
}

/* One folder for the life of the process, with a file to be named by others. */
static int project(void)
{
	int fd;

	if (dir >= 0)
		return dir;
	if (!mkdtemp(path) || (dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		abort();
	fd = openat(dir, "b.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_all(fd, "-r requirements.txt\n", 20) < 0)
		abort();
	close(fd);
	(void)atexit(forget);
	return dir;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct plan_workspace ws = { .fd = -1 };
	struct package_files f;
	int fd = openat(project(), "requirements.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_all(fd, data, size) < 0)
		abort();
	close(fd);
	ws.fd = project();
	if (package_files_read(&ecosystems[0], &ws, &f, &err) < 0)
		return 0;
	if (f.n == 0 || f.n > PACKAGES_FILES_MAX || strcmp(f.file[0].name, "requirements.txt") != 0)
		abort();
	for (size_t i = 0; i < f.n; i++)
		if (strchr(f.file[i].name, '/') || strncmp(f.file[i].name, "requirements", 12) != 0)
			abort();
	package_files_release(&f);
	return 0;
}
