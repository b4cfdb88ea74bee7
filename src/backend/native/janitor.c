/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	supervisor					janitor
 *	  GUARD number, name  ---------------------->	  stores the name
 *	  creates the groups of that name
 *	  REMOVE number, pidfd of the last process  ->	  waits for that process, removes the groups, retries if
 *	  necessary
 *	  continues with other work
 *	  reads the answer  <------------------------	  REMOVED or STUCK, number
 *	  shuts down its end, or dies  -------------->	  removes everything that it guards, and exits
 *
 * A socket's queued records are read before its end of file, so a name that was sent before the groups were created is
 * known whatever happens to the supervisor.  The first name is in the memory with which the janitor is forked.
 *
 * A janitor that does not read (it was stopped) is replaced by another one: the supervisor blocks on a janitor only in
 * janitor_await(). The stopped one still guards its groups, and removes them if it is continued.
 */
#include "backend/native/janitor.h"

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"
#include "sys/cgroup.h"
#include "sys/proc.h"

#define WARDS_MAX      128
#define PATIENCE_NS    (30 * NS_PER_SEC) /* how long it retries, whether or not the supervisor lives */
#define FIRST_PAUSE_NS (50 * 1000)
#define LAST_PAUSE_NS  (5 * NS_PER_MS)

enum word_kind { WORD_GUARD = 1, WORD_REMOVE, WORD_REMOVED, WORD_STUCK };

struct word {
	uint32_t kind, number;
	char name[CGROUP_NAME_MAX]; /* WORD_GUARD */
};

/* fd: FD_NONE, or a descriptor to send along. */
static int say(int sock, enum word_kind kind, uint32_t number, const char *name, int fd)
{
	struct word w = { .kind = kind, .number = number };
	struct iovec whole = { .iov_base = &w, .iov_len = sizeof(w) };

	(void)str_copy(w.name, sizeof(w.name), name);
	return fd_send_record(sock, &whole, 1, &fd, fd >= 0, MSG_DONTWAIT);
}

/* 1, 0 at end of file, -EAGAIN, or another -errno.  *ret_fd: owned by the caller, or FD_NONE. */
static int hear(int sock, struct word *ret, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	ssize_t n = fd_receive_record(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c;

	*ret_fd = FD_NONE;
	if (n <= 0)
		return n < 0 ? -errno : 0;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	if (n == sizeof(*ret))
		return 1;
	fd_closep(ret_fd);
	return -EPROTO;
}

/* ---- janitor: forked from a process that may have threads, so only async-signal-safe calls -------------------- */

struct ward {
	uint32_t number;
	bool removing;
	int dying;     /* FD_NONE: no process to wait for */
	unsigned left; /* bits of cgroup_remove_once() */
	uint64_t begin_ns, next_ns;
	char name[CGROUP_NAME_MAX];
};

struct wards {
	struct ward row[WARDS_MAX];
	size_t n;
	bool any_stuck;
};

static void note(struct wards *list, uint32_t number, const char *name)
{
	struct ward *w = &list->row[list->n];

	if (list->n == WARDS_MAX)
		return; /* cannot happen: the supervisor counts them */
	*w = (struct ward){ .number = number, .dying = FD_NONE, .left = CGROUP_EVERY_LEAF };
	if (str_copy(w->name, sizeof(w->name), name))
		list->n++;
}

static void begin_removal(struct ward *w, int dying)
{
	w->removing = true;
	w->dying = dying;
	w->begin_ns = w->next_ns = clock_now_ns();
}

static void take_removal(struct wards *list, uint32_t number, int *dying)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->row[i].number == number && !list->row[i].removing)
			begin_removal(&list->row[i], fd_move(dying));
}

/* False: end of file, or an error. */
static bool take_words(struct wards *list, int lifeline)
{
	struct word w;
	int rc, fd;

	while ((rc = hear(lifeline, &w, &fd)) == 1) {
		w.name[sizeof(w.name) - 1] = '\0';
		if (w.kind == WORD_GUARD)
			note(list, w.number, w.name);
		else if (w.kind == WORD_REMOVE)
			take_removal(list, w.number, &fd);
		fd_closep(&fd);
	}
	if (rc == -EAGAIN)
		return true;
	for (size_t i = 0; i < list->n; i++)
		if (!list->row[i].removing)
			begin_removal(&list->row[i], FD_NONE);
	return false;
}

