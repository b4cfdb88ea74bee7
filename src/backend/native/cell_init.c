/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a cell.  In one flat list of steps it forks the payload, builds the file tree while the payload creates the
 * other namespaces, joins those, sends the supervisor the descriptors through which the cell will be inspected, drops
 * all privileges, and from then on only reaps.
 *
 * Nothing continues after a failed step: init sends the step and its errno to the supervisor and exits, which makes the
 * kernel kill whatever was in the cell.  The supervisor's death has the same effect.
 */
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "backend/guest/wait.h"
#include "backend/native/cell_spec.h"
#include "base/clock.h"
#include "base/fd.h"
#include "sys/caps.h"
#include "sys/loopback.h"
#include "sys/scheduling.h"

#define WALL_GRACE_MS 500

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static int take(struct cell_build *b, const struct build_step *s)
{
	return s->confine ? s->confine(&b->confine) : s->run(b);
}

int build_run(struct cell_build *b, const struct build_step *steps, size_t n, enum step *ret_failed)
{
	for (size_t i = 0; i < n; i++) {
		enum protection p = step_info[steps[i].step].protection;
		int rc = FAULT_HIT(steps[i].step) ? -FAULT_ERRNO : take(b, &steps[i]);

		if (rc >= 0 || (p != PROT_COUNT && b->spec->plan->may_degrade & PROT_BIT(p)))
			continue; /* given up by policy: the evidence will show it (INV-4) */
		*ret_failed = steps[i].step;
		return rc;
	}
	return 0;
}

static int die_with_parent(struct cell_build *b UNUSED)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
}

/* Before entering a control group: one without a real-time share takes no real-time process. */
static int reset_scheduling(struct cell_build *b UNUSED)
{
	return scheduling_reset();
}

/* For the payload, which inherits the empty bounding set.  Init keeps its own capabilities until confine_init. */
static int lock_caps(struct cell_build *b UNUSED)
{
	return caps_lock();
}

static int await_maps(struct cell_build *b)
{
	char go;

	/* End of file: the supervisor died before PDEATHSIG was set. */
	return read(b->spec->ctl, &go, 1) == 1 ? 0 : -ESRCH;
}

int mate_send(int mate, enum mate_word word, uint64_t dev, uint64_t ino)
{
	struct mate_message m = { .word = (char)word, .root_dev = dev, .root_ino = ino };
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	/* Not send(): init's filter permits the calls that report_send() makes. */
	return sendmsg(mate, &msg, MSG_NOSIGNAL) == sizeof(m) ? 0 : -ECANCELED;
}

int mate_receive(int mate, enum mate_word word, struct mate_message *ret)
{
	ssize_t n;

	do {
		n = recv(mate, ret, sizeof(*ret), 0);
	} while (n < 0 && errno == EINTR);
	return n == sizeof(*ret) && ret->word == (char)word ? 0 : -ECANCELED;
}

/*
 * The supervisor creates the groups while we build; from here on what we write is charged to the cell.  Init and
 * payload each enter by themselves: to move another process, the kernel waits for every CPU.
 */
int build_enter_cgroup(const struct cell_spec *spec, int sock)
{
	struct received r;
	int rc;

	if (!spec->has_cgroup)
		return 0;
	rc = report_receive(sock, /* wait= */ true, &r);
	if (rc <= 0)
		return rc < 0 ? rc : -ESRCH;
	if (r.report.kind != REPORT_ENTER)
		return -EPROTO;
	rc = cgroup_enter(r.fds, r.n_fds);
	for (size_t i = 0; i < r.n_fds; i++)
		fd_closep(&r.fds[i]);
	return rc;
}

static int enter_cgroup(struct cell_build *b)
{
	return b->spec->enters_first ? 0 : build_enter_cgroup(b->spec, b->spec->ctl);
}

static int enter_cgroup_first(struct cell_build *b)
{
	return b->spec->enters_first ? build_enter_cgroup(b->spec, b->spec->ctl) : 0;
}

