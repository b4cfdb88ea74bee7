/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a policy file, or of the env_file that it names.  Whatever the path leads to (a directory, a FIFO
 * without a writer, a 10 GB file, something that grows while it is read), this neither blocks nor reads more than the
 * limit.
 */
#include "policy/internal.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

static int complain_size(const struct place *at, struct policy_diags *diags)
{
	diag_add(diags, at, "the file is larger than %llu KB, which no policy needs; is this the right file?",
		 (unsigned long long)(POLICY_FILE_MAX / KiB));
	return -BRIG_E_POLICY;
}

/* Whether another user may write it, or replace it. */
static bool is_safe(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool has_safe_folder(const char *path)
{
	char folder[PATH_MAX], *slash;
	struct stat st;

	if (!str_copy(folder, sizeof(folder), path) || !(slash = strrchr(folder, '/')))
		return false;
	*slash = '\0';
	return stat(*folder ? folder : "/", &st) == 0 && is_safe(&st);
}

static int complain_owner(const struct place *at, const struct stat *st, struct policy_diags *diags)
{
	if (is_safe(st))
		diag_add(diags, at, "lies in a folder that others may write to; make it yours alone: chmod 700, chown");
	else
		diag_add(diags, at,
			 "belongs to user %u with mode %04o: it must be yours or root's, and nobody else may write to "
			 "it; "
			 "chmod 600 and chown it, or name the policy to use with --policy",
			 (unsigned)st->st_uid, (unsigned)st->st_mode & 07777);
	return -BRIG_E_POLICY;
}

int yaml_file_read(const char *path, bool guarded, struct buf *ret, struct policy_diags *diags, struct brig_error *err)
{
	char shown[128];
	struct place at = { .name = printable(path, shown, sizeof(shown)) };
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	AUTO_FREE char *text = NULL;
	size_t kept;
	ssize_t n;

	if (fd == -EINVAL) {
		diag_add(diags, &at, "is %s, not a regular file", file_kind(st.st_mode));
		return -BRIG_E_POLICY;
	}
	if (fd < 0) {
		diag_add(diags, &at, "cannot be read: %s", strerrordesc_np(-fd) ?: "unknown error");
		return -BRIG_E_POLICY;
	}
	if (guarded && !(is_safe(&st) && has_safe_folder(path)))
		return complain_owner(&at, &st, diags);
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
	kept = n > 0 ? buf_add(ret, text, (size_t)n) : 0;
	explicit_bzero(text, (size_t)n); /* it may be the file of env_file, which holds secrets of others */
	return kept == (size_t)n ? 0 : err_nomem(err);
}
