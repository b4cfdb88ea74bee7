/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/answerers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "sys/proc.h"

#define EVENTS_OF_A_TURN 16
#define OWN_FD           3
#define REQUEST_ID_MAX   128
#define REAP_NS          NS_PER_SEC /* for a killed process to exit */

enum answerer_state {
	ANSWERER_WAITS,
	ANSWERER_WORKS,
	ANSWERER_DONE, /* the request has been answered; the process is exiting */
};

struct answerer {
	TAILQ_ENTRY(answerer) in_all;
	enum answerer_state state;
	uint32_t tag;
	enum route route;
	char token[TOKEN_NAME_MAX + 1], request_id[REQUEST_ID_MAX + 1];
	int pidfd;
	struct channel *channel;
	uint64_t asked_ns, deadline_ns; /* deadline_ns: once it works */
};

/* ---- the child process ---------------------------------------------------------------------------------- */

static void await(const struct channel *c, short events)
{
	struct pollfd p = { .fd = channel_fd(c), .events = events };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

/* Closes all of the runner's descriptors, so that their peers see the runner close them. */
static bool keep_only(int *sock)
{
	if (*sock != OWN_FD && dup3(*sock, OWN_FD, O_CLOEXEC) < 0)
		return false;
	*sock = OWN_FD;
	return close_range(OWN_FD + 1, ~0U, 0) == 0;
}

static _Noreturn void be_answerer(struct service *s, struct request *req, int sock, pid_t runner,
				  answer_function answer)
{
	struct record word;

	(void)prctl(PR_SET_NAME, "brig-answerer");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != runner || !keep_only(&sock) ||
	    channel_new(&sock, &s->channel, NULL) < 0)
		_exit(1);
	s->channel_is_bad = false;
	s->master = s->epoll = FD_NONE;
	await(s->channel, POLLIN);
	if (channel_receive(s->channel, &word, NULL) != 1)
		_exit(0);
	answer(s, req);
	while (!s->channel_is_bad && channel_waiting(s->channel) > 0 && channel_flush(s->channel, NULL) == 0)
		await(s->channel, POLLOUT);
	_exit(0);
}

/* ---- life cycle ---------------------------------------------------------------------------------------------- */

void answerers_init(struct answerers *a)
{
	a->epoll = FD_NONE;
	TAILQ_INIT(&a->all);
}

int answerers_open(struct answerers *a, struct brig_error *err)
{
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	return a->epoll < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for processes that answer") : 0;
}

/* Reaps an exited process and frees its entry. */
static void drop(struct answerers *a, struct answerer *w)
{
	TAILQ_REMOVE(&a->all, w, in_all);
	a->n--;
	if (w->pidfd >= 0) {
		(void)epoll_ctl(a->epoll, EPOLL_CTL_DEL, w->pidfd, NULL);
		(void)proc_reap(&w->pidfd, clock_now_ns() + REAP_NS, NULL);
		fd_closep(&w->pidfd);
	}
	channel_free(w->channel);
	free(w);
}

static void kill_process(const struct answerer *w)
{
	(void)syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
}

/* Kills it; only its exit is still expected, as an event. */
static void be_done(struct answerers *a, struct answerer *w)
{
	if (w->state == ANSWERER_DONE)
		return;
	a->n_at_work -= w->state == ANSWERER_WORKS;
	w->state = ANSWERER_DONE;
	(void)epoll_ctl(a->epoll, EPOLL_CTL_DEL, channel_fd(w->channel), NULL);
	kill_process(w);
}

void answerers_release(struct answerers *a)
{
	struct answerer *w;

	TAILQ_FOREACH(w, &a->all, in_all)
	kill_process(w);
	while ((w = TAILQ_FIRST(&a->all)))
		drop(a, w);
	fd_closep(&a->epoll);
}

static int watch(const struct answerers *a, int fd, struct answerer *w)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = w } };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int start(struct service *s, struct request *req, answer_function answer, struct answerer *w)
{
	struct brig_error err = BRIG_ERROR_INIT;
	pid_t runner = getpid(), pid;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	AUTO_FD ours = ends[0];
	AUTO_FD theirs = ends[1];

	if (channel_new(&ours, &w->channel, &err) < 0)
		return -ENOMEM;
	pid = fork();
	if (pid == 0)
		be_answerer(s, req, theirs, runner, answer);
	if (pid < 0)
		return -errno;
	w->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (w->pidfd < 0) { /* without a pidfd it cannot be tracked; closing its channel makes it exit */
		int rc = -errno;

		channel_free(MOVE_PTR(w->channel));
		(void)proc_wait(pid);
		return rc;
	}
	return 0;
}

/* NULL: out of memory, or the process could not be started. */
static struct answerer *answerer_new(struct service *s, struct request *req, answer_function answer)
{
	struct answerers *a = &s->answerers;
	struct answerer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->tag = req->tag;
	w->route = req->route;
	w->asked_ns = clock_now_ns();
	w->pidfd = FD_NONE;
	(void)str_copy(w->token, sizeof(w->token), req->token ? req->token->name : "");
	(void)str_copy(w->request_id, sizeof(w->request_id), req->request_id);
	TAILQ_INSERT_TAIL(&a->all, w, in_all);
	a->n++;
	if (start(s, req, answer, w) < 0) {
		drop(a, w);
		return NULL;
	}
	if (watch(a, w->pidfd, w) < 0 || watch(a, channel_fd(w->channel), w) < 0) {
		kill_process(w);
		drop(a, w);
		return NULL;
	}
	return w;
}

