/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that the owner starts.  Each is the leader of its own session, so a signal to its group reaches what it has
 * started, except what left the group.  Init reaps processes that outlive their parent.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/guest/steward/inside.h"
#include "base/fd.h"

struct stage_failed {
	int32_t stage, sys;
};

static struct process *find(struct steward *s, int64_t pid)
{
	for (size_t i = 0; i < STEWARD_PROCESSES_MAX; i++)
		if (s->process[i].pid > 0 && s->process[i].pid == pid && !s->process[i].ended)
			return &s->process[i];
	return NULL;
}

static struct process *free_row(struct steward *s)
{
	for (size_t i = 0; i < STEWARD_PROCESSES_MAX; i++)
		if (s->process[i].pid == 0)
			return &s->process[i];
	return NULL;
}

/* ---- in the child ------------------------------------------------------------------------------ */

static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void limit_cpu(int64_t seconds)
{
	struct rlimit l;

	if (seconds <= 0 || getrlimit(RLIMIT_CPU, &l) < 0)
		return;
	/* SIGXCPU at the soft limit can be caught, SIGKILL at the hard limit cannot. */
	l.rlim_cur = (rlim_t)min_u64((uint64_t)seconds, l.rlim_max);
	l.rlim_max = (rlim_t)min_u64((uint64_t)seconds + 1, l.rlim_max);
	(void)setrlimit(RLIMIT_CPU, &l);
}

