/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a session: pipes, input, time limits. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "session/inside.h"

#define ROWS       24
#define COLUMNS    80
#define END_OF_TTY "\004"
/*
 * A process that has exited may have children that write the rest of its output, as in `exec > >(tee log)`.  What they
 * write is read until the last of them has closed the pipes, but no longer than this: a server in the background never
 * closes them.
 */
#define LINGER_NS (300 * NS_PER_MS)

struct process *process_find(const struct session *s, uint64_t tag)
{
	for (struct process *p = s->processes; p; p = p->next)
		if (p->tag == tag)
			return p;
	return NULL;
}

static void tell_end(struct process *p, const struct run_outcome *how)
{
	if (p->hooks.on_end && !p->told_end) {
		p->told_end = true;
		p->hooks.on_end(p->hooks.arg, how);
	}
}

static void tell_exit(struct process *p, enum run_ending ending)
{
	tell_end(p, &(const struct run_outcome){ .ending = ending,
						 .wall_ns = clock_now_ns() - p->begun_ns,
						 .output_bytes = p->output_bytes,
						 .cpu_us = p->cpu_us,
						 .exit_code = p->exit_code,
						 .signal = p->exit_signal });
}

static enum run_ending ending_of(const struct process *p)
{
	return p->flags & BRIG_SESSION_TIMED_OUT  ? RUN_TIMEOUT
	       : p->flags & BRIG_SESSION_TOO_MUCH ? RUN_OUTPUT
						  : RUN_DONE;
}

void process_free(struct session *s, struct process *p)
{
	struct process **at = &s->processes;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	source_close(s, &p->in.to);
	source_close(s, &p->out);
	source_close(s, &p->err);
	buf_release(&p->in.bytes);
	if (p->linger_ns)
		tell_exit(p, ending_of(p));
	tell_end(p, &(const struct run_outcome){ .ending = RUN_ENDED });
	free(p);
}

/* ---- input ------------------------------------------------------------------------------------- */

void quiet_begin(struct quiet *q)
{
	sigset_t pipe_set, pending;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)sigpending(&pending);
	q->was_pending = sigismember(&pending, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &q->was);
}

void quiet_end(struct quiet *q, bool broke)
{
	const struct timespec now = { 0 };
	sigset_t pipe_set;
	int sys = errno;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	if (broke && !q->was_pending)
		(void)sigtimedwait(&pipe_set, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &q->was, NULL);
	errno = sys;
}

static ssize_t write_quietly(int fd, const char *data, size_t len)
{
	struct quiet quiet;
	ssize_t n;

	quiet_begin(&quiet);
	n = write(fd, data, len);
	quiet_end(&quiet, n < 0 && errno == EPIPE);
	return n;
}

void outgoing_flush(struct session *s, struct outgoing *o)
{
	uint32_t reads = o->socket ? EPOLLIN : 0;

	while (o->to.fd >= 0 && o->at < o->bytes.len) {
		const char *from = o->bytes.data + o->at;
		size_t len = o->bytes.len - o->at;
		ssize_t n = o->socket ? send(o->to.fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL)
				      : write_quietly(o->to.fd, from, len);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			source_change(s, &o->to, reads | EPOLLOUT);
			return;
		}
		if (n < 0) { /* EPIPE: it has closed its input */
			if (!o->socket)
				source_close(s, &o->to);
			break;
		}
		o->at += (size_t)n;
	}
	o->at = o->bytes.len = 0;
	if (o->closing)
		source_close(s, &o->to);
	else
		source_change(s, &o->to, reads);
}

static void serve_input(struct session *s, void *owner, uint32_t events)
{
	struct process *p = owner;

	if (events & EPOLLERR)
		source_close(s, &p->in.to);
	else
		outgoing_flush(s, &p->in);
}

static struct process *find_for_input(struct session *s, uint64_t tag, struct brig_error *err)
{
	struct process *p = process_find(s, tag);

	if (!p || p->context)
		(void)err_set(err, BRIG_E_USAGE, ESRCH, "the session has no such process");
	else if (p->in.to.fd < 0 || p->in.closing)
		(void)err_set(err, BRIG_E_REFUSED, EPIPE, "the process has no input, or it is closed");
	else
		return p;
	return NULL;
}

int session_input(struct session *s, uint64_t process, const void *data, size_t len, struct brig_error *err)
{
	struct process *p = find_for_input(s, process, err);

	if (!p)
		return -BRIG_E_REFUSED;
	if (len > INPUT_MAX - p->in.bytes.len)
		return err_set(err, BRIG_E_REFUSED, EAGAIN, "the process has not read its input yet");
	if (buf_add(&p->in.bytes, data, len) < len)
		return err_nomem(err);
	session_is_active(s);
	outgoing_flush(s, &p->in);
	return 0;
}

