/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zygotes, seen from the supervisor.
 *
 * Starting an interpreter takes several times as long as most programs run.  So one is started, and the program's
 * process of each cell is a fork of it (guest/wait/zygote.c), which joins a cell that was built as usual except that
 * its init has forked no payload.  Confinement, limits and evidence are those of any other cell (INV-6).
 *
 *	frame	 a cell of the same kind in which no program ever runs.  The zygote has its tree, its network, its
 *	cgroups and the host ids of its program
 *	zygote	 not in the frame's user and pid namespaces, since from inside these it could not enter another cell.
 *	It has no capability and cannot gain any
 *	cells	 their user namespaces belong to the zygote's user id.  That is its only privilege: it may enter them
 *
 * The id belongs to a namespace that exists as long as the frame, so no other process has it; the frame is removed when
 * the last cell that was filled from its zygote is gone.
 *
 * The children of one zygote share their memory layout, their hash seed, and the values that their C library drew at
 * startup; nothing that one of them did.  So a zygote is replaced after a number of children and some time
 * (keeper/zygotes.c), and serves one kind of cell of one caller.
 */
#include "backend/native/zygote.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "backend/guest/wait.h"
#include "backend/guest/walls.h"
#include "backend/native/cell.h"
#include "backend/native/waiting.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "sys/caps.h"
#include "sys/mnt.h"
#include "sys/proc.h"

#define END_MAX_NS (10 * NS_PER_SEC)

struct zygote {
	struct plan plan; /* the kind's plan with its own id */
	struct cell *frame;
	uint64_t uid, gid; /* its host ids */
	uid_t maker;       /* the supervisor's uid */
	int walls;         /* sealed file with the confinement for its children */
	int theirs, sock;  /* socket for orders */
	int pidfd;
	int poll; /* epoll set of everything that reports on it */
	bool ready, retired, ended;
	unsigned holds;    /* references: one until it is ended, one for each cell */
	unsigned children; /* number of children ordered or expected */
	unsigned expected; /* cells that were begun for it and do not have their process yet */
	uint64_t since_ns;
};

bool zygote_possible(const struct backend_host *h)
{
	return h->ids.kind == IDMAP_DIRECT && h->has_cgroups && h->landlock_abi > 0;
}

/* ---- ownership of cells -------------------------------------------------------------------------------------- */

/* The owner of a new user namespace is its creator's effective id.  Only in a single-threaded process. */
int zygote_enter_owner(const struct zygote *z)
{
	return z ? idmap_act_as(z->uid) : 0;
}

void zygote_leave_owner(const struct zygote *z)
{
	if (z)
		idmap_act_as_ourselves(z->maker);
}

void zygote_keep(struct zygote *z)
{
	if (!z)
		return;
	z->holds++;
	z->children++;
	z->expected++;
}

void zygote_child_came(struct zygote *z)
{
	if (--z->expected == 0 && z->retired && !z->ended)
		zygote_end(z);
}

void zygote_let_go(struct zygote *z)
{
	char leftovers[256];

	if (!z || --z->holds > 0)
		return;
	assert(z->ended);
	(void)native_backend.destroy(z->frame, leftovers, sizeof(leftovers)); /* `brig reap` finds what is left */
	fd_closep(&z->walls);
	fd_closep(&z->theirs);
	fd_closep(&z->sock);
	fd_closep(&z->poll);
	free(z);
}

/* ---- confinement of its children ----------------------------------------------------------------------------- */

static void arm_fault(struct guest_walls *w)
{
#ifdef BRIG_FAULTS
	static const enum step steps[] = {
#define X(name) [JOIN_##name] = STEP_##name,
		GUEST_JOINS(X)
#undef X
	};

	for (uint32_t i = 0; i < ARRAY_LEN(steps); i++)
		if (FAULT_HIT(steps[i])) {
			w->fault = 1 + i;
			w->fault_errno = (uint32_t)FAULT_ERRNO;
		}
#else
	(void)w;
#endif
}