/* After entering, so that the namespace is rooted at the cell's own group. */
int build_cgroup_ns(struct cell_build *b)
{
	if (b->spec->cgroup_ns_cloned)
		return 0;
	return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

static int take_ids(struct cell_build *b)
{
	int rc;

	if (!b->spec->two_ids)
		return 0;
	rc = guest_set_ids(0, 0);
	if (rc < 0)
		return rc;
	/* The change of ids made us undumpable and our /proc files root's; restored until confine_init. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return die_with_parent(b); /* which the change of ids has cleared */
}

static int new_session(struct cell_build *b UNUSED)
{
	if (setsid() < 0)
		return -errno;
	umask(022);
	/* A new session keyring.  A kernel without keyrings has none to share. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return -errno;
	return 0;
}

/*
 * The sysctl belongs to the user namespace of the process that opens it, so the host's /proc gives us the cell's own.
 */
static int forbid_nested_userns(struct cell_build *b)
{
	b->nested_userns = open("/proc/sys/user/max_user_namespaces", O_RDWR | O_CLOEXEC);
	if (b->nested_userns < 0)
		return -errno;
	return fd_write_all(b->nested_userns, "0", 1);
}

/* The cell's clocks start near zero, since uptime identifies a host.  Only children are in the new time namespace. */
static int make_time_ns(struct cell_build *b)
{
	if (unshare(CLONE_NEWTIME) < 0)
		return -errno;
	return fd_put_at(AT_FDCWD, "/proc/self/timens_offsets", b->spec->time_offsets);
}

static int hand_over(struct cell_build *b)
{
	static const char *const names[] = {
		"/proc/self/ns/user", "/proc/self/ns/pid", "/proc/self/ns/mnt",    "/proc/self/ns/net",
		"/proc/self/ns/ipc",  "/proc/self/ns/uts", "/proc/self/ns/cgroup", "/proc/self/ns/time_for_children",
	};
	struct report ready = report_make(REPORT_READY);
	struct statfs root;
	int fds[HANDED_COUNT] = { [HANDED_ROOT] = b->root,
				  [HANDED_WORKSPACE] = b->workspace,
				  [HANDED_SCRATCH] = b->scratch,
				  [HANDED_UPPER] = b->project.upper >= 0 ? b->project.upper : b->workspace,
				  [HANDED_MASKS] = b->project.masks >= 0 ? b->project.masks : b->root };

	if (fstatfs(b->root, &root) < 0)
		return -errno;
	ready.blocks = root.f_bfree;
	ready.inodes = root.f_ffree;
	ready.own_bytes = b->project.own_bytes;
	ready.own_inodes = b->project.own_inodes;
	/* With nested_userns degraded there is no such file: send a descriptor that fails the check. */
	fds[HANDED_NESTED_USERNS] = b->nested_userns >= 0 ? b->nested_userns : b->root;
	for (size_t i = 0; i < USER_COUNT_COUNT; i++)
		fds[HANDED_USER_COUNT_FIRST + i] = b->user_count[i] >= 0 ? b->user_count[i] : b->root;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		fds[HANDED_NS_FIRST + i] = open(names[i], O_RDONLY | O_CLOEXEC);
		if (fds[HANDED_NS_FIRST + i] < 0) /* the kernel lacks that namespace */
			fds[HANDED_NS_FIRST + i] = b->root;
	}
	return report_send(b->spec->ctl, &ready, fds, HANDED_COUNT); /* confine_init closes all descriptors */
}

/* Early: the payload creates the slow namespaces (a network takes most of a millisecond) while we build the tree. */
static int fork_mate(struct cell_build *b)
{
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .pidfd = (uintptr_t)&b->payload_pidfd,
				   .exit_signal = SIGCHLD };
	int ends[2];
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* Not fork(): it would run the atfork handlers of the supervisor's libraries. */
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return -errno;
	b->mate = ends[pid == 0 ? 1 : 0];
	(void)close(ends[pid == 0 ? 0 : 1]);
	if (pid == 0)
		payload_main(b);
	b->payload = (pid_t)pid;
	return 0;
}

/* If init forks no payload, it creates the namespaces itself. */
static int fork_payload(struct cell_build *b)
{
	if (!b->spec->joined)
		return fork_mate(b);
	b->payload = GUEST_PROGRAM_PID;
	return unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ? -errno : 0;
}

