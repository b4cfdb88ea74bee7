/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - the runner's main loop
 *
 *	start     drop privileges; file limits, policy, tokens, ledger; then tell the master that the runner is ready
 *	turn      handle events (channel, master, runs); start executions; write promises to disk; send answers
 *	drain     accept nothing new; exit when nothing is left to do
 *	now       turn waiting executions away, cancel running ones, then as above
 *	no front  its clients count as disconnected; other work continues; the master sends a channel to the next front
 *	end       when the master's socket closes: cancel everything, without answers
 *
 * Nothing blocks but epoll_wait(): runs are stepped, channels queue, state files are short, slow queries have processes
 * of their own.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/exporter.h"
#include "server/report.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"
#include "server/runner/confine.h"
#include "server/runner/versions.h"
#include "server/control.h"
#include "sys/memory.h"

#define EVENTS_OF_A_TURN  64
#define RECORDS_OF_A_TURN 64
#define QUEUE_DEFAULT     4096
#define UNSENT_MAX        (16 * MiB)
#define JOBS_MAX          1024
#define JOBS_AT_LEAST     4
#define WARM_DEFAULT_MAX  16
#define ACCOUNTS_MAX      4096
#define FDS_OURS          64 /* listeners, files, what the handle keeps open */
#define FDS_CELL \
	96 /* needed to create one cell, including its archive, its proxy and the cell kept ready to replace it */

/* epoll data pointers other than executions. */
static char channel_mark, master_mark, answerers_mark, recorded_mark, sessions_mark, link_mark, tunnels_mark;

static void complain(const struct brig_error *err)
{
	report("%s", err->msg);
}

/* ---- polling ------------------------------------------------------------------------------------------------ */

int service_watch(struct service *s, struct execution *x)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = x } };

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, brig_run_fd(x->run), &ev) < 0)
		return -errno;
	x->is_watched = true;
	return 0;
}

void service_unwatch(struct service *s, const struct execution *x)
{
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, brig_run_fd(x->run), NULL);
}

static int watch_plain(struct service *s, int op, int fd, uint32_t events, void *mark)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = mark } };

	return epoll_ctl(s->epoll, op, fd, &ev) < 0 ? -errno : 0;
}

/* Backpressure: while many bytes are queued for the front, no further requests are read from it. */
static bool is_crowded(const struct service *s)
{
	return channel_waiting(s->channel) > UNSENT_MAX;
}

static bool hears_front(const struct service *s)
{
	return s->channel && !s->channel_is_bad;
}

/* Updates the events polled for on the front's channel; called before each wait. */
static void watch_channel(struct service *s)
{
	uint32_t wanted;
	short events;

	if (!hears_front(s))
		return;
	events = channel_events(s->channel);
	if (is_crowded(s))
		events &= ~POLLIN;
	if (events == s->channel_events)
		return;
	wanted = (events & POLLIN ? (uint32_t)EPOLLIN : 0) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0);
	(void)watch_plain(s, EPOLL_CTL_MOD, channel_fd(s->channel), wanted, &channel_mark);
	s->channel_events = events;
}

bool service_watch_link(struct service *s, bool is_on)
{
	struct queue *q = &s->queue;
	short events = is_on ? channel_events(q->channel) : 0;
	uint32_t wanted = EPOLLIN | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0);
	int op = q->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (events == q->events)
		return true;
	if (watch_plain(s, op, channel_fd(q->channel), wanted, &link_mark) < 0)
		return false;
	q->events = events;
	return true;
}

/* ---- starting executions ------------------------------------------------------------------------------------ */

static struct execution *execution_of(struct ticket *t)
{
	return (struct execution *)((char *)t - offsetof(struct execution, ticket));
}

void service_start_next(struct service *s)
{
	struct ticket *t;

	if (!s->stopping)
		batches_feed(s);
	while (!s->stopping && (t = admission_next(s->admission, clock_now_ns(), NULL)))
		execution_start(s, execution_of(t));
}

/* Milliseconds until an execution may start because of the time alone; -1: there is none. */
static int patience(struct service *s)
{
	uint64_t again_ns = ADMISSION_NEVER_NS, now_ns = clock_now_ns();
	struct ticket *t = admission_next(s->admission, now_ns, &again_ns);

	if (t) {
		execution_start(s, execution_of(t));
		return 0;
	}
	if (again_ns == ADMISSION_NEVER_NS)
		return -1;
	return again_ns <= now_ns ? 0 : (int)min_u64((again_ns - now_ns) / NS_PER_MS + 1, 60000);
}

