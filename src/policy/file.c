/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a policy file.  Whatever the path leads to (a directory, a FIFO nobody writes to, a
 * 10 GB file, something that grows while it is read), this neither blocks nor reads more than the limit.
 */
#include "policy/internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

static const char *kind_of_file(mode_t mode)
{
	static const struct {
		mode_t kind;
		const char *name;
	} kinds[] = {
		{ S_IFDIR, "a directory" },    { S_IFIFO, "a FIFO" },    { S_IFCHR, "a character device" },
		{ S_IFBLK, "a block device" }, { S_IFSOCK, "a socket" },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((mode & S_IFMT) == kinds[i].kind)
			return kinds[i].name;
	return "something else";
}

static int complain_size(const struct place *at, struct policy_diags *diags)
{
	diag_add(diags, at, "the file is larger than %llu KB, which no policy needs; is this the right file?",
		 (unsigned long long)(POLICY_FILE_MAX / KiB));
	return -BRIG_E_POLICY;
}

int yaml_file_read(const char *path, struct buf *ret, struct policy_diags *diags, struct brig_error *err)
{
	char shown[128];
	struct place at = { .name = printable(path, shown, sizeof(shown)) };
	AUTO_FD fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0) {
		diag_add(diags, &at, "cannot be read: %s", strerrordesc_np(errno) ?: "unknown error");
		return -BRIG_E_POLICY;
	}
	if (!S_ISREG(st.st_mode)) {
		diag_add(diags, &at, "is %s, not a regular file", kind_of_file(st.st_mode));
		return -BRIG_E_POLICY;
	}
	if ((uint64_t)st.st_size > POLICY_FILE_MAX)
		return complain_size(&at, diags);
	text = malloc(POLICY_FILE_MAX + 1); /* only the pages that are filled cost anything */
	if (!text)
		return err_nomem(err);
	n = fd_read_all(fd, text, POLICY_FILE_MAX + 1);
	if (n < 0) {
		diag_add(diags, &at, "cannot be read: %s", strerrordesc_np((int)-n) ?: "unknown error");
		return -BRIG_E_POLICY;
	}
	if ((uint64_t)n > POLICY_FILE_MAX)
		return complain_size(&at, diags);
	if (n > 0 && buf_add(ret, text, (size_t)n) != (size_t)n)
		return err_nomem(err);
	return 0;
}
