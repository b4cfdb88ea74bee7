/* SPDX-License-Identifier: Apache-2.0 */
/* The steward's socket, requests sent over it, and time limits (session.h). */
#include "session/session.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>

#include "base/fd.h"
#include "base/str.h"
#include "session/inside.h"

/* ---- events and sources ------------------------------------------------------------------------ */

void session_tell(struct session *s, struct brig_session_event *event)
{
	event->size = sizeof(*event);
	if (s->config.on_event)
		s->config.on_event(s->config.user, event);
}

int source_watch(struct session *s, struct source *src, int fd, uint32_t events,
		 void (*serve)(struct session *s, void *owner, uint32_t events), void *owner)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	*src = (struct source){ .fd = FD_NONE, .events = events, .serve = serve, .owner = owner };
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	src->fd = fd;
	return 0;
}

void source_change(struct session *s, struct source *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	if (src->fd < 0 || src->events == events)
		return;
	src->events = events;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, src->fd, &ev);
}

void source_hold(struct session *s, struct source *src, bool held)
{
	struct epoll_event ev = { .events = src->events, .data.ptr = src };

	if (src->fd >= 0)
		(void)epoll_ctl(s->epoll, held ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, src->fd, &ev);
}

void source_close(struct session *s, struct source *src)
{
	if (src->fd >= 0)
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, src->fd, NULL);
	fd_closep(&src->fd);
}

/* ---- time limits ------------------------------------------------------------------------------ */

void session_is_active(struct session *s)
{
	s->active_ns = clock_now_ns();
}

static uint64_t idle_deadline(const struct session *s)
{
	bool busy = context_any_runs(s) || s->copy.tag;

	for (const struct process *p = s->processes; p && !busy; p = p->next)
		busy = !p->context;
	return busy ? UINT64_MAX : s->active_ns + s->config.idle_ms * NS_PER_MS;
}

/* When the session next has to act without an event. */
static uint64_t next_moment(const struct session *s)
{
	uint64_t at = s->stopping ? s->end_ns : min_u64(s->end_ns, copy_deadline(s));

	if (s->stopping || s->paused_ns)
		return at;
	at = min_u64(at, idle_deadline(s));
	return min_u64(at, min_u64(process_next_deadline(s), context_next_deadline(s)));
}

/*
 * Does not postpone a timer that is already armed: when it expires, it is armed again. Most deadlines are moved long
 * before they expire.
 */
void session_set_timer(struct session *s)
{
	const uint64_t at = next_moment(s);
	const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(at / NS_PER_SEC),
						       .tv_nsec = (long)(at % NS_PER_SEC) } };

	if (at >= s->timer_ns)
		return;
	s->timer_ns = at;
	(void)timerfd_settime(s->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void serve_timer(struct session *s, void *owner UNUSED, uint32_t events UNUSED)
{
	uint64_t times, now = clock_now_ns();

	(void)!read(s->timer.fd, &times, sizeof(times));
	s->timer_ns = UINT64_MAX;
	if (s->stopping) {
		s->must_end = s->must_end || now >= s->end_ns;
		s->end_ns = s->must_end ? UINT64_MAX : s->end_ns;
		session_set_timer(s);
		return;
	}
	if (!s->paused_ns) {
		process_check_deadlines(s, now);
		context_check_deadlines(s, now);
	}
	copy_check_deadline(s, now);
	if (now >= s->end_ns)
		session_stop(s, "its time is over");
	else if (!s->paused_ns && now >= idle_deadline(s))
		session_stop(s, "nothing was asked of it for session_idle_ms");
	session_set_timer(s);
}

int session_set_timeout(struct session *s, uint64_t ms, struct brig_error *err)
{
	uint64_t now = clock_now_ns(), most = s->begun_ns + s->config.most_ms * NS_PER_MS;

	if (ms == UINT64_MAX && now < most) {
		s->end_ns = most;
		session_set_timer(s);
		return 0;
	}
	if (ms > s->config.most_ms || now + ms * NS_PER_MS > most)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the session cannot last so long: session_timeout_ms is %llu ms from its beginning on",
			       (unsigned long long)s->config.most_ms);
	s->end_ns = now + ms * NS_PER_MS;
	session_set_timer(s);
	return 0;
}

