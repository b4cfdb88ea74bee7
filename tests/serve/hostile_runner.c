/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile-runner PID - foreign code with all that the runner of a service has: its socket to the master
 *
 * It takes a copy of that socket from the runner, asks the master for a keeper as the runner does, and then asks that keeper for
 * cells above the ceilings that the policy gives.  Tells of each attempt in a line; run by test_compromise.py.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "keeper/client.h"
#include "server/control.h"

#define MASTER_FD   4 /* in the runner: server/role.c */
#define PATIENCE_MS 20000

static char buffer[KEEP_BODY_MAX];
static const char program[] = "echo up";
static const char *const argv_words[] = { "/bin/sh", "/workspace/p.sh", NULL };
static const char *const envp_words[] = { "PATH=/usr/bin:/bin", NULL };
static const struct plan_file file = { .name = "p.sh", .mode = 0644, .data = program, .len = sizeof(program) - 1 };

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "hostile-runner: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Within the ceilings of the drill's policy. */
static struct plan small(void)
{
	return (struct plan){ .id = "abcdefghijklmnop",
			      .step = "run",
			      .language = "shell",
			      .limits = { .cpu_percent = 10,
					  .cpu_time_ms = 2000,
					  .memory_bytes = 32 * MiB,
					  .pids = 8,
					  .disk_bytes = MiB,
					  .inodes = 100,
					  .output_bytes = 64 * KiB,
					  .open_files = 32,
					  .startup_ms = 5000,
					  .wall_ms = 2000,
					  .cleanup_ms = 2000 },
			      .rootfs = "",
			      .uid = PLAN_USER_ID,
			      .gid = PLAN_USER_ID,
			      .family = FAMILY_INTERPRETER,
			      .argv = argv_words,
			      .envp = envp_words,
			      .files = &file,
			      .n_files = 1 };
}

static int master_of(pid_t runner)
{
	int pidfd = (int)syscall(SYS_pidfd_open, runner, 0);
	int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, MASTER_FD, 0);

	if (fd < 0)
		give_up("no copy of the runner's socket");
	return fd;
}

/* As src/server/runner/host.c asks for it. */
static int ask_for_keeper(int master)
{
	int ours, theirs;
	struct control_message ask = { .kind = CONTROL_KEEPER, .n_fds = 1 };

	if (keeper_open_channel(&ours, &theirs) < 0)
		give_up("no socket");
	ask.fds[0] = theirs;
	if (control_send(master, &ask) < 0)
		give_up("the master does not listen");
	(void)close(theirs);
	return ours;
}

static int sealed_program(void)
{
	int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fd_write_all(fd, program, file.len) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		give_up("no file in memory");
	return fd;
}

static void tell(const char *what, int talk)
{
	struct pollfd p = { .fd = talk, .events = POLLIN };
	struct keep_message m;
	struct keep_failed f;

	if (poll(&p, 1, PATIENCE_MS) != 1 || keep_receive(talk, buffer, &m) != 1) {
		(void)printf("%s: the end\n", what);
		return;
	}
	if (m.head.kind == KEEP_FAILED && m.head.size == sizeof(f)) {
		memcpy(&f, m.body, sizeof(f));
		(void)printf("%s: refused: %.*s\n", what, (int)sizeof(f.text), f.text);
	} else {
		(void)printf("%s: %s\n", what,
			     m.head.kind == KEEP_CREATED ? "a cell"
			     : m.head.kind == KEEP_PACK  ? "not mounted"
							 : "something else");
	}
	keep_message_release(&m);
}

static void attempt(int keeper, const char *what, const struct plan *plan, int folder)
{
	AUTO_BUF job = BUF_INIT(0);
	AUTO_FD contents = sealed_program(), theirs = FD_NONE, ours = FD_NONE;
	struct brig_error err = BRIG_ERROR_INIT;
	int fds[KEEP_RUN_FDS + 1];

	if (job_encode(plan, &job, &err) < 0 || keeper_open_channel(&ours, &theirs) < 0)
		give_up(err.msg);
	fds[KEEP_FD_CHANNEL] = theirs;
	fds[KEEP_FD_CONTENTS] = contents;
	fds[KEEP_RUN_FDS] = folder;
	if (keep_send(keeper, KEEP_RUN, job.data, job.len, NULL, 0, fds, KEEP_RUN_FDS + (folder >= 0)) < 0)
		give_up("the keeper does not listen");
	fd_closep(&theirs);
	tell(what, ours);
}

/* One that would choose its ceilings itself. */
static void greet(int keeper)
{
	static struct keep_hello hello = { .version = KEEP_VERSION, .build = KEEP_BUILD, .cells = 100, .n_roots = 1 };
	struct pollfd p = { .fd = keeper };

	memset(&hello.most, 0x7f, sizeof(hello.most));
	if (keep_send(keeper, KEEP_HELLO, &hello, sizeof(hello), NULL, 0, NULL, 0) < 0)
		give_up("the keeper does not listen");
	(void)printf("greeting: %s\n", poll(&p, 1, PATIENCE_MS) == 1 ? "the end" : "nothing");
}

int main(int argc, char **argv)
{
	AUTO_FD master = argc == 2 ? master_of((pid_t)atoi(argv[1])) : FD_NONE, keeper = FD_NONE, other = FD_NONE;
	AUTO_FD top = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct plan_workspace everything = { .path = "/" };
	struct plan p;

#define ATTEMPT(what, change, folder)              \
	do {                                       \
		p = small();                       \
		change;                            \
		attempt(keeper, what, &p, folder); \
	} while (0)
	keeper = ask_for_keeper(master);
	ATTEMPT("small", (void)0, FD_NONE);
	ATTEMPT("memory", p.limits.memory_bytes = GiB, FD_NONE);
	ATTEMPT("processes", p.limits.pids = 100000, FD_NONE);
	ATTEMPT("unlimited", p.limits.wall_ms = 0, FD_NONE);
	ATTEMPT("walls", p.may_degrade = PROT_BIT(PROT_seccomp), FD_NONE);
	ATTEMPT("root", p.rootfs = "/", FD_NONE);
	ATTEMPT("user", p.uid = 0, FD_NONE);
	ATTEMPT("project", p.workspace = &everything, top);
	greet(keeper);
	other = ask_for_keeper(master); /* another keeper is no other ceiling */
	fd_closep(&keeper);
	keeper = fd_move(&other);
	ATTEMPT("again", p.limits.memory_bytes = GiB, FD_NONE);
	return 0;
}
