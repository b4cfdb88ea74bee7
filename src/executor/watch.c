/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One poll loop over the program's output and input, the backend's events, the caller's cancellation and three clocks.
 * It never blocks on the program, since our pipe ends are non-blocking. It may block in the caller's on_output;
 * meanwhile the backend enforces the wall clock limit (exit_info.expired).
 */
#include "executor/watch.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/wait.h"
#include "monitor/pace.h"

/*
 * Writing to a program that closed its stdin must not kill the caller, whose signal handlers must not be changed.
 * SIGPIPE is handled around each single write, because the thread may run another task in between (base/wait.c).
 */
struct sigpipe_guard {
	sigset_t was;
	bool was_pending;
};

static void sigpipe_block(struct sigpipe_guard *g)
{
	sigset_t pipe_set, pending;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)sigpending(&pending);
	g->was_pending = sigismember(&pending, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &g->was);
}

static void sigpipe_restore(struct sigpipe_guard *g)
{
	const struct timespec now = { 0 };
	sigset_t pipe_set;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	if (!g->was_pending)
		(void)sigtimedwait(&pipe_set, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &g->was, NULL);
}

/* Counts and passes on one piece; false if it exceeded the limit. */
static bool deliver(struct watch *w, struct stream_sink *sink, const char *data, size_t len)
{
	uint64_t limit = w->plan->limits.output_bytes;
	uint64_t room = limit - min_u64(limit, w->output_bytes);
	size_t pass = (size_t)min_u64(len, room);

	w->output_bytes += pass;
	assert(w->output_bytes <= limit); /* INV-7 */
	if (pass > 0 && sink->keep && buf_add(sink->keep, data, pass) < pass)
		sink->truncated = true;
	if (pass > 0 && sink->record)
		record_stream_add(sink->record, data, pass);
	if (pass > 0 && w->with_output && w->req->on_output)
		w->req->on_output(w->req->user, sink->stream, data, pass);
	if (pass == len)
		return true;
	sink->truncated = true;
	return false;
}

/*
 * Reads one piece of one stream; false if none is available. Does not close the descriptor, which is the cell's;
 * FD_NONE marks end of file.
 */
static bool pump_output(struct watch *w, int *fd, struct stream_sink *sink)
{
	ssize_t n = read(*fd, w->piece, WATCH_PIECE);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (n <= 0)
		*fd = FD_NONE;
	else if (!deliver(w, sink, w->piece, (size_t)n))
		w->ending = END_OUTPUT;
	return true;
}

static void close_input(struct watch *w)
{
	w->input_done = true;
	w->fds.in = FD_NONE;
	w->backend->close_stdin(w->cell);
}

/*
 * What the program's input pipe can hold now. Further input is left with the caller, who may be a shell loop that needs
 * the rest. For other kinds of descriptors the room is unknown.
 */
static size_t input_room(const struct watch *w)
{
	int size = fcntl(w->fds.in, F_GETPIPE_SZ), held = 0;

	if (size < 0 || ioctl(w->fds.in, FIONREAD, &held) < 0)
		return WATCH_PIECE;
	return held < size ? min_u64(WATCH_PIECE, (uint64_t)(size - held)) : 0;
}

/*
 * The process that passed us a socket may change its flags, and another reader may be faster, so never rely on them to
 * avoid blocking.
 */
static ssize_t read_input(int fd, void *dst, size_t size)
{
	ssize_t n = recv(fd, dst, size, MSG_DONTWAIT);

	return n < 0 && errno == ENOTSOCK ? read(fd, dst, size) : n;
}

static void refill_input(struct watch *w)
{
	size_t room = input_room(w);
	ssize_t n;

	w->input_full = room == 0;
	if (w->input_full)
		return;
	n = read_input(w->req->stdin_fd, w->input, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_input(w);
		return;
	}
	w->input_at = 0;
	w->input_len = (size_t)n;
}

/* The available input: the caller's memory, or the last piece read from the caller's descriptor. */
static const char *input_piece(const struct watch *w, size_t *len)
{
	const char *base = w->req->stdin_fd >= 0 ? w->input : w->req->stdin_data;

	*len = w->input_len - w->input_at;
	return *len ? base + w->input_at : NULL;
}