/* Moves the descriptors above the target numbers first, then each to its place. */
static int place_descriptors(struct start *st)
{
	int n = (int)st->n_fds;

	for (int i = 0; i < n; i++) {
		st->fds[i] = fcntl(st->fds[i], F_DUPFD_CLOEXEC, STEWARD_FDS_MAX);
		if (st->fds[i] < 0)
			return -errno;
	}
	for (int i = 0; i < n; i++)
		if (dup2(st->fds[i], i) < 0)
			return -errno;
	return close_range((unsigned)n, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static int enter_terminal(struct start *st)
{
	if (!st->pty)
		return 0;
	return ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0 ? -errno : 0;
}

/* The steward's own variables, which are the cell's, overridden by those of the request. */
static int set_environment(const struct start *st)
{
	for (size_t i = 0; i < st->n_env; i++)
		if (strchr(st->env[i], '=') && putenv((char *)(uintptr_t)st->env[i]) != 0)
			return -ENOMEM;
	return 0;
}

static _Noreturn void become(struct start *st, int tell)
{
	struct stage_failed f = { .stage = STEWARD_STAGE_EXEC };
	char *argv[STEWARD_WORDS_MAX + 1];

	(void)setsid();
	reset_signals();
	limit_cpu(st->cpu_seconds);
	f.sys = -place_descriptors(st);
	if (f.sys == 0)
		f.sys = -enter_terminal(st);
	if (f.sys == 0)
		f.sys = -set_environment(st);
	if (f.sys == 0 && *st->folder && chdir(st->folder) < 0)
		f = (struct stage_failed){ STEWARD_STAGE_FOLDER, errno };
	for (size_t i = 0; i < st->n_argv; i++)
		argv[i] = (char *)(uintptr_t)st->argv[i];
	argv[st->n_argv] = NULL;
	if (f.sys == 0 && argv[0]) {
		(void)execvp(argv[0], argv);
		f.sys = errno;
	}
	(void)fd_write_all(tell, &f, sizeof(f));
	_exit(127);
}

/* ---- starting ---------------------------------------------------------------------------------- */

int64_t process_spawn(struct start *st, int *ret_stage)
{
	struct stage_failed f = { 0 };
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* A number that place_descriptors() does not overwrite. */
	if (fd_move_up(&ends[1], STEWARD_FDS_MAX + 1) < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return -EMFILE;
	}
	pid = fork();
	if (pid == 0)
		become(st, ends[1]);
	n = -errno;
	(void)close(ends[1]);
	if (pid > 0)
		n = fd_read_all(ends[0], &f, sizeof(f));
	(void)close(ends[0]);
	if (pid < 0)
		return n;
	if (n != sizeof(f))
		return pid;
	*ret_stage = f.stage;
	(void)waitpid(pid, NULL, 0);
	return -f.sys;
}

static bool read_start(const struct steward *s, struct start *st)
{
	const struct steward_message *m = &s->asked;
	const int64_t *number = m->head.number;

	*st = (struct start){
		.folder = m->word[0], .pty = number[2] & STEWARD_PTY, .cpu_seconds = number[3], .n_fds = m->n_fds
	};
	if (number[0] < 1 || number[1] < 0 || number[0] > STEWARD_WORDS_MAX || number[1] > STEWARD_WORDS_MAX ||
	    1 + number[0] + number[1] != (int64_t)m->head.n_words || m->n_fds < (st->pty ? 2 : 3) ||
	    (st->pty && m->n_fds != 2))
		return false;
	st->n_argv = (size_t)number[0];
	st->n_env = (size_t)number[1];
	st->argv = m->word + 1;
	st->env = st->argv + st->n_argv;
	memcpy(st->fds, m->fds, sizeof(st->fds));
	return true;
}

/* The request's pipes go to the terminal, and the process gets the terminal as all three streams. */
static int give_terminal(struct steward *s, struct start *st, struct process *p)
{
	struct steward_message *m = &s->asked;
	int slave = FD_NONE;
	int rc = terminal_open((int)m->head.number[4], (int)m->head.number[5], m->fds[0], m->fds[1], &p->terminal,
			       &slave);

	if (rc < 0)
		return rc;
	m->fds[0] = m->fds[1] = FD_NONE; /* taken by the terminal */
	for (int i = 0; i < 3; i++)
		st->fds[i] = slave;
	st->n_fds = 3;
	return slave;
}

void process_start(struct steward *s)
{
	struct process *p = free_row(s);
	struct start st;
	AUTO_FD slave = FD_NONE;
	int64_t number[3] = { 0 };
	int stage = STEWARD_STAGE_NONE;
	int64_t pid;

	if (!p || !read_start(s, &st)) {
		steward_done(s, p ? EPROTO : EAGAIN);
		return;
	}
	if (st.pty) {
		slave = give_terminal(s, &st, p);
		if (slave < 0) {
			steward_done(s, -slave);
			return;
		}
	}
	pid = spare_take(s, &st);
	if (pid == 0)
		pid = process_spawn(&st, &stage);
	if (pid < 0) {
		terminal_close(p->terminal);
		p->terminal = NULL;
		number[0] = -pid;
		number[2] = stage;
	} else {
		p->pid = (pid_t)pid;
		p->tag = s->asked.head.tag;
		p->ended = false;
		number[1] = pid;
		if (s->is_paused) /* its START was queued before the PAUSE */
			others_stop_one(s, p->pid);
	}
	steward_tell(s, STEWARD_DONE, s->asked.head.tag, number, ARRAY_LEN(number), NULL, 0, FD_NONE);
}

/* ---- signals and exits -------------------------------------------------------------------------- */

static void send_signal(struct steward *s, const struct process *p, int sig, bool to_group)
{
	int rc = kill(to_group ? -p->pid : p->pid, sig) < 0 ? errno : 0;

	if (rc == 0 && sig == SIGKILL)
		others_let_die(s, p->pid);
	steward_done(s, rc);
}

void process_signal(struct steward *s)
{
	const int64_t *number = s->asked.head.number;
	const struct process *p = find(s, number[0]);

	if (!p || number[1] < 0 || number[1] >= NSIG)
		steward_done(s, p ? EINVAL : ESRCH);
	else
		send_signal(s, p, (int)number[1], number[2] != 0);
}

void process_resize(struct steward *s)
{
	const int64_t *number = s->asked.head.number;
	const struct process *p = find(s, number[0]);

	if (!p || !p->terminal)
		steward_done(s, p ? ENOTTY : ESRCH);
	else
		steward_done(s, -terminal_resize(p->terminal, (int)number[1], (int)number[2]));
}

/* The value in /proc/PID/status after this name; NULL: not found. */
static const char *status_line(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

/*
 * Whether a process executes no further code: it is stopped, dead, or has a pending SIGSTOP.  The last is equivalent:
 * such a process creates no other (fork is restarted after the signal) and executes no instruction before it stops, but
 * on a busy machine it may take long until it gets the CPU to do so.
 */
static bool is_stopping(const char *pid)
{
	char path[48], text[8192];
	const char *state, *waiting;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/status", pid);
	n = fd_get_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT || n == -ESRCH; /* the process is gone */
	state = status_line(text, "\nState:\t");
	waiting = status_line(text, "\nShdPnd:\t");
	return state && waiting && (strchr("TtZX", *state) || strtoull(waiting, NULL, 16) & 1ULL << (SIGSTOP - 1));
}

/*
 * Sends sig to every process except this one, init and those for which passed_over returns true; returns to how many.
 */
static size_t signal_others(int sig, bool (*passed_over)(const char *pid))
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	size_t n = 0;

	while (dir && (e = readdir(dir))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid > 1 && pid != getpid() && !(passed_over && passed_over(e->d_name)))
			n += kill(pid, sig) == 0;
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

/*
 * The filter does not permit kill(-1).  A process missed by a pass was created before it by one that the pass found, so
 * a few passes find all, unless processes are created faster than we look.  SIGSTOP to a multi-threaded process is no
 * longer pending once one thread has taken it, while the state shown is that of the main thread, which stops a little
 * later: so the pauses grow, to about 1.6 seconds in all.
 */
#define PASSES_MAX   120
#define PASS_MOST_NS (20 * NS_PER_MS)
#define PIDS_MAX     4096

/* Youngest first: a shell that continues before its children would see them stopped, and treat them as stopped jobs. */
void process_continue_others(void)
{
	static pid_t pids[PIDS_MAX];
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	size_t n = 0;

	while (dir && n < PIDS_MAX && (e = readdir(dir))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid > 1 && pid != getpid())
			pids[n++] = pid;
	}
	if (dir)
		(void)closedir(dir);
	if (n == PIDS_MAX) /* there may be more */
		(void)signal_others(SIGCONT, NULL);
	while (n-- > 0)
		(void)kill(pids[n], SIGCONT);
}

int process_stop_others(void)
{
	uint64_t passes = 0;

	for (; passes < PASSES_MAX && signal_others(SIGSTOP, is_stopping) > 0; passes++) {
		const struct timespec rest = { .tv_nsec = (long)min_u64(passes * NS_PER_MS / 4, PASS_MOST_NS) };

		(void)nanosleep(&rest, NULL);
	}
	if (passes < PASSES_MAX)
		return 0;
	process_continue_others();
	return -EAGAIN;
}

void process_pause(struct steward *s)
{
	int rc = others_stop(s);

	s->is_paused = rc == 0;
	steward_done(s, -rc);
}

void process_resume(struct steward *s)
{
	others_continue(s);
	s->is_paused = false;
	steward_done(s, 0);
}

static void release(struct process *p)
{
	terminal_close(p->terminal);
	*p = (struct process){ .pid = 0 };
}

static void tell_exit(struct steward *s, struct process *p)
{
	const struct timeval *u = &p->used.ru_utime, *k = &p->used.ru_stime;
	const int64_t number[] = {
		p->pid,
		WIFEXITED(p->status) ? WEXITSTATUS(p->status) : -1,
		WIFSIGNALED(p->status) ? WTERMSIG(p->status) : 0,
		(int64_t)(u->tv_sec + k->tv_sec) * 1000000 + u->tv_usec + k->tv_usec,
		p->used.ru_maxrss,
	};

	steward_tell(s, STEWARD_EXITED, p->tag, number, ARRAY_LEN(number), NULL, 0, FD_NONE);
	release(p);
}

void process_reap(struct steward *s)
{
	struct signalfd_siginfo info;
	struct rusage used;
	int status;
	pid_t pid;

	while (read(s->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		struct process *p = find(s, pid);

		if (pid == s->spare.pid)
			spare_died(s);
		if (!p)
			continue;
		p->status = status;
		p->used = used;
		p->ended = true;
		if (!p->terminal || terminal_is_over(p->terminal))
			tell_exit(s, p);
	}
}

/* ---- terminals --------------------------------------------------------------------------------- */

size_t process_fill(struct steward *s, struct pollfd *slots)
{
	size_t n = 0;

	for (size_t i = 0; i < STEWARD_PROCESSES_MAX; i++) {
		struct process *p = &s->process[i];

		if (p->pid > 0 && p->terminal) {
			terminal_fill(p->terminal, slots + n);
			n += TERMINAL_SLOTS;
		}
	}
	return n;
}

void process_serve(struct steward *s, const struct pollfd *slots)
{
	for (size_t i = 0; i < STEWARD_PROCESSES_MAX; i++) {
		struct process *p = &s->process[i];

		if (p->pid == 0 || !p->terminal)
			continue;
		terminal_serve(p->terminal, slots);
		slots += TERMINAL_SLOTS;
		/* When its leader exits, the kernel hangs up the terminal for all processes that have it open. */
		if (p->ended && terminal_is_over(p->terminal))
			tell_exit(s, p);
	}
}
