/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's process between fork and exec: the confinement that the engine does not provide, in the same order,
 * with the same code (src/backend/guest/confine.c) and the same filters as in a native cell
 * (src/backend/native/payload.c).  Any failure ends the process, and the container.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "backend/container/init/inside.h"
#include "backend/guest/confine.h"
#include "base/fd.h"

/* Where the two channels stay while all other descriptors above standard error are closed. */
#define GO_FD     3
#define STATUS_FD 4

struct payload {
	struct inside *in;
	int input, go, status;
	struct guest_confine confine;
	char names[GUEST_RULES_MAX][72];
};

static int connect_stdio(struct payload *p)
{
	if (dup2(p->input, STDIN_FILENO) < 0 || dup3(p->go, GO_FD, O_CLOEXEC) < 0 ||
	    dup3(p->status, STATUS_FD, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static int enter_workspace(struct payload *p)
{
	return fchdir(p->in->place[0]) < 0 ? -errno : 0;
}

/* ---- Landlock ------------------------------------------------------------------------------------ */

/* Permits executing what the image has: the directories in its root, but no links (their targets are there, too). */
static void add_image_dir(struct payload *p, int root, const char *name)
{
	static const char *const others[] = { "dev", "proc", "sys", "tmp", "workspace" };
	char *path = p->names[p->confine.n_rules];
	struct stat st;

	if (name[0] == '.' || strlen(name) > sizeof(p->names[0]) - 2 || p->confine.n_rules > GUEST_RULES_MAX - 8)
		return;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strcmp(name, others[i]) == 0)
			return;
	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return;
	path[0] = '/';
	memcpy(path + 1, name, strlen(name) + 1);
	guest_add_rule(&p->confine, path, LANDLOCK_READ | LANDLOCK_EXEC);
}

struct dir_entry { /* layout of getdents64(2) */
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static int add_image_dirs(struct payload *p)
{
	static union {
		char bytes[16 * KiB];
		struct dir_entry first;
	} list;
	AUTO_FD root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (root < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, root, list.bytes, sizeof(list))) > 0)
		for (long at = 0; at < n;) {
			const struct dir_entry *e = (const void *)(list.bytes + at);

			add_image_dir(p, root, e->name);
			at += e->len;
		}
	return n < 0 ? -errno : 0;
}

/*
 * The container's own pseudo-terminals, as in a native cell; the filter refuses the same ioctls.  A native cell's mount
 * limits their number, which no engine does, so the strict profile has none.
 */
static void add_ptys(struct payload *p)
{
	struct statfs fs;

	if (p->in->job.flags & WIRE_STRICT || statfs("/dev/pts", &fs) < 0 || fs.f_type != DEVPTS_SUPER_MAGIC)
		return;
	guest_add_rule(&p->confine, "/dev/pts", LANDLOCK_READ | LANDLOCK_WRITE_FILE | LANDLOCK_IOCTL);
}

static int apply_landlock(struct payload *p)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom" };
	bool exec = p->in->job.flags & WIRE_WORKSPACE_EXEC;
	int rc;

	p->in->landlock_abi = p->confine.landlock_abi = landlock_abi();
	/* Names everywhere, contents only of what the image has: the engine's /sys is not readable. */
	guest_add_rule(&p->confine, "/", LANDLOCK_LIST);
	rc = add_image_dirs(p);
	if (rc < 0)
		return rc;
	guest_add_rule(&p->confine, "/proc", LANDLOCK_READ);
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		guest_add_rule(&p->confine, devices[i], LANDLOCK_READ | LANDLOCK_WRITE_FILE);
	add_ptys(p);
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		bool sealed = i == 0 && p->in->job.flags & WIRE_READ_ONLY;

		guest_add_rule(&p->confine, place_name[i],
			       LANDLOCK_READ | (sealed ? 0 : LANDLOCK_WRITE) | (i < 2 && exec ? LANDLOCK_EXEC : 0));
	}
	return guest_apply_landlock(&p->confine);
}

/* Exactly one of run and confine is set; 0 or -errno. */
static const struct step {
	enum wire_step step;
	int (*run)(struct payload *p);
	int (*confine)(struct guest_confine *c);
} steps[] = {
	{ WIRE_STEP_signals, .confine = guest_reset_signals },
	/* Init does not set this: it must survive to report. */
	{ WIRE_STEP_oom_score, .confine = guest_offer_to_oom_killer },
	{ WIRE_STEP_rlimits, .confine = guest_set_rlimits },
	{ WIRE_STEP_working_dir, .run = enter_workspace },
	{ WIRE_STEP_close_files, .confine = guest_close_files },
	{ WIRE_STEP_memory_rules, .confine = guest_memory_rules },
	{ WIRE_STEP_no_new_privs, .confine = guest_no_new_privs },
	{ WIRE_STEP_landlock, .run = apply_landlock },
};
/*
 * In a pod, whose network is not the plan's: verified before the usual filter, which refuses some families with other
 * errors.
 */
