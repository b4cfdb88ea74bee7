/* SPDX-License-Identifier: Apache-2.0 */
/* The cell's control groups on the host this runs on, and what is said where there are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"
#include "sys/proc.h"
#include "sys/systemd_scope.h"

#define NOBODY 65534
#define MEMORY (32 * MiB)
static const struct cgroup_limits limits = { .memory_bytes = MEMORY, .pids = 8, .cpu_percent = 50 };

/* ---- tools ----------------------------------------------------------------------------------- */

static char prefix[32]; /* of the ids of this process: other brigs may be at work on this host */

static const char *next_id(void)
{
	static char id[48];
	static int n;

	(void)snprintf(id, sizeof(id), "%s%d", prefix, n++);
	return id;
}

static int n_groups;

static int count_group(const char *path, const struct stat *st UNUSED, int type, struct FTW *f)
{
	if (type == FTW_D && strncmp(path + f->base, "brig-", 5) == 0 &&
	    strncmp(path + f->base + 5, prefix, strlen(prefix)) == 0)
		n_groups++;
	return 0;
}

/* Our groups, anywhere on the host. */
static int count_groups(void)
{
	n_groups = 0;
	(void)nftw("/sys/fs/cgroup", count_group, 16, FTW_PHYS);
	return n_groups;
}

static uint64_t soon(void)
{
	return clock_now_ns() + 5 * NS_PER_SEC;
}

/* A host that can do everything; otherwise the test has nothing to say here. */
static struct cgroup_host *open_host(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = NULL;

	assert_int_equal(cgroup_host_open(false, &h, &err), 0);
	for (int r = 0; r < CGROUP_RESOURCE_COUNT; r++) {
		if (r != CGROUP_DISK_IO && !cgroup_host_has(h, (enum cgroup_resource)r)) {
			print_message("skipped: %s\n", cgroup_host_why(h, (enum cgroup_resource)r));
			cgroup_host_free(h);
			skip();
		}
	}
	return h;
}

static struct cgroup *make(struct cgroup_host *h, const struct cgroup_limits *l)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup *cg = NULL;

	if (cgroup_create(h, next_id(), l, &cg, &err) < 0)
		fail_msg("%s", err.msg);
	return cg;
}