void session_times(const struct session *s, uint64_t *ret_left_ms, uint64_t *ret_most_ms)
{
	uint64_t now = clock_now_ns(), most = s->begun_ns + s->config.most_ms * NS_PER_MS;

	*ret_left_ms = s->end_ns > now ? (s->end_ns - now) / NS_PER_MS : 0;
	*ret_most_ms = most > now ? (most - now) / NS_PER_MS : 0;
}

/* ---- requests --------------------------------------------------------------------------------- */

static void message_free(struct message *m)
{
	for (size_t i = 0; m->words && i < m->n_words; i++)
		free(m->words[i]);
	for (size_t i = 0; i < m->n_fds; i++)
		fd_closep(&m->fds[i]);
	free(m->words);
	free(m);
}

static const char taken_over[] = "its steward speaks out of turn: a program has taken it over";

/* If the steward has ended, the cell ends by itself. Otherwise session_must_end() makes the owner end the cell. */
static void lose(struct session *s, const char *why)
{
	if (s->lost)
		return;
	s->lost = true;
	s->must_end = s->must_end || why == taken_over;
	source_close(s, &s->control);
	session_stop(s, why);
}

static void flush(struct session *s)
{
	while (s->queue && s->ready && s->control.fd >= 0) {
		struct message *m = s->queue;
		int rc = steward_send(s->control.fd, &m->head, (const char *const *)m->words, m->n_words, m->fds,
				      m->n_fds, MSG_DONTWAIT);

		if (rc == -EAGAIN || rc == -ETOOMANYREFS)
			break;
		s->queue = m->next;
		if (!s->queue)
			s->queue_end = &s->queue;
		message_free(m);
		if (rc < 0) {
			lose(s, "its steward has ended");
			return;
		}
	}
	source_change(s, &s->control, s->queue && s->ready ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static struct asked *free_row(struct session *s)
{
	for (size_t i = 0; i < ASKED_MAX; i++)
		if (s->asked[i].kind == 0)
			return &s->asked[i];
	return NULL;
}

static struct asked *find_asked(struct session *s, uint64_t tag)
{
	for (size_t i = 0; i < ASKED_MAX; i++)
		if (s->asked[i].kind != 0 && s->asked[i].tag == tag)
			return &s->asked[i];
	return NULL;
}

static struct message *message_new(const struct steward_head *head, const char *const *words, size_t n_words, int *fds,
				   size_t n_fds)
{
	struct message *m = calloc(1, sizeof(*m));
	bool whole = m != NULL;

	if (m) {
		m->head = *head;
		m->words = calloc(n_words + 1, sizeof(*m->words));
		whole = m->words != NULL;
		m->n_words = n_words;
	}
	for (size_t i = 0; whole && i < n_words; i++)
		whole = (m->words[i] = strdup(words[i])) != NULL;
	for (size_t i = 0; i < n_fds; i++) {
		if (m)
			m->fds[m->n_fds++] = fd_move(&fds[i]);
		else
			fd_closep(&fds[i]);
	}
	if (whole)
		return m;
	if (m)
		message_free(m);
	return NULL;
}

static int check_words(const char *const *words, size_t n, struct brig_error *err)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += strnlen(words[i], STEWARD_BYTES_MAX) + 1;
	if (n > STEWARD_WORDS_MAX || total > STEWARD_BYTES_MAX)
		return err_set(err, BRIG_E_USAGE, 0,
			       "more than %d words, or more than %u bytes of them, cannot be said to a session at once",
			       STEWARD_WORDS_MAX, STEWARD_BYTES_MAX);
	return 0;
}

int session_send(struct session *s, const struct steward_head *head, const char *const *words, size_t n_words, int *fds,
		 size_t n_fds, bool quiet, struct brig_error *err)
{
	struct asked *row = free_row(s);
	int rc = check_words(words, n_words, err);
	struct message *m;

	if (rc == 0 && (s->stopping || s->lost))
		rc = err_set(err, BRIG_E_REFUSED, 0, "the session ends");
	if (rc == 0 && !row)
		rc = err_set(err, BRIG_E_REFUSED, 0, "%d things were asked of the session and not answered yet",
			     ASKED_MAX);
	m = message_new(head, words, rc == 0 ? n_words : 0, fds, n_fds);
	if (rc == 0 && !m)
		rc = err_nomem(err);
	if (rc < 0) {
		if (m)
			message_free(m);
		return rc;
	}
	*row = (struct asked){ .tag = head->tag, .kind = head->kind, .quiet = quiet };
	*s->queue_end = m;
	s->queue_end = &m->next;
	session_is_active(s);
	flush(s);
	session_set_timer(s);
	return 0;
}

uint64_t session_next_tag(struct session *s)
{
	return ++s->next_tag;
}

static uint64_t *find_watch(struct session *s, uint64_t tag)
{
	for (size_t i = 0; i < STEWARD_WATCHES_MAX; i++)
		if (s->watches[i] == tag)
			return &s->watches[i];
	return NULL;
}

static int check_path(const char *path, struct brig_error *err)
{
	if (!path || !*path)
		return err_set(err, BRIG_E_USAGE, 0, "there is no path");
	return strnlen(path, PATH_MAX) < PATH_MAX ? 0 : err_set(err, BRIG_E_USAGE, 0, "the path is too long");
}

int session_ask(struct session *s, const struct session_ask *what, uint64_t *ret_tag, struct brig_error *err)
{
	struct steward_head head = { .kind = what->kind, .tag = session_next_tag(s) };
	uint64_t *watch = what->kind == STEWARD_WATCH ? find_watch(s, 0) : NULL;
	const char *words[2];
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(what->path) && what->path[i]; i++) {
		rc = check_path(what->path[i], err);
		words[n++] = what->path[i];
	}
	if (rc == 0 && what->kind == STEWARD_WATCH && !watch)
		rc = err_set(err, BRIG_E_REFUSED, 0, "a session has at most %d watches", STEWARD_WATCHES_MAX);
	memcpy(head.number, what->number, sizeof(what->number));
	if (rc == 0)
		rc = session_send(s, &head, words, n, NULL, 0, false, err);
	if (rc < 0)
		return rc;
	if (what->kind == STEWARD_PAUSE)
		pause_begin(s);
	else if (what->kind == STEWARD_RESUME)
		pause_end(s);
	if (watch)
		*watch = head.tag;
	if (what->kind == STEWARD_UNWATCH && (watch = find_watch(s, (uint64_t)what->number[0])))
		*watch = 0;
	if (ret_tag)
		*ret_tag = head.tag;
	return 0;
}

