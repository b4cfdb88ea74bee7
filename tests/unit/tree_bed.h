/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of trees: a folder of the test's own, with a tree in it, and a folder beside it that nothing may reach. */
#ifndef TREE_BED_H
#define TREE_BED_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "temp_folder.h"

static char folder[80]; /* with tree/ in it, and outside/ that nothing may reach */
static int tree, outside;

static int make_folder(void **state)
{
	int top;

	(void)state;
	if (temp_folder_make(folder, sizeof(folder), "files") < 0)
		return -1;
	top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)mkdirat(top, "tree", 0755);
	(void)mkdirat(top, "outside", 0755);
	tree = openat(top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	outside = openat(top, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)close(top);
	return tree >= 0 && outside >= 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	(void)close(tree);
	(void)close(outside);
	return temp_folder_remove(folder);
}

static void put_file(int dir, const char *path, const char *text)
{
	AUTO_FD fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* A fresh folder beside the tree. */
static int fresh(const char *name)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0755), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

#endif
