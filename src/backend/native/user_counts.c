/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds for what the kernel counts per user.
 *
 * An inotify instance, a watch or a namespace is charged to its user in the current user namespace, then to the creator
 * of that namespace, and so on up to the host; /proc/sys/user has a limit at each level.  In a new namespace there is
 * no limit, so in a rootless cell a program could exhaust the caller's own count on the host, and the caller's editors
 * and shells would fail.  Init writes the bounds of model/user_counts.def while it is still root of the cell's user
 * namespace; no process in the cell has the privilege to raise them.
 *
 * The user namespace that these files refer to is determined when they are opened.  So the host's /proc shows init the
 * cell's own limits, and the supervisor reads the limits in force through init's descriptors, without entering the
 * cell.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "backend/native/cell.h"
#include "base/fd.h"
#include "base/str.h"

#define FOLDER "/proc/sys/user"

static const struct {
	const char *name, *text;
	uint64_t most;
} rows[USER_COUNT_COUNT] = {
#define USER_COUNT(name, most) { #name, #most, most },
#include "model/user_counts.def"
};

/* Async-signal-safe: runs in the cell's init. */
int user_counts_bound(struct cell_build *b)
{
	AUTO_FD folder = open(FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return -errno;
	for (size_t i = 0; i < USER_COUNT_COUNT; i++) {
		int rc;

		b->user_count[i] = openat(folder, rows[i].name, O_RDWR | O_CLOEXEC);
		if (b->user_count[i] < 0 && errno == ENOENT)
			continue; /* the kernel does not count this */
		if (b->user_count[i] < 0)
			return -errno;
		rc = fd_write_all(b->user_count[i], rows[i].text, strlen(rows[i].text));
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool kernel_counts(const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), FOLDER "/%s", name);
	return access(path, F_OK) == 0 || errno != ENOENT || access(FOLDER, F_OK) < 0;
}

/* UINT64_MAX: unreadable, so there is no bound to report. */
static uint64_t read_count(int fd)
{
	char text[32] = "";
	uint64_t n;

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return UINT64_MAX;
	text[strcspn(text, "\n")] = '\0';
	return str_to_u64(text, &n) ? n : UINT64_MAX;
}

void user_counts_read(struct cell *c, struct facts *f)
{
	const char *unbounded = NULL;
	uint64_t now[USER_COUNT_COUNT];

	for (size_t i = 0; i < USER_COUNT_COUNT; i++) {
		now[i] = read_count(c->handed[HANDED_USER_COUNT_FIRST + i]);
		if (now[i] == UINT64_MAX && !kernel_counts(rows[i].name))
			now[i] = 0;
		if (now[i] > rows[i].most && !unbounded)
			unbounded = rows[i].name;
	}
	fact_num(f, FACT_inotify_instances, now[USER_COUNT_max_inotify_instances], "user.max_inotify_instances inside");
	fact_num(f, FACT_inotify_watches, now[USER_COUNT_max_inotify_watches], "user.max_inotify_watches inside");
	fact_text(f, FACT_user_counts, unbounded ? unbounded : "bounded", "user.max_* inside");
}
