/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a policy file.  Whatever the path leads to (a directory, a FIFO nobody writes to, a
 * 10 GB file, something that grows while it is read), this neither blocks nor reads more than the limit.
 */
#include "policy/internal.h"

#include <string.h>

#include "base/fd.h"
#include "base/file.h"

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
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	AUTO_FREE char *text = NULL;
	ssize_t n;

	if (fd == -EINVAL) {
		diag_add(diags, &at, "is %s, not a regular file", file_kind(st.st_mode));
		return -BRIG_E_POLICY;
	}
	if (fd < 0) {
		diag_add(diags, &at, "cannot be read: %s", strerrordesc_np(-fd) ?: "unknown error");
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
