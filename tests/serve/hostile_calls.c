/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_calls.c - what foreign code in the front's place can ask of the kernel
 *
 * Each row is a process of its own that confines itself as the front does and then makes one call, with arguments that would
 * do harm.  The filter has to end it there (SIGSYS), unless the row says which error the call is answered with.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"
#include "server/front/front.h"

/* What the rows use; made before the confinement. */
static struct {
	int listener, victim; /* sockets of TCP: to be turned round, and where that would lead */
	struct sockaddr_in victim_address;
	char state_file[512];
	char secret[16]; /* to be read from outside */
} scene;

static const char passwd[] = "/etc/passwd", mem[] = "/proc/self/mem";
static struct sockaddr_un abstract = { .sun_family = AF_UNIX, .sun_path = "\0brig-drill" };
static struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
static struct open_how how = { .flags = O_RDONLY };
static char buffer[64], page[4096] __attribute__((aligned(4096)));
static struct iovec here = { buffer, sizeof(buffer) }, there = { scene.secret, sizeof(scene.secret) };
static char *const no_words[] = { NULL };
static char ids[64];
static union bpf_attr program;

#define WORD(x) ((long)(intptr_t)(x))

/* How a row's process ends that was not stopped, besides with an error of the kernel's. */
#define CAME_THROUGH 200
#define UNCONFINED   201

struct call {
	const char *name;
	long nr, arg[6];
	int error; /* 0: it is the end of the process; EPERM: of calls that the front has, with other arguments */
};