int session_close_input(struct session *s, uint64_t process, struct brig_error *err)
{
	struct process *p = find_for_input(s, process, err);

	if (!p)
		return -BRIG_E_REFUSED;
	if (p->pty)
		return session_input(s, process, END_OF_TTY, 1, err);
	p->in.closing = true;
	outgoing_flush(s, &p->in);
	return 0;
}

/* ---- output ------------------------------------------------------------------------------------ */

static void tell_output(struct session *s, struct process *p, enum brig_stream stream, size_t len)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_OUTPUT,
					.tag = p->tag,
					.fd = -1,
					.pid = p->pid,
					.stream = stream,
					.data = s->piece,
					.len = len };

	if (p->context) {
		context_output(s, p->context, stream, s->piece, len);
		return;
	}
	e.len = (size_t)min_u64(len, p->output_limit - min_u64(p->output_limit, p->output_bytes));
	p->output_bytes += e.len;
	if (e.len > 0)
		p->hooks.on_output(p->hooks.arg, stream, e.data, e.len);
	if (e.len > 0)
		session_tell(s, &e);
	if (e.len < len && !(p->flags & BRIG_SESSION_TOO_MUCH)) {
		p->flags |= BRIG_SESSION_TOO_MUCH;
		(void)process_kill(s, p, SIGKILL);
	}
}