static void pump_input(struct watch *w)
{
	size_t len;
	const char *piece = input_piece(w, &len);
	struct sigpipe_guard guard;
	ssize_t n;
	int sys;

	if (w->input_full) { /* nothing to write, but there is room again */
		w->input_full = false;
		return;
	}
	sigpipe_block(&guard);
	n = write(w->fds.in, piece, len);
	sys = errno;
	sigpipe_restore(&guard);
	errno = sys;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) { /* EPIPE: the program closed its input */
		close_input(w);
		return;
	}
	w->input_at += (size_t)n;
	if (w->input_at == w->input_len && w->req->stdin_fd < 0)
		close_input(w);
}

static void begin_input(struct watch *w)
{
	if (w->req->stdin_fd < 0)
		w->input_len = w->req->stdin_data ? w->req->stdin_len : 0;
	if (!w->with_stdin || (w->req->stdin_fd < 0 && w->input_len == 0))
		close_input(w);
}

enum { SLOT_OUT, SLOT_ERR, SLOT_EVENT, SLOT_TOLD, SLOT_CANCEL, SLOT_IN, SLOT_SOURCE, SLOT_COUNT };

static void fill_slots(const struct watch *w, struct pollfd slot[SLOT_COUNT])
{
	bool wants_room = w->input_len > w->input_at || w->input_full;

	slot[SLOT_OUT] = (struct pollfd){ .fd = w->fds.out, .events = POLLIN };
	slot[SLOT_ERR] = (struct pollfd){ .fd = w->fds.err, .events = POLLIN };
	slot[SLOT_EVENT] = (struct pollfd){ .fd = w->fds.event, .events = POLLIN };
	slot[SLOT_TOLD] = (struct pollfd){ .fd = w->fds.told ? *w->fds.told : -1, .events = POLLIN };
	slot[SLOT_CANCEL] = (struct pollfd){ .fd = w->req->cancel_fd, .events = POLLIN };
	/* There is either something to write or something to read, never both, so one buffer suffices. */
	slot[SLOT_IN] = (struct pollfd){ .fd = !w->input_done && wants_room ? w->fds.in : -1, .events = POLLOUT };
	slot[SLOT_SOURCE] =
		(struct pollfd){ .fd = !w->input_done && !wants_room ? w->req->stdin_fd : -1, .events = POLLIN };
}

static void take_sample(struct watch *w, uint64_t now)
{
	struct sample s = { .at_ms = (now - w->started_ns) / NS_PER_MS, .output_bytes = w->output_bytes };
	struct brig_sample public = { .size = sizeof(public) };

	(void)w->backend->sample(w->cell, &s);
	sample_series_add(w->samples, &s);
	public.at_ms = s.at_ms;
	public.cpu_ms = s.cpu_ms;
	public.memory_bytes = s.memory_bytes;
	public.pids = s.pids;
	public.output_bytes = s.output_bytes;
	public.disk_bytes = w->backend->disk_bytes ? w->backend->disk_bytes(w->cell) : 0;
	if (w->req->on_sample)
		w->req->on_sample(w->req->user, &public);
	/* cgroup v1 kills one process, not the group: the others must not continue. */
	if (!w->session && w->backend->oom_kills(w->cell) > 0)
		w->ending = END_MEMORY;
}

/* True when the cell's run is over. */
static bool take_event(struct watch *w, struct brig_error *err)
{
	enum cell_event what;

	do {
		what = w->backend->on_event(w->cell, &w->exit, err);
	} while (what == CELL_STARTED); /* more events may be queued, which poll() would not report */
	switch (what) {
	case CELL_FINISHED:
		w->ending = w->exit.expired ? END_WALL : END_EXIT;
		return true;
	case CELL_FAILED:
		w->ending = END_FAILED;
		return true;
	case CELL_STARTED:
	case CELL_NOTHING:
		break;
	}
	return false;
}

/*
 * True when the run is over. This process may have been delayed since the last check, so events of the cell come first.
 */
static bool check_clocks(struct watch *w, struct pace *p, struct brig_error *err)
{
	uint64_t now = clock_now_ns();

	if (pace_sample_is_due(p, now)) {
		if (w->on_tick)
			w->on_tick(w->tick_arg);
		else
			take_sample(w, now);
	}
	if (pace_cpu_is_due(p, now) && pace_cpu_is_over(p, w->backend->cpu_ns(w->cell), now))
		w->ending = END_CPU;
	if (!pace_wall_is_over(p, now))
		return w->ending != END_EXIT;
	if (!take_event(w, err) || (w->ending == END_EXIT && w->exit.at_ns > p->wall_deadline_ns))
		w->ending = END_WALL;
	return true;
}

