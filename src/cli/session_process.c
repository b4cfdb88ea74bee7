/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_process.c - a session's program on our own descriptors
 *
 * Two connections: one delivers the program's events until its result, the other sends its input, our signals and the
 * size of our terminal, one request at a time and each after the answer to the previous one, so that nothing is
 * reordered.
 *
 *	our input    -> process_input, a piece at a time; 503: the program is behind, and the piece is sent again later
 *	signals      -> process_signal, before waiting input; SIGWINCH -> process_resize; SIGTSTP stops us, not the
 *	program
 *	our exit     -> the service kills the program, however we exit
 *
 * A signal that arrives before the program has started is sent once it has.  A second one is not: then we exit, and the
 * program with us.
 *
 * A program that was started by another command (w->process) is only watched: SIGTERM and SIGHUP then end us, and it
 * continues.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/live.h"
#include "cli/request.h"
#include "cli/session.h"
#include "cli/terminal.h"

#define PIECE_BYTES (64 * KiB)
#define RETRY_NS    (50 * NS_PER_MS) /* before input is sent again to a program that is behind */

struct attached {
	const struct session_work *w;
	struct live live;
	struct terminal terminal;
	uint64_t process; /* 0: not started yet */
	struct service_answer answer;
	struct service_call *stream;
	/* The request in progress: */
	struct service_call *side; /* NULL: none */
	struct service_ask side_ask;
	struct service_answer side_answer;
	bool side_is_input;
	/* To be sent: */
	int signals, signal; /* signalfd; the pending signal, 0: none */
	bool wants_resize;
	uint64_t put_off_ns; /* the piece is not sent again before this time; 0: not delayed */
	int source;          /* FD_NONE: end of input */
	bool wants_close;
	bool is_for_program; /* our output goes to a program, whose exit must be noticed */
	char piece[PIECE_BYTES];
	size_t piece_len;
};

/* ---- events ------------------------------------------------------------------------------------------------ */