static int fill_rules(const struct guest_confine *c, struct guest_rule *rules)
{
	for (size_t i = 0; i < c->n_rules; i++) {
		if (!str_copy(rules[i].path, sizeof(rules[i].path), c->rule[i].path))
			return -ENAMETOOLONG;
		rules[i].grant = c->rule[i].grant;
	}
	return 0;
}

static int write_walls(struct zygote *z)
{
	const struct guest_confine *c = &z->frame->spec.confine;
	const size_t rules = c->n_rules * sizeof(struct guest_rule);
	const size_t filter = c->filter.n * sizeof(struct sock_filter);
	const size_t telling = c->telling_filter.n * sizeof(struct sock_filter);
	const size_t size = sizeof(struct guest_walls) + rules + filter + telling;
	AUTO_FREE char *bytes = calloc(1, size);
	struct guest_walls w = { .magic = GUEST_WALLS_MAGIC,
				 .uid = c->uid,
				 .gid = c->gid,
				 .landlock_abi = (uint32_t)c->landlock_abi,
				 .n_rules = (uint32_t)c->n_rules,
				 .n_filter = c->filter.n,
				 .n_telling = c->telling_filter.n };
	int rc;

	if (!bytes)
		return -ENOMEM;
	if (!str_copy(w.folder, sizeof(w.folder), plan_working_folder(z->frame->spec.plan)))
		return -ENAMETOOLONG;
	arm_fault(&w);
	memcpy(bytes, &w, sizeof(w));
	rc = fill_rules(c, (struct guest_rule *)(void *)(bytes + sizeof(w)));
	if (rc < 0)
		return rc;
	memcpy(bytes + sizeof(w) + rules, c->filter.insns, filter);
	if (telling > 0)
		memcpy(bytes + sizeof(w) + rules + filter, c->telling_filter.insns, telling);
	z->walls = zygote_sealed_file("brig-walls", bytes, size, 0);
	return z->walls < 0 ? z->walls : 0;
}

/* ---- its process, between fork and exec ------------------------------------------------------------------ */

/* For the steps below, which run in the forked child; any failure ends it. */
static const struct zygote *self;

static int die_with_parent(struct cell_build *b UNUSED)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
}

static int enter_groups(struct cell_build *b UNUSED)
{
	int fds[CGROUP_ENTRIES_MAX + 1];
	int n = cgroup_open_entries(self->frame->cgroup, fds, ARRAY_LEN(fds));

	return n < 0 ? n : cgroup_enter(fds, (size_t)n); /* guest_close_files closes them */
}

/*
 * The zygote's /proc: a list of processes of which it can inspect only itself.
 *
 * Only the root of the pid namespace's user namespace can mount a new /proc.  Otherwise (range_ns.c) it gets this
 * process's directory of the host's /proc, which must be cloned while it is visible.
 */
static int take_own_folder(char name[16])
{
	char path[32];

	(void)snprintf(name, 16, "%d", (int)getpid());
	(void)snprintf(path, sizeof(path), "/proc/%s", name);
	if (unshare(CLONE_NEWNS) < 0) /* mounts can only be cloned from one's own mount namespace */
		return -errno;
	return mount_copy(AT_FDCWD, path, MNT_NOEXEC);
}

static int show_folder(int folder, const char *name)
{
	static const struct mount_param params[] = { { "size", "4096" }, { "nr_inodes", "8" }, { "mode", "0555" } };
	AUTO_FD proc = mount_new("tmpfs", params, ARRAY_LEN(params), MNT_NOEXEC);
	int rc;

	if (proc < 0)
		return proc;
	if (mkdirat(proc, name, 0555) < 0 || symlinkat(name, proc, "self") < 0)
		return -errno;
	rc = mount_attach(proc, AT_FDCWD, "/proc");
	if (rc == 0)
		rc = mount_attach(folder, proc, name);
	return rc < 0 ? rc : mount_restrict(proc, MNT_RO | MNT_NOEXEC);
}

