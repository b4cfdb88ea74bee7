/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct/direct.c - running a program without isolation, and reporting that.
 *
 *   supervisor   this process
 *   guard        its child, the parent of everything that the program starts (guard.c)
 *   program      an ordinary process of the host, in a scratch directory (scratch.c), with a copy of the project
 *                (project.c)
 *
 * For hosts where nothing better is possible and a user has explicitly decided to run code anyway.  It provides:
 * resource limits of the process, the wall clock, the output limit, a clean environment, no_new_privs, no process and
 * no file left behind, and for root unused user ids.  All other protections are in NEVER, so each result lists them as
 * missing.
 *
 * If the supervisor is killed, the guard kills the rest; `brig reap` and the next run find the directory.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "backend/direct/direct.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"
#include "sys/proc.h"

#define CHILD_FD_MIN 16 /* does not collide with the numbers that the program's process fills */

/* Everything except no_new_privs, which every program has. */
#define NEVER ((PROT_BIT(PROT_COUNT) - 1) & ~PROT_BIT(PROT_no_new_privs))

/* ---- the host -------------------------------------------------------------------------------- */

static int count_cell(void *arg UNUSED, const struct cell_entry *entry UNUSED)
{
	return 0;
}

static int direct_open(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
		       struct brig_error *err)
{
	struct backend_host *h = calloc(1, sizeof(*h));

	if (!h)
		return err_nomem(err);
	(void)scratch_reap(set, count_cell, NULL,
			   NULL); /* left by runs that were killed; what cannot be removed is not this run's concern */
	h->ids = idmap_find();
	*ret_missing = NEVER & ~(limits_disk_io(set) ? 0 : PROT_BIT(PROT_disk_io));
	/* Root has ids to assign; with another id the program also loses the capabilities. */
	if (h->ids.kind == IDMAP_DIRECT)
		*ret_missing &= ~(PROT_BIT(PROT_id_separation) | PROT_BIT(PROT_no_capabilities));
	*ret = h;
	return 0;
}

static void direct_close(struct backend_host *h)
{
	free(h);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int open_socket(int *child, int *ours)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*child = ends[0];
	*ours = ends[1];
	return fd_move_up(child, CHILD_FD_MIN);
}

static int open_channels(struct cell *c)
{
	struct guard_spec *s = &c->spec;
	int rc = fd_pipe_to_child(&s->stdio[0], &c->in, true, CHILD_FD_MIN);

	if (rc == 0)
		rc = fd_pipe_to_child(&s->stdio[1], &c->out, false, CHILD_FD_MIN);
	if (rc == 0)
		rc = fd_pipe_to_child(&s->stdio[2], &c->err, false, CHILD_FD_MIN);
	if (rc == 0)
		rc = open_socket(&s->ctl, &c->ctl);
	if (rc == 0)
		rc = open_socket(&s->go, &c->go);
	if (rc == 0) {
		c->poll = epoll_create1(EPOLL_CLOEXEC);
		rc = c->poll < 0 ? -errno : 0;
	}
	return rc;
}

static void close_child_ends(struct guard_spec *s)
{
	for (int i = 0; i < 3; i++)
		fd_closep(&s->stdio[i]);
	fd_closep(&s->ctl);
	fd_closep(&s->go);
}

static int start_guard(struct cell *c)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&c->guard_pidfd };
	const int watched[] = { c->ctl, c->go };
	sigset_t all, was;
	long pid;

	/* Blocked before the fork: a signal for the whole process group must not kill the guard. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &was);
	c->own_uts = c->spec.own_ids;
	args.flags |= c->own_uts ? CLONE_NEWUTS : 0;
	pid = syscall(SYS_clone3, &args, sizeof(args)); /* no exit signal: hidden from the caller's wait() */
	if (pid < 0 && errno == EPERM && c->own_uts) {
		c->own_uts = false;
		args.flags &= ~(uint64_t)CLONE_NEWUTS;
		pid = syscall(SYS_clone3, &args, sizeof(args));
	}
	if (pid == 0)
		guard_main(&c->spec);
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (pid < 0) {
		c->guard_pidfd = FD_NONE;
		return -errno;
	}
	c->guard = (pid_t)pid;
	close_child_ends(&c->spec);
	for (size_t i = 0; i <= ARRAY_LEN(watched); i++) {
		int fd = i < ARRAY_LEN(watched) ? watched[i] : c->guard_pidfd;
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

		if (epoll_ctl(c->poll, EPOLL_CTL_ADD, fd, &ev) < 0)
			return -errno;
	}
	return 0;
}

/*
 * Unused ids.  The guard has a uts namespace for the sake of its number, which no native cell and no other guard has;
 * where that is forbidden its pid is used instead, counted from the end of the range.
 */
