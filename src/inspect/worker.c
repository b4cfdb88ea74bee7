/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confined worker.  Parsers are big tables of generated C that read hostile text, so the text is inspected in a
 * child without privileges: one pipe for its answer, no other descriptor, no signal handler, its own limits, and a
 * filter (data/syscalls/inspect.list) that leaves it memory, read(), write() and exit().
 *
 *	caller					worker
 *	  pipe, block signals, fork  ------------>  limits, close all, no_new_privs, filter
 *	  poll the pipe until the answer is whole   inspect_text()
 *	  or the deadline; SIGKILL, waitid  <-----  header and findings, _exit
 *
 * A caller with many texts keeps workers that have done the first line before there is a text (inspectors.c).  If such
 * a worker dies without an answer, the text is inspected again as above.
 *
 *   RULE W1  Whatever the worker does, the caller continues within WALL_MAX_NS.
 *   RULE W2  Without limits and filter nothing is inspected: the worker reports that, and the caller gets an error.
 *   RULE W3  A worker that dies, is killed or sends an invalid message yields one finding, never an empty result,
 *            unless the policy allows that check by name.
 *
 * glibc's fork() is used and no bare clone(), because the worker needs malloc() even when the caller has threads. So
 * the child has the exit signal SIGCHLD: a caller with a handler for it sees one signal more.  The child is reaped
 * through its pidfd; if the caller's own wait() was faster, that does no harm.
 *
 * A worker that a text has taken over can lie ("nothing found").  That is as bad as having no inspection, and no worse:
 * the security boundary is the cell.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/wait.h"
#include "inspect/dispatch.h"
#include "inspect/wire.h"
#include "inspect/worker.h"
#include "sys/proc.h"
#include "sys/scheduling.h"
#include "sys/seccomp.h"

#define WALL_MAX_NS  (1850 * NS_PER_MS) /* killing it and freeing its memory takes time, too: 2 s in all */
#define DEATH_NS     (10 * NS_PER_SEC)  /* upper bound for the death of a killed worker */
#define CPU_MAX_SEC  2
#define MEMORY_EXTRA (400 * MiB)
/* most callers have used the answer by then: exiting needs cpu time that they need */
#define REST_NS   (12 * NS_PER_MS)
#define STACK_MAX (128 * MiB) /* the parser frees its own stack recursively, one frame per open token */

/* ---- the worker ----------------------------------------------------------------------------------------- */

int worker_confine(int fd, pid_t parent)
{
	/* AddressSanitizer reserves terabytes of address space. */
	rlim_t memory = SANITIZED ? RLIM_INFINITY : proc_address_space() + MEMORY_EXTRA;
	int rc;

	if (dup2(fd, 0) < 0 || close_range(1, ~0U, 0) < 0)
		return -errno;
	if ((rc = scheduling_reset()) < 0)
		return rc;
	if ((rc = proc_lower_limit(RLIMIT_CPU, CPU_MAX_SEC)) < 0 || (rc = proc_lower_limit(RLIMIT_AS, memory)) < 0 ||
	    (rc = proc_lower_limit(RLIMIT_CORE, 0)) < 0 || (rc = proc_lower_limit(RLIMIT_STACK, STACK_MAX)) < 0)
		return rc;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* If the parent died before prctl(), the signal never comes. */
	if (getppid() != parent)
		_exit(1);
	/* AddressSanitizer makes system calls that the filter denies; only the plain build is used in production. */
	return SANITIZED ? 0 : seccomp_install(seccomp_filter_inspect());
}

static void answer(const struct wire_header *h, const struct findings *f)
{
	(void)fd_write_all(0, h, sizeof(*h));
	if (h->n)
		(void)fd_write_all(0, f->row, h->n * sizeof(*f->row));
}

