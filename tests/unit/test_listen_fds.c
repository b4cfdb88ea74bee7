/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets from a service manager.  Descriptors 3 and up have to be free, so each case is a child of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/listen_fds.h"

enum handed { LISTENS, CONNECTS_ONLY, DATAGRAMS, NO_SOCKET };

/* One more descriptor, at the lowest number that is free. */
static bool hand(enum handed what)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX }; /* an abstract name that the kernel chooses */
	int fd;

	if (what == NO_SOCKET)
		return open("/dev/null", O_RDONLY) >= 0;
	fd = socket(AF_UNIX, what == DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM, 0);
	if (fd < 0 || what != LISTENS)
		return fd >= 0;
	return bind(fd, (struct sockaddr *)&any, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0;
}

struct row {
	const char *count; /* NULL: the variable is not set */
	bool for_us;
	enum handed what;
	int rc;
	size_t n;
	const char *message;
};

static const char *judge(const struct row *row)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct listen_fds got = { .n = 99 };
	int rc = listen_fds_take(&got, &err);

	if (rc != row->rc || got.n != row->n)
		return "what it returns";
	if (row->message && !strstr(err.msg, row->message))
		return "the message";
	for (size_t i = 0; i < got.n; i++)
		if (got.fd[i] != 3 + (int)i || !(fcntl(got.fd[i], F_GETFD) & FD_CLOEXEC) ||
		    !(fcntl(got.fd[i], F_GETFL) & O_NONBLOCK))
			return "the descriptors";
	return got.n > 0 && (getenv("LISTEN_FDS") || getenv("LISTEN_PID")) ? "the environment" : NULL;
}

static _Noreturn void child_main(const struct row *row)
{
	const char *wrong = NULL;
	char pid[32];

	closefrom(3);
	for (int i = 0; i < 2; i++)
		wrong = hand(row->what) ? wrong : "handing a socket";
	(void)snprintf(pid, sizeof(pid), "%d", row->for_us ? getpid() : getpid() + 1);
	(void)setenv("LISTEN_PID", pid, 1);
	if (row->count)
		(void)setenv("LISTEN_FDS", row->count, 1);
	if (!wrong)
		wrong = judge(row);
	if (wrong)
		(void)fprintf(stderr, "# not as it should be: %s\n", wrong);
	_exit(wrong != NULL);
}

static void sockets_are_taken_or_refused(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "2", true, LISTENS, 0, 2, NULL },
		{ "1", true, LISTENS, 0, 1, NULL },
		{ "2", false, LISTENS, 0, 0, NULL },
		{ NULL, true, LISTENS, 0, 0, NULL },
		{ "0", true, LISTENS, 0, 0, NULL },
		{ "many", true, LISTENS, 0, 0, NULL },
		{ "-1", true, LISTENS, 0, 0, NULL },
		{ "17", true, LISTENS, -BRIG_E_USAGE, 0, "at most" },
		{ "3", true, LISTENS, -BRIG_E_USAGE, 0, "descriptor 5" },
		{ "2", true, CONNECTS_ONLY, -BRIG_E_USAGE, 0, "descriptor 3" },
		{ "2", true, DATAGRAMS, -BRIG_E_USAGE, 0, "descriptor 3" },
		{ "2", true, NO_SOCKET, -BRIG_E_USAGE, 0, "descriptor 3" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		pid_t pid = fork();
		int status = -1;

		if (pid == 0)
			child_main(&rows[i]);
		assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
		if (status != 0)
			fail_msg("row %zu, $LISTEN_FDS %s", i, rows[i].count ? rows[i].count : "not set");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sockets_are_taken_or_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