static int show_processes(void)
{
	static const struct mount_param params[] = { { "subset", "pid" }, { "hidepid", "invisible" } };
	AUTO_FD proc = mount_new("proc", params, ARRAY_LEN(params), MNT_NOEXEC);

	return proc < 0 ? proc : mount_attach(proc, AT_FDCWD, "/proc");
}

/* Enters a copy of the frame's mount namespace. */
static int enter_frame(struct cell_build *b UNUSED)
{
	static const enum handed_fd rows[] = { HANDED_NS_NET, HANDED_NS_IPC, HANDED_NS_UTS, HANDED_NS_CGROUP,
					       HANDED_NS_MNT };
	const bool is_root = self->maker == 0;
	char name[16];
	AUTO_FD folder = is_root ? FD_NONE : take_own_folder(name);

	if (!is_root && folder < 0)
		return folder;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (setns(self->frame->handed[rows[i]], 0) < 0)
			return -errno;
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	return is_root ? show_processes() : show_folder(folder, name);
}

static int connect_streams(struct cell_build *b)
{
	const struct {
		int from, to;
	} rows[] = { { self->theirs, GUEST_WAIT_SOCKET },
		     { b->spec->wait_library, GUEST_WAIT_LIBRARY },
		     { self->walls, GUEST_WAIT_WALLS } };

	for (int i = 0; i < 3; i++)
		if (dup2(b->spec->stdio[i], i) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (dup2(rows[i].from, rows[i].to) < 0)
			return -errno;
	return 0;
}

static int lock_caps(struct cell_build *b UNUSED)
{
	return caps_lock();
}

static int enter_workspace(struct cell_build *b)
{
	(void)umask(022);
	if (chdir(PLAN_WORKSPACE) < 0)
		return -errno;
	return die_with_parent(b); /* the change of ids has cleared it */
}

static int execute(struct cell_build *b)
{
	(void)execve(b->spec->plan->argv[0], (char *const *)(uintptr_t)b->spec->plan->argv,
		     (char *const *)(uintptr_t)b->spec->envp);
	return -errno;
}

/* All of them are reported as one step. */
static const struct build_step steps[] = {
	{ STEP_zygote, .run = die_with_parent },
	{ STEP_zygote, .run = enter_groups },
	{ STEP_zygote, .run = enter_frame },
	{ STEP_zygote, .run = connect_streams },
	{ STEP_zygote, .confine = guest_reset_signals },
	{ STEP_zygote, .confine = guest_offer_to_oom_killer },
	{ STEP_zygote, .confine = guest_set_rlimits },
	{ STEP_zygote, .confine = guest_close_files },
	{ STEP_zygote, .confine = guest_memory_rules },
	{ STEP_zygote, .confine = guest_no_new_privs },
	{ STEP_zygote, .run = lock_caps },
	{ STEP_zygote, .confine = guest_take_ids },
	{ STEP_zygote, .confine = guest_clear_caps },
	{ STEP_zygote, .run = enter_workspace },
	{ STEP_zygote, .run = execute },
};

static _Noreturn void zygote_main(const struct zygote *z)
{
	struct cell_build b = { .spec = &z->frame->spec, .confine = z->frame->spec.confine };
	enum step failed;
	int rc;

	self = z;
	b.confine.close_from = GUEST_WAIT_WALLS + 1;
	b.confine.own_ids = true;
	b.confine.uid = (uid_t)z->uid;
	b.confine.gid = (gid_t)z->gid;
	rc = build_run(&b, steps, ARRAY_LEN(steps), &failed);
	/* On the socket's original number, or on its final one. */
	if (report_failure(z->theirs, STEP_zygote, rc) < 0)
		(void)report_failure(GUEST_WAIT_SOCKET, STEP_zygote, rc);
	guest_end(GUEST_WAIT_FAILED);
}

/* ---- life cycle ----------------------------------------------------------------------------------------- */

static int watch(const struct zygote *z, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(z->poll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int open_channel(struct zygote *z)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	z->sock = ends[0];
	z->theirs = ends[1];
	return fd_move_up(&z->theirs, 16);
}

static int spawn(struct zygote *z)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&z->pidfd };
	int rc = FAULT_HIT(STEP_zygote) ? -FAULT_ERRNO : open_channel(z);
	long pid;

	if (rc == 0)
		rc = write_walls(z);
	if (rc < 0)
		return rc;
	idmap_of_program(z->frame, &z->uid, &z->gid);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		zygote_main(z);
	if (pid < 0) {
		z->pidfd = FD_NONE;
		return -errno;
	}
	fd_closep(&z->theirs);
	for (int i = 0; i < 3; i++)
		fd_closep(&z->frame->spec.stdio[i]); /* not go: its end of file would mean a death */
	rc = watch(z, z->sock);
	return rc < 0 ? rc : watch(z, z->pidfd);
}