/* Reads once; false: nothing is available. */
static bool read_piece(struct session *s, struct process *p, struct source *src, enum brig_stream stream)
{
	ssize_t n = src->fd < 0 ? 0 : read(src->fd, s->piece, sizeof(s->piece));

	if (n > 0) {
		tell_output(s, p, stream, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		source_close(s, src);
	return false;
}

static void finish(struct session *s, struct process *p);

/* The last of the pipes of a process that has exited is closed: nothing comes any more. */
static void finish_if_closed(struct session *s, struct process *p)
{
	if (p->linger_ns && p->out.fd < 0 && p->err.fd < 0)
		finish(s, p);
}

static void serve_out(struct session *s, void *owner, uint32_t events UNUSED)
{
	struct process *p = owner;

	if (p->pid == 0)
		return; /* end of file arrived before the steward's report that it was started */
	(void)read_piece(s, p, &p->out, BRIG_STDOUT);
	finish_if_closed(s, p);
}

static void serve_err(struct session *s, void *owner, uint32_t events UNUSED)
{
	struct process *p = owner;

	if (p->pid == 0)
		return;
	(void)read_piece(s, p, &p->err, BRIG_STDERR);
	finish_if_closed(s, p);
}

/* Reads at most the capacity of a pipe: the process may write as fast as we read. */
#define PIPE_PIECES 64

void process_read(struct session *s, struct process *p)
{
	for (int i = 0; i < PIPE_PIECES && read_piece(s, p, &p->out, BRIG_STDOUT); i++)
		;
	for (int i = 0; i < PIPE_PIECES && read_piece(s, p, &p->err, BRIG_STDERR); i++)
		;
}

/* ---- starting ---------------------------------------------------------------------------------- */

static int check_what(const struct brig_session_process *what, struct brig_error *err)
{
	if (!what->argv || what->n_argv < 1 || !what->argv[0] || !*what->argv[0])
		return err_set(err, BRIG_E_USAGE, 0, "there is no program to start");
	if (what->n_argv + what->n_env + 1 > STEWARD_WORDS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "more than %d arguments and variables", STEWARD_WORDS_MAX - 1);
	for (size_t i = 0; i < what->n_argv; i++)
		if (!what->argv[i])
			return err_set(err, BRIG_E_USAGE, 0, "argument %zu is NULL", i);
	for (size_t i = 0; i < what->n_env; i++)
		if (!what->env[i] || !strchr(what->env[i], '='))
			return err_set(err, BRIG_E_USAGE, 0, "variable %zu is no KEY=VALUE", i);
	return 0;
}

/* Our end is non-blocking; the other is in theirs[*n]. */
static int open_pipe(struct session *s, struct process *p, struct source *src, bool child_reads, int *theirs, size_t *n)
{
	int ours = FD_NONE;
	int rc = fd_pipe_to_child(&theirs[*n], &ours, child_reads, STEWARD_FDS_MAX);

	if (rc < 0)
		return rc;
	(*n)++;
	rc = source_watch(s, src, ours, 0, child_reads ? serve_input : src == &p->out ? serve_out : serve_err, p);
	if (rc < 0)
		(void)close(ours);
	return rc;
}

static int open_pipes(struct session *s, struct process *p, uint32_t flags, int *theirs, size_t *n)
{
	int rc = 0;

	if (flags & (BRIG_PROCESS_STDIN | BRIG_PROCESS_PTY)) {
		rc = open_pipe(s, p, &p->in.to, true, theirs, n);
	} else {
		theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		rc = theirs[0] < 0 ? -errno : 0;
		*n = theirs[0] >= 0;
	}
	if (rc == 0)
		rc = open_pipe(s, p, &p->out, false, theirs, n);
	if (rc == 0 && !p->pty)
		rc = open_pipe(s, p, &p->err, false, theirs, n);
	return rc;
}

static int send_start(struct session *s, const struct process *p, const struct brig_session_process *what, int *theirs,
		      size_t n_fds, struct brig_error *err)
{
	uint64_t cpu_ms = what->cpu_time_ms ? what->cpu_time_ms : s->config.cpu_ms;
	const struct steward_head head = {
		.kind = STEWARD_START,
		.tag = p->tag,
		.number = { (int64_t)what->n_argv, (int64_t)what->n_env, p->pty ? STEWARD_PTY : 0,
			    (int64_t)(p->context ? 0 : (cpu_ms + 999) / 1000), what->rows ? what->rows : ROWS,
			    what->columns ? what->columns : COLUMNS },
	};
	const char *words[STEWARD_WORDS_MAX];
	size_t n = 0;

	words[n++] = what->cwd ? what->cwd : "";
	for (size_t i = 0; i < what->n_argv; i++)
		words[n++] = what->argv[i];
	for (size_t i = 0; i < what->n_env; i++)
		words[n++] = what->env[i];
	return session_send(s, &head, words, n, theirs, n_fds, p->context != NULL, err);
}

static struct process *process_new(struct session *s, uint64_t tag, const struct brig_session_process *what)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->in.to.fd = p->out.fd = p->err.fd = FD_NONE;
	p->in.bytes.max = INPUT_MAX;
	p->tag = tag;
	p->pty = what->flags & BRIG_PROCESS_PTY;
	p->output_limit = s->config.output_bytes;
	p->deadline_ns = what->timeout_ms ? clock_now_ns() + what->timeout_ms * NS_PER_MS : 0;
	p->next = s->processes;
	s->processes = p;
	return p;
}

int process_begin(struct session *s, uint64_t tag, const struct brig_session_process *what, struct context *context,
		  int channel, struct process **ret, struct brig_error *err)
{
	int theirs[STEWARD_FDS_MAX] = { FD_NONE, FD_NONE, FD_NONE, channel };
	int rc = check_what(what, err);
	struct process *p = rc < 0 ? NULL : process_new(s, tag, what);
	size_t n = 0;

	if (!p) {
		fd_closep(&theirs[3]);
		return rc < 0 ? rc : err_nomem(err);
	}
	p->context = context;
	rc = open_pipes(s, p, what->flags, theirs, &n);
	if (rc < 0)
		rc = err_set(err, BRIG_E_SYSTEM, -rc, "cannot make the pipes of a process");
	else
		rc = send_start(s, p, what, theirs, n + (channel >= 0), err);
	for (size_t i = 0; i < STEWARD_FDS_MAX; i++)
		fd_closep(&theirs[i]); /* those that were sent are FD_NONE */
	if (rc < 0) {
		process_free(s, p);
		return rc;
	}
	*ret = p;
	return 0;
}

int session_start(struct session *s, uint64_t tag, const struct brig_session_process *what,
		  const struct run_hooks *hooks, struct brig_error *err)
{
	struct process *p = NULL;
	int rc = process_begin(s, tag, what, NULL, FD_NONE, &p, err);

	if (rc == 0)
		p->hooks = *hooks;
	return rc;
}

void process_started(struct session *s, struct process *p, int error, int64_t pid)
{
	const struct run_outcome unborn = { .ending = RUN_UNBORN, .exit_code = error };
	struct context *c = p->context;

	p->pid = pid;
	p->begun_ns = clock_now_ns();
	if (c)
		context_kernel_started(s, c, error);
	if (error == 0)
		return;
	tell_end(p, &unborn);
	process_free(s, p);
}

void process_listen(struct session *s, struct process *p)
{
	source_change(s, &p->out, EPOLLIN);
	source_change(s, &p->err, EPOLLIN);
}

int session_flow(struct session *s, uint64_t process_or_context, bool reads, struct brig_error *err)
{
	struct process *p = process_find(s, process_or_context);

	p = p ? p : context_kernel(s, process_or_context);
	if (!p || p->pid == 0)
		return err_set(err, BRIG_E_USAGE, ESRCH, "the session has no such process, or it has not begun");
	if (p->held == !reads)
		return 0;
	p->held = !reads;
	source_hold(s, &p->out, p->held);
	source_hold(s, &p->err, p->held);
	return 0;
}

/* ---- signals, deadlines and ends -------------------------------------------------------------- */

uint64_t process_kill(struct session *s, struct process *p, int signal)
{
	const struct steward_head head = { .kind = STEWARD_SIGNAL,
					   .tag = session_next_tag(s),
					   .number = { p->pid, signal, 1 } };

	if (p->pid <= 0 || session_send(s, &head, NULL, 0, NULL, 0, true, NULL) < 0)
		return 0;
	return head.tag;
}

uint64_t process_ask_cpu(struct session *s, const struct process *p)
{
	const struct steward_head head = { .kind = STEWARD_CPU, .tag = session_next_tag(s), .number = { p->pid } };

	return session_send(s, &head, NULL, 0, NULL, 0, true, NULL) < 0 ? 0 : head.tag;
}

static int ask_process(struct session *s, uint64_t tag, struct steward_head *head, uint64_t *ret_tag,
		       struct brig_error *err)
{
	const struct process *p = process_find(s, tag);
	int rc;

	if (!p || p->pid <= 0)
		return err_set(err, BRIG_E_USAGE, ESRCH, "the session has no such process");
	head->tag = session_next_tag(s);
	head->number[0] = p->pid;
	rc = session_send(s, head, NULL, 0, NULL, 0, false, err);
	if (rc == 0 && ret_tag)
		*ret_tag = head->tag;
	return rc;
}

int session_signal(struct session *s, uint64_t process, int signal, uint64_t *ret_tag, struct brig_error *err)
{
	struct steward_head head = { .kind = STEWARD_SIGNAL, .number = { 0, signal, 1 } };

	return ask_process(s, process, &head, ret_tag, err);
}

int session_resize(struct session *s, uint64_t process, uint32_t rows, uint32_t columns, uint64_t *ret_tag,
		   struct brig_error *err)
{
	struct steward_head head = { .kind = STEWARD_RESIZE, .number = { 0, rows, columns } };

	return ask_process(s, process, &head, ret_tag, err);
}

static void finish(struct session *s, struct process *p)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_EXITED,
					.tag = p->tag,
					.fd = -1,
					.pid = p->pid,
					.exit_code = p->exit_code,
					.signal = p->exit_signal,
					.cpu_us = p->cpu_us,
					.flags = p->flags };

	session_is_active(s);
	if (p->context)
		context_kernel_gone(s, p->context, &e);
	else
		session_tell(s, &e);
	tell_exit(p, ending_of(p));
	process_free(s, p);
}