static uint64_t own_pair(const struct cell *c)
{
	const struct idmap *m = &c->host->ids;
	uint64_t number, pair;

	if (c->own_uts && proc_ns_number(c->guard, "uts", &number) == 0 && idmap_pair(m, number, &pair) == 0)
		return pair;
	return m->pairs - 1 - (uint64_t)c->guard % (m->pairs / 2 + 1);
}

static void choose_ids(struct cell *c)
{
	const struct idmap *m = &c->host->ids;
	uint64_t pair;

	c->uid = geteuid();
	c->gid = getegid();
	if (!c->spec.own_ids)
		return;
	pair = own_pair(c);
	c->uid = (uid_t)(m->first_uid + 2 * pair + 1);
	c->gid = (gid_t)(m->first_gid + 2 * pair + 1);
}

/*
 * RLIMIT_NPROC counts all processes of a user: with an id of its own only the program's, otherwise ours have to be
 * added.
 */
static uint64_t process_limit(struct cell *c)
{
	uint64_t others = 0;

	if (c->spec.own_ids || tree_read(&c->spec.tree, 0) < 0)
		return c->spec.plan->limits.pids;
	for (size_t i = 0; i < c->spec.tree.n; i++) {
		char path[32];
		struct stat st;

		(void)snprintf(path, sizeof(path), "/proc/%d", c->spec.tree.row[i].pid);
		others += stat(path, &st) == 0 && st.st_uid == geteuid();
	}
	return others + c->spec.plan->limits.pids;
}

static int fill_spec(struct cell *c, struct brig_error *err)
{
	struct guard_spec *s = &c->spec;

	s->own_ids = c->host->ids.kind == IDMAP_DIRECT;
	s->work = c->scratch.work;
	s->lock = c->scratch.lock;
	s->argv = words_on_host(s->plan, &c->scratch, s->plan->argv);
	s->envp = words_on_host(s->plan, &c->scratch, s->plan->envp);
	if (!s->argv || !s->envp || tree_open(&s->tree) < 0)
		return err_nomem(err);
	s->nproc = process_limit(c);
	return 0;
}

static int failed(struct brig_error *err, int rc)
{
	return err_set(err, BRIG_E_SYSTEM, -rc, "cannot start the guard of a direct run");
}

static int fill_workspace(struct cell *c, struct brig_error *err)
{
	int rc = project_copy(c, err);

	if (rc == 0)
		rc = scratch_fill(&c->scratch, c->spec.plan, c->uid, c->gid, err);
	return rc < 0 ? rc : project_seal(c, err);
}

