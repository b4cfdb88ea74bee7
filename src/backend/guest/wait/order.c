/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads our variables from the environment and removes them: the interpreter and its program see the variables that a
 * program started cold would see, and descriptors with the numbers that it would get.
 *
 * /proc/self/environ shows the bytes of the strings, whose address and length the kernel recorded at exec.  They are
 * overwritten with zeros. The length could only be changed with prctl(PR_SET_MM), which the cell's system call filter
 * refuses on purpose (data/syscalls/base.list), and trying would be reported as a refused call of the program; so the
 * zeros remain.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/guest/confine.h"
#include "backend/guest/wait.h"
#include "backend/guest/wait/library.h"

/*
 * The socket's number: above those that the interpreter uses, below those for which the descriptor table has to grow.
 */
#define HIGH_FD 63

extern char **environ;

/* If the string begins with name, copies its value to ret and overwrites the string with zeros. */
static bool take_variable(char *string, const char *name, char ret[WAIT_TEXT_MAX])
{
	size_t len = strlen(string), skip = strlen(name);

	if (strncmp(string, name, skip) != 0)
		return false;
	if (ret) {
		if (len - skip >= WAIT_TEXT_MAX)
			wait_give_up();
		memcpy(ret, string + skip, len - skip + 1);
	}
	explicit_bzero(string, len);
	return true;
}

/* The file is sealed, and comes from a supervisor of the same build. */
static void take_walls(struct wait_order *o)
{
	struct stat st;
	void *memory;

	if (fstat(GUEST_WAIT_WALLS, &st) < 0 || st.st_size < (off_t)sizeof(*o->walls))
		wait_give_up();
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, GUEST_WAIT_WALLS, 0);
	if (memory == MAP_FAILED || close(GUEST_WAIT_WALLS) < 0)
		wait_give_up();
	o->walls = memory;
	o->walls_size = (size_t)st.st_size;
	if (o->walls->magic != GUEST_WALLS_MAGIC || o->walls->n_rules > GUEST_RULES_MAX)
		wait_give_up();
}

/*
 * Our variables are the last entries, beginning with the loader's: entries before that are the program's own, even if
 * they have our names.  Any other entry after it means that we were not started by our supervisor.
 */
static void take_entries(struct wait_order *o)
{
	size_t n = 0;
	bool done = false;

	while (environ && environ[n])
		n++;
	while (!done && n > 0) {
		char *entry = environ[--n];

		done = take_variable(entry, GUEST_WAIT_PRELOAD, NULL);
		if (!done && take_variable(entry, GUEST_WAIT_WARM, o->warm))
			o->warms = true;
		else if (!done && take_variable(entry, GUEST_WAIT_FORKS, NULL))
			take_walls(o);
		else if (!done && !take_variable(entry, GUEST_WAIT_PATHS, o->paths))
			wait_give_up();
		environ[n] = NULL;
	}
	if (!done)
		wait_give_up();
}

static void split_paths(struct wait_order *o)
{
	char *rest = o->paths, *path;

	while ((path = strsep(&rest, ":")) != NULL) {
		if (path[0] != '/' || o->n_paths == WAIT_PATHS_MAX)
			wait_give_up();
		o->path[o->n_paths++] = path;
	}
}

static int move_socket(void)
{
	struct rlimit files;
	int from = HIGH_FD, sock;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur <= HIGH_FD)
		from = (int)files.rlim_cur - 1;
	sock = fcntl(GUEST_WAIT_SOCKET, F_DUPFD_CLOEXEC, from);
	if (sock < 0 || close(GUEST_WAIT_SOCKET) < 0 || close(GUEST_WAIT_LIBRARY) < 0)
		wait_give_up();
	return sock;
}

void order_take(struct wait_order *o)
{
	take_entries(o);
	split_paths(o);
	o->sock = move_socket();
}