/* A kernel, a terminal, and a process that was killed have nothing more to say. */
static bool may_linger(const struct process *p)
{
	bool is_open = p->out.fd >= 0 || p->err.fd >= 0;

	return is_open && !p->context && !p->pty && !p->exit_signal &&
	       !(p->flags & (BRIG_SESSION_TIMED_OUT | BRIG_SESSION_TOO_MUCH));
}

void process_exited(struct session *s, struct process *p, const struct steward_head *head)
{
	const int64_t *number = head->number;

	if (number[0] != p->pid || p->linger_ns)
		return;
	process_read(s, p);
	p->exit_code = (int)number[1];
	p->exit_signal = (int)number[2];
	p->cpu_us = (uint64_t)number[3];
	p->deadline_ns = 0;
	if (may_linger(p))
		p->linger_ns = clock_now_ns() + LINGER_NS;
	else
		finish(s, p);
}

uint64_t process_next_deadline(const struct session *s)
{
	uint64_t at = UINT64_MAX;

	for (const struct process *p = s->processes; p; p = p->next) {
		if (p->deadline_ns)
			at = min_u64(at, p->deadline_ns);
		if (p->linger_ns)
			at = min_u64(at, p->linger_ns);
	}
	return at;
}

void process_check_deadlines(struct session *s, uint64_t now)
{
	for (struct process *p = s->processes; p; p = p->next) {
		if (p->deadline_ns && now >= p->deadline_ns) {
			p->flags |= BRIG_SESSION_TIMED_OUT;
			p->deadline_ns = p->pid > 0 ? 0 : now + 100 * NS_PER_MS; /* not started yet: try again later */
			(void)process_kill(s, p, SIGKILL);
		}
		if (p->linger_ns && now >= p->linger_ns) {
			process_read(s, p);
			/* finish() may free other processes; the timer is armed for what else is due */
			finish(s, p);
			return;
		}
	}
}