/* ---- requests of the master ------------------------------------------------------------------ */

static uint32_t warm_for(const struct serve_options *o, uint32_t jobs)
{
	return o->warm ? o->warm : (uint32_t)min_u64(jobs, WARM_DEFAULT_MAX);
}

static uint32_t choose_warm(const struct service *s)
{
	return warm_for(s->options, s->jobs);
}

/* Opens a new handle for new requests; existing executions finish with the old one. */
static void reload(struct service *s)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct host *fresh = NULL;

	if (s->tokens && tokens_refresh(s->tokens, &err) < 0)
		complain(&err);
	if (host_open(s->options, s->recorder, &s->master, choose_warm(s), &fresh, &err) < 0 ||
	    runner_confine_to_policy(fresh->has_direct_runs, &err) < 0) {
		report("the policy was not reloaded, the old one stays in force: %s", err.msg);
		host_leave(fresh);
		return;
	}
	(void)control_send(s->master, &(struct control_message){ .kind = CONTROL_RELOAD });
	host_leave(s->host);
	s->host = fresh;
	brig_free(s->capabilities);
	s->capabilities = NULL;
	s->reloaded_ns = clock_now_ns();
	queue_reload(s);
	report("the policy was reloaded");
}

/* Waiting clients are answered; a promised execution that has not started will be found lost at the next start. */
static void stop(struct service *s)
{
	struct execution *x, *next;

	s->draining = s->stopping = true;
	accept_commit(s);
	answerers_stop(s);
	sessions_stop(s);
	for (x = TAILQ_FIRST(&s->executions.all); x; x = next) {
		next = TAILQ_NEXT(x, in_age);
		if (x->run)
			execution_cancel(s, x);
		else if (x->remote && x->state == EXECUTION_RUNNING && !x->is_promised)
			remote_leave(s, x);
		else if (x->state == EXECUTION_QUEUED && !x->is_promised)
			execution_turn_away(s, x);
	}
}

/* ---- the front ---------------------------------------------------------------------------------------------------- */

void service_cut_front(struct service *s, const struct brig_error *why)
{
	const struct control_message cut = { .kind = CONTROL_CUT, .number = s->channel_number };

	if (s->channel_is_bad)
		return;
	s->channel_is_bad = true;
	if (why->sys == EPIPE || why->sys == ECONNRESET)
		return;
	complain(why);
	(void)control_send(s->master, &cut);
}

/*
 * Treats all clients of the front as disconnected.  Promises made in this turn are kept, although their answers are
 * lost.
 */
static void leave_front(struct service *s)
{
	if (!s->channel)
		return;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, channel_fd(s->channel), NULL);
	channel_free(MOVE_PTR(s->channel));
	s->channel_is_bad = false;
	accept_commit(s);
	batches_all_gone(s);
	answerers_all_gone(s);
	recorded_all_gone(s);
	front_all_gone(s);
	keys_all_gone(s);
	batch_asks_all_gone(s);
	shared_batches_all_gone(s);
	forward_all_gone(s);
	sessions_all_gone(s);
	snapshots_all_gone(s);
	executions_all_gone(s);
}

/* Takes ownership of the socket. */
static void join_front(struct service *s, int *sock, uint32_t number)
{
	struct brig_error err = BRIG_ERROR_INIT;

	leave_front(s);
	if (channel_new(sock, &s->channel, &err) < 0) { /* the front sees its end close; the runner continues */
		complain(&err);
		return;
	}
	s->channel_number = number;
	s->channel_events = POLLIN;
	if (watch_plain(s, EPOLL_CTL_ADD, channel_fd(s->channel), EPOLLIN, &channel_mark) < 0) {
		(void)err_set(&err, BRIG_E_SYSTEM, errno, "cannot wait for the front");
		service_cut_front(s, &err);
	}
}

static void hear_front(struct service *s)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	bool is_heavy = false;
	int rc;

	if (!hears_front(s)) /* a stale event of a channel dropped in this turn */
		return;
	rc = channel_flush(s->channel, &err);
	/* After a request that may take long, return to the loop so that runs are stepped. */
	for (size_t i = 0; rc == 0 && !is_heavy && i < RECORDS_OF_A_TURN && hears_front(s) && !is_crowded(s); i++) {
		int got = channel_receive(s->channel, &r, &err);

		if (got == 0)
			return;
		rc = got < 0 ? got : 0;
		is_heavy = got > 0 && (r.len > CHANNEL_INLINE_MAX || r.n_fds > 0);
		if (got > 0 && !requests_take(s, &r))
			rc = err_set(&err, BRIG_E_SYSTEM, EPROTO, "the front does not speak its language");
	}
	if (rc < 0)
		service_cut_front(s, &err);
}