static int refuse_sockets(struct payload *p)
{
	int rc = p->in->local_only ? sockets_refuse() : 0;

	return rc == 0 && p->in->local_only ? sockets_try() : rc;
}

static const struct step filter_steps[] = {
	{ WIRE_STEP_sockets, .run = refuse_sockets },
	{ WIRE_STEP_seccomp, .confine = guest_install_filter },
};

static void say(int fd, uint32_t step, int rc, const struct inside *in)
{
	struct payload_word word = { .step = step,
				     .sys = (uint32_t)-rc,
				     .abi = (uint32_t)in->landlock_abi,
				     .probe = (uint32_t)in->landlock_said };

	(void)!write(fd, &word, sizeof(word));
}

static void run_steps(struct payload *p, const struct step *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int rc = list[i].confine ? list[i].confine(&p->confine) : list[i].run(p);

		if (rc < 0 && list[i].step == WIRE_STEP_landlock && p->in->job.flags & WIRE_WITHOUT_LANDLOCK) {
			p->in->landlock_abi = 0;
			continue; /* given up by policy: the evidence will show it */
		}
		if (rc < 0) {
			say(STATUS_FD, list[i].step, rc, p->in);
			guest_end(125);
		}
	}
}

/* Images keep tools in different directories: tries the usual path, then these. */
static int execute(struct wire_job *j)
{
	static const char *const dirs[] = { "/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/local/go/bin/" };
	static char path[WIRE_PATH_MAX + 32];
	const char *name = strrchr(j->argv[0], '/') + 1;
	char *const *envp = (char *const *)(uintptr_t)j->envp;

	(void)execve(j->argv[0], (char *const *)(uintptr_t)j->argv, envp);
	if (strlen(name) > WIRE_PATH_MAX)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(dirs) && errno == ENOENT; i++) {
		size_t len = strlen(dirs[i]);

		memcpy(path, dirs[i], len);
		memcpy(path + len, name, strlen(name) + 1);
		j->argv[0] = path;
		(void)execve(path, (char *const *)(uintptr_t)j->argv, envp);
	}
	return -errno;
}

static void fill_confine(struct guest_confine *c, const struct wire_job *j)
{
	/*
	 * In a container, RLIMIT_CORE is set by the engine and locked by the filter around it.  A pod cannot request
	 * it, so it is set here: a limit of 1 is too small for a core file and, unlike 0, stops a piped core_pattern.
	 */
	if (j->flags & WIRE_IN_POD)
		guest_add_rlimit(c, RLIMIT_CORE, 1);
	guest_add_rlimits(c, j->open_files, j->disk_bytes, j->cpu_time_ms);
	c->close_from = STATUS_FD + 1;
	c->deny_write_exec = j->flags & WIRE_DENY_WRITE_EXEC;
	/* Init has the program's user id; the filter refuses calls aimed at PID 1 that the kernel would permit. */
	c->filter = seccomp_filter_for(j->family, j->flags & WIRE_STRICT);
}

static _Noreturn void payload_main(struct payload *p)
{
	char word;
	int rc;

	/*
	 * Only init keeps the keys.  Without them this process has nothing to hide, and needs access to its own /proc
	 * files.
	 */
	explicit_bzero(p->in->job.key, sizeof(p->in->job.key));
	fill_confine(&p->confine, &p->in->job);
	rc = connect_stdio(p);
	if (rc < 0) {
		say(p->status, WIRE_STEP_stdio, rc, p->in);
		guest_end(125);
	}
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	run_steps(p, steps, ARRAY_LEN(steps));
	p->in->landlock_said = guest_probe_landlock();
	run_steps(p, filter_steps, ARRAY_LEN(filter_steps));
	say(STATUS_FD, WIRE_STEPS, 0, p->in);
	if (read(GO_FD, &word, 1) != 1)
		guest_end(125);
	rc = execute(&p->in->job);
	say(STATUS_FD, WIRE_STEP_exec, rc, p->in);
	guest_end(125);
}

int payload_fork(struct inside *in)
{
	static struct payload p;
	int input[2], go[2], status[2];
	long pid;

	/* Fills low numbers, so that the pipes are above those that the payload uses. */
	for (int fd = 0; fd < STATUS_FD + 1;)
		if ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
			return -errno;
	if (pipe2(input, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0 || pipe2(status, O_CLOEXEC) < 0)
		return -errno;
	p = (struct payload){ .in = in, .input = input[0], .go = go[0], .status = status[1] };
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		payload_main(&p);
	in->payload = (pid_t)pid;
	in->input = input[1];
	in->go = go[1];
	in->status = status[0];
	(void)close(input[0]);
	(void)close(go[0]);
	(void)close(status[1]);
	return fcntl(in->input, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}