static int build(struct cell *c, struct brig_error *err)
{
	uint32_t ids[2];
	int rc = scratch_make(&c->scratch, c->spec.plan->id, err);

	if (rc == 0)
		rc = fill_spec(c, err);
	if (rc < 0)
		return rc;
	rc = open_channels(c);
	if (rc == 0)
		rc = start_guard(c);
	if (rc < 0)
		return failed(err, rc);
	choose_ids(c);
	rc = fill_workspace(c, err);
	if (rc < 0)
		return rc;
	ids[0] = c->uid;
	ids[1] = c->gid;
	if (send(c->ctl, ids, sizeof(ids), MSG_NOSIGNAL) != (ssize_t)sizeof(ids))
		return failed(err, -errno);
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int take_report(struct cell *c, const struct guard_report *r, struct brig_error *err)
{
	switch (r->kind) {
	case GUARD_SAYS_FORKED:
		c->program = r->value;
		return 0;
	case GUARD_SAYS_READY:
		c->ready = true;
		return 0;
	case GUARD_SAYS_ENDED:
		c->ended = true;
		c->end = (struct exit_info){ .exited = WIFEXITED(r->value), .at_ns = r->at_ns };
		*(c->end.exited ? &c->end.code : &c->end.signal) =
			c->end.exited ? WEXITSTATUS(r->value) : WTERMSIG(r->value);
		return 0;
	case GUARD_SAYS_EXPIRED:
		c->ended = true;
		c->end = (struct exit_info){ .signal = SIGKILL, .expired = true, .at_ns = r->at_ns };
		return 0;
	case GUARD_SAYS_GONE:
		c->gone = true;
		c->left = r->value;
		return 0;
	case GUARD_SAYS_FAILED:
		if (r->value >= 0 && r->value < GUARD_STEP_COUNT)
			return err_set(err, BRIG_E_SYSTEM, r->sys, "cannot %s%s%s", guard_step_what[r->value],
				       r->value == GUARD_exec ? ", " : "",
				       r->value == GUARD_exec ? c->spec.argv[0] : "");
		break;
	default:
		break;
	}
	return err_set(err, BRIG_E_INTERNAL, 0, "the guard sent a record that makes no sense");
}

static int drain(struct cell *c, int *sock, struct brig_error *err)
{
	while (*sock >= 0) {
		struct guard_report r;
		ssize_t n = recv(*sock, &r, sizeof(r), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n <= 0)
			fd_closep(sock);
		else if (n != (ssize_t)sizeof(r) || r.magic != GUARD_MAGIC || take_report(c, &r, err) < 0)
			return err->code ? -err->code
					 : err_set(err, BRIG_E_INTERNAL, 0, "unsound record from the guard");
	}
	return 0;
}

static int pump(struct cell *c, struct brig_error *err)
{
	struct brig_error scrap = BRIG_ERROR_INIT;
	struct pollfd p = { .fd = c->guard_pidfd, .events = POLLIN };
	bool dead = c->guard_pidfd >= 0 && poll(&p, 1, 0) > 0; /* before draining: see all its reports */
	int rc = drain(c, &c->go, err ? err : &scrap);

	if (rc == 0)
		rc = drain(c, &c->ctl, err ? err : &scrap);
	if (rc == 0 && c->go < 0 && c->let_go)
		c->started = true; /* exec closes the socket; if the process died before that, the guard reports it */
	if (rc == 0 && dead && !c->ended && !c->gone)
		return err_set(err, BRIG_E_SYSTEM, 0, "the guard died unexpectedly: the program may have killed it");
	return rc;
}

/* Waits until *condition holds or the time is over. */
static int await(struct cell *c, const bool *condition, uint64_t ms, struct brig_error *err)
{
	uint64_t deadline = clock_now_ns() + ms * NS_PER_MS;

	for (;;) {
		struct pollfd p = { .fd = c->poll, .events = POLLIN };
		uint64_t now = clock_now_ns();
		int rc = pump(c, err);

		if (rc < 0 || *condition)
			return rc;
		if (now >= deadline)
			return err_set(err, BRIG_E_SYSTEM, ETIMEDOUT, "the guard did not answer within %llu ms",
				       (unsigned long long)ms);
		if (wait_poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the guard");
	}
}

/* Waits until the guard has forked the program and the program is ready. */
static int direct_finish(struct cell *c, struct brig_error *err)
{
	uint64_t ms = c->spec.plan->limits.startup_ms;
	int rc = await(c, &c->ready, ms, err);

	/* Its pid comes over the other socket. */
	while (rc == 0 && c->program == 0)
		rc = await(c, &(const bool){ true }, ms, err);
	return rc;
}

static enum cell_event direct_on_event(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	if (pump(c, err) < 0)
		return CELL_FAILED;
	if (c->started && !c->told_started) {
		c->told_started = true;
		return CELL_STARTED;
	}
	if (c->ended && !c->told_ended) {
		c->told_ended = true;
		*info = c->end;
		return CELL_FINISHED;
	}
	return CELL_NOTHING;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static int direct_destroy(struct cell *c, char *leftovers, size_t size);

static int direct_begin(struct backend_host *h, const struct plan *plan, const struct backend_notice *notify,
			struct cell **ret, struct brig_error *err)
{
	struct cell *c = calloc(1, sizeof(*c));
	char leftovers[256];
	int rc;

	(void)notify; /* no step takes long */
	if (!c)
		return err_nomem(err);
	c->host = h;
	c->spec.plan = plan;
	c->left = -1;
	c->guard_pidfd = c->ctl = c->go = c->in = c->out = c->err = c->poll = FD_NONE;
	c->spec.ctl = c->spec.go = c->spec.lock = FD_NONE;
	c->scratch.lock = c->scratch.dir = FD_NONE;
	for (int i = 0; i < 3; i++)
		c->spec.stdio[i] = FD_NONE;
	rc = build(c, err);
	if (rc < 0) {
		(void)direct_destroy(c, leftovers, sizeof(leftovers));
		return rc;
	}
	*ret = c;
	return 0;
}

static int direct_start(struct cell *c, struct cell_fds *ret, struct brig_error *err)
{
	direct_inspect_start(c);
	c->started_ns = clock_now_ns();
	if (send(c->go, "g", 1, MSG_NOSIGNAL) != 1) {
		int sys = errno, rc = pump(c, err);

		return rc < 0 ? rc : failed(err, -sys);
	}
	c->let_go = true;
	*ret = (struct cell_fds){
		.in = c->in, .out = c->out, .err = c->err, .event = c->poll, .started_ns = c->started_ns
	};
	return 0;
}

static void direct_close_stdin(struct cell *c)
{
	fd_closep(&c->in);
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return ticks * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Memory of this process alone: shared pages would be counted for each process. */
static uint64_t private_bytes(pid_t pid)
{
	char path[32], text[128];
	unsigned long long size, resident, shared;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0 ||
	    sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || resident < shared)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Samples all descendants of the guard, including CPU time of dead children. */
static void look(struct cell *c, struct sample *ret)
{
	struct tree *t = &c->spec.tree;
	uint64_t ticks = 0;

	*ret = (struct sample){ .pids = 0 };
	if (c->guard_pidfd >= 0 && tree_read(t, c->guard) == 0)
		for (size_t i = 0; i < t->n; i++) {
			if (t->row[i].pid == c->guard)
				ticks += t->row[i].dead_ticks;
			if (!t->row[i].inside)
				continue;
			ticks += t->row[i].ticks;
			ret->memory_bytes += private_bytes(t->row[i].pid);
			ret->pids++;
		}
	c->cpu_ns_seen = max_u64(c->cpu_ns_seen, ticks_to_ns(ticks));
	c->memory_peak = max_u64(c->memory_peak, ret->memory_bytes);
	c->pids_peak = max_u64(c->pids_peak, ret->pids);
	ret->cpu_ms = c->cpu_ns_seen / NS_PER_MS;
	if (ret->memory_bytes > c->spec.plan->limits.memory_bytes)
		c->too_much_memory = true;
}

static int direct_sample(struct cell *c, struct sample *ret)
{
	struct sample now;

	look(c, &now);
	ret->cpu_ms = now.cpu_ms;
	ret->memory_bytes = now.memory_bytes;
	ret->pids = now.pids;
	return 0;
}

static uint64_t direct_cpu_ns(struct cell *c)
{
	struct sample now;

	look(c, &now);
	return c->cpu_ns_seen;
}

/* There is no OOM killer for the limit here; the watcher kills when a sample exceeds it. */
static uint64_t direct_oom_kills(struct cell *c)
{
	return c->too_much_memory;
}

static int direct_stop(struct cell *c, struct brig_error *err)
{
	struct sample last;
	int rc;

	if (c->guard_pidfd < 0)
		return 0;
	look(c, &last);
	if (c->ctl >= 0)
		(void)shutdown(c->ctl, SHUT_WR); /* end of file tells the guard to stop */
	rc = proc_reap(&c->guard_pidfd, clock_now_ns() + c->spec.plan->limits.cleanup_ms * NS_PER_MS, NULL);
	(void)pump(c, NULL); /* its last reports include how many are left */
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc,
			       "the program's processes did not die within cleanup_timeout_ms (%llu ms)",
			       (unsigned long long)c->spec.plan->limits.cleanup_ms);
	return 0;
}

static void direct_usage(struct cell *c, struct cell_usage *ret)
{
	*ret = (struct cell_usage){ .cpu_ms = c->cpu_ns_seen / NS_PER_MS,
				    .memory_peak_bytes = c->memory_peak,
				    .pids_peak = c->pids_peak,
				    .oom_kills = c->too_much_memory };
}

static void release(struct cell *c)
{
	int *const fds[] = { &c->ctl, &c->go, &c->in, &c->out, &c->err, &c->poll };

	close_child_ends(&c->spec);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_closep(fds[i]);
	proc_leave(&c->guard_pidfd); /* a guard that did not exit in time */
	tree_close(&c->spec.tree);
	free(c->spec.argv);
	free(c->spec.envp);
	free(c);
}

static int direct_destroy(struct cell *c, char *leftovers, size_t size)
{
	int left = 0, rc;
	size_t len;

	*leftovers = '\0';
	if (!c)
		return 0;
	if (direct_stop(c, NULL) < 0 || c->left > 0) {
		(void)snprintf(leftovers, size, "processes below %d", c->guard);
		left++;
	}
	len = strlen(leftovers);
	rc = scratch_remove(&c->scratch);
	if (rc < 0) {
		(void)snprintf(leftovers + len, size - len, "%sthe folder %s", len ? ", " : "", c->scratch.work);
		left++;
	}
	release(c);
	return left;
}

const struct backend_ops direct_backend = {
	.name = "direct",
	.never = NEVER,
	.open = direct_open,
	.close = direct_close,
	.begin = direct_begin,
	.finish = direct_finish,
	.start = direct_start,
	.on_event = direct_on_event,
	.close_stdin = direct_close_stdin,
	.sample = direct_sample,
	.cpu_ns = direct_cpu_ns,
	.oom_kills = direct_oom_kills,
	.read_back = direct_read_back,
	.stop = direct_stop,
	.usage = direct_usage,
	.open_output = direct_open_output,
	.open_folder = direct_open_folder,
	.workspace = direct_workspace,
	.list = scratch_list,
	.reap = scratch_reap,
	.destroy = direct_destroy,
};