/* ---- messages of the master -------------------------------------------------------------------------------------- */

static void heed(struct service *s, struct control_message *w)
{
	switch (w->kind) {
	case CONTROL_DRAIN:
		s->draining = true;
		sessions_drain(s);
		break;
	case CONTROL_NOW:
		stop(s);
		break;
	case CONTROL_RELOAD:
		reload(s);
		break;
	case CONTROL_CHANNEL:
		if (w->n_fds == 1)
			join_front(s, &w->fds[0], w->number);
		break;
	case CONTROL_LINK:
		if (w->n_fds == 1 && s->queue.is_on)
			queue_join(s, &w->fds[0]);
		break;
	default:
		break;
	}
}

static void hear_master(struct service *s)
{
	struct control_message w;
	int rc = control_receive(s->master, &w);

	if (rc < 0)
		s->is_over = true;
	else if (rc > 0)
		heed(s, &w);
	control_close(&w);
}

/* ---- turns -------------------------------------------------------------------------------------------------------- */

static void handle(struct service *s, const struct epoll_event *ev)
{
	if (ev->data.ptr == &channel_mark)
		hear_front(s);
	else if (ev->data.ptr == &master_mark)
		hear_master(s);
	else if (ev->data.ptr == &answerers_mark)
		answerers_go_on(s);
	else if (ev->data.ptr == &recorded_mark)
		recorded_step(s);
	else if (ev->data.ptr == &sessions_mark)
		sessions_go_on(s);
	else if (ev->data.ptr == &link_mark)
		queue_hear(s);
	else if (ev->data.ptr == &tunnels_mark)
		tunnels_go_on(s);
	else
		execution_step(s, ev->data.ptr);
}

static bool is_idle(const struct service *s)
{
	return s->executions.n_runs == 0 && admission_waiting(s->admission) == 0 &&
	       TAILQ_EMPTY(&s->executions.promised) && s->batches.n_held == 0 && s->answerers.n == 0 &&
	       s->sessions.n_live == 0 && s->tunnels.n == 0 && s->recorded.n == 0 && queue_is_idle(s) &&
	       (!s->channel || channel_waiting(s->channel) == 0);
}

/* epoll_wait(), but returns free memory to the kernel after some time without work. */
static int wait_for_events(struct service *s, struct epoll_event *ev, int wait_ms)
{
	bool may_rest = !s->rests && is_idle(s) && (wait_ms < 0 || wait_ms > MEMORY_REST_MS);
	int n = epoll_wait(s->epoll, ev, EVENTS_OF_A_TURN, may_rest ? MEMORY_REST_MS : wait_ms);

	if (n != 0)
		s->rests = false;
	if (n == 0 && may_rest) {
		brig_rest(s->host->b);
		memory_rest();
		s->rests = true;
	}
	return n;
}

/* A failure affects only the next process: the meters in memory are right. */
static void write_meters(struct service *s)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (s->meters.journal.fd >= 0 && meters_commit(&s->meters, s->admission, &err) < 0)
		complain(&err);
}

static void turn(struct service *s)
{
	struct epoll_event ev[EVENTS_OF_A_TURN];
	int wait_ms, n;

	service_start_next(s);
	wait_ms = answerers_patience(&s->answerers, s->stopping ? -1 : batches_patience(s, patience(s)));
	wait_ms = queue_tick(s, wait_ms);
	accept_commit(s);
	write_meters(s);
	if (s->channel_is_bad) {
		leave_front(s);
		wait_ms = 0; /* requests blocked by the full channel may continue */
	}
	session_watches_catch_up(s);
	watch_channel(s);
	if (s->is_over || (s->draining && is_idle(s))) {
		s->is_over = true;
		return;
	}
	n = wait_for_events(s, ev, wait_ms);
	if (n == 0)
		answerers_go_on(s); /* a deadline may have passed */
	for (int i = 0; i < n && !s->is_over; i++)
		handle(s, &ev[i]);
	if (n < 0 && errno != EINTR) {
		s->is_over = true;
		s->status = 1;
	}
}

/* ---- start and end --------------------------------------------------------------------------------------------------- */