/* A child inside the groups, as the native backend makes one. */
static pid_t spawn_inside(const struct cgroup *cg)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid;

	if (cgroup_clone_fd(cg) >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_clone_fd(cg);
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(pid >= 0);
	if (pid == 0 && cgroup_enter_self(cg) < 0)
		_exit(99);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* ---- /proc tables ---------------------------------------------------------------------------- */

static void parses_mount_lines(void **state UNUSED)
{
	char line[] =
		"36 35 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
	char no_source[] = "36 35 98:0 / /x rw - tmpfs  rw";
	struct mount_line m;

	assert_true(proc_parse_mount(line, &m));
	assert_int_equal(m.id, 36);
	assert_int_equal(m.parent, 35);
	assert_string_equal(m.root, "/mnt1");
	assert_string_equal(m.point, "/a b\\c");
	assert_string_equal(m.options, "rw,noatime");
	assert_string_equal(m.fstype, "ext3");
	assert_string_equal(m.source, "/dev/root");
	assert_string_equal(m.super, "rw,errors=continue");
	assert_true(proc_parse_mount(no_source, &m));
	assert_string_equal(m.source, "");
}

static void refuses_broken_lines(void **state UNUSED)
{
	static const char *const mounts[] = {
		"",
		" ",
		"36",
		"36 35",
		"x 35 98:0 / /x rw - tmpfs t rw",
		"36 35 98 / /x rw - tmpfs t rw",
		"36 35 98:0 / /x rw tmpfs t rw",
		"36 35 98:0 / /x rw - tmpfs t",
		"36 35 98:0 / /x rw - tmpfs t rw more",
		"36 35 98:0 / x rw - tmpfs t rw",
		"36 35 98:0 / /x\\04 rw - tmpfs t rw",
		"36 35 98:0 / /x\\000 rw - tmpfs t rw",
		"36 35 98:0 / /x\\ rw - tmpfs t rw",
		"36 35 98:0 / /x\\477 rw - tmpfs t rw",
		"-1 35 98:0 / /x rw - tmpfs t rw",
	};
	static const char *const groups[] = { "",     ":",     "::",     "0:",        "0::",
					      "x::/", "1:cpu", "1:cpu:", "1:cpu:rel", "-1::/" };
	char line[128];
	struct mount_line m;
	struct cgroup_line c;

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		(void)str_copy(line, sizeof(line), mounts[i]);
		if (proc_parse_mount(line, &m))
			fail_msg("accepted: %s", mounts[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		(void)str_copy(line, sizeof(line), groups[i]);
		if (proc_parse_cgroup(line, &c))
			fail_msg("accepted: %s", groups[i]);
	}
}

static void parses_cgroup_lines(void **state UNUSED)
{
	char v1[] = "4:cpu,cpuacct:/a:b/c", v2[] = "0::/user.slice";
	struct cgroup_line c;

	assert_true(proc_parse_cgroup(v1, &c));
	assert_int_equal(c.id, 4);
	assert_string_equal(c.path, "/a:b/c");
	assert_true(proc_list_has(c.controllers, ',', "cpu"));
	assert_true(proc_list_has(c.controllers, ',', "cpuacct"));
	assert_false(proc_list_has(c.controllers, ',', "cpuac"));
	assert_false(proc_list_has(c.controllers, ',', "acct"));
	assert_true(proc_parse_cgroup(v2, &c));
	assert_string_equal(c.controllers, "");
}

static bool take_last_line(char *line, void *arg)
{
	char *dst = arg;

	(void)str_copy(dst, 64, line);
	dst[63]++; /* how many lines were seen */
	return true;
}

static void leaves_out_endless_lines(void **state UNUSED)
{
	char seen[64] = "", path[64];
	AUTO_FD fd = memfd_create("lines", MFD_CLOEXEC);
	AUTO_FREE char *longer = malloc(3 * PROC_LINE_MAX);

	assert_non_null(longer);
	memset(longer, 'x', 3 * PROC_LINE_MAX);
	assert_int_equal(fd_write_all(fd, "first\n", 6), 0);
	assert_int_equal(fd_write_all(fd, longer, 3 * PROC_LINE_MAX), 0);
	assert_int_equal(fd_write_all(fd, "\nlast\n", 6), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(proc_each_line(path, take_last_line, seen), 0);
	assert_string_equal(seen, "last");
	assert_int_equal(seen[63], 2);
	assert_int_equal(proc_each_line("/proc/self/nothing", take_last_line, seen), -ENOENT);
}

static void finds_groups_below_mounts(void **state UNUSED)
{
	assert_string_equal(cgroup_path_in_mount("/", "/"), "");
	assert_string_equal(cgroup_path_in_mount("/a/b", "/"), "/a/b");
	assert_string_equal(cgroup_path_in_mount("/a/b", "/a"), "/b");
	assert_string_equal(cgroup_path_in_mount("/a/b", "/a/b"), "");
	assert_null(cgroup_path_in_mount("/ab", "/a"));
	assert_null(cgroup_path_in_mount("/a", "/a/b"));
	assert_null(cgroup_path_in_mount("/../x", "/"));
	assert_null(cgroup_path_in_mount("/x", "/.."));
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void reads_back_every_limit(void **state UNUSED)
{
	static const struct {
		enum cgroup_resource r;
		uint64_t least, most;
	} expected[] = {
		{ CGROUP_MEMORY, MEMORY, MEMORY },
		{ CGROUP_SWAP, 0, 0 },
		{ CGROUP_PIDS, 8, 8 },
		{ CGROUP_CPU, 1, 50 },
		{ CGROUP_CPU_TIME, 0, 0 },
		{ CGROUP_SOCKET_MEMORY, MEMORY / 4, MEMORY },
	};
	struct cgroup_host *h = open_host();
	struct cgroup *cg = make(h, &limits);

	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		struct cgroup_readback rb;

		cgroup_readback(cg, expected[i].r, &rb);
		assert_true(rb.known);
		assert_in_range(rb.value, expected[i].least, expected[i].most);
		assert_true(rb.source[0] == '/' || strncmp(rb.source, "...", 3) == 0);
	}
	assert_int_equal(cgroup_count_tasks(cg, 0), 0);
	assert_true(count_groups() > 0);
	assert_int_equal(cgroup_destroy(cg, soon()), 0);
	assert_int_equal(count_groups(), 0);
	cgroup_host_free(h);
}

static void unlimited_is_told_apart(void **state UNUSED)
{
	struct cgroup_limits none = { 0 };
	struct cgroup_host *h = open_host();
	struct cgroup *cg = make(h, &none);
	struct cgroup_readback rb;

	cgroup_readback(cg, CGROUP_MEMORY, &rb);
	assert_true(rb.known && rb.value == UINT64_MAX);
	cgroup_readback(cg, CGROUP_PIDS, &rb);
	assert_true(rb.known && rb.value == UINT64_MAX);
	assert_int_equal(cgroup_destroy(cg, soon()), 0);
	cgroup_host_free(h);
}

/* ---- disks ----------------------------------------------------------------------------------- */

static void finds_disks(void **state UNUSED)
{
	struct disk_list list = { .n = 0 };
	AUTO_FD memory = memfd_create("file", MFD_CLOEXEC);
	struct stat st;

	assert_int_equal(disk_add(&list, memory), 0); /* in memory: on no disk */
	assert_int_equal(list.n, 0);
	assert_int_equal(disk_add_path(&list, "/proc"), -EOPNOTSUPP);
	assert_int_equal(disk_add_path(&list, "/nonexistent"), -ENOENT);
	assert_int_equal(stat("/usr", &st), 0);
	if (major(st.st_dev) == 0) {
		print_message("skipped: /usr is on no block device of its own\n");
		skip();
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(disk_add_path(&list, "/usr"), 0);
	assert_int_equal(list.n, 1);
}

static int empty_file(int dir, const char *name)
{
	AUTO_FD fd = openat(dir, name, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static const struct cgroup_ops *const versions[] = { &cgroup_v1_ops, &cgroup_v2_ops };

/* What each version writes and how it reads, on plain files: no host has both controllers. */
static void writes_and_reads_limits_of_disks(void **state UNUSED)
{
	static const char *const files[] = { "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
					     "io.max" };
	static const char *const lines[] = { "8:1 99\n8:0 4096\n", "8:0 8192\n",
					     "8:1 rbps=max wbps=max\n8:0 rbps=4096 wbps=8192 riops=max wiops=max\n" };
	static const char *const half[] = { "8:0 4096\n", "", "8:0 rbps=4096 wbps=max riops=max wiops=max\n" };
	char dir[] = "/tmp/brig-disks-XXXXXX", text[64];
	AUTO_FD fd = FD_NONE;
	uint64_t value;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)close(openat(fd, files[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const struct cgroup_leaf leaf = { .ops = versions[i], .dir = fd };

		for (size_t k = 0; k < ARRAY_LEN(files); k++)
			assert_int_equal(empty_file(fd, files[k]), 0);
		assert_int_equal(versions[i]->limit_disk(&leaf, makedev(8, 0), 4096), 0);
		assert_true(fd_get_at(fd, versions[i]->disk_file, text, sizeof(text)) > 0);
		assert_string_equal(text, i == 0 ? "8:0 4096" : "8:0 rbps=4096 wbps=4096");
		for (size_t k = 0; k < ARRAY_LEN(files); k++)
			assert_int_equal(fd_put_at(fd, files[k], lines[k]), 0);
		assert_int_equal(versions[i]->read_disk(&leaf, makedev(8, 0), &value), 0);
		assert_true(value == 8192); /* the larger of both directions */
		assert_int_equal(versions[i]->read_disk(&leaf, makedev(9, 0), &value), 0);
		assert_true(value == UINT64_MAX);
		for (size_t k = 0; k < ARRAY_LEN(files); k++) {
			assert_int_equal(empty_file(fd, files[k]), 0);
			assert_int_equal(fd_put_at(fd, files[k], half[k]), 0);
		}
		assert_int_equal(versions[i]->read_disk(&leaf, makedev(8, 0), &value), 0);
		assert_true(value == UINT64_MAX); /* one direction alone is no limit */
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)unlinkat(fd, files[i], 0);
	assert_int_equal(rmdir(dir), 0);
}

static void limits_disks(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct disk_list disks = { .n = 0 };
	const struct cgroup_limits with_disks = { .disk_io_bps = 1 * MiB, .disks = &disks };
	struct cgroup_host *h = NULL;
	struct cgroup_readback rb;
	struct cgroup *cg;

	assert_int_equal(cgroup_host_open(true, &h, &err), 0);
	if (!cgroup_host_has(h, CGROUP_DISK_IO) || disk_add_path(&disks, "/usr") < 0) {
		print_message("skipped: %s, or /usr is on no disk\n", cgroup_host_why(h, CGROUP_DISK_IO));
		cgroup_host_free(h);
		skip();
	}
	cg = make(h, &with_disks);
	cgroup_readback_disks(cg, &disks, &rb);
	assert_true(rb.known && rb.value == 1 * MiB);
	assert_int_equal(cgroup_destroy(cg, soon()), 0);
	cg = make(h, &limits);
	cgroup_readback_disks(cg, &disks, &rb);
	assert_true(rb.known && rb.value == UINT64_MAX);
	assert_int_equal(cgroup_destroy(cg, soon()), 0);
	cgroup_host_free(h);
}

static void refuses_bad_names(void **state UNUSED)
{
	static const char *const bad[] = {
		"",    "../x", "a/b",
		"a b", "a\n",  "0123456789012345678901234567890123456789012345678901234567890123456789"
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = NULL;
	struct cgroup *cg = NULL;

	assert_int_equal(cgroup_host_open(true, &h, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(cgroup_create(h, bad[i], &limits, &cg, &err), -BRIG_E_INTERNAL);
	assert_null(cg);
	cgroup_host_free(h);
}

/* The same name twice: the second must fail and must not touch the first... */
static void same_name_fails_cleanly(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = open_host();
	const char *id = next_id();
	struct cgroup *first = NULL, *second = NULL;
	struct cgroup_readback rb;

	assert_int_equal(cgroup_create(h, id, &limits, &first, &err), 0);
	assert_int_equal(cgroup_create(h, id, &limits, &second, &err), -BRIG_E_SYSTEM);
	assert_int_equal(err.sys, EEXIST);
	assert_null(second);
	cgroup_readback(first, CGROUP_PIDS, &rb); /* ...which is still there */
	assert_true(rb.known && rb.value == limits.pids);
	assert_int_equal(cgroup_destroy(first, soon()), 0);
	cgroup_host_free(h);
	assert_int_equal(count_groups(), 0);
}

/* A limit the kernel refuses: nothing may be left of the attempt. */
static void failure_leaves_nothing(void **state UNUSED)
{
	struct cgroup_limits bad = { .memory_bytes = MEMORY, .pids = UINT64_MAX - 1, .cpu_percent = 50 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = open_host();
	struct cgroup *cg = NULL;

	assert_int_equal(cgroup_create(h, next_id(), &bad, &cg, &err), -BRIG_E_SYSTEM);
	assert_non_null(strstr(err.msg, "pids.max"));
	assert_null(cg);
	cgroup_host_free(h);
	assert_int_equal(count_groups(), 0);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void counts_and_kills_tasks(void **state UNUSED)
{
	struct cgroup_host *h = open_host();
	struct cgroup *cg = make(h, &limits);
	int ready[2], status;
	pid_t pid, told[3];

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = spawn_inside(cg);
	if (pid == 0) {
		(void)(fork() == 0 && fork() == 0); /* three tasks */
		pid = getpid();
		(void)!write(ready[1], &pid, sizeof(pid));
		for (;;)
			pause();
	}
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		assert_int_equal(read(ready[0], &told[i], sizeof(pid)), sizeof(pid));
	assert_int_equal(cgroup_count_tasks(cg, 0), 3);
	assert_true(cgroup_has_two(cg, told[0], told[2]) && !cgroup_has_two(cg, told[0], getpid()));
	cgroup_kill(cg);
	status = wait_for(pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(cgroup_destroy(cg, soon()), 0);
	assert_int_equal(count_groups(), 0);
	cgroup_host_free(h);
	close(ready[0]), close(ready[1]);
}

static void counts_refused_forks(void **state UNUSED)
{
	struct cgroup_limits few = { .memory_bytes = MEMORY, .pids = 2, .cpu_percent = 50 };
	struct cgroup_host *h = open_host();
	struct cgroup *cg = make(h, &few);
	struct cgroup_usage u;
	int status;
	pid_t pid = spawn_inside(cg);

	if (pid == 0) {
		int refused = 0;

		for (int i = 0; i < 4; i++) {
			pid_t child = fork();

			if (child == 0)
				for (;;)
					pause();
			refused += child < 0;
		}
		_exit(refused);
	}
	status = wait_for(pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_int_equal(cgroup_read(cg, &u), 0);
	assert_int_equal(u.pids, 1); /* the orphan */
	if (u.pids_peak)
		assert_int_equal(u.pids_peak, 2);
	assert_int_equal(u.pids_refused, 3);
	assert_int_equal(cgroup_destroy(cg, soon()), 0); /* kills it */
	assert_int_equal(count_groups(), 0);
	cgroup_host_free(h);
}

static void counts_memory_and_its_end(void **state UNUSED)
{
	struct cgroup_host *h = open_host();
	struct cgroup *cg = make(h, &limits);
	struct cgroup_usage u;
	uint64_t oom = 0, cpu = 0;
	int status;
	pid_t pid = spawn_inside(cg);

	if (pid == 0) {
		size_t size = 2 * MEMORY;
		volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t i = 0; p != MAP_FAILED && i < size; i += 4096)
			p[i] = 1;
		_exit(0);
	}
	status = wait_for(pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(cgroup_read(cg, &u), 0);
	assert_in_range(u.memory_peak_bytes, MEMORY / 2, MEMORY);
	assert_true(u.oom_kills >= 1); /* v2 also counts the killing of the group */
	assert_int_equal(cgroup_read_oom_kills(cg, &oom), 0);
	assert_int_equal(oom, u.oom_kills);
	assert_int_equal(cgroup_read_cpu_ns(cg, &cpu), 0);
	assert_true(cpu > 0);
	assert_int_equal(cgroup_destroy(cg, soon()), 0);
	cgroup_host_free(h);
}

/* The janitor: another process, which never made the cgroup, takes it down with a task inside. */
static void janitor_removes_a_living_cell(void **state UNUSED)
{
	struct cgroup_host *h = open_host();
	struct cgroup *cg = make(h, &limits);
	pid_t task = spawn_inside(cg), janitor;

	if (task == 0)
		for (;;)
			pause();
	while (cgroup_count_tasks(cg, 0) == 0)
		(void)usleep(100);
	janitor = fork();
	if (janitor == 0)
		_exit(cgroup_remove(cg, soon()) == 0 ? 0 : 1);
	assert_int_equal(wait_for(task), SIGKILL);
	assert_int_equal(wait_for(janitor), 0);
	assert_int_equal(count_groups(), 0);
	assert_int_equal(cgroup_destroy(cg, soon()), 0); /* gone already: fine */
	cgroup_host_free(h);
}

/* The same, but forked before there was anything: it knows only names, and no descriptor but its own. */
static void janitor_may_come_first(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = open_host();
	struct cgroup *cg = NULL;
	pid_t task, janitor;
	int go[2];
	char c;

	assert_int_equal(cgroup_prepare(h, next_id(), &cg, &err), 0);
	assert_int_equal(count_groups(), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	janitor = fork();
	if (janitor == 0) {
		cgroup_close_other_fds(cg, go[0]);
		if (read(go[0], &c, 1) != 0) /* its end, as when the supervisor dies */
			_exit(2);
		_exit(cgroup_remove(cg, soon()) == 0 ? 0 : 1);
	}
	assert_int_equal(cgroup_make(cg, &err), 0);
	assert_int_equal(cgroup_limit(cg, &limits, &err), 0);
	task = spawn_inside(cg);
	if (task == 0) {
		(void)close(go[1]);
		for (;;)
			pause();
	}
	while (cgroup_count_tasks(cg, 0) == 0)
		(void)usleep(100);
	(void)close(go[0]);
	(void)close(go[1]);
	assert_int_equal(wait_for(task), SIGKILL);
	assert_int_equal(wait_for(janitor), 0);
	assert_int_equal(count_groups(), 0);
	cgroup_free(cg);
	cgroup_host_free(h);
}

static void many_cycles_leave_nothing(void **state UNUSED)
{
	struct cgroup_host *h = open_host();
	uint64_t start = clock_now_ns(), made = 0, removed = 0;

	for (int i = 0; i < 200; i++) {
		uint64_t t = clock_now_ns();
		struct cgroup *cg = make(h, &limits);

		made += clock_now_ns() - t;
		t = clock_now_ns();
		assert_int_equal(cgroup_destroy(cg, soon()), 0);
		removed += clock_now_ns() - t;
	}
	print_message("200 cycles: create %llu us, destroy %llu us each\n", (unsigned long long)(made / 200000),
		      (unsigned long long)(removed / 200000));
	cgroup_host_free(h);
	start = clock_now_ns();
	for (int i = 0; i < 100; i++)
		cgroup_host_free(open_host());
	print_message("host open and free: %llu us\n", (unsigned long long)((clock_now_ns() - start) / 100000));
	assert_int_equal(count_groups(), 0);
}

/* On v2, root's cells share a group that whoever leaves last removes: nobody may fall over that. */
static void processes_do_not_disturb_each_other(void **state UNUSED)
{
	struct cgroup_host *h = open_host();
	pid_t pid[4];

	for (size_t i = 0; i < ARRAY_LEN(pid); i++) {
		pid[i] = fork();
		if (pid[i] != 0)
			continue;
		for (int k = 0; k < 25; k++) {
			struct brig_error err = BRIG_ERROR_INIT;
			struct cgroup *cg = NULL;
			char id[64];

			(void)snprintf(id, sizeof(id), "%sp%zu-%d", prefix, i, k);
			if (cgroup_create(h, id, &limits, &cg, &err) < 0 || cgroup_destroy(cg, soon()) < 0) {
				print_message("process %zu, cell %d: %s\n", i, k, err.msg);
				_exit(1);
			}
		}
		_exit(0);
	}
	for (size_t i = 0; i < ARRAY_LEN(pid); i++)
		assert_int_equal(wait_for(pid[i]), 0);
	cgroup_host_free(h);
	assert_int_equal(count_groups(), 0);
}

/* ---- without permission ---------------------------------------------------------------------- */

/* In a child, as an ordinary user: either delegated groups that work, or a reason for each. */
static int check_as_nobody(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = NULL;
	struct cgroup *cg = NULL;
	struct cgroup_usage u;
	struct cgroup_readback rb;

	if (cgroup_host_open(true, &h, &err) < 0)
		return 2;
	for (int r = 0; r < CGROUP_RESOURCE_COUNT; r++)
		if (cgroup_host_has(h, (enum cgroup_resource)r) ||
		    strlen(cgroup_host_why(h, (enum cgroup_resource)r)) < 20)
			return 3;
	if (cgroup_create(h, next_id(), &limits, &cg, &err) < 0)
		return 4;
	cgroup_readback(cg, CGROUP_MEMORY, &rb);
	if (rb.known || cgroup_clone_fd(cg) != -1 || cgroup_enter_self(cg) != 0 || cgroup_read(cg, &u) != -ENODATA ||
	    cgroup_count_tasks(cg, 0) >= 0)
		return 5;
	if (cgroup_destroy(cg, soon()) != 0)
		return 6;
	cgroup_host_free(h);
	return 0;
}

static void says_why_without_permission(void **state UNUSED)
{
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("skipped: needs root to become an ordinary user\n");
		skip();
	}
	pid = fork();
	if (pid == 0) {
		(void)unsetenv("XDG_RUNTIME_DIR");
		(void)unsetenv("DBUS_SESSION_BUS_ADDRESS");
		if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
		    setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(1);
		_exit(check_as_nobody());
	}
	status = wait_for(pid);
	assert_int_equal(status, 0);
}

/* ---- the user's manager ---------------------------------------------------------------------- */

static char runtime_dir[64];

/* A directory that looks like a user's runtime directory; with a manager that never answers, if asked. */
static int set_up_manager(bool listening)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = FD_NONE;

	(void)str_copy(runtime_dir, sizeof(runtime_dir), "/tmp/unit-scope-XXXXXX");
	assert_non_null(mkdtemp(runtime_dir));
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/systemd", runtime_dir);
	assert_int_equal(mkdir(addr.sun_path, 0700), 0);
	if (listening) {
		(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/systemd/private", runtime_dir);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(listen(fd, 4), 0);
	}
	assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime_dir, 1), 0);
	assert_int_equal(unsetenv("DBUS_SESSION_BUS_ADDRESS"), 0);
	return fd;
}

static void tear_down_manager(int fd)
{
	char path[128];

	if (fd >= 0)
		(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/systemd/private", runtime_dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/systemd", runtime_dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(runtime_dir), 0);
	(void)unsetenv("XDG_RUNTIME_DIR");
}

static void scope_without_a_manager_fails(void **state UNUSED)
{
	char why[200] = "";

	(void)unsetenv("XDG_RUNTIME_DIR");
	(void)unsetenv("DBUS_SESSION_BUS_ADDRESS");
	if (access("/run/user/0/systemd/private", F_OK) == 0)
		skip(); /* there is one: do not move the test into a scope */
	assert_true(systemd_scope_enter(200, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "systemd"));
}

static void scope_without_a_bus_fails(void **state UNUSED)
{
	int fd = set_up_manager(false);
	char why[200] = "";

	assert_true(systemd_scope_enter(200, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "systemd"));
	tear_down_manager(fd);
}

static void silent_manager_times_out(void **state UNUSED)
{
	int fd = set_up_manager(true);
	char why[200] = "";

	assert_true(systemd_scope_enter(50, why, sizeof(why)) < 0);
	assert_true(strstr(why, "no answer") || strstr(why, "libsystemd.so.0 is missing"));
	tear_down_manager(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_mount_lines),
		cmocka_unit_test(refuses_broken_lines),
		cmocka_unit_test(parses_cgroup_lines),
		cmocka_unit_test(leaves_out_endless_lines),
		cmocka_unit_test(finds_groups_below_mounts),
		cmocka_unit_test(reads_back_every_limit),
		cmocka_unit_test(unlimited_is_told_apart),
		cmocka_unit_test(finds_disks),
		cmocka_unit_test(writes_and_reads_limits_of_disks),
		cmocka_unit_test(limits_disks),
		cmocka_unit_test(refuses_bad_names),
		cmocka_unit_test(same_name_fails_cleanly),
		cmocka_unit_test(failure_leaves_nothing),
		cmocka_unit_test(counts_and_kills_tasks),
		cmocka_unit_test(counts_refused_forks),
		cmocka_unit_test(counts_memory_and_its_end),
		cmocka_unit_test(janitor_removes_a_living_cell),
		cmocka_unit_test(janitor_may_come_first),
		cmocka_unit_test(many_cycles_leave_nothing),
		cmocka_unit_test(processes_do_not_disturb_each_other),
		cmocka_unit_test(says_why_without_permission),
		cmocka_unit_test(scope_without_a_manager_fails),
		cmocka_unit_test(scope_without_a_bus_fails),
		cmocka_unit_test(silent_manager_times_out),
	};

	(void)snprintf(prefix, sizeof(prefix), "utest-%d-", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