int zygote_begin(struct backend_host *h, const struct plan *plan, struct zygote **ret, struct brig_error *err)
{
	struct zygote *z = calloc(1, sizeof(*z));
	int rc;

	if (!z)
		return err_nomem(err);
	z->plan = *plan;
	z->walls = z->theirs = z->sock = z->pidfd = FD_NONE;
	z->holds = 1;
	z->maker = geteuid();
	z->since_ns = clock_now_ns();
	z->poll = epoll_create1(EPOLL_CLOEXEC);
	rc = z->poll < 0 || id_random(z->plan.id, RUN_ID_LEN) < 0
		     ? cell_step_failed(STEP_zygote, errno, err)
		     : cell_begin(h, &z->plan, /* joined= */ true, NULL, &z->frame, err);
	if (rc == 0 && watch(z, native_waiting_fd(z->frame)) < 0)
		rc = cell_step_failed(STEP_zygote, errno, err);
	if (rc < 0) {
		zygote_end(z);
		return rc;
	}
	*ret = z;
	return 0;
}

int zygote_fd(const struct zygote *z)
{
	return z->poll;
}

/* The first record must say that it is ready; any other, or end of file, means that it is lost. */
static enum zygote_state hear(struct zygote *z, struct brig_error *err)
{
	struct received r;
	int rc = report_receive(z->sock, /* wait= */ false, &r);

	if (rc == 1 && r.n_fds == 0 && !z->ready && r.report.kind == REPORT_WAITING) {
		z->ready = true;
		return ZYGOTE_READY;
	}
	if (rc == -EAGAIN)
		return z->ready ? ZYGOTE_READY : ZYGOTE_STARTS;
	(void)cell_step_failed(STEP_zygote, rc == 1 ? r.report.sys : ESRCH, err);
	return ZYGOTE_LOST;
}

enum zygote_state zygote_pump(struct zygote *z, struct brig_error *err)
{
	int rc;

	if (cell_pump(z->frame, err) < 0)
		return ZYGOTE_LOST;
	if (z->pidfd >= 0)
		return hear(z, err);
	if (!z->frame->ready || !z->frame->sealed)
		return ZYGOTE_STARTS;
	rc = spawn(z);
	if (rc == 0)
		return ZYGOTE_STARTS;
	(void)cell_step_failed(STEP_zygote, -rc, err);
	return ZYGOTE_LOST;
}

uint64_t zygote_bytes(const struct zygote *z)
{
	return native_waiting_bytes(z->frame);
}

unsigned zygote_children(const struct zygote *z)
{
	return z->children;
}

uint64_t zygote_since_ns(const struct zygote *z)
{
	return z->since_ns;
}

void zygote_retire(struct zygote *z)
{
	z->retired = true;
	if (z->expected == 0)
		zygote_end(z);
}

void zygote_end(struct zygote *z)
{
	if (!z)
		return;
	z->ended = true;
	if (z->pidfd >= 0) {
		(void)pidfd_send_signal(z->pidfd, SIGKILL, NULL, 0);
		(void)proc_reap(&z->pidfd, clock_now_ns() + END_MAX_NS, NULL);
		proc_leave(&z->pidfd);
	}
	fd_closep(&z->sock);
	zygote_let_go(z);
}