/* The number of descriptors, raised to the hard limit. */
static uint64_t descriptors(void)
{
	struct rlimit limit, more;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FDS_OURS + FDS_CELL;
	more = (struct rlimit){ .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
	if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &more) == 0)
		limit = more;
	return limit.rlim_cur;
}

/*
 * Two cells per processor, because programs that wait leave it to others; but no more than there are descriptors for, a
 * quarter of which is reserved for waiting jobs.
 */
static uint32_t choose_jobs(const struct serve_options *options, uint64_t fds)
{
	uint64_t cells = fds * 3 / 4 > FDS_OURS + FDS_CELL ? (fds * 3 / 4 - FDS_OURS) / FDS_CELL : 1;
	cpu_set_t set;
	uint64_t n = sched_getaffinity(0, sizeof(set), &set) == 0 ? 2 * (uint64_t)CPU_COUNT(&set) : 0;

	n = options->jobs ? options->jobs : max_u64(n, JOBS_AT_LEAST);
	return (uint32_t)min_u64(min_u64(n, JOBS_MAX), cells);
}

static uint32_t jobs_of(const struct serve_options *o, uint64_t fds)
{
	if (o->queue_url && !o->is_worker && !o->jobs)
		return JOBS_MAX; /* most of which run on other nodes */
	return choose_jobs(o, fds);
}

uint32_t runner_warm_cells(const struct serve_options *options)
{
	return warm_for(options, jobs_of(options, descriptors()));
}

/* Takes the link's socket. */
static int open_parts(struct service *s, int *link, struct brig_error *err)
{
	const struct serve_options *o = s->options;
	struct admission_opts limits = { .running_max = s->jobs,
					 .waiting_max = o->queue ? o->queue : QUEUE_DEFAULT,
					 .accounts_max = ACCOUNTS_MAX };
	int rc;

	s->admission = admission_new(&limits);
	if (!s->admission)
		return err_nomem(err);
	if ((rc = host_open(o, s->recorder, &s->master, choose_warm(s), &s->host, err)) < 0 ||
	    (rc = runner_confine_to_policy(s->host->has_direct_runs, err)) < 0 ||
	    (rc = o->no_auth ? 0 : tokens_open(o->state, &s->tokens, err)) < 0 ||
	    (rc = ledger_open(&s->ledger, o->state, s->host->b, err)) < 0 ||
	    (rc = idempotency_open(&s->idempotency, &s->ledger.dir, err)) < 0 ||
	    (rc = meters_open(&s->meters, &s->ledger.dir, s->admission, err)) < 0 || (rc = batches_open(s, err)) < 0 ||
	    (rc = workspaces_open(s, err)) < 0 || (rc = snapshots_open(s, err)) < 0 ||
	    (rc = answerers_open(&s->answerers, err)) < 0 || (rc = sessions_open(&s->sessions, err)) < 0 ||
	    (rc = tunnels_open(&s->tunnels, err)) < 0)
		return rc;
	if (o->doors.is_open[DOOR_piston])
		s->versions = versions_ask(s->host);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 ||
	    (s->channel && watch_plain(s, EPOLL_CTL_ADD, channel_fd(s->channel), EPOLLIN, &channel_mark) < 0) ||
	    watch_plain(s, EPOLL_CTL_ADD, s->master, EPOLLIN, &master_mark) < 0 ||
	    watch_plain(s, EPOLL_CTL_ADD, s->answerers.epoll, EPOLLIN, &answerers_mark) < 0 ||
	    watch_plain(s, EPOLL_CTL_ADD, s->sessions.epoll, EPOLLIN, &sessions_mark) < 0 ||
	    watch_plain(s, EPOLL_CTL_ADD, s->tunnels.epoll, EPOLLIN, &tunnels_mark) < 0 ||
	    recorded_open(&s->recorded) < 0 ||
	    watch_plain(s, EPOLL_CTL_ADD, s->recorded.epoll, EPOLLIN, &recorded_mark) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for front, master and recorder");
	s->channel_events = POLLIN;
	return queue_open(s, link, err);
}

static void close_parts(struct service *s)
{
	answerers_release(&s->answerers);
	tunnels_close(s);
	queue_close(s);
	sessions_release(s);
	if (s->admission)
		executions_release(s);
	batches_close(s);
	workspaces_close(s);
	snapshots_close(s);
	recorded_close(&s->recorded);
	(void)idempotency_commit(&s->idempotency, false, NULL);
	idempotency_release(&s->idempotency);
	write_meters(s);
	meters_close(&s->meters);
	(void)ledger_commit(&s->ledger, false, NULL);
	ledger_close(&s->ledger);
	host_leave(s->host);
	tokens_close(s->tokens);
	admission_free(s->admission);
	brig_free(s->capabilities);
	json_decref(s->versions);
	fd_closep(&s->epoll);
	channel_free(s->channel);
	exporter_close(s->exporter);
}

