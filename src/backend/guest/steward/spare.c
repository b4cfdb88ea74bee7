/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spare: a Python kernel that is started before it is requested, in a session that was created in advance.
 *
 * Starting Python takes longer than building a cell.  So the steward of such a session starts one while it waits for
 * its owner, with the same confinement, variables, directory and arguments as a requested one.  One additional argument
 * tells it (data/kernels/python.py) that its descriptor 3 is not a channel yet:
 *
 *	kernel                      steward
 *	one byte           ------>  it has started, and waits
 *	                   <------  one byte, with the descriptors 0 to 3 of the START that it is used for
 *
 * It belongs to this cell only, has run no user code, and is used once: for the first START that asks for exactly this
 * program without variables, limit or directory of its own.  For any other START, or if the spare has died, a process
 * is started.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/guest/steward/inside.h"
#include "base/fd.h"

extern const unsigned char spare_kernel_bytes[];
extern const size_t spare_kernel_size;

static const char *const words[] = { "python3", "-c" }; /* followed by the text; as in session/kernels.def */
#define WORD_SPARE "spare"

static void forget(struct steward *s)
{
	s->spare.pid = 0;
	fd_closep(&s->spare.sock);
}

static int start_kernel(struct steward *s, int channel, int null, const int out[2])
{
	AUTO_FREE char *text = strndup((const char *)spare_kernel_bytes, spare_kernel_size);
	const char *argv[] = { words[0], words[1], text, WORD_SPARE };
	struct start st = { .folder = "",
			    .argv = argv,
			    .n_argv = ARRAY_LEN(argv),
			    .fds = { null, out[1], out[1], channel },
			    .n_fds = 4 };
	int stage;
	int64_t pid = text ? process_spawn(&st, &stage) : -ENOMEM;

	s->spare.pid = pid > 0 ? (pid_t)pid : 0;
	return pid > 0 ? 0 : (int)pid;
}

/* The streams must be of the types that it will have later: Python examines them when it starts. */
static int start_with_streams(struct steward *s)
{
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC), channel = FD_NONE;
	int ends[2], out[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	s->spare.sock = ends[0];
	channel = ends[1];
	if (null < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	rc = start_kernel(s, channel, null, out);
	(void)close(out[0]);
	(void)close(out[1]);
	return rc;
}

void spare_begin(struct steward *s)
{
	char ready;
	int rc = start_with_streams(s);

	if (rc < 0 || recv(s->spare.sock, &ready, 1, 0) != 1)
		forget(s); /* it has exited, or is about to */
}

/* Whether folder is the steward's directory, in which the spare was started. */
static bool is_here(const char *folder)
{
	char here[PATH_MAX];

	return !*folder || (getcwd(here, sizeof(here)) && strcmp(folder, here) == 0);
}

static bool is_meant(const struct start *st)
{
	return st->n_argv == ARRAY_LEN(words) + 1 && strcmp(st->argv[0], words[0]) == 0 &&
	       strcmp(st->argv[1], words[1]) == 0 && strlen(st->argv[2]) == spare_kernel_size &&
	       memcmp(st->argv[2], spare_kernel_bytes, spare_kernel_size) == 0 && st->n_env == 0 &&
	       is_here(st->folder) && !st->pty && st->cpu_seconds == 0 && st->n_fds == STEWARD_FDS_MAX;
}

pid_t spare_take(struct steward *s, const struct start *st)
{
	char byte = 's';
	struct iovec whole = { .iov_base = &byte, .iov_len = 1 };
	pid_t pid = s->spare.pid;

	if (pid == 0 || !is_meant(st))
		return 0;
	if (fd_send_record(s->spare.sock, &whole, 1, st->fds, (int)st->n_fds, 0) < 0) {
		(void)kill(pid, SIGKILL);
		pid = 0;
	}
	forget(s);
	return pid;
}

void spare_died(struct steward *s)
{
	forget(s);
}