static void on_event(void *user, enum event_kind kind, const json_t *event)
{
	struct attached *p = user;
	const struct session_values *v = &p->w->v;

	if (kind == EVENT_started)
		p->process = (uint64_t)json_integer_value(json_object_get(event, "process"));
	if (v->events)
		cli_session_print_event(event);
	else if (!v->json && (kind == EVENT_stdout || kind == EVENT_stderr))
		service_output(event, kind == EVENT_stdout ? BRIG_STDOUT : BRIG_STDERR, live_on_output, &p->live);
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static int say(struct attached *p, enum route route, struct brig_error *err)
{
	uint64_t rows = 0, columns = 0;
	struct buf *m = &p->side_ask.message;

	cli_session_ask_begin(&p->side_ask, route, p->w->id);
	message_put_number(m, FIELD_item, p->process);
	p->side_is_input = route == ROUTE_process_input;
	if (route == ROUTE_process_signal) {
		message_put_number(m, FIELD_signal, (uint64_t)p->signal);
		p->signal = 0;
	} else if (route == ROUTE_process_resize) {
		p->wants_resize = false;
		(void)terminal_size(STDIN_FILENO, &rows, &columns);
		message_put_number(m, FIELD_rows, rows);
		message_put_number(m, FIELD_columns, columns);
	} else if (p->piece_len > 0) {
		message_put_bytes(m, FIELD_input, p->piece, p->piece_len);
	} else {
		message_put_number(m, FIELD_close, 1);
		p->wants_close = false;
	}
	p->side_answer = (struct service_answer){ .text = BUF_INIT(0) };
	return cli_session_call(p->w, &p->side_ask, &p->side_answer, &p->side, err);
}

/* Sends the next request, if there is one; 0 or -code. */
static int say_next(struct attached *p, struct brig_error *err)
{
	if (p->side || p->process == 0)
		return 0;
	if (p->signal)
		return say(p, ROUTE_process_signal, err);
	if (p->wants_resize)
		return say(p, ROUTE_process_resize, err);
	if (p->piece_len > 0 ? p->put_off_ns == 0 : p->wants_close)
		return say(p, ROUTE_process_input, err);
	return 0;
}

static void side_release(struct attached *p)
{
	service_call_free(p->side);
	p->side = NULL;
	service_ask_release(&p->side_ask);
	buf_release(&p->side_answer.text);
}

/* If a request was refused, the program has ended or closed its input: the result will show that. */
static void side_over(struct attached *p, int rc)
{
	bool is_behind = rc == 0 && p->side_answer.status == 503;

	if (p->side_is_input && is_behind) {
		p->put_off_ns = clock_now_ns() + RETRY_NS;
	} else if (p->side_is_input) {
		p->piece_len = 0;
		if (rc < 0 || p->side_answer.status != 200)
			p->source = FD_NONE;
	}
	side_release(p);
}

static void read_input(struct attached *p)
{
	ssize_t n = read(p->source, p->piece, sizeof(p->piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		p->piece_len = (size_t)n;
		return;
	}
	p->source = FD_NONE;
	p->wants_close = true;
}

/* ---- signals -------------------------------------------------------------------------------------------------- */

/* Makes signals readable; those that are ignored already stay ignored. */
static int open_signals(struct attached *p, struct brig_error *err)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };
	struct sigaction was;
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (sigaction(wanted[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			(void)sigaddset(&set, wanted[i]);
	if (p->w->v.tty)
		(void)sigaddset(&set, SIGTSTP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot prepare for signals");
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return p->signals < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot prepare for signals") : 0;
}

/* Gives the terminal back to the shell meanwhile. */
static void stop_here(struct attached *p)
{
	terminal_restore(&p->terminal);
	(void)raise(SIGSTOP);
	terminal_raw_again(&p->terminal);
	p->wants_resize = true;
}

/* Whether the signal ends us and not the program. */
static bool is_for_us(const struct attached *p, uint32_t sig)
{
	return p->w->process ? sig == SIGTERM || sig == SIGHUP : p->signal && p->process == 0;
}

/* -BRIG_E_REFUSED: exit. */
static int take_signals(struct attached *p, struct brig_error *err)
{
	struct signalfd_siginfo s;

	while (read(p->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGWINCH) {
			p->wants_resize = p->w->v.tty;
		} else if (s.ssi_signo == SIGTSTP) {
			stop_here(p);
		} else {
			if (is_for_us(p, s.ssi_signo))
				return err_set(err, BRIG_E_REFUSED, ECANCELED, "it is no longer waited for");
			p->signal = (int)s.ssi_signo;
		}
	}
	return 0;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

enum { SLOT_STREAM, SLOT_SIDE, SLOT_SIGNALS, SLOT_SOURCE, SLOT_READER, SLOT_COUNT };

static void fill_slots(const struct attached *p, struct pollfd slot[SLOT_COUNT])
{
	bool reads = p->process && p->piece_len == 0 && !p->wants_close;

	slot[SLOT_STREAM] = service_call_waits(p->stream);
	slot[SLOT_SIDE] = p->side ? service_call_waits(p->side) : (struct pollfd){ .fd = -1 };
	slot[SLOT_SIGNALS] = (struct pollfd){ .fd = p->signals, .events = POLLIN };
	slot[SLOT_SOURCE] = (struct pollfd){ .fd = reads ? p->source : -1, .events = POLLIN };
	/* Documents are for a program, which may be killed: poll() always reports its hang-up. */
	slot[SLOT_READER] = (struct pollfd){ .fd = p->is_for_program ? STDOUT_FILENO : -1 };
}

static int wait_ms(struct attached *p)
{
	uint64_t now = clock_now_ns();

	if (p->put_off_ns <= now)
		p->put_off_ns = 0;
	return p->put_off_ns ? (int)((p->put_off_ns - now) / NS_PER_MS) + 1 : -1;
}

/*
 * If the output has no reader, the program is killed, as by SIGPIPE, and its result follows; one that is only watched
 * continues.
 */
static int end_unread(struct attached *p, bool is_unread, struct brig_error *err)
{
	if (!is_unread && !p->live.out.error)
		return 0;
	return p->w->process ? err_set(err, BRIG_E_REFUSED, ECANCELED, "nothing reads what it writes")
			     : service_call_cancel(p->stream, err);
}

/* 1: continue; 0: there is an answer. */
static int go_on(struct attached *p, struct brig_error *err)
{
	struct pollfd slot[SLOT_COUNT];
	struct brig_error ignored = BRIG_ERROR_INIT;
	int rc, n, ms = wait_ms(p);

	rc = say_next(p, err);
	if (rc < 0)
		return rc;
	fill_slots(p, slot);
	n = poll(slot, SLOT_COUNT, ms);
	if (n < 0 && errno != EINTR)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the service");
	if (n <= 0)
		return 1;
	if (end_unread(p, slot[SLOT_READER].revents != 0, err) < 0)
		return -err->code;
	p->is_for_program = p->is_for_program && !slot[SLOT_READER].revents; /* once is enough */
	if (slot[SLOT_SIGNALS].revents && take_signals(p, err) < 0)
		return -err->code;
	if (slot[SLOT_SOURCE].revents)
		read_input(p);
	if (slot[SLOT_SIDE].revents) {
		rc = service_call_step(p->side, &ignored);
		if (rc <= 0)
			side_over(p, rc);
	}
	rc = slot[SLOT_STREAM].revents ? service_call_step(p->stream, err) : 1;
	return rc > 0 && end_unread(p, false, err) < 0 ? -(int)err->code : rc;
}

void cli_session_put_terminal(struct service_ask *ask, bool tty)
{
	uint64_t rows, columns;

	if (!tty)
		return;
	message_put_number(&ask->message, FIELD_pty, 1);
	if (terminal_size(STDIN_FILENO, &rows, &columns)) {
		message_put_number(&ask->message, FIELD_rows, rows);
		message_put_number(&ask->message, FIELD_columns, columns);
	}
}

/* Prepares our descriptors or the terminal for the program. */
static int prepare(struct attached *p, struct service_ask *ask, struct brig_error *err)
{
	const struct session_values *v = &p->w->v;

	live_init(&p->live, -1, v->raw || v->tty, /* watch= */ false);
	if (!v->no_input && request_may_read_stdin())
		p->source = STDIN_FILENO;
	if (!p->w->process) {
		if (p->source >= 0)
			message_put_number(&ask->message, FIELD_interactive, 1);
		cli_session_put_terminal(ask, v->tty);
	}
	p->process = p->w->process;
	p->wants_resize = p->process && v->tty;
	message_put_number(&ask->message, FIELD_stream, 1);
	return open_signals(p, err);
}

static int attend(struct attached *p, const struct service_ask *ask, struct brig_error *err)
{
	const struct service_listener listener = { on_event, p };
	int rc = cli_session_call(p->w, ask, &p->answer, &p->stream, err);

	if (rc < 0)
		return rc;
	service_call_listen(p->stream, &listener);
	if (p->w->v.tty && terminal_begin(&p->terminal, STDIN_FILENO, err) < 0)
		return -err->code;
	do
		rc = go_on(p, err);
	while (rc > 0);
	return rc;
}

int cli_session_process(struct session_work *w, struct service_ask *ask, struct brig_error *err)
{
	struct attached *p = calloc(1, sizeof(*p));
	int rc;

	if (!p) {
		service_ask_release(ask);
		return err_nomem(err);
	}
	p->w = w;
	p->terminal = (struct terminal)TERMINAL_INIT;
	p->source = p->signals = FD_NONE;
	p->is_for_program = w->v.json || w->v.events;
	rc = prepare(p, ask, err);
	if (rc == 0)
		rc = attend(p, ask, err);
	live_finish(&p->live);
	terminal_end(&p->terminal);
	if (rc == 0)
		rc = cli_session_end(w, &p->answer, "command", err);
	else if (err->sys == ECANCELED)
		rc = EXIT_CANCELLED;
	side_release(p);
	service_call_free(p->stream);
	buf_release(&p->answer.text);
	fd_closep(&p->signals);
	free(p);
	service_ask_release(ask);
	return rc;
}