/* Sleeps with futex(), the only waiting call that the filter allows. */
static void rest(void)
{
	const struct timespec pause = { .tv_nsec = REST_NS };
	uint32_t nobody_changes = 0;

	(void)syscall(SYS_futex, &nobody_changes, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
}

void worker_work(int confined, const struct rule_set *rules, const struct inspect_request *req, bool rests)
{
	struct wire_header h = { .magic = WIRE_MAGIC };
	struct findings found = { 0 };

	if (confined < 0) {
		h.status = WIRE_NOT_CONFINED;
		h.sys = -confined;
	} else if (inspect_text(rules, req, &found, NULL) < 0) {
		h.status = WIRE_NO_MEMORY;
	} else {
		h.n = (uint32_t)found.n;
		h.worst = found.worst;
		h.dropped = (uint32_t)min_u64(found.dropped, UINT32_MAX);
	}
	answer(&h, &found);
	if (rests)
		rest();
	_exit(0);
}

/* ---- the caller ----------------------------------------------------------------------------------------- */

struct birth {
	void (*child)(void *arg);
	void *arg;
	pid_t pid;
	int sys;
};

static void fork_outside(void *arg)
{
	struct birth *b = arg;
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	b->pid = fork();
	b->sys = errno;
	if (b->pid == 0) {
		b->child(b->arg);
		_exit(1);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

pid_t worker_fork(void (*child)(void *arg), void *arg)
{
	struct birth b = { .child = child, .arg = arg };

	wait_outside(fork_outside, &b);
	errno = b.sys;
	return b.pid;
}

struct worker_task {
	const struct rule_set *rules;
	const struct inspect_request *req;
	int to_caller;
	pid_t caller;
};

static void work(void *arg)
{
	const struct worker_task *t = arg;

	worker_work(worker_confine(t->to_caller, t->caller), t->rules, t->req, /* rests= */ false);
}

static int start(const struct rule_set *rules, const struct inspect_request *req, struct worker *ret,
		 struct brig_error *err)
{
	AUTO_FD from_worker = FD_NONE;
	AUTO_FD to_caller = FD_NONE;
	struct worker_task task = { .rules = rules, .req = req, .caller = getpid() };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "inspection: cannot make a pipe");
	from_worker = ends[0];
	task.to_caller = to_caller = ends[1];
	ret->pid = worker_fork(work, &task);
	if (ret->pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "inspection: cannot start the worker process");
	ret->pid_fd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	ret->answer_fd = fd_move(&from_worker);
	ret->is_ours = true;
	return 0;
}

/*
 * Reads one whole answer, or everything up to the end of the pipe; false: too late.  A caller that polls after the
 * deadline still gets an answer that is there.  Does not wait for the worker's exit: freeing its memory takes as long
 * as inspecting a small text.
 */
static bool receive(int fd, uint64_t deadline, char *bytes, size_t size, size_t *ret_len)
{
	*ret_len = 0;
	for (;;) {
		uint64_t now = clock_now_ns();
		uint64_t left = now < deadline ? (deadline - now) / NS_PER_MS + 1 : 0;
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n = wait_poll(&p, 1, (int)left);

		if ((n < 0 && errno != EINTR) || (n == 0 && left == 0))
			return false;
		if (n <= 0)
			continue;
		n = read(fd, bytes + *ret_len, size - *ret_len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* a socket reports ECONNRESET if the peer died before it read the request */
			return n == 0 || errno == ECONNRESET;
		*ret_len += (size_t)n;
		if (wire_is_whole(bytes, *ret_len) || *ret_len == size)
			return true;
	}
}

/*
 * Kills the worker, which is no longer needed after its answer, and reaps it if it is our child.  Returns the way it
 * ended, in words; for a worker that is not our child only its answer is known.
 */
static const char *finish(struct worker *w, bool in_time)
{
	siginfo_t end = { 0 };
	int rc = -1;

	if (w->pid_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, w->pid_fd, SIGKILL, NULL, 0);
	else if (w->pid > 0)
		(void)kill(w->pid, SIGKILL);
	if (w->is_ours && w->pid_fd >= 0) /* waits without blocking other tasks of the thread, which waitid() would */
		(void)proc_await(w->pid_fd, clock_now_ns() + DEATH_NS);
	if (w->is_ours)
		do
			rc = waitid(w->pid_fd >= 0 ? P_PIDFD : P_PID, (id_t)(w->pid_fd >= 0 ? w->pid_fd : w->pid), &end,
				    WEXITED);
		while (rc < 0 && errno == EINTR);
	fd_closep(&w->pid_fd);
	fd_closep(&w->answer_fd);
	if (!in_time)
		return "it takes longer than 2 s";
	if (rc == 0 && end.si_code != CLD_EXITED && end.si_status == SIGSYS)
		return "the parser did something that it must not";
	return "the parser ended without an answer: too much memory or time, a signal from outside, or a bug of brig";
}

/*
 * Reports a finding for an inspection without a result.  late: time or memory ran out, as may happen with a long text;
 * otherwise the text or brig is at fault.
 */
static int cannot_say(const struct rule_set *rules, const struct inspect_request *req, bool late, const char *why,
		      struct findings *ret, struct brig_error *err)
{
	struct findings found = { 0 };
	struct judge j = {
		.rules = rules,
		.language = inspect_language(req->kind),
		.level = req->level,
		.text = req->text,
		.len = req->len,
		.out = &found,
	};
	const char *check = late ? judge_unfinished(&j) : "not-analysable";
	const struct rule *rule;

	rule = rules_find(rules, j.language, RULE_CHECK, check, strlen(check));
	if (rule && rule->chosen && rule_severity(rule, req->level) == SEVERITY_NONE) {
		*ret = found; /* allowed by name */
		return 0;
	}
	if (!judge_check(&j, check, (struct span){ 0, 0 }, "%s", why) || j.out_of_memory || !found.row) {
		findings_release(&found);
		return err_set(err, BRIG_E_SYSTEM, 0, "the text could not be inspected: %s", why);
	}
	found.row[0].line = found.row[0].column = found.row[0].end_line = found.row[0].end_column = 1;
	*ret = found;
	return 0;
}

struct inspect_job {
	const struct rule_set *rules;
	struct inspect_request req;
	struct worker worker;
	uint64_t deadline;
};

int inspect_begin(struct inspectors *from, const struct rule_set *rules, const struct inspect_request *req,
		  struct inspect_job **ret, struct brig_error *err)
{
	struct inspect_job *job = malloc(sizeof(*job));
	int rc = 0;

	if (!job)
		return err_nomem(err);
	*job = (struct inspect_job){
		.rules = rules, .req = *req, .worker = WORKER_NONE, .deadline = clock_now_ns() + WALL_MAX_NS
	};
	if (!inspectors_take(from, req, &job->worker))
		rc = start(rules, req, &job->worker, err);
	if (rc < 0) {
		free(job);
		return rc;
	}
	*ret = job;
	return 0;
}

/*
 * Reads one whole answer, or the part of it that was sent; false: too late.  A spare worker that exits without a
 * complete answer may have been killed, or died with its parent: then the text is inspected once more, by a worker of
 * our own, in the remaining time.
 */
static bool await_answer(struct inspect_job *job, char *bytes, size_t size, size_t *ret_len)
{
	struct brig_error err = BRIG_ERROR_INIT;
	bool in_time = receive(job->worker.answer_fd, job->deadline, bytes, size, ret_len);

	if (!in_time || job->worker.is_ours || wire_is_whole(bytes, *ret_len))
		return in_time;
	(void)finish(&job->worker, true);
	job->worker = WORKER_NONE;
	if (start(job->rules, &job->req, &job->worker, &err) < 0)
		return true; /* no answer, which is reported as a finding */
	return receive(job->worker.answer_fd, job->deadline, bytes, size, ret_len);
}

int inspect_finish_beside(struct inspect_job *job_taken, struct inspectors *beside, struct findings *ret,
			  struct brig_error *err)
{
	AUTO_FREE struct inspect_job *job = job_taken;
	AUTO_FREE char *bytes = malloc(WIRE_MAX + 1);
	struct wire_header h = { 0 };
	struct findings found = { 0 };
	bool in_time, no_memory = false;
	const char *why;
	size_t len = 0;

	in_time = bytes && await_answer(job, bytes, WIRE_MAX + 1, &len);
	if (in_time && beside && !job->worker.is_ours && wire_is_whole(bytes, len))
		inspectors_retire(beside, &job->worker);
	why = finish(&job->worker, in_time);
	if (!bytes)
		return err_nomem(err);
	if (!in_time || !wire_decode(bytes, len, job->req.len, &h, &found, &no_memory))
		return in_time && no_memory ? err_nomem(err)
					    : cannot_say(job->rules, &job->req, !in_time, why, ret, err);
	if (h.status == WIRE_NOT_CONFINED)
		return err_set(err, BRIG_E_SYSTEM, h.sys, "inspection: the worker process cannot be confined");
	if (h.status == WIRE_NO_MEMORY)
		return cannot_say(job->rules, &job->req, true, "it needs more than 400 MB of memory", ret, err);
	*ret = found;
	return 0;
}

int inspect_finish(struct inspect_job *job, struct findings *ret, struct brig_error *err)
{
	return inspect_finish_beside(job, NULL, ret, err);
}

void inspect_cancel(struct inspect_job *job)
{
	if (!job)
		return;
	(void)finish(&job->worker, true);
	free(job);
}

int inspect_confined(const struct rule_set *rules, const struct inspect_request *req, struct findings *ret,
		     struct brig_error *err)
{
	struct inspect_job *job = NULL;
	int rc = inspect_begin(NULL, rules, req, &job, err);

	return job ? inspect_finish(job, ret, err) : rc;
}
