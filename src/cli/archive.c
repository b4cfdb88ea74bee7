/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/archive.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/request.h"

/* 1: name has the form "fd:N", and *ret is N. */
static int inherited(const char *name, int *ret, struct brig_error *err)
{
	static const char front[] = "fd:";
	uint64_t n;

	if (strncmp(name, front, strlen(front)) != 0)
		return 0;
	if (!str_to_u64(name + strlen(front), &n) || n <= STDERR_FILENO || n > INT_MAX || fcntl((int)n, F_GETFD) < 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "'%.80s' is no descriptor that was handed to us: fd:3 and above are", name);
	(void)fcntl((int)n, F_SETFD, FD_CLOEXEC);
	*ret = (int)n;
	return 1;
}

int archive_open_in(const char *name, int *ret, struct brig_error *err)
{
	int rc = name ? inherited(name, ret, err) : 0;

	if (!name || rc != 0)
		return rc < 0 ? rc : 0;
	if (str_eq(name, "-"))
		*ret = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	else
		*ret = request_open(name, FILE_STREAMS, err);
	if (*ret >= 0)
		return 0;
	return err->code ? err_wrap(err, "the archive of files")
			 : err_set(err, BRIG_E_USAGE, errno, "cannot read the archive of files from standard input");
}

int archive_open_out(const char *name, int *ret, struct brig_error *err)
{
	int rc = name ? inherited(name, ret, err) : 0;

	if (!name || rc != 0)
		return rc < 0 ? rc : 0;
	*ret = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0644);
	if (*ret < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot open '%.200s' for the archive of artifacts", name);
	(void)fcntl(*ret, F_SETFL, O_WRONLY);
	return 0;
}
