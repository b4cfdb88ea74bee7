/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - feed the files of a folder to a fuzz target, one by one.
 *
 * Stands in for libFuzzer where there is no clang, so that every build proves that the seeds, which include
 * each input that once broke something, are still handled.  A folder that is not there is an empty one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *read_all(int fd, size_t size)
{
	uint8_t *data = malloc(size + 1);
	size_t have = 0;

	while (data && have < size) {
		ssize_t n = read(fd, data + have, size - have);

		if (n <= 0) {
			free(data);
			return NULL;
		}
		have += (size_t)n;
	}
	return data;
}

static int feed_file(int dir, const char *name)
{
	struct stat st;
	uint8_t *data = NULL;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int rc = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		data = read_all(fd, (size_t)st.st_size);
	if (data) {
		LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
		rc = 0;
	}
	free(data);
	if (fd >= 0)
		close(fd);
	printf("%s - %s\n", rc == 0 ? "ok" : "not ok", name);
	return rc;
}

int main(int argc, char **argv)
{
	DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int bad = 0;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("ok - empty input\n");
	if (!dir)
		return argc > 1 && errno == ENOENT ? 0 : 1;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			bad |= feed_file(dirfd(dir), entry->d_name);
	closedir(dir);
	return bad ? 1 : 0;
}