/* ---- answers ----------------------------------------------------------------------------------- */

/*
 * Files of procfs, sysfs and the like are regular, too, but access to them depends on the process that reads or writes,
 * not only on the one that opened them: the program was checked at open, but the reads would have the owner's rights.
 */
static bool is_of_kernel(int fd)
{
	static const unsigned long kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
					       TRACEFS_MAGIC,    DEBUGFS_MAGIC, SECURITYFS_MAGIC,   NSFS_MAGIC };
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((unsigned long)st.f_type == kinds[i])
			return true;
	return false;
}

static bool is_regular(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !is_of_kernel(fd);
}

/* A TCP socket.  It belongs to the cell's own network namespace, since the steward can create it nowhere else. */
static bool is_connection(int fd)
{
	int type = 0, protocol = 0, domain = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && (domain == AF_INET || domain == AF_INET6) &&
	       getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 && protocol == IPPROTO_TCP;
}

/* The descriptor of an answer, if it is what was asked for; otherwise FD_NONE. */
static int take_descriptor(struct steward_message *m, unsigned asked_kind)
{
	bool good = m->n_fds == 1 && ((asked_kind == STEWARD_OPEN && is_regular(m->fds[0])) ||
				      (asked_kind == STEWARD_CONNECT && is_connection(m->fds[0])));

	return good ? fd_move(&m->fds[0]) : FD_NONE;
}