static void do_nothing(int sig UNUSED)
{
}

/*
 * Signals from a terminal or a process supervisor are for the master.  They are caught, not ignored, since ignored
 * signals stay ignored in programs that are started.
 */
static void leave_signals_to_master(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	const struct sigaction catch = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &catch, NULL);
}

/*
 * Whether stderr goes to the systemd journal, which is stored and has other readers: systemd names the stream in
 * JOURNAL_STREAM.
 */
static bool speaks_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	(void)snprintf(ours, sizeof(ours), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return str_eq(stream, ours);
}

/* Shows the console's address to a person at a terminal; not a log line. */
static void name_console(const struct service *s, const char *url)
{
	if (s->options->json_log || speaks_to_journal())
		return;
	(void)dprintf(STDERR_FILENO, "console %s/%s\n", url,
		      s->tokens ? " (it asks for a token: 'brig token create NAME' makes one)" : "");
}

/* Creates a token at the first start, when nobody has one; not if there are revoked ones. */
static int make_first_token(const struct service *s, const char *url, struct brig_error *err)
{
	const struct token what = { .name = "first",
				    .max_trust = TOKEN_TRUSTED,
				    .admin = true,
				    .created = (int64_t)(clock_wall_ns() / NS_PER_SEC) };
	char secret[TOKEN_SECRET_SIZE];
	int rc;

	if (!url) /* no address: a worker, or announced already */
		return 0;
	if (!s->tokens || !tokens_is_empty(s->tokens)) {
		name_console(s, url);
		return 0;
	}
	if (speaks_to_journal()) {
		report("there is no token yet, and a journal is no place for one: 'brig token create NAME --admin%s%s' "
		       "makes one",
		       s->options->state ? " --state " : "", s->options->state ? s->options->state : "");
		return 0;
	}
	rc = tokens_create(s->tokens, &what, secret, err);
	if (rc == 0)
		(void)dprintf(STDERR_FILENO, "token %s (shown once)\nconsole %s/#token=%s\n", secret, url, secret);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

int runner_main(const struct runner_args *args)
{
	struct service s = { .options = args->options,
			     .listener = args->listener,
			     .n_listeners = args->n_listeners,
			     .master = args->master,
			     .channel_number = args->channel_number,
			     .recorder = args->recorder,
			     .epoll = FD_NONE,
			     .recorded = RECORDED_INIT,
			     .ledger = LEDGER_INIT,
			     .idempotency = IDEMPOTENCY_INIT,
			     .meters = METERS_INIT };
	struct brig_error err = BRIG_ERROR_INIT;
	int sock = args->channel, link = args->link, rc = 0;
	uint64_t fds;

	leave_signals_to_master();
	(void)prctl(PR_SET_NAME, "brig-runner");
	executions_init(&s.executions);
	batches_init(&s.batches);
	answerers_init(&s.answerers);
	sessions_init(&s.sessions);
	tunnels_init(&s.tunnels);
	workspaces_init(&s.workspaces);
	snapshots_init(&s.snapshots);
	fds = descriptors();
	s.jobs = choose_jobs(args->options, fds);
	s.fds_max = fds > (uint64_t)s.jobs * FDS_CELL ? fds - (uint64_t)s.jobs * FDS_CELL : 0;
	s.jobs = jobs_of(args->options, fds);
	rc = runner_confine(&err);
	if (rc == 0 && sock >= 0)
		rc = channel_new(&sock, &s.channel, &err);
	if (rc == 0 && args->options->otlp) /* while there are no secrets in memory that the child would inherit */
		rc = exporter_start(args->options->otlp, &s.exporter, &err);
	if (rc == 0)
		rc = open_parts(&s, &link, &err);
	if (rc == 0)
		rc = make_first_token(&s, args->url, &err);
	if (rc == 0 && control_send(s.master, &(struct control_message){ .kind = CONTROL_READY }) < 0)
		rc = err_set(&err, BRIG_E_SYSTEM, errno, "cannot tell the master that everything is in place");
	if (rc < 0) {
		complain(&err);
		s.status = err.code; /* the master repeats it */
	}
	while (rc == 0 && !s.is_over)
		turn(&s);
	close_parts(&s);
	return s.status;
}