static const struct call calls[] = {
	/* files by name */
	{ "open a file", SYS_openat, { AT_FDCWD, WORD(passwd), O_RDONLY }, 0 },
	{ "open tokens, key and log in the state folder", SYS_openat, { AT_FDCWD, WORD(scene.state_file), O_RDWR }, 0 },
	{ "open its own memory", SYS_openat, { AT_FDCWD, WORD(mem), O_RDWR }, 0 },
	{ "openat2", SYS_openat2, { AT_FDCWD, WORD(passwd), WORD(&how), sizeof(how) }, 0 },
	{ "open by handle", SYS_open_by_handle_at, { AT_FDCWD, WORD(buffer), O_RDONLY }, 0 },
	{ "newfstatat", SYS_newfstatat, { AT_FDCWD, WORD(passwd), WORD(buffer), 0 }, 0 },
	{ "statx", SYS_statx, { AT_FDCWD, WORD(passwd), 0, 0, WORD(buffer) }, 0 },
	{ "read a link", SYS_readlinkat, { AT_FDCWD, WORD(mem), WORD(buffer), sizeof(buffer) }, 0 },
	{ "list a folder", SYS_getdents64, { 3, WORD(buffer), sizeof(buffer) }, 0 },
	{ "unlink", SYS_unlinkat, { AT_FDCWD, WORD(scene.state_file), 0 }, 0 },
	{ "rename", SYS_renameat2, { AT_FDCWD, WORD(scene.state_file), AT_FDCWD, WORD(passwd), 0 }, 0 },
	{ "link", SYS_linkat, { AT_FDCWD, WORD(passwd), AT_FDCWD, WORD(scene.state_file), 0 }, 0 },
	{ "symlink", SYS_symlinkat, { WORD(passwd), AT_FDCWD, WORD(scene.state_file) }, 0 },
	{ "make a node", SYS_mknodat, { AT_FDCWD, WORD(scene.state_file), 020666, 0 }, 0 },
	{ "chmod", SYS_fchmodat, { AT_FDCWD, WORD(scene.state_file), 0777 }, 0 },
	{ "chdir", SYS_chdir, { WORD("/") }, 0 },
	{ "chroot", SYS_chroot, { WORD("/") }, 0 },
	/* what it holds */
	{ "change the owner of a file", SYS_fchown, { 2, 0, 0 }, 0 },
	{ "cut a file", SYS_ftruncate, { 2, 0 }, 0 },
	{ "fallocate", SYS_fallocate, { 2, 0, 0, 4096 }, 0 },
	{ "ioctl", SYS_ioctl, { 2, 0x5412, WORD("x") }, 0 }, /* TIOCSTI */
	{ "signals by F_SETOWN", SYS_fcntl, { 3, F_SETOWN, 1 }, EPERM },
	{ "signals by F_SETSIG", SYS_fcntl, { 3, 10, SIGKILL }, EPERM },
	{ "a lease", SYS_fcntl, { 2, 1024, F_WRLCK }, EPERM },
	{ "a lock", SYS_fcntl, { 2, F_SETLK, WORD(buffer) }, EPERM },
	{ "pipe", SYS_pipe2, { WORD(buffer), 0 }, 0 },
	{ "eventfd", SYS_eventfd2, { 0, 0 }, 0 },
	{ "timerfd", SYS_timerfd_create, { CLOCK_MONOTONIC, 0 }, 0 },
	{ "signalfd", SYS_signalfd4, { -1, WORD(buffer), 8, 0 }, 0 },
	{ "inotify", SYS_inotify_init1, { 0 }, 0 },
	{ "userfaultfd", SYS_userfaultfd, { 0 }, 0 },
	{ "splice", SYS_splice, { 0, 0, 1, 0, 1, 0 }, 0 },
	{ "sendfile", SYS_sendfile, { 1, 0, 0, 1 }, 0 },
	{ "dup3", SYS_dup3, { 0, 2, 0 }, 0 },
	/* sockets */
	{ "socket of TCP", SYS_socket, { AF_INET, SOCK_STREAM, 0 }, 0 },
	{ "socket of the host", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, 0 },
	{ "netlink", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, 0 },
	{ "socketpair of the network", SYS_socketpair, { AF_INET, SOCK_STREAM, 0, WORD(buffer) }, EPERM },
	{ "connect", SYS_connect, { 3, WORD(&abstract), sizeof(abstract) }, 0 },
	{ "bind", SYS_bind, { 3, WORD(&abstract), sizeof(abstract) }, 0 },
	{ "listen", SYS_listen, { 3, 1 }, 0 },
	{ "repair a connection", SYS_setsockopt, { 3, IPPROTO_TCP, 19, WORD(buffer), 4 }, EPERM },
	{ "shut a listener for good", SYS_shutdown, { 3, SHUT_RDWR }, EPERM },
	{ "a filter for a socket", SYS_setsockopt, { 3, SOL_SOCKET, 26, WORD(buffer), 16 }, EPERM },
	{ "the process behind a socket", SYS_getsockopt, { 3, SOL_SOCKET, 77, WORD(buffer), WORD(buffer) }, EPERM },
	/* other processes */
	{ "fork", SYS_clone, { SIGCHLD }, 0 },
	{ "a thread", SYS_clone, { CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD }, 0 },
	{ "clone3", SYS_clone3, { WORD(buffer), 64 }, 0 },
	{ "execve", SYS_execve, { WORD("/bin/sh"), WORD(no_words), WORD(no_words) }, 0 },
	{ "execveat", SYS_execveat, { 3, WORD(""), WORD(no_words), WORD(no_words), AT_EMPTY_PATH }, 0 },
	{ "ptrace", SYS_ptrace, { PTRACE_SEIZE, 1, 0, 0 }, 0 },
	{ "read memory of others", SYS_process_vm_readv, { 1, WORD(&here), 1, WORD(&there), 1, 0 }, 0 },
	{ "write memory of others", SYS_process_vm_writev, { 1, WORD(&here), 1, WORD(&there), 1, 0 }, 0 },
	{ "kill", SYS_kill, { 1, SIGKILL }, 0 },
	{ "tgkill", SYS_tgkill, { 1, 1, SIGKILL }, 0 },
	{ "pidfd_open", SYS_pidfd_open, { 1, 0 }, 0 },
	{ "pidfd_getfd", SYS_pidfd_getfd, { 3, 0, 0 }, 0 },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, { 3, SIGKILL, 0, 0 }, 0 },
	{ "setpgid", SYS_setpgid, { 0, 1 }, 0 },
	{ "setpriority", SYS_setpriority, { 0, 0, 19 }, 0 },
	{ "setitimer", SYS_setitimer, { 0, WORD(ids), 0 }, 0 },
	/* rights */
	{ "setuid", SYS_setuid, { 0 }, 0 },
	{ "setresuid", SYS_setresuid, { 0, 0, 0 }, 0 },
	{ "setgroups", SYS_setgroups, { 0, 0 }, 0 },
	{ "capset", SYS_capset, { WORD(ids), WORD(ids) }, 0 },
	{ "prctl", SYS_prctl, { PR_SET_DUMPABLE, 1 }, 0 },
	{ "another filter", SYS_seccomp, { 1, 0, WORD(ids) }, 0 },
	{ "raise a limit", SYS_setrlimit, { RLIMIT_AS, WORD(&unlimited) }, 0 },
	{ "prlimit of others", SYS_prlimit64, { 1, RLIMIT_AS, WORD(&unlimited), 0 }, 0 },
	{ "new namespaces", SYS_unshare, { CLONE_NEWUSER | CLONE_NEWNS }, 0 },
	{ "setns", SYS_setns, { 3, 0 }, 0 },
	{ "mount", SYS_mount, { WORD("none"), WORD("/"), WORD("tmpfs"), 0, 0 }, 0 },
	{ "umount", SYS_umount2, { WORD("/"), MNT_DETACH }, 0 },
	{ "open_tree", SYS_open_tree, { AT_FDCWD, WORD("/"), 0 }, 0 },
	{ "fsopen", SYS_fsopen, { WORD("tmpfs"), 0 }, 0 },
	{ "pivot_root", SYS_pivot_root, { WORD("/"), WORD("/") }, 0 },
	{ "bpf", SYS_bpf, { BPF_PROG_LOAD, WORD(&program), sizeof(program) }, 0 },
	{ "perf_event_open", SYS_perf_event_open, { WORD(ids), 0, -1, -1, 0 }, 0 },
	{ "io_uring", SYS_io_uring_setup, { 1, WORD(ids) }, 0 },
	{ "keyctl", SYS_keyctl, { 0, -3, 0 }, 0 },
	{ "add_key", SYS_add_key, { WORD("user"), WORD("x"), WORD("x"), 1, -3 }, 0 },
	{ "syslog", SYS_syslog, { 3, WORD(buffer), sizeof(buffer) }, 0 },
	{ "load a module", SYS_finit_module, { 3, WORD(""), 0 }, 0 },
	{ "reboot", SYS_reboot, { 0, 0, 0, 0 }, 0 },
	{ "set the clock", SYS_clock_settime, { CLOCK_REALTIME, WORD(ids) }, 0 },
	{ "shared memory of System V", SYS_shmget, { 1, 4096, 0600 }, 0 },
	/* memory */
	{ "memory that can be executed",
	  SYS_mmap,
	  { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 },
	  EPERM },
	{ "make memory executable", SYS_mprotect, { WORD(page), 4096, PROT_READ | PROT_EXEC }, EPERM },
	{ "pkey_mprotect", SYS_pkey_mprotect, { WORD(page), 4096, PROT_READ | PROT_EXEC, -1 }, 0 },
	{ "more memory than it may have",
	  SYS_mmap,
	  { 0, 16l << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 },
	  ENOMEM },
	{ "memory_secret", SYS_memfd_secret, { 0 }, 0 },
};