/* The usual reason is a process that is slow to die.  Waits at most an eighth too long. */
static uint64_t pause_after(const struct ward *w, uint64_t now)
{
	return min_u64(max_u64((now - w->begin_ns) / 8, FIRST_PAUSE_NS), LAST_PAUSE_NS);
}

/* True: finished, removed or not. */
static bool remove_ward(struct wards *list, struct ward *w, struct cgroup *cg, int lifeline)
{
	const uint64_t now = clock_now_ns();
	bool late = now >= w->begin_ns + PATIENCE_NS, removed;

	if (!w->removing || (!late && (w->dying >= 0 || now < w->next_ns)))
		return false;
	fd_closep(&w->dying);
	cgroup_take_name(cg, w->name);
	removed = cgroup_remove_once(cg, &w->left);
	if (!removed && !late) {
		w->next_ns = now + pause_after(w, now);
		return false;
	}
	list->any_stuck |= !removed;
	(void)say(lifeline, removed ? WORD_REMOVED : WORD_STUCK, w->number, "", FD_NONE);
	return true;
}

/* Waits for a record, for the death of a process, or until the next attempt is due. */
static void await_work(struct wards *list, int lifeline)
{
	struct pollfd p[1 + WARDS_MAX] = { { .fd = lifeline, .events = POLLIN } };
	const uint64_t now = clock_now_ns();
	uint64_t pause_ns = UINT64_MAX;
	struct timespec pause;

	for (size_t i = 0; i < list->n; i++) {
		const struct ward *w = &list->row[i];
		uint64_t next = w->dying >= 0 ? w->begin_ns + PATIENCE_NS : w->next_ns;

		p[1 + i] = (struct pollfd){ .fd = w->dying, .events = POLLIN };
		if (w->removing)
			pause_ns = min_u64(pause_ns, next - min_u64(next, now));
	}
	pause.tv_sec = (time_t)(pause_ns / NS_PER_SEC);
	pause.tv_nsec = (long)(pause_ns % NS_PER_SEC);
	if (ppoll(p, 1 + list->n, pause_ns == UINT64_MAX ? NULL : &pause, NULL) <= 0)
		return;
	for (size_t i = 0; i < list->n; i++)
		if (p[1 + i].revents)
			fd_closep(&list->row[i].dying);
}

/*
 * The janitor inherits all of the supervisor's descriptors and must not keep a pipe open whose end of file a reader
 * waits for.  So it closes all except the lifeline and those through which groups are removed, which are the same for
 * every cell of a host.
 */
static _Noreturn void janitor_main(int lifeline, struct cgroup *cg, uint32_t first)
{
	struct wards list = { .n = 0 };
	bool listens = true;

	(void)prctl(PR_SET_NAME, "brig-janitor"); /* for ps(1) */
	cgroup_close_other_fds(cg, lifeline);
	note(&list, first, cgroup_name(cg));
	while (listens || list.n > 0) {
		await_work(&list, listens ? lifeline : FD_NONE);
		listens = listens && take_words(&list, lifeline);
		for (size_t i = list.n; i > 0; i--)
			if (remove_ward(&list, &list.row[i - 1], cg, lifeline))
				list.row[i - 1] = list.row[--list.n];
	}
	_exit(list.any_stuck ? 1 : 0);
}

/* ---- supervisor -------------------------------------------------------------------------------------- */

struct janitor {
	int pidfd;
	int lifeline; /* our end; the kernel closes it when we die */
	bool gone;
	uint32_t next; /* next number to assign */
	size_t n_unfinished;
	struct guarded *all; /* at most WARDS_MAX */
	size_t n;
};

struct guarded {
	struct guarded *next;
	struct janitor *janitor;
	uint32_t number;
	enum { GUARDED, REMOVED, STUCK } state;
};

static int fork_janitor(struct janitor *j, struct cgroup *cg)
{
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&j->pidfd };
	int ends[2];
	sigset_t all, was;
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* Blocked before the fork: a Ctrl-C for the whole process group must not kill the janitor. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &was);
	/* No exit signal: wait() in the caller's code must not find this child. */
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		(void)close(ends[1]);
		janitor_main(ends[0], cg, j->next);
	}
	/*
	 * Its own process group, set before there are any groups to leave behind: timeout(1) and shells send SIGKILL to
	 * the supervisor's whole process group, and the janitor must survive that.
	 */
	if (pid > 0)
		(void)setpgid((pid_t)pid, (pid_t)pid);
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	(void)close(ends[0]);
	if (pid < 0) {
		int saved = errno;

		(void)close(ends[1]);
		return -saved;
	}
	j->lifeline = ends[1];
	return 0;
}