/* While the payload still has our ids: setns() requires ptrace access to its /proc files. */
static int join_namespaces(struct cell_build *b)
{
	struct mate_message made;
	int rc;

	if (b->spec->joined)
		return 0;
	rc = mate_receive(b->mate, MATE_NAMESPACES, &made);
	if (rc < 0)
		return rc;
	return setns(b->payload_pidfd, CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ? -errno : 0;
}

static int set_hostname(struct cell_build *b UNUSED)
{
	if (sethostname("cell", 4) < 0 || setdomainname("", 0) < 0)
		return -errno;
	return 0;
}

static int bring_loopback_up(struct cell_build *b UNUSED)
{
	return loopback_up();
}

/*
 * A socket belongs to the network namespace in which it was created, whatever process serves it.  So the cell needs no
 * interface to reach the proxy, and the proxy needs no access to the cell.
 */
static int make_listeners(struct cell_build *b)
{
	struct report made = report_make(REPORT_LISTENER);
	const struct plan_egress *egress = b->spec->plan->egress;
	AUTO_FD socks = FD_NONE;

	if (!egress)
		return 0;
	socks = loopback_offer(egress->place, egress->n_places, EGRESS_BACKLOG);
	return socks < 0 ? socks : report_send(b->spec->ctl, &made, &socks, 1);
}

/* pivot_root has moved the root of every process in the mount namespace; the payload checks its own. */
static int show_tree(struct cell_build *b)
{
	struct stat root;

	if (b->spec->joined)
		return 0;
	if (fstat(b->root, &root) < 0)
		return -errno;
	return mate_send(b->mate, MATE_TREE, root.st_dev, root.st_ino);
}

/* The supervisor's environment came along in the copied memory; it must not be readable through PID 1. */
static void wipe_environment(const struct cell_spec *spec)
{
	if (spec->env_start)
		explicit_bzero(spec->env_start, (size_t)(spec->env_end - spec->env_start));
}

#define CTL_AFTER_CONFINE  0
#define MATE_AFTER_CONFINE 1

static uint64_t wall_end_ns = UINT64_MAX; /* read by the signal handler; the clock has not started */

/*
 * A second wall clock: a supervisor that is stopped, or blocked on a reader that does not read, must not give the
 * program more time. The end of PID 1 is the end of the whole cell.
 *
 * If the cell has one id, the program may be able to send SIGALRM, so the clock decides and not the signal.  A signal
 * sent while the timer's own is pending merges with it, and the handler then finds that it is late enough.
 */
static void expire(int sig UNUSED)
{
	struct report r = report_make(REPORT_EXPIRED);

	r.at_ns = clock_now_ns();
	if (r.at_ns < wall_end_ns)
		return;
	(void)report_send(CTL_AFTER_CONFINE, &r, NULL, 0);
	guest_end(124);
}

static int set_wall_clock(const struct plan *plan)
{
	/* Late enough that a working supervisor acts first, early enough for the promise of limit + 1 s. */
	uint64_t ms = plan->limits.wall_ms + WALL_GRACE_MS;
	struct itimerval timer = { .it_value = { .tv_sec = (time_t)(ms / 1000),
						 .tv_usec = (suseconds_t)(ms % 1000 * 1000) } };

	wall_end_ns = clock_now_ns() + ms * 1000000;
	return setitimer(ITIMER_REAL, &timer, NULL) < 0 ? -errno : 0;
}

/* await_start() sets the timer. */
static int listen_to_clock(void)
{
	struct sigaction act = { .sa_handler = expire, .sa_flags = SA_RESTART };
	sigset_t none;

	(void)sigemptyset(&none);
	if (sigaction(SIGALRM, &act, NULL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	return 0;
}

static void tell_sealed(const struct cell_build *b)
{
	const struct report sealed = report_make(REPORT_SEALED);

	if (b->spec->joined)
		(void)report_send(CTL_AFTER_CONFINE, &sealed, NULL, 0);
	else
		(void)mate_send(MATE_AFTER_CONFINE, MATE_SEALED, 0, 0); /* a dead payload has sent its own report */
}

static int confine_init(struct cell_build *b)
{
	int rc;

	wipe_environment(b->spec);
	/* Only two descriptors survive, as 0 and 1, so that the rest can be closed as one range. */
	if (dup3(b->spec->ctl, CTL_AFTER_CONFINE, O_CLOEXEC) < 0 ||
	    (b->mate >= 0 && dup3(b->mate, MATE_AFTER_CONFINE, O_CLOEXEC) < 0) ||
	    close_range(b->mate >= 0 ? MATE_AFTER_CONFINE + 1 : CTL_AFTER_CONFINE + 1, ~0U, 0) < 0)
		return -errno;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	rc = listen_to_clock();
	if (rc == 0)
		rc = caps_clear();
	if (rc == 0)
		rc = seccomp_install(b->spec->init_filter);
	if (rc == 0)
		tell_sealed(b);
	return rc;
}

static const struct build_step steps[] = {
	{ STEP_die_with_parent, .run = die_with_parent },
	/* For the payload, which inherits them; done here because init has to wait for its id maps anyway. */
	{ STEP_signals, .confine = guest_reset_signals },
	{ STEP_scheduling, .run = reset_scheduling },
	{ STEP_lock_caps, .run = lock_caps },
	{ STEP_await_maps, .run = await_maps },
	{ STEP_enter_cgroup, .run = enter_cgroup_first },
	{ STEP_open_trees, .run = root_open_trees },
	{ STEP_take_ids, .run = take_ids },
	{ STEP_new_session, .run = new_session },
	{ STEP_nested_userns, .run = forbid_nested_userns },
	{ STEP_user_counts, .run = user_counts_bound },
	{ STEP_time_ns, .run = make_time_ns },
	{ STEP_fork_payload, .run = fork_payload },
	{ STEP_root_tree, .run = root_make },
	{ STEP_system_dirs, .run = root_show_system },
	{ STEP_etc_files, .run = root_write_etc },
	{ STEP_certificates, .run = root_write_certificates },
	{ STEP_sys_files, .run = root_write_sys },
	{ STEP_devices, .run = root_show_devices },
	{ STEP_proc, .run = root_mount_proc },
	{ STEP_enter_cgroup, .run = enter_cgroup },
	{ STEP_cgroup_ns, .run = build_cgroup_ns },
	{ STEP_take_project, .run = root_take_project },
	{ STEP_scratch, .run = root_mount_scratch },
	{ STEP_show_project, .run = root_show_project },
	{ STEP_extra_binds, .run = root_show_extra },
	{ STEP_stage_files, .run = root_stage_files },
	{ STEP_mask_project, .run = root_mask_project },
	{ STEP_seal_root, .run = root_seal },
	{ STEP_pivot_root, .run = root_enter },
	{ STEP_join_namespaces, .run = join_namespaces },
	/* The payload confines itself during the slow steps that follow; it may start when both are done. */
	{ STEP_show_tree, .run = show_tree },
	{ STEP_hostname, .run = set_hostname },
	{ STEP_loopback, .run = bring_loopback_up },
	{ STEP_listener, .run = make_listeners },
	{ STEP_detach_host, .run = root_detach_host },
	{ STEP_hand_over, .run = hand_over },
	{ STEP_confine_init, .run = confine_init },
};

static _Noreturn void give_up(int ctl, enum step step, int rc)
{
	if (rc == -ECANCELED)
		guest_end(125); /* the payload failed first, and has reported why */
	/* A failed confine_init may have moved the socket already. */
	if (report_failure(ctl, step, rc) < 0)
		(void)report_failure(CTL_AFTER_CONFINE, step, rc);
	guest_end(125);
}

static void report_end(const siginfo_t *info)
{
	struct report r = report_make(REPORT_ENDED);

	r.exited = info->si_code == CLD_EXITED;
	r.value = info->si_status;
	r.at_ns = clock_now_ns();
	(void)report_send(CTL_AFTER_CONFINE, &r, NULL, 0);
}

/*
 * Reaps until the program itself has ended.  Its zombie is left unreaped: the supervisor still reads evidence from its
 * /proc entry, and the pid cannot be reused meanwhile.
 */
static _Noreturn void reap(pid_t payload)
{
	for (;;) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0)
			guest_end(125); /* cannot happen while the payload is our child */
		if (info.si_pid == payload) {
			char word;

			report_end(&info);
			/* The supervisor tells us to exit, or kills us; end of file means that it is gone. */
			while (read(CTL_AFTER_CONFINE, &word, 1) < 0 && errno == EINTR)
				;
			guest_end(0);
		}
		(void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED);
	}
}

/*
 * Waits for the byte with which the supervisor starts the clock, right before the one that starts the program: on a
 * busy host building can take long, and that is not the program's time.  A supervisor that is stopped before this byte
 * has not started the program either.  Nothing is reaped meanwhile: if the program's process dies first, the supervisor
 * sees its socket close and kills us.
 */
static void await_start(const struct plan *plan)
{
	char word;
	ssize_t n;

	do {
		n = read(CTL_AFTER_CONFINE, &word, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1 || set_wall_clock(plan) < 0)
		guest_end(125);
}

_Noreturn void cell_init_main(const struct cell_spec *spec)
{
	struct cell_build b = {
		.spec = spec,
		.root = FD_NONE,
		.scratch = FD_NONE,
		.workspace = FD_NONE,
		.nested_userns = FD_NONE,
		.project = { .source = FD_NONE, .upper = FD_NONE, .masks = FD_NONE },
		.payload_pidfd = FD_NONE,
		.mate = FD_NONE,
	};
	enum step failed = STEP_exec;
	int rc;

	for (size_t i = 0; i < USER_COUNT_COUNT; i++)
		b.user_count[i] = FD_NONE;
	rc = build_run(&b, steps, ARRAY_LEN(steps), &failed);

	if (rc < 0)
		give_up(spec->ctl, failed, rc);
	await_start(spec->plan);
	reap(b.payload);
}