/* ---- what takes more than one call ----------------------------------------------------------------------- */

/* A listener that is shut down, here already, is a socket without a peer; TCP Fast Open gives it one without connect(). */
static int connect_by_fast_open(void)
{
	return sendto(scene.listener, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&scene.victim_address,
		      sizeof(scene.victim_address)) < 0
		       ? errno
		       : CAME_THROUGH;
}

static int connect_by_message(void)
{
	struct msghdr msg = { .msg_name = &scene.victim_address,
			      .msg_namelen = sizeof(scene.victim_address),
			      .msg_iov = &here,
			      .msg_iovlen = 1 };

	return sendmsg(scene.listener, &msg, MSG_FASTOPEN) < 0 ? errno : CAME_THROUGH;
}

#ifdef __x86_64__
/* The other two tables of system calls. */
static int call_by_32_bits(void)
{
	long rc = 20; /* getpid */

	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory");
	return CAME_THROUGH;
}

static int call_of_x32(void)
{
	return syscall(0x40000000 | SYS_getpid) < 0 ? errno : CAME_THROUGH;
}
#endif

static const struct {
	const char *name;
	int (*run)(void); /* the error that its last call was answered with */
	int error;
} stories[] = {
	{ "connect by a shut listener and Fast Open", connect_by_fast_open, EPERM },
	{ "the same by sendmsg", connect_by_message, EPERM },
#ifdef __x86_64__
	{ "calls of 32 bits", call_by_32_bits, 0 },
	{ "calls of x32", call_of_x32, 0 },
#endif
};

/* ---- rows as processes --------------------------------------------------------------------------------------- */

static void confine(void)
{
	const char *step = "";

	if (front_confine(&step) < 0)
		_exit(UNCONFINED);
}

/* The row's process has ended as it had to. */
static bool judge(const char *name, pid_t pid, int error)
{
	int status = 0;
	bool good = pid > 0 && waitpid(pid, &status, 0) == pid;

	if (error)
		good = good && WIFEXITED(status) && WEXITSTATUS(status) == error;
	else
		good = good && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	tell(good ? NULL : "it was not refused", "call: %s (status %x)", name, (unsigned)status);
	return good;
}

static bool try_call(const struct call *c)
{
	pid_t pid = fork();

	if (pid == 0) {
		confine();
		errno = 0;
		_exit(syscall(c->nr, c->arg[0], c->arg[1], c->arg[2], c->arg[3], c->arg[4], c->arg[5]) < 0
			      ? errno
			      : CAME_THROUGH);
	}
	return judge(c->name, pid, c->error);
}

static bool try_story(size_t i)
{
	pid_t pid = fork();

	if (pid == 0) {
		confine();
		_exit(stories[i].run());
	}
	return judge(stories[i].name, pid, stories[i].error);
}

static int listen_somewhere(struct sockaddr_in *ret)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*ret);

	*ret = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (fd < 0 || bind(fd, (struct sockaddr *)ret, sizeof(*ret)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)ret, &len) < 0)
		return -1;
	return fd;
}

/* Whether a row has got through to where it must not. */
static bool has_visitor(void)
{
	int fd = accept4(scene.victim, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

int hostile_calls(const char *state)
{
	struct sockaddr_in unused;
	bool good = true;

	(void)snprintf(scene.state_file, sizeof(scene.state_file), "%s/serve/tokens", state);
	scene.listener = listen_somewhere(&unused);
	scene.victim = listen_somewhere(&scene.victim_address);
	if (scene.listener < 0 || scene.victim < 0 || shutdown(scene.listener, SHUT_RDWR) < 0 ||
	    fcntl(scene.victim, F_SETFL, O_NONBLOCK) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		good &= try_call(&calls[i]);
	for (size_t i = 0; i < ARRAY_LEN(stories); i++)
		good &= try_story(i);
	good &= !has_visitor();
	tell(good ? NULL : "something came through", "call: all, and nobody was called");
	return good ? 0 : 1;
}