/* ---- turns ------------------------------------------------------------------------------------------------ */

static size_t at_work_for(const struct answerers *a, const char *token)
{
	const struct answerer *w;
	size_t n = 0;

	TAILQ_FOREACH(w, &a->all, in_all)
	n += w->state == ANSWERER_WORKS && str_eq(w->token, token);
	return n;
}

static void let_work(struct answerers *a)
{
	const struct record begin = { .type = RECORD_ASK };
	struct answerer *w;

	TAILQ_FOREACH(w, &a->all, in_all)
	{
		if (a->n_at_work == ANSWERERS_AT_WORK)
			return;
		if (w->state != ANSWERER_WAITS || at_work_for(a, w->token) >= ANSWERERS_OF_TOKEN)
			continue;
		w->state = ANSWERER_WORKS;
		w->deadline_ns = clock_now_ns() + ANSWERER_NS;
		a->n_at_work++;
		(void)channel_send(w->channel, &begin, NULL); /* if it has died, its exit is handled */
	}
}

void answerers_take(struct service *s, struct request *req, answer_function answer)
{
	struct answerers *a = &s->answerers;

	if (a->n == ANSWERERS_MAX) {
		answer_retry(s, req, 503, 1,
			     "%d questions that take long wait for their answers: ask again in a moment",
			     ANSWERERS_MAX);
		return;
	}
	if (!answerer_new(s, req, answer)) {
		answer_retry(s, req, 503, 1, "there is no process for the question: ask again in a moment");
		return;
	}
	let_work(a);
}

/* ---- answers ----------------------------------------------------------------------------------------------- */

/* Answers in place of the process and kills it. */
static void answer_for(struct service *s, struct answerer *w, uint16_t status, const char *why)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	answer_retry(s, &req, status, status == 503 ? 1 : 0, "%s", why);
	be_done(&s->answerers, w);
}

static const char ended[] = "the process that was to answer has ended: see the log of the service";

static void take_answer(struct service *s, struct answerer *w)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	int rc = channel_receive(w->channel, &r, &err);

	if (rc == 0)
		return;
	if (rc < 0 || r.type != RECORD_ANSWER) {
		answer_for(s, w, 500, ended);
		return;
	}
	answer_pass_on(s, w->tag, &r);
	if (w->route == ROUTE_capabilities && r.status == 200)
		questions_keep_capabilities(s, &r, w->asked_ns);
	be_done(&s->answerers, w);
}

static bool has_ended(const struct answerer *w)
{
	struct pollfd p = { .fd = w->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void step(struct service *s, struct answerer *w)
{
	bool is_last = has_ended(w); /* checked before reading, so that all it sent is read */

	if (w->state != ANSWERER_DONE)
		take_answer(s, w);
	/* it died without an answer, but a descendant keeps the channel open */
	if (is_last && w->state != ANSWERER_DONE)
		answer_for(s, w, 500, ended);
	if (is_last)
		drop(&s->answerers, w);
}

static void end_late(struct service *s)
{
	uint64_t now_ns = clock_now_ns();
	struct answerer *w;

	TAILQ_FOREACH(w, &s->answerers.all, in_all)
	if (w->state == ANSWERER_WORKS && w->deadline_ns <= now_ns)
		answer_for(s, w, 503, "the question took longer than it may: ask again later, or for less");
}

void answerers_go_on(struct service *s)
{
	struct epoll_event ev[EVENTS_OF_A_TURN];
	int n = epoll_wait(s->answerers.epoll, ev, EVENTS_OF_A_TURN, 0);
	struct answerer *w, *next;

	if (n > 0) /* an answerer may have two events and be freed by the first, so walk the short list instead */
		for (w = TAILQ_FIRST(&s->answerers.all); w; w = next) {
			next = TAILQ_NEXT(w, in_all);
			step(s, w);
		}
	end_late(s);
	let_work(&s->answerers);
}

int answerers_patience(const struct answerers *a, int others_ms)
{
	uint64_t now_ns = clock_now_ns(), first_ns = UINT64_MAX;
	const struct answerer *w;
	int ms;

	TAILQ_FOREACH(w, &a->all, in_all)
	if (w->state == ANSWERER_WORKS)
		first_ns = min_u64(first_ns, w->deadline_ns);
	if (first_ns == UINT64_MAX)
		return others_ms;
	ms = first_ns <= now_ns ? 0 : (int)((first_ns - now_ns) / NS_PER_MS + 1);
	return others_ms >= 0 && others_ms < ms ? others_ms : ms;
}

bool answerers_gone(struct service *s, uint32_t tag)
{
	struct answerer *w;

	TAILQ_FOREACH(w, &s->answerers.all, in_all)
	if (w->state != ANSWERER_DONE && w->tag == tag) {
		answer_for(s, w, 503, "who asked has gone");
		return true;
	}
	return false;
}

void answerers_all_gone(struct service *s)
{
	struct answerer *w;

	TAILQ_FOREACH(w, &s->answerers.all, in_all)
	be_done(&s->answerers, w);
}

void answerers_stop(struct service *s)
{
	struct answerer *w;

	TAILQ_FOREACH(w, &s->answerers.all, in_all)
	if (w->state != ANSWERER_DONE)
		answer_for(s, w, 503, "the service is being stopped");
}
