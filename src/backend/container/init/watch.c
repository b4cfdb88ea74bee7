/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the program runs: relays its stdin from messages to its pipe, reaps orphans, keeps the wall clock (as a backup
 * for a brig that is stopped or stuck), and ends everything at the end of the control stream.  Afterwards it continues
 * to read messages: input for the program is dropped, and brig may request the mark.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "backend/container/init/inside.h"
#include "base/clock.h"
#include "base/fd.h"
#include "files/beneath.h"

#define WALL_GRACE_MS 500 /* as in a native cell: a working brig acts first; otherwise limit + 1 s still holds */
#define TICK_MS       100 /* interval for checking the disk */
#define BYE_MS        60000

struct loop {
	struct inside *in;
	int children, wall, tick;
	char prefix[WIRE_PREFIX];
	unsigned have;
	unsigned type;
	uint32_t left; /* bytes of the message's body not received yet */
	char piece[WIRE_BODY_MAX];
	size_t at, len; /* input that the program has not read yet */
	bool input_ends;
	bool over, expired;
	bool said; /* all other processes are dead, and section 2 is sent */
	bool exec_failed;
	struct payload_word word;
};
static struct loop loop;

bool control_read(char *dst, size_t len)
{
	return fd_read_all(STDIN_FILENO, dst, len) == (ssize_t)len;
}

static int make_timer(uint64_t first_ms, uint64_t every_ms)
{
	struct itimerspec spec = {
		.it_value = { (time_t)(first_ms / 1000), (long)(first_ms % 1000 * NS_PER_MS) },
		.it_interval = { (time_t)(every_ms / 1000), (long)(every_ms % 1000 * NS_PER_MS) },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &spec, NULL) < 0)
		end(INIT_LOST);
	return fd;
}

/* ---- the program's stdin ------------------------------------------------------------------------- */

static void drop_input(struct loop *l)
{
	l->len = l->at = 0;
	fd_closep(&l->in->input);
}

static void feed(struct loop *l)
{
	while (l->at < l->len && l->in->input >= 0) {
		ssize_t n = write(l->in->input, l->piece + l->at, l->len - l->at);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno != EINTR)
			drop_input(l); /* the program has closed its stdin */
		if (n > 0)
			l->at += (size_t)n;
	}
	l->at = l->len = 0;
	if (l->input_ends)
		drop_input(l);
}

static void obey(struct loop *l)
{
	switch (l->type) {
	case WIRE_INPUT:
		return; /* the body follows */
	case WIRE_INPUT_END:
		l->input_ends = true;
		feed(l);
		return;
	case WIRE_STOP:
		l->over = true;
		return;
	case WIRE_MARK: /* a program that knew the mark could impersonate init */
		if (l->said)
			return;
		/* fall through */
	default:
		end(INIT_NO_JOB);
	}
}

static uint32_t body_max(unsigned type)
{
	return type == WIRE_INPUT ? WIRE_BODY_MAX : type == WIRE_MARK ? WIRE_KEY : 0;
}

/* Reads once; never blocks. */
static void listen_to_brig(struct loop *l)
{
	bool body = l->left > 0;
	char *dst = body ? l->piece : l->prefix + l->have;
	size_t want = body ? (size_t)min_u64(l->left, sizeof(l->piece)) : WIRE_PREFIX - l->have;
	ssize_t n = read(STDIN_FILENO, dst, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0 && l->said)
		end(INIT_DONE);
	if (n <= 0) { /* brig is gone, and nothing needs this container any more */
		kill_all();
		end(INIT_LOST);
	}
	if (body) {
		l->left -= (uint32_t)n;
		if (l->type == WIRE_MARK) {
			speak_bytes(STDOUT_FILENO, l->piece, (size_t)n);
			return;
		}
		l->at = 0;
		l->len = (size_t)n;
		feed(l);
		return;
	}
	l->have += (unsigned)n;
	if (l->have < WIRE_PREFIX)
		return;
	l->have = 0;
	if (!wire_prefix_decode(l->prefix, &l->type, &l->left) || l->left > body_max(l->type))
		end(INIT_NO_JOB);
	obey(l);
}

/* ---- exits --------------------------------------------------------------------------------------- */

/* Reaps exited children, but leaves the payload's zombie: its /proc entry is evidence. */
static void look_at_children(struct loop *l)
{
	struct signalfd_siginfo drained;

	while (read(l->children, &drained, sizeof(drained)) > 0)
		;
	for (;;) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		if (info.si_pid == l->in->payload) {
			l->over = true;
			return;
		}
		(void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
	}
}

void kill_all(void)
{
	(void)kill(-1, SIGKILL);
}