static int known_errno(int64_t number)
{
	return number < 0 || number > 4095 ? EPROTO : (int)number;
}

static void take_done(struct session *s, struct steward_message *m)
{
	struct asked *row = find_asked(s, m->head.tag);
	const int64_t *number = m->head.number;
	struct brig_session_event e = { .kind = BRIG_SESSION_DONE, .tag = m->head.tag, .fd = -1 };
	struct process *p = NULL;
	struct asked was;

	if (!row)
		return;
	was = *row;
	row->kind = 0;
	e.error = known_errno(number[0]);
	if (was.kind == STEWARD_START) {
		p = process_find(s, was.tag);
		e.pid = number[1];
		e.flags = number[2] == STEWARD_STAGE_FOLDER ? BRIG_SESSION_BAD_DIR : 0;
		if (e.error == 0 && number[1] <= 0)
			e.error = EPROTO;
		if (p)
			process_started(s, p, e.error, number[1]);
		if (!was.quiet)
			session_tell(s, &e);
		if (p && e.error == 0)
			process_listen(s, p);
		return;
	}
	if (was.kind == STEWARD_CPU) {
		context_cpu_told(s, was.tag, e.error ? 0 : (uint64_t)number[1]);
		return;
	}
	if (was.kind == STEWARD_SAVE || was.kind == STEWARD_LOAD) {
		copy_answered(s, was.tag, number, e.error);
		return;
	}
	if (e.error == 0 && (was.kind == STEWARD_OPEN || was.kind == STEWARD_CONNECT)) {
		e.fd = take_descriptor(m, was.kind);
		e.error = e.fd < 0 ? EPROTO : 0;
		e.fd = e.fd < 0 ? -1 : e.fd;
	}
	if (was.kind == STEWARD_PAUSE && e.error)
		pause_end(s); /* no process was stopped */
	if (was.kind == STEWARD_SIGNAL && was.quiet)
		context_signal_sent(s, was.tag);
	if (was.kind == STEWARD_LIST && number[1])
		e.flags = BRIG_SESSION_MORE;
	if (!was.quiet)
		session_tell(s, &e);
}

static void take_entry(struct session *s, const struct steward_message *m)
{
	const struct asked *row = find_asked(s, m->head.tag);
	const int64_t *number = m->head.number;
	struct brig_session_entry entry;
	struct brig_session_event e = { .kind = BRIG_SESSION_ENTRY, .tag = m->head.tag, .fd = -1, .entry = &entry };

	if (!row || (row->kind != STEWARD_STAT && row->kind != STEWARD_LIST) || m->head.n_words != 2)
		return;
	entry = (struct brig_session_entry){ .path = m->word[0],
					     .target = m->word[1],
					     .mode = (uint32_t)number[0],
					     .bytes = (uint64_t)number[1],
					     .mtime = number[2],
					     .mtime_ns = number[3],
					     .uid = (uint32_t)number[4],
					     .gid = (uint32_t)number[5],
					     .target_mode = (uint32_t)number[6] };
	session_tell(s, &e);
}

static void take_changed(struct session *s, const struct steward_message *m)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_CHANGED, .tag = m->head.tag, .fd = -1 };
	int64_t what = m->head.number[0];

	if (m->head.tag == 0 || !find_watch(s, m->head.tag) || m->head.n_words != 1 || what < 1 || what >= CHANGE_COUNT)
		return;
	e.change = (uint32_t)what;
	e.name = m->word[0];
	session_tell(s, &e);
}

static void take_ready(struct session *s)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_READY, .fd = -1 };

	if (s->ready)
		return;
	s->ready = true;
	session_tell(s, &e);
	flush(s);
}

