/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge-standin - a stand-in for judges that run each program in an interpreter of its own, started by a server that stays
 *
 *	judge-standin --keep|--fresh --root FOLDER [--group FOLDER]...
 *
 *	--keep	as go-judge does: containers (mount, pid, network, ipc and uts namespaces, a tree with the host's /usr read-only) are
 *		made ahead and used again; each program gets a control group, limits, an own uid and a process in one of them
 *	--fresh	as isolate does, which Piston starts for each program: the container is made for one program, too
 *	--root	where containers put their tree; --group: a folder of a control group hierarchy in which groups are made
 *
 * It is neither of them, but what they ask the kernel for, in C and with nothing else: no system call filter, no evidence, no
 * record, no queue, no inspection.  It speaks just enough HTTP/1.1 for bench/serve: the body of a POST is a Python program, the
 * answer says how it ended.  Prints "ready PORT".  For a benchmark only: it trusts whoever asks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS_MAX  8
#define CODE_MAX    4096
#define OUTPUT_MAX  65536
#define PROGRAM_UID 1000
#define TREE_MAX    256

static const char *root, *group[GROUPS_MAX];
static size_t n_groups;
static bool keeps;

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "judge-standin: %s: %s\n", what, strerror(errno));
	_exit(1);
}

__attribute__((format(printf, 2, 3))) static const char *in(char dst[TREE_MAX], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	need(vsnprintf(dst, TREE_MAX, format, ap) < TREE_MAX, "a path is too long");
	va_end(ap);
	return dst;
}

/* ---- a container ---------------------------------------------------------------------------------------- */

static void show(const char *from, const char *to)
{
	need(mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0, from);
}

static void make_tree(void)
{
	static const char *const folders[] = { "usr", "proc", "dev", "w", "tmp", "old" };
	static const char *const links[] = { "bin", "lib", "lib64" };
	static const char *const devices[] = { "null", "zero", "urandom" };
	char a[TREE_MAX], b[TREE_MAX];

	need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	need(mount("tmpfs", root, "tmpfs", MS_NOSUID, "size=4m") == 0, "root");
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		need(mkdir(in(a, "%s/%s", root, folders[i]), 0755) == 0, folders[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		need(symlink(in(a, "usr/%s", links[i]), in(b, "%s/%s", root, links[i])) == 0, links[i]);
	show("/usr", in(a, "%s/usr", root));
	need(mount(NULL, a, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0,
	     "read-only /usr");
	need(mount("proc", in(a, "%s/proc", root), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "proc");
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		need(close(open(in(b, "%s/dev/%s", root, devices[i]), O_CREAT | O_WRONLY | O_CLOEXEC, 0644)) == 0, b);
		show(in(a, "/dev/%s", devices[i]), b);
	}
	need(mount("tmpfs", in(a, "%s/w", root), "tmpfs", MS_NOSUID | MS_NODEV, "size=64m") == 0, "work");
	need(chown(a, PROGRAM_UID, PROGRAM_UID) == 0, "work");
	need(mount("tmpfs", in(a, "%s/tmp", root), "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=1777") == 0, "tmp");
	need(syscall(SYS_pivot_root, root, in(a, "%s/old", root)) == 0 && chdir("/") == 0, "pivot_root");
	need(umount2("/old", MNT_DETACH) == 0 && rmdir("/old") == 0, "old root");
	need(mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID, NULL) == 0, "read-only root");
}

/* What goes to a container: the program, and beside it standard output and the files by which groups are entered. */
struct order {
	size_t len, n_groups;
	char code[CODE_MAX];
};

static _Noreturn void be_program(const int *fds, size_t n)
{
	static char name[] = "python3", isolated[] = "-I", file[] = "/w/main.py", path[] = "PATH=/usr/bin",
		    home[] = "HOME=/w";
	static char *const argv[] = { name, isolated, file, NULL }, *const env[] = { path, home, NULL };
	const struct rlimit files = { 1024, 1024 }, size = { 100 << 20, 100 << 20 }, core = { 0, 0 };

	for (size_t i = 1; i < n; i++)
		need(write(fds[i], "0", 1) == 1, "enter a group");
	need(dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0) == 0 && dup2(fds[0], 1) == 1 && dup2(fds[0], 2) == 2,
	     "streams");
	need(close_range(3, ~0U, 0) == 0, "descriptors");
	need(!setrlimit(RLIMIT_NOFILE, &files) && !setrlimit(RLIMIT_FSIZE, &size) && !setrlimit(RLIMIT_CORE, &core),
	     "limits");
	need(!setgroups(0, NULL) && !setresgid(PROGRAM_UID, PROGRAM_UID, PROGRAM_UID) &&
		     !setresuid(PROGRAM_UID, PROGRAM_UID, PROGRAM_UID),
	     "ids");
	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && setsid() >= 0 && chdir("/w") == 0, "session");
	(void)execve("/usr/bin/python3", argv, env);
	need(false, "python3");
	_exit(1);
}

