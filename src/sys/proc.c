/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"

/* Cuts the text up to the separator off *rest; NULL when nothing is left. */
static char *cut(char **rest, char separator)
{
	char *word = *rest, *end;

	if (!word)
		return NULL;
	end = strchr(word, separator);
	if (end)
		*end++ = '\0';
	*rest = end;
	return word;
}

static bool is_octal(char c, char max)
{
	return c >= '0' && c <= max;
}

/* The kernel writes space, tab, newline and backslash as \ooo.  Anything else behind a backslash is not from the kernel. */
static bool unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s != '\\') {
			*to++ = *s;
			continue;
		}
		if (!is_octal(s[1], '3') || !is_octal(s[2], '7') || !is_octal(s[3], '7'))
			return false;
		*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
		if (*to++ == '\0')
			return false;
		s += 3;
	}
	*to = '\0';
	return true;
}

static bool cut_u64(char **rest, char separator, uint64_t *ret)
{
	const char *word = cut(rest, separator);

	return word && str_to_u64(word, ret);
}

bool proc_parse_mount(char *line, struct mount_line *ret)
{
	uint64_t device;
	char *field;

	if (!cut_u64(&line, ' ', &ret->id) || !cut_u64(&line, ' ', &ret->parent) || !cut_u64(&line, ':', &device) ||
	    !cut_u64(&line, ' ', &device))
		return false;
	ret->root = cut(&line, ' ');
	ret->point = cut(&line, ' ');
	ret->options = cut(&line, ' ');
	do {
		field = cut(&line, ' '); /* optional fields: "shared:1" and the like */
	} while (field && strcmp(field, "-") != 0);
	ret->fstype = cut(&line, ' ');
	ret->source = cut(&line, ' '); /* may be empty */
	ret->super = cut(&line, ' ');
	if (!ret->super || line || ret->point[0] != '/' || !ret->options[0] || !ret->fstype[0])
		return false;
	return unescape(ret->root) && unescape(ret->point) && unescape(ret->source) && unescape(ret->super);
}

bool proc_parse_cgroup(char *line, struct cgroup_line *ret)
{
	if (!cut_u64(&line, ':', &ret->id))
		return false;
	ret->controllers = cut(&line, ':');
	ret->path = line; /* may itself hold colons */
	return ret->controllers && ret->path && ret->path[0] == '/';
}

bool proc_list_has(const char *list, char separator, const char *word)
{
	size_t len = strlen(word);

	while (list) {
		if (strncmp(list, word, len) == 0 && (list[len] == separator || list[len] == '\0'))
			return true;
		list = strchr(list, separator);
		if (list)
			list++;
	}
	return false;
}

/* Visits the whole lines in text[0..*len) and moves the rest to its front.  *skip: inside a line that was too long. */
static bool visit_lines(char *text, size_t *len, bool *skip, bool (*visit)(char *line, void *arg), void *arg)
{
	char *line = text, *end;
	size_t left = *len;

	while ((end = memchr(line, '\n', left))) {
		*end = '\0';
		if (!*skip && !visit(line, arg))
			return false;
		*skip = false;
		left -= (size_t)(end + 1 - line);
		line = end + 1;
	}
	if (left == PROC_LINE_MAX) {
		*skip = true;
		left = 0;
	}
	memmove(text, line, left);
	*len = left;
	return true;
}

int proc_each_line(const char *path, bool (*visit)(char *line, void *arg), void *arg)
{
	bool left_out;

	return proc_each_short_line(path, visit, arg, &left_out);
}

int proc_each_short_line(const char *path, bool (*visit)(char *line, void *arg), void *arg, bool *ret_left_out)
{
	char text[PROC_LINE_MAX];
	size_t len = 0, total = 0;
	bool skip = false;
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret_left_out = false;
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, text + len, sizeof(text) - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		total += (size_t)n;
		if (total > PROC_FILE_MAX)
			return -EFBIG;
		len += (size_t)n;
		if (!visit_lines(text, &len, &skip, visit, arg))
			return 0;
		*ret_left_out |= skip;
	}
}

uint64_t proc_address_space(void)
{
	char text[128];
	uint64_t pages;
	char *space;

	if (fd_get_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) < 0)
		return 0;
	space = strchr(text, ' ');
	if (space)
		*space = '\0';
	return str_to_u64(text, &pages) ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

#define NS_NUMBER_FIRST 0xf0000000u /* below are the namespaces that the kernel starts with */

int proc_ns_number(pid_t pid, const char *kind, uint64_t *ret)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	if (stat(path, &st) < 0)
		return -errno;
	if (st.st_ino < NS_NUMBER_FIRST || st.st_ino > UINT32_MAX)
		return -ERANGE;
	*ret = (uint64_t)st.st_ino - NS_NUMBER_FIRST;
	return 0;
}

int proc_await(int pidfd, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_now_ns();
		int n = wait_poll(&p, 1, now < deadline_ns ? (int)((deadline_ns - now) / NS_PER_MS) + 1 : 0);

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

int proc_reap(int *pidfd, uint64_t deadline_ns, siginfo_t *ret)
{
	siginfo_t end = { 0 };
	int rc = proc_await(*pidfd, deadline_ns);

	if (rc < 0)
		return rc;
	while (waitid(P_PIDFD, (id_t)*pidfd, &end, WEXITED | __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	fd_closep(pidfd);
	if (ret)
		*ret = end;
	return 0;
}

int proc_wait(pid_t pid)
{
	int status;

	/* Only in a task: elsewhere the call below waits as well. */
	if (wait_gives_way()) {
		AUTO_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		struct pollfd p = { .fd = pidfd, .events = POLLIN };

		if (pidfd >= 0)
			(void)wait_poll(&p, 1, -1);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

#define LATE_MAX 64 /* more than that stay zombies */

static struct {
	pthread_mutex_t lock;
	atomic_size_t n;
	int pidfd[LATE_MAX];
} late = { .lock = PTHREAD_MUTEX_INITIALIZER };

void proc_leave(int *pidfd)
{
	if (*pidfd < 0)
		return;
	(void)pthread_mutex_lock(&late.lock);
	if (late.n < LATE_MAX)
		late.pidfd[late.n++] = fd_move(pidfd);
	(void)pthread_mutex_unlock(&late.lock);
	fd_closep(pidfd);
}

void proc_reap_late(void)
{
	if (late.n == 0)
		return;
	(void)pthread_mutex_lock(&late.lock);
	for (size_t i = late.n; i > 0; i--) {
		int *pidfd = &late.pidfd[i - 1];

		if (proc_reap(pidfd, 0, NULL) == -ETIMEDOUT)
			continue;
		fd_closep(pidfd);
		*pidfd = late.pidfd[--late.n];
	}
	(void)pthread_mutex_unlock(&late.lock);
}

int proc_lower_limit(int resource, uint64_t max)
{
	const __rlimit_resource_t what = (__rlimit_resource_t)resource;
	struct rlimit now, want = { max, max };

	if (getrlimit(what, &now) < 0)
		return -errno;
	if (now.rlim_max < max)
		want.rlim_cur = want.rlim_max = now.rlim_max;
	return setrlimit(what, &want) < 0 ? -errno : 0;
}