static void take_message(struct session *s, struct steward_message *m)
{
	struct process *p;

	switch (m->head.kind) {
	case STEWARD_READY:
		take_ready(s);
		break;
	case STEWARD_DONE:
		take_done(s, m);
		break;
	case STEWARD_ENTRY:
		take_entry(s, m);
		break;
	case STEWARD_CHANGED:
		take_changed(s, m);
		break;
	case STEWARD_EXITED:
		p = process_find(s, m->head.tag);
		if (p && p->pid > 0)
			process_exited(s, p, &m->head);
		break;
	default:
		lose(s, taken_over);
	}
}

static void serve_control(struct session *s, void *owner UNUSED, uint32_t events)
{
	int rc;

	if (events & EPOLLOUT)
		flush(s);
	if (s->control.fd < 0 || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	rc = steward_receive(s->control.fd, s->received, MSG_DONTWAIT);
	if (rc == -EAGAIN)
		return;
	if (rc <= 0) {
		lose(s, rc == -EPROTO ? taken_over : "its steward has ended");
		return;
	}
	take_message(s, s->received);
	steward_message_release(s->received);
	session_set_timer(s);
}

/* ---- creating and ending ---------------------------------------------------------------------- */

int session_new(const struct session_config *config, struct session **ret, struct brig_error *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int timer;

	if (!s)
		return err_nomem(err);
	s->config = *config;
	s->control.fd = s->timer.fd = s->copy.end.fd = s->copy.file = FD_NONE;
	s->queue_end = &s->queue;
	s->timer_ns = UINT64_MAX;
	s->begun_ns = s->active_ns = clock_now_ns();
	s->end_ns = s->begun_ns + config->timeout_ms * NS_PER_MS;
	s->received = malloc(sizeof(*s->received));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!s->received || s->epoll < 0 || timer < 0 ||
	    source_watch(s, &s->timer, timer, EPOLLIN, serve_timer, s) < 0) {
		if (timer >= 0 && s->timer.fd < 0)
			(void)close(timer);
		session_free(s);
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot begin a session");
	}
	session_set_timer(s);
	*ret = s;
	return 0;
}

void session_abandon(struct session *s)
{
	s->stopping = true;
	copy_abandon(s);
	context_free_all(s);
	while (s->processes)
		process_free(s, s->processes);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_abandon(s);
	while (s->queue) {
		struct message *m = s->queue;

		s->queue = m->next;
		message_free(m);
	}
	source_close(s, &s->control);
	source_close(s, &s->timer);
	fd_closep(&s->epoll);
	free(s->received);
	free(s);
}

int session_fd(const struct session *s)
{
	return s->epoll;
}

int session_attach(struct session *s, int control, struct brig_error *err)
{
	int rc = source_watch(s, &s->control, control, EPOLLIN, serve_control, s);

	if (rc < 0) {
		(void)close(control);
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot watch a session's socket");
	}
	return 0;
}

bool session_step(struct session *s)
{
	struct epoll_event ev;
	const struct source *src;

	/* One event at a time: serving it may close other sources. */
	if (epoll_wait(s->epoll, &ev, 1, 0) <= 0)
		return false;
	src = ev.data.ptr;
	src->serve(s, src->owner, ev.events);
	return true;
}

void session_stop(struct session *s, const char *reason)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_STOPPING,
					.fd = -1,
					.name = reason ? reason : "it was asked to" };
	const struct steward_head head = { .kind = STEWARD_END, .tag = session_next_tag(s) };

	if (s->stopping)
		return;
	copy_abandon(s); /* the steward is blocked on it */
	if (!s->lost && s->ready)
		(void)session_send(s, &head, NULL, 0, NULL, 0, true, NULL);
	else if (!s->ready)
		s->must_end = true;
	s->stopping = true;
	s->end_ns = clock_now_ns() + GRACE_MS * NS_PER_MS;
	session_tell(s, &e);
	session_set_timer(s);
}

bool session_must_end(const struct session *s)
{
	return s->must_end;
}

bool session_is_stopping(const struct session *s)
{
	return s->stopping;
}
