/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard is a process between the supervisor and the program.  It isolates nothing; it ensures that nothing outlives
 * a run:
 *
 *	it is a subreaper, so whatever the program starts stays among its descendants, however it detaches itself
 *	it keeps the wall clock, so a supervisor that is stopped cannot give the program more time
 *	when it is told to stop, or the supervisor is dead (end of file on its socket), it kills all descendants, until
 *	none is left
 *
 * The program's process runs a flat list of steps (steps.def), reports that it is ready, waits to be started, and
 * executes the program.  If a step fails it exits. Everything here runs in a copy of a process that may have threads,
 * and uses nothing that allocates.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/direct/direct.h"
#include "backend/guest/confine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "sys/caps.h"
#include "sys/scheduling.h"

#define WALL_GRACE_MS    800
#define PATIENCE_NS      (30 * NS_PER_SEC) /* how long it keeps killing */
#define PASS_PAUSE_MS    2
#define GO_FD            3
#define STEP_EXIT_STATUS 125

const char *const guard_step_what[] = {
#define GUARD_STEP(name, what) what,
#include "backend/direct/steps.def"
};

static bool say(int sock, enum guard_kind kind, int value, int sys)
{
	const struct guard_report r = {
		.magic = GUARD_MAGIC, .kind = kind, .value = value, .sys = sys, .at_ns = clock_now_ns()
	};

	return send(sock, &r, sizeof(r), MSG_NOSIGNAL) == (ssize_t)sizeof(r);
}

/* ---- the program's process ------------------------------------------------------------------- */

static int own_session(const struct guard_spec *s UNUSED)
{
	umask(022);
	return setsid() < 0 ? -errno : scheduling_reset();
}

static int connect_stdio(const struct guard_spec *s)
{
	for (int i = 0; i < 3; i++)
		if (dup2(s->stdio[i], i) < 0)
			return -errno;
	if (dup3(s->go, GO_FD, O_CLOEXEC) < 0 || close_range(GO_FD + 1, ~0U, 0) < 0)
		return -errno;
	return guest_reset_signals(NULL); /* signals that the caller ignores would stay ignored */
}

static int set_rlimits(const struct guard_spec *s)
{
	const struct limits *l = &s->plan->limits;
	struct guest_confine c = { .n_rlimits = 0 };

	/* A piped core_pattern ignores 0 and starts a helper; only 1 makes the kernel skip it. */
	guest_add_rlimit(&c, RLIMIT_CORE, 1);
	guest_add_rlimits(&c, l->open_files, l->disk_bytes, l->cpu_time_ms);
	guest_add_rlimit(&c, RLIMIT_NPROC, s->nproc);
	guest_add_rlimit(&c, RLIMIT_DATA, l->memory_bytes);
	(void)guest_offer_to_oom_killer(NULL);
	return guest_set_rlimits(&c);
}

static int enter_workspace(const struct guard_spec *s)
{
	return chdir(s->work) < 0 ? -errno : 0;
}

static int take_ids(const struct guard_spec *s)
{
	if (!s->own_ids)
		return 0;
	return caps_lock() < 0 ? -errno : guest_set_ids(s->uid, s->gid);
}

static int drop_caps(const struct guard_spec *s UNUSED)
{
	return caps_clear();
}

/* After the ids, since changing them clears it. */
static int die_together(const struct guard_spec *s UNUSED)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
}

static int forbid_privileges(const struct guard_spec *s)
{
	struct guest_confine c = { .deny_write_exec = s->plan->deny_write_exec };

	(void)guest_memory_rules(&c); /* optional hardening, for a program without isolation */
	return guest_no_new_privs(&c);
}

static const struct {
	enum guard_step step;
	int (*run)(const struct guard_spec *s);
} steps[] = {
	{ GUARD_session, own_session },
	{ GUARD_stdio, connect_stdio },
	{ GUARD_rlimits, set_rlimits },
	{ GUARD_workspace, enter_workspace },
	{ GUARD_ids, take_ids },
	{ GUARD_capabilities, drop_caps },
	{ GUARD_die_together, die_together },
	{ GUARD_no_new_privs, forbid_privileges },
};

static _Noreturn void program_main(const struct guard_spec *s)
{
	int sock = s->go;
	char word;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int rc = steps[i].run(s);

		if (steps[i].step == GUARD_stdio && rc == 0)
			sock = GO_FD;
		if (rc < 0) {
			(void)say(sock, GUARD_SAYS_FAILED, (int)steps[i].step, -rc);
			_exit(STEP_EXIT_STATUS);
		}
	}
	/* End of file means that the supervisor is dead; the guard notices that too. */
	if (!say(GO_FD, GUARD_SAYS_READY, 0, 0) || read(GO_FD, &word, 1) != 1)
		_exit(STEP_EXIT_STATUS);
	(void)execve(s->argv[0], s->argv, s->envp);
	(void)say(GO_FD, GUARD_SAYS_FAILED, GUARD_exec, errno);
	_exit(STEP_EXIT_STATUS);
}