/*
 * For a payload that init has forked, init's namespaces prove where it is.  This child came by itself: so before it can
 * be claimed, its namespaces and cgroups are checked with the kernel.
 */
int zygote_check_child(const struct cell *c, enum step *ret_missed)
{
	static const char *const names[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time" };

	static_assert(ARRAY_LEN(names) == HANDED_COUNT - HANDED_NS_FIRST, "names[] is in the order of enum handed_fd");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct stat its, cells;
		char path[48];

		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", c->payload_pid, names[i]);
		if (stat(path, &its) < 0 || fstat(c->handed[HANDED_NS_FIRST + i], &cells) < 0 ||
		    its.st_dev != cells.st_dev || its.st_ino != cells.st_ino) {
			*ret_missed = HANDED_NS_FIRST + i == HANDED_NS_TIME ? STEP_child_time : STEP_child_namespaces;
			return -EXDEV;
		}
	}
	*ret_missed = STEP_child_groups;
	return cgroup_has_two(c->cgroup, c->init_pid, c->payload_pid) ? 0 : -EXDEV;
}

/*
 * Opens the files through which the zygote's child enters the cell's groups; returns their number, or -errno.  On
 * cgroup v1 they must have been opened by root or by the id of the task that enters.
 */
static int open_entries(const struct cell *c, int fds[GUEST_GROUPS_MAX])
{
	const struct zygote *as = c->zygote->maker == 0 ? NULL : c->zygote;
	int n = zygote_enter_owner(as);

	static_assert(CGROUP_ENTRIES_MAX < GUEST_GROUPS_MAX, "every group has its place");
	if (n == 0)
		n = cgroup_open_entries(c->cgroup, fds, GUEST_GROUPS_MAX);
	zygote_leave_owner(as);
	return n;
}

int zygote_order(struct cell *c)
{
	struct zygote *z = c->zygote;
	struct guest_word w = { .magic = GUEST_WORD_MAGIC, .kind = GUEST_FORK };
	struct iovec whole = { .iov_base = &w, .iov_len = sizeof(w) };
	int fds[GUEST_FORK_FDS_MAX] = {
		[GUEST_FD_USER] = c->handed[HANDED_NS_USER],
		[GUEST_FD_MNT] = c->handed[HANDED_NS_MNT],
		[GUEST_FD_NET] = c->handed[HANDED_NS_NET],
		[GUEST_FD_IPC] = c->handed[HANDED_NS_IPC],
		[GUEST_FD_UTS] = c->handed[HANDED_NS_UTS],
		[GUEST_FD_CGROUP] = c->handed[HANDED_NS_CGROUP],
		[GUEST_FD_PID] = c->handed[HANDED_NS_PID],
		[GUEST_FD_TIME] = c->handed[HANDED_NS_TIME],
		[GUEST_FD_IN] = c->spec.stdio[0],
		[GUEST_FD_OUT] = c->spec.stdio[1],
		[GUEST_FD_ERR] = c->spec.stdio[2],
		[GUEST_FD_SOCKET] = c->spec.go,
	};
	int rc;

	assert(c->limited); /* INV-2: limits come before the first guest instruction */
	rc = open_entries(c, fds + GUEST_FD_GROUPS);
	if (rc < 0)
		return rc;
	w.value = (uint64_t)rc;
	rc = z->sock < 0 ? -ESRCH : fd_send_record(z->sock, &whole, 1, fds, GUEST_FD_GROUPS + w.value, MSG_DONTWAIT);
	for (size_t i = 0; i < w.value; i++)
		fd_closep(&fds[GUEST_FD_GROUPS + i]);
	if (rc < 0)
		return rc;
	c->ordered = c->let_go = true;
	cell_close_child_ends(c);
	return 0;
}
