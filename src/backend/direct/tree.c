/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All descendants of a process, from /proc.  The guard is a subreaper: whatever the program starts, however often it
 * forks and changes its session, stays a descendant of the guard.  So the result is complete except for processes
 * forked while /proc is read; to kill all, read again until none is left.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "backend/direct/direct.h"
#include "base/fd.h"

int tree_open(struct tree *t)
{
	void *room = mmap(NULL, TREE_MAX * sizeof(*t->row), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return -errno;
	t->row = room;
	t->n = 0;
	return 0;
}

void tree_close(struct tree *t)
{
	if (t->row)
		(void)munmap(t->row, TREE_MAX * sizeof(*t->row));
	t->row = NULL;
}

static const char *skip_number(const char *p, uint64_t *ret)
{
	*ret = 0;
	while (*p == ' ')
		p++;
	if (*p == '-')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		*ret = *ret * 10 + (uint64_t)(*p - '0');
	return p;
}

/* "pid (name) S ppid ...": the name may contain anything, so fields are counted from the last parenthesis. */
static bool parse_stat(const char *text, struct tree_row *row)
{
	enum { PARENT = 0, UTIME = 10, STIME, CUTIME, CSTIME, FIELDS };
	const char *p = strrchr(text, ')');
	uint64_t field[FIELDS];

	if (!p || p[1] != ' ' || !p[2])
		return false;
	p += 3;
	for (int i = 0; i < FIELDS; i++)
		p = skip_number(p, &field[i]);
	row->parent = (pid_t)field[PARENT];
	row->dead_ticks = field[CUTIME] + field[CSTIME];
	row->ticks = field[UTIME] + field[STIME] + row->dead_ticks;
	return true;
}

static void add_process(struct tree *t, const char *name)
{
	char path[32] = "/proc/", text[1024];
	struct tree_row *row = &t->row[t->n];
	size_t len = strlen(name);
	uint64_t pid;

	if (*name < '1' || *name > '9' || len > 10 || t->n == TREE_MAX)
		return;
	(void)skip_number(name, &pid);
	memcpy(path + 6, name, len);
	memcpy(path + 6 + len, "/stat", sizeof("/stat"));
	*row = (struct tree_row){ .pid = (pid_t)pid };
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) > 0 && parse_stat(text, row))
		t->n++;
}

static const struct tree_row *find(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->row[i].pid == pid)
			return &t->row[i];
	return NULL;
}

static void mark(struct tree *t, pid_t root)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < t->n; i++) {
			struct tree_row *row = &t->row[i];
			const struct tree_row *parent;

			if (row->inside || row->pid == root || row->parent <= 1)
				continue;
			parent = row->parent == root ? NULL : find(t, row->parent);
			if (row->parent == root || (parent && parent->inside))
				row->inside = changed = true;
		}
	}
}

/* Not opendir(): it allocates, and the guard was forked from a process that may have threads. */
int tree_read(struct tree *t, pid_t root)
{
	struct entry {
		uint64_t inode, offset;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	_Alignas(8) char room[8192];
	AUTO_FD dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	t->n = 0;
	if (dir < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, dir, room, sizeof(room))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(const void *)(room + at);

			add_process(t, e->name);
			at += e->len;
		}
	mark(t, root);
	return n < 0 ? -errno : 0;
}