/* ---- the guard ------------------------------------------------------------------------------- */

struct guard {
	struct guard_spec *s;
	pid_t program;
	int children; /* signalfd */
	bool ended;   /* and reported */
	uint64_t deadline_ns;
};

/* Reaps what has exited, but leaves the program a zombie: the supervisor still reads its /proc entry. */
static void look_after_children(struct guard *g)
{
	while (!g->ended) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		if (info.si_pid != g->program) {
			(void)waitpid(info.si_pid, NULL, WNOHANG);
			continue;
		}
		g->ended = true;
		(void)say(g->s->ctl, GUARD_SAYS_ENDED,
			  info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status),
			  0);
	}
}

static int wait_ms(const struct guard *g)
{
	uint64_t now = clock_now_ns();

	return g->ended ? -1 : now >= g->deadline_ns ? 0 : (int)((g->deadline_ns - now) / NS_PER_MS) + 1;
}

/* Returns when the supervisor requests the stop or is dead. */
static void watch_over(struct guard *g)
{
	for (;;) {
		struct pollfd p[] = { { .fd = g->s->ctl, .events = POLLIN }, { .fd = g->children, .events = POLLIN } };
		struct signalfd_siginfo seen[8];

		if (poll(p, ARRAY_LEN(p), wait_ms(g)) < 0 && errno != EINTR)
			return;
		if (p[0].revents)
			return;
		if (p[1].revents)
			(void)!read(g->children, seen, sizeof(seen));
		look_after_children(g);
		if (!g->ended && clock_now_ns() >= g->deadline_ns) {
			g->ended = true;
			(void)say(g->s->ctl, GUARD_SAYS_EXPIRED, 0, 0);
			(void)kill(g->program, SIGKILL);
		}
	}
}

static int kill_pass(struct guard *g)
{
	int n = 0;

	if (tree_read(&g->s->tree, getpid()) < 0)
		return -1;
	for (size_t i = 0; i < g->s->tree.n; i++)
		if (g->s->tree.row[i].inside) {
			(void)kill(g->s->tree.row[i].pid, SIGKILL);
			n++;
		}
	return n;
}

/* Returns how many are left; 0: no child is left, and therefore no descendant. */
static int kill_all(struct guard *g)
{
	uint64_t deadline = clock_now_ns() + PATIENCE_NS;

	for (;;) {
		struct pollfd p = { .fd = g->children, .events = POLLIN };
		int n = kill_pass(g);
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return 0;
		if (clock_now_ns() >= deadline)
			return n > 0 ? n : 1;
		(void)poll(&p, 1, PASS_PAUSE_MS);
		if (p.revents & POLLIN) {
			struct signalfd_siginfo seen[8];

			(void)!read(g->children, seen, sizeof(seen));
		}
	}
}

static void close_the_rest(const struct guard_spec *s)
{
	const int keep[] = { s->ctl, s->go, s->stdio[0], s->stdio[1], s->stdio[2], s->lock };
	unsigned from = 3;

	/* In ascending order; the supervisor moved them all above the standard descriptors. */
	for (;;) {
		int next = -1;

		for (size_t i = 0; i < ARRAY_LEN(keep); i++)
			if (keep[i] >= (int)from && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next < 0)
			break;
		if ((unsigned)next > from)
			(void)close_range(from, (unsigned)next - 1, 0);
		from = (unsigned)next + 1;
	}
	(void)close_range(from, ~0U, 0);
}

/* The supervisor knows our pid by now, and has given the workspace to the ids derived from it. */
static bool await_ids(struct guard_spec *s)
{
	uint32_t ids[2];

	if (recv(s->ctl, ids, sizeof(ids), 0) != (ssize_t)sizeof(ids))
		return false;
	s->uid = ids[0];
	s->gid = ids[1];
	return true;
}

_Noreturn void guard_main(struct guard_spec *s)
{
	struct guard g = { .s = s };
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	close_the_rest(s);
	(void)setsid(); /* so that a Ctrl-C reaches only the supervisor */
	g.children = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g.children < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
		(void)say(s->ctl, GUARD_SAYS_FAILED, GUARD_fork, errno);
		_exit(STEP_EXIT_STATUS);
	}
	if (!await_ids(s))
		_exit(STEP_EXIT_STATUS);
	g.deadline_ns =
		clock_now_ns() + (s->plan->limits.startup_ms + s->plan->limits.wall_ms + WALL_GRACE_MS) * NS_PER_MS;
	/* Not fork(): it would run the atfork handlers of the supervisor's libraries. */
	g.program = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (g.program == 0)
		program_main(s);
	(void)(g.program < 0 ? say(s->ctl, GUARD_SAYS_FAILED, GUARD_fork, errno)
			     : say(s->ctl, GUARD_SAYS_FORKED, g.program, 0));
	for (int i = 0; i < 3; i++)
		(void)close(s->stdio[i]);
	(void)close(s->go);
	if (g.program > 0)
		watch_over(&g);
	(void)say(s->ctl, GUARD_SAYS_GONE, kill_all(&g), 0);
	_exit(0);
}