static int run_program(const struct order *o, const int *fds, size_t n)
{
	int file = open("/w/main.py", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644), status = 0;
	pid_t pid;

	need(file >= 0 && write(file, o->code, o->len) == (ssize_t)o->len && close(file) == 0, "program");
	pid = fork();
	if (pid == 0)
		be_program(fds, n);
	need(pid > 0 && waitpid(pid, &status, 0) == pid, "wait");
	(void)kill(-1, SIGKILL); /* whatever it started */
	while (waitpid(-1, NULL, 0) > 0)
		;
	(void)unlink("/w/main.py");
	return status;
}

/* PID 1 of the container: orders come one after the other. */
static _Noreturn void be_container(int sock)
{
	struct order o;
	union {
		char bytes[CMSG_SPACE((1 + GROUPS_MAX) * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec space = { &o, sizeof(o) };

	need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "parent");
	make_tree();
	for (;;) {
		struct msghdr msg = { .msg_iov = &space,
				      .msg_iovlen = 1,
				      .msg_control = control.bytes,
				      .msg_controllen = sizeof(control.bytes) };
		int fds[1 + GROUPS_MAX], status;

		if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(o))
			_exit(0);
		memcpy(fds, CMSG_DATA(&control.align), (1 + o.n_groups) * sizeof(int));
		status = run_program(&o, fds, 1 + o.n_groups);
		for (size_t i = 0; i <= o.n_groups; i++)
			(void)close(fds[i]);
		need(send(sock, &status, sizeof(status), MSG_NOSIGNAL) == sizeof(status), "answer");
	}
}

struct container {
	pid_t pid;
	int sock;
};

static struct container make_container(void)
{
	int ends[2];
	pid_t pid;

	need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
	pid = (pid_t)syscall(SYS_clone,
			     CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD, 0, 0, 0,
			     0);
	if (pid == 0) {
		(void)close(ends[0]);
		be_container(ends[1]);
	}
	need(pid > 0, "clone");
	(void)close(ends[1]);
	return (struct container){ pid, ends[0] };
}

static void end_container(const struct container *c)
{
	(void)close(c->sock);
	(void)kill(c->pid, SIGKILL);
	need(waitpid(c->pid, NULL, 0) == c->pid, "end of a container");
}

/* ---- groups --------------------------------------------------------------------------------------------- */

static const char *group_of(char dst[TREE_MAX], size_t i, const char *file)
{
	return in(dst, "%s/%d%s", group[i], (int)getpid(), file);
}

/* In whatever hierarchy the file is. */
static void limit(size_t i, const char *file, const char *value)
{
	char path[TREE_MAX];
	int fd = open(group_of(path, i, file), O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		need(write(fd, value, strlen(value)) > 0 && close(fd) == 0, path);
}

static void make_groups(int *fds)
{
	char path[TREE_MAX];

	for (size_t i = 0; i < n_groups; i++) {
		need(mkdir(group_of(path, i, ""), 0755) == 0, path);
		limit(i, "/memory.limit_in_bytes", "536870912");
		limit(i, "/memory.max", "536870912");
		limit(i, "/pids.max", "64");
		limit(i, "/cpu.cfs_quota_us", "50000");
		limit(i, "/cpu.max", "50000 100000");
		fds[i] = open(group_of(path, i, "/tasks"), O_WRONLY | O_CLOEXEC); /* version 1, where it is cheaper */
		if (fds[i] < 0)
			fds[i] = open(group_of(path, i, "/cgroup.procs"), O_WRONLY | O_CLOEXEC);
		need(fds[i] >= 0, path);
	}
}

static unsigned long long read_peak(void)
{
	static const char *const files[] = { "/memory.max_usage_in_bytes", "/memory.peak" };
	char path[TREE_MAX], text[32] = "";

	for (size_t i = 0; i < n_groups; i++)
		for (size_t k = 0; k < 2; k++) {
			int fd = open(group_of(path, i, files[k]), O_RDONLY | O_CLOEXEC);

			if (fd < 0)
				continue;
			(void)!read(fd, text, sizeof(text) - 1);
			(void)close(fd);
		}
	return strtoull(text, NULL, 10);
}

static void remove_groups(int *fds)
{
	char path[TREE_MAX];

	for (size_t i = 0; i < n_groups; i++) {
		(void)close(fds[i]);
		while (rmdir(group_of(path, i, "")) < 0)
			need(errno == EBUSY, path);
	}
}

/* ---- a request -------------------------------------------------------------------------------------------- */

static int ask(const struct container *c, const struct order *o, const int *fds, size_t n)
{
	union {
		char bytes[CMSG_SPACE((1 + GROUPS_MAX) * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec bytes = { (void *)(uintptr_t)o, sizeof(*o) };
	struct msghdr msg = { .msg_iov = &bytes,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

	control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
	return sendmsg(c->sock, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(*o) ? 0 : -errno;
}

/* The answer's body. */
static void run(const struct container *kept, const struct order *o, char *answer, size_t size)
{
	struct container c = kept ? *kept : make_container();
	static char output[OUTPUT_MAX];
	int fds[1 + GROUPS_MAX], pipes[2], status = -1;
	size_t have = 0;
	ssize_t n;

	need(pipe2(pipes, O_CLOEXEC) == 0, "pipe");
	fds[0] = pipes[1];
	make_groups(fds + 1);
	need(ask(&c, o, fds, 1 + n_groups) == 0, "order");
	(void)close(pipes[1]);
	while (have < sizeof(output) && (n = read(pipes[0], output + have, sizeof(output) - have)) > 0)
		have += (size_t)n;
	(void)close(pipes[0]);
	need(recv(c.sock, &status, sizeof(status), 0) == sizeof(status), "status");
	(void)snprintf(answer, size, "{\"verdict\":\"%s\",\"status\":%d,\"memory\":%llu,\"output\":%zu}",
		       status ? "error" : "ok", status, read_peak(), have);
	remove_groups(fds + 1);
	if (!kept)
		end_container(&c);
}

/* One whole request at the beginning of text; its code to ret.  How many bytes it has; 0: it has not come yet. */
static size_t take_request(const char *text, size_t have, struct order *ret)
{
	const char *end = memmem(text, have, "\r\n\r\n", 4), *length = end ? strcasestr(text, "content-length:") : NULL;
	size_t head = end ? (size_t)(end - text) + 4 : 0;

	if (!length || length > end)
		return 0;
	ret->len = strtoul(length + strlen("content-length:"), NULL, 10);
	need(ret->len <= CODE_MAX, "a program is too long");
	if (have < head + ret->len)
		return 0;
	memcpy(ret->code, text + head, ret->len);
	return head + ret->len;
}

static _Noreturn void serve(int sock)
{
	static char text[2 * CODE_MAX + 1];
	static struct order o;
	struct container kept = { 0, -1 };
	size_t have = 0, used;
	ssize_t n;

	if (keeps)
		kept = make_container();
	o.n_groups = n_groups;
	while ((n = read(sock, text + have, sizeof(text) - 1 - have)) > 0) {
		char body[256], answer[512];
		int len;

		have += (size_t)n;
		text[have] = '\0';
		used = take_request(text, have, &o);
		if (used == 0)
			continue;
		have -= used;
		memmove(text, text + used, have);
		run(keeps ? &kept : NULL, &o, body, sizeof(body));
		len = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
			       body);
		need(write(sock, answer, (size_t)len) == len, "answer");
	}
	if (keeps)
		end_container(&kept);
	_exit(0);
}

static bool take_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(word, "--keep") == 0 || strcmp(word, "--fresh") == 0) {
			keeps = strcmp(word, "--keep") == 0;
			continue;
		}
		if (value && strcmp(word, "--root") == 0)
			root = value;
		else if (value && strcmp(word, "--group") == 0 && n_groups < GROUPS_MAX)
			group[n_groups++] = value;
		else
			return false;
		i++;
	}
	return root;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!take_options(argc, argv))
		return 2;
	need(door >= 0 && bind(door, (void *)&at, size) == 0 && listen(door, 64) == 0 &&
		     getsockname(door, (void *)&at, &size) == 0,
	     "listen");
	need(prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && signal(SIGCHLD, SIG_IGN) != SIG_ERR, "signals");
	printf("ready %d\n", ntohs(at.sin_port));
	(void)fflush(stdout);
	for (;;) {
		int sock = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid = sock >= 0 ? fork() : -1;

		if (pid == 0) {
			(void)signal(SIGCHLD, SIG_DFL);
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve(sock);
		}
		if (sock >= 0)
			(void)close(sock);
	}
}