/* Kills and reaps all other processes.  No fork escapes: a process with a fatal signal pending cannot fork. */
static void reap(struct wire_exit *ret)
{
	struct rusage used;
	siginfo_t info;

	do {
		kill_all();
	} while (waitid(P_ALL, 0, &info, WEXITED) == 0 || errno == EINTR);
	if (getrusage(RUSAGE_CHILDREN, &used) == 0) { /* used if there is no counter */
		ret->cpu_ns = ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * NS_PER_SEC +
			      ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000;
		ret->memory_peak = (uint64_t)used.ru_maxrss * KiB;
	}
}

/* End of file: the program has started.  A record: exec has failed. */
static void hear_payload(struct loop *l)
{
	l->exec_failed = read(l->in->status, &l->word, sizeof(l->word)) == (ssize_t)sizeof(l->word);
	l->over = l->over || l->exec_failed;
	fd_closep(&l->in->status);
}

static void turn(struct loop *l)
{
	bool full = l->at < l->len;
	struct pollfd p[] = {
		/* Hang-ups are reported even without events. */
		{ .fd = STDIN_FILENO, .events = full ? 0 : POLLIN },
		{ .fd = l->children, .events = POLLIN },
		{ .fd = l->wall, .events = POLLIN },
		{ .fd = l->tick, .events = POLLIN },
		{ .fd = l->in->input, .events = full ? POLLOUT : 0 },
		{ .fd = l->in->status, .events = POLLIN },
	};
	uint64_t ticks;

	if (poll(p, ARRAY_LEN(p), -1) < 0)
		return;
	if (p[5].revents)
		hear_payload(l);
	if (p[1].revents)
		look_at_children(l);
	if (p[2].revents)
		l->over = l->expired = true;
	if (p[3].revents && read(l->tick, &ticks, sizeof(ticks)) > 0)
		facts_note_disk(l->in);
	if (p[4].revents & POLLERR)
		drop_input(l);
	else if (p[4].revents & POLLOUT)
		feed(l);
	if (p[0].revents && !l->over)
		listen_to_brig(l);
}

void watch(struct inside *in, struct wire_exit *ret)
{
	uint64_t started = clock_now_ns(), cpu = counters_cpu_ns();
	struct wire_exit before;
	siginfo_t info = { .si_pid = 0 };
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	loop = (struct loop){ .in = in, .children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK) };
	if (loop.children < 0)
		end(INIT_LOST);
	before = (struct wire_exit){ .exited = 0 };
	counters_read(&before);
	loop.wall = make_timer(in->job.wall_ms + WALL_GRACE_MS, 0);
	loop.tick = make_timer(TICK_MS, TICK_MS);
	(void)!write(in->go, "g", 1);
	while (!loop.over)
		turn(&loop);
	ret->run_ns = clock_now_ns() - started;
	ret->expired = loop.expired;
	facts_note_disk(in);
	kill_all();
	while (waitid(P_PID, (id_t)in->payload, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	ret->exited = info.si_code == CLD_EXITED;
	ret->value = (uint32_t)info.si_status;
	ret->disk_full = in->disk_full;
	wire_put_key(&in->out, in->job.key[1]);
	facts_add(in, /* ended= */ true);
	reap(ret);
	counters_read(ret);
	ret->pids_refused -= min_u64(ret->pids_refused, before.pids_refused);
	if (in->tried_processes)
		ret->pids_peak = 0;
	/* Excludes what the engine spent on the container before. */
	if (counters_cpu_ns() > 0)
		ret->cpu_ns = counters_cpu_ns() - cpu;
	if (loop.exec_failed)
		wire_put_failure(&in->out, WIRE_STEP_exec, (int)loop.word.sys);
}

void watch_bye(void)
{
	uint64_t deadline = clock_now_ns() + BYE_MS * NS_PER_MS, now;

	loop.said = true;
	drop_input(&loop); /* the program has ended */
	while ((now = clock_now_ns()) < deadline) {
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

		if (poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) > 0)
			listen_to_brig(&loop);
	}
}

/* ---- the output file ----------------------------------------------------------------------------- */

/* No other process is left that could change it; still no links, no devices, no blocking (INV-8). */
void send_output(struct inside *in)
{
	static char piece[WIRE_BODY_MAX];
	AUTO_FD fd = beneath_open_file(in->place[0], in->job.output, NULL);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > in->job.output_max)
		return;
	wire_put_number(&in->out, WIRE_OUTPUT, (uint64_t)st.st_size);
	speak(in);
	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		char prefix[WIRE_PREFIX];

		wire_prefix(prefix, WIRE_DATA, (uint32_t)n);
		speak_bytes(STDERR_FILENO, prefix, sizeof(prefix));
		speak_bytes(STDERR_FILENO, piece, (size_t)n);
	}
}