static bool serve(struct watch *w, const struct pollfd slot[SLOT_COUNT], struct brig_error *err)
{
	if (slot[SLOT_CANCEL].revents) {
		w->ending = END_CANCELLED;
		return true;
	}
	if (slot[SLOT_OUT].revents)
		(void)pump_output(w, &w->fds.out, &w->out);
	if (slot[SLOT_ERR].revents && w->ending == END_EXIT)
		(void)pump_output(w, &w->fds.err, &w->err);
	if (slot[SLOT_IN].revents & POLLERR) /* the program closed its input */
		close_input(w);
	else if (slot[SLOT_IN].revents)
		pump_input(w);
	if (slot[SLOT_SOURCE].revents)
		refill_input(w);
	return w->ending != END_EXIT || ((slot[SLOT_EVENT].revents || slot[SLOT_TOLD].revents) && take_event(w, err));
}

static void loop(struct watch *w, struct pace *pace, struct brig_error *err)
{
	struct pollfd slot[SLOT_COUNT];
	bool over;

	w->ending = END_EXIT; /* unless something else is found */
	over = take_event(w, err);
	while (!over) {
		int n;

		fill_slots(w, slot);
		n = wait_poll(slot, SLOT_COUNT, pace_timeout_ms(pace, clock_now_ns()));
		if (n < 0 && errno != EINTR) {
			(void)err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the program");
			w->ending = END_FAILED;
			return;
		}
		over = (n > 0 && serve(w, slot, err)) || check_clocks(w, pace, err);
	}
}

/* How fast CPU time can pass: without a quota, by the number of CPUs. */
static uint64_t cpu_percent_kept(const struct plan *plan)
{
	bool quota = !(plan->may_degrade & PROT_BIT(PROT_cpu_quota));
	long cpus = quota ? 1 : sysconf(_SC_NPROCESSORS_ONLN);

	return quota || cpus < 1 ? plan->limits.cpu_percent : max_u64(plan->limits.cpu_percent, 100 * (uint64_t)cpus);
}

static void tell_live(struct watch *w, struct cell *cell)
{
	if (w->live)
		*w->live = (struct live){ .backend = w->backend, .cell = cell };
}

void watch_run(struct watch *w, struct brig_error *err)
{
	const struct limits *l = &w->plan->limits;
	struct pace pace;
	uint64_t ended_ns;

	if (w->backend->start(w->cell, &w->fds, err) < 0) {
		w->ending = END_FAILED;
		return;
	}
	w->started_ns = w->fds.started_ns;
	pace = (struct pace){
		.wall_deadline_ns = w->started_ns + l->wall_ms * NS_PER_MS,
		.cpu_limit_ns = l->cpu_time_ms * NS_PER_MS,
		.cpu_percent = cpu_percent_kept(w->plan),
		.interval_ns = w->sample_interval_ms * NS_PER_MS,
	};
	pace_start(&pace, w->started_ns);
	if (w->session) {
		w->input_done = true; /* the session uses the descriptor, not this watch */
		w->session->on_control(w->session->arg, w->fds.in);
	} else {
		begin_input(w);
	}
	tell_live(w, w->cell);
	loop(w, &pace, err);
	tell_live(w, NULL);
	/* By the cell's own timestamp if it gave one, since this process may have been delayed. */
	ended_ns = w->exit.at_ns > w->started_ns ? w->exit.at_ns : clock_now_ns();
	w->wall_ns = ended_ns - w->started_ns;
}

/*
 * All writers should be dead, so a pipe has a definite content and an end. A writer that could not be killed may hold
 * it open: wait for it until the deadline; what it writes is bounded by the output limit.
 */
static bool drain_one(struct watch *w, int *fd, struct stream_sink *sink, uint64_t deadline_ns)
{
	while (*fd >= 0 && w->ending != END_OUTPUT) {
		struct pollfd slot = { .fd = *fd, .events = POLLIN };
		uint64_t now;

		if (pump_output(w, fd, sink))
			continue;
		now = clock_now_ns();
		if (now >= deadline_ns)
			return false;
		(void)wait_poll(&slot, 1, (int)min_u64((deadline_ns - now) / NS_PER_MS + 1, INT_MAX));
	}
	return true;
}

bool watch_drain(struct watch *w, uint64_t deadline_ns)
{
	bool out = drain_one(w, &w->fds.out, &w->out, deadline_ns);
	bool err = drain_one(w, &w->fds.err, &w->err, deadline_ns);

	return out && err;
}