static int start(struct cgroup *cg, struct janitor **ret)
{
	struct janitor *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return -ENOMEM;
	rc = fork_janitor(j, cg);
	if (rc < 0)
		free(j);
	else
		*ret = j;
	return rc;
}

static void end(struct janitor *j, uint64_t deadline_ns)
{
	(void)shutdown(j->lifeline, SHUT_WR); /* effective even if a dying process still has a duplicate */
	fd_closep(&j->lifeline);
	(void)proc_reap(&j->pidfd, deadline_ns, NULL);
	proc_leave(&j->pidfd);
	free(j);
}

/* It stays for the groups that it guards; the next cell gets another janitor. */
static void leave(struct janitors *js)
{
	struct janitor *j = MOVE_PTR(js->current);

	if (j && j->n == 0)
		end(j, clock_now_ns());
}

static void take_answers(struct janitor *j)
{
	struct word w;
	int rc, fd;

	while (!j->gone && (rc = hear(j->lifeline, &w, &fd)) != -EAGAIN) {
		j->gone = rc != 1;
		fd_closep(&fd);
		for (struct guarded *g = j->all; g && rc == 1; g = g->next)
			if (g->number == w.number)
				g->state = w.kind == WORD_REMOVED ? REMOVED : STUCK;
	}
}

/* True: there is a janitor, and it was told about the groups. */
static bool tell_current(struct janitors *js, const struct cgroup *cg)
{
	struct janitor *j = js->current;

	if (!j)
		return false;
	take_answers(j);
	return !j->gone && j->n < WARDS_MAX && say(j->lifeline, WORD_GUARD, j->next, cgroup_name(cg), FD_NONE) == 0;
}

int janitor_guard(struct janitors *js, struct cgroup *cg, struct guarded **ret)
{
	struct guarded *g = calloc(1, sizeof(*g));
	int rc = 0;

	if (!g)
		return -ENOMEM;
	if (!tell_current(js, cg)) {
		leave(js);
		rc = start(cg, &js->current);
	}
	if (rc < 0) {
		free(g);
		return rc;
	}
	*g = (struct guarded){ .next = js->current->all, .janitor = js->current, .number = js->current->next++ };
	g->janitor->all = g;
	g->janitor->n++;
	g->janitor->n_unfinished++;
	*ret = g;
	return 0;
}

void janitor_finish(struct janitors *js, struct guarded *g, int dying)
{
	struct janitor *j = g->janitor;

	if (say(j->lifeline, WORD_REMOVE, g->number, "", dying) < 0)
		g->state = STUCK; /* dead or stopped: the caller of janitor_await() removes the groups itself */
	if (--j->n_unfinished > 0 || (js->stays && js->current == j))
		return;
	(void)shutdown(j->lifeline, SHUT_WR);
	if (js->current == j)
		js->current = NULL;
}

int janitor_fd(const struct guarded *g)
{
	return g->janitor->lifeline;
}

bool janitor_is_done(struct guarded *g)
{
	if (g->state == GUARDED)
		take_answers(g->janitor);
	return g->state != GUARDED || g->janitor->gone;
}

int janitor_await(struct guarded *g, uint64_t deadline_ns)
{
	while (!janitor_is_done(g)) {
		struct pollfd p = { .fd = g->janitor->lifeline, .events = POLLIN };
		const uint64_t now = clock_now_ns();

		if (now >= deadline_ns)
			return -EBUSY;
		(void)wait_poll(&p, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1);
	}
	return g->state == REMOVED ? 0 : -ECHILD;
}

void janitor_release(struct janitors *js, struct guarded *g, uint64_t deadline_ns)
{
	struct janitor *j = g->janitor;

	for (struct guarded **at = &j->all; *at; at = &(*at)->next)
		if (*at == g) {
			*at = g->next;
			break;
		}
	free(g);
	if (--j->n == 0 && js->current != j)
		end(j, deadline_ns);
}

void janitor_end(struct janitors *js, uint64_t deadline_ns)
{
	if (js->current)
		end(MOVE_PTR(js->current), deadline_ns);
}

void janitor_close_in_child(const struct janitors *js)
{
	if (!js->current)
		return;
	(void)close(js->current->lifeline);
	(void)close(js->current->pidfd);
}
