/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: interpreters ("kernels") that keep their state between runs.
 *
 *	STARTING --ready--> IDLE --run--> RUNNING --done--> COUNTING --cpu time--> IDLE
 *	   any of them --the kernel ends--> DEAD --run, restart--> STARTING
 *
 * A run that is sent while the kernel starts waits in its context.  Besides the state, a context counts runs that are
 * reserved: code that is being inspected, or that waits for the run before it (api/session_pieces.c keeps their order).
 *
 * The steward reports the CPU time of a run, and some kernels report their own (kernels.def).  In that case a short run
 * need not wait for the steward's answer.  The larger number counts, since code in a kernel can make the kernel report
 * anything.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "lang/lang.h"
#include "session/inside.h"

#define KERNEL_WORDS  8
#define VARIABLES_MAX 1024                  /* per run */
#define CODE_MAX      (BRIG_CODE_MAX + MiB) /* including the variables of a run */
#define CPU_PACE_MS   20                    /* minimum interval for asking the steward for CPU time */
#define FRAME_ROOM    MiB                   /* room in a frame beyond the output limit */

extern const unsigned char kernel_python_bytes[], kernel_javascript_bytes[], kernel_bash_bytes[], kernel_r_bytes[];
extern const size_t kernel_python_size, kernel_javascript_size, kernel_bash_size, kernel_r_size;

struct kernel {
	const char *language, *names;
	const unsigned char *text;
	const size_t *size;
	bool tells_cpu, gets_ready;
	const char *words[KERNEL_WORDS];
};
static const struct kernel kernels[] = {
#define KERNEL(language, names, text, tells_cpu, gets_ready, ...) \
	{ language, names, text##_bytes, &text##_size, tells_cpu, gets_ready, { __VA_ARGS__ } },
#include "session/kernels.def"
};

enum context_state { CONTEXT_DEAD, CONTEXT_STARTING, CONTEXT_IDLE, CONTEXT_RUNNING, CONTEXT_COUNTING };

struct context {
	struct context *next;
	uint64_t tag;
	const struct kernel *kernel;
	char *cwd; /* allocated; NULL: the workspace */
	enum context_state state;
	unsigned reserved;       /* number of runs announced by session_reserve() */
	bool closing, told;      /* told: a DONE event is due when the kernel is ready */
	struct process *process; /* NULL: dead */
	struct outgoing channel;
	struct frame_reader reader;
	uint64_t count;
	/* The current run: */
	bool has_run;
	struct session_run run;
	struct buf code; /* the frame, until the kernel is ready for it */
	struct run_outcome outcome;
	uint64_t signal_tag;            /* of a SIGINT that the steward has not confirmed yet; 0: none */
	uint64_t begun_ns, deadline_ns; /* begun_ns: it was sent; deadline_ns: to interrupt, then to kill */
	bool interrupted, cancelled;    /* cancelled: by session_cancel() */
	bool forgot;                    /* its kernel was killed during a run; the next run reports that on stderr */
	bool cpu_limited;               /* the run could reach its CPU limit before its time limit */
	uint64_t cpu_next_ns;           /* when to ask for its CPU time; 0: not before it ends */
	uint64_t cpu_tag, cpu_base_ms;  /* cpu_tag: of an open query, or 0; cpu_base_ms: used by earlier runs */
	bool cpu_known;                 /* cpu_base_ms is valid */
};

static struct context *find(const struct session *s, uint64_t tag)
{
	for (struct context *c = s->contexts; c; c = c->next)
		if (c->tag == tag && !c->closing)
			return c;
	return NULL;
}

static struct context *find_or_say(const struct session *s, uint64_t tag, struct brig_error *err)
{
	struct context *c = find(s, tag);

	if (!c)
		(void)err_set(err, BRIG_E_USAGE, ENOENT, "the session has no such context");
	return c;
}

static bool has_name(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = names; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == len && strncasecmp(at, name, n) == 0)
			return true;
		at += n;
	}
	return false;
}

static const struct kernel *find_kernel(const char *language, struct brig_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
		if (has_name(kernels[i].names, language))
			return &kernels[i];
	(void)err_set(err, BRIG_E_USAGE, 0,
		      "there are no contexts of '%.40s': python, javascript, typescript, bash and r have some",
		      language);
	return NULL;
}

const char *session_context_language(const struct session *s, uint64_t context)
{
	const struct context *c = find(s, context);

	return c ? c->kernel->language : NULL;
}

struct process *context_kernel(const struct session *s, uint64_t tag)
{
	const struct context *c = find(s, tag);

	return c ? c->process : NULL;
}

/* ---- runs -------------------------------------------------------------------------------------- */

/* Cached: sysconf() reads a file for it, which takes longer than a short run. */
static uint64_t n_cpus(void)
{
	static _Atomic long known;
	long n = known ? known : sysconf(_SC_NPROCESSORS_ONLN);

	known = n;
	return n > 0 ? (uint64_t)n : 1;
}

static void end_run(struct session *s, struct context *c)
{
	if (!c->has_run)
		return;
	c->has_run = false;
	c->deadline_ns = c->cpu_next_ns = 0;
	c->code.len = 0;
	c->outcome.count = c->count;
	c->outcome.wall_ns = c->begun_ns ? clock_now_ns() - c->begun_ns : 0;
	/* The cell reports this number, but it cannot use more CPUs than there are. */
	c->outcome.cpu_us = min_u64(c->outcome.cpu_us, (c->outcome.wall_ns / 1000 + CPU_PACE_MS * 1000) * n_cpus());
	session_is_active(s);
	c->run.hooks.on_end(c->run.hooks.arg, &c->outcome);
}

static const char state_is_gone[] = "brig: an earlier run did not stop when it was interrupted, so its interpreter was "
				    "ended: what it knew is gone\n";

/* The time of the run starts here, when the kernel is ready for it. */
static void send_run(struct session *s, struct context *c)
{
	c->state = CONTEXT_RUNNING;
	c->count++;
	c->begun_ns = clock_now_ns();
	c->deadline_ns = c->begun_ns + c->run.timeout_ms * NS_PER_MS;
	c->interrupted = c->cancelled = c->cpu_known = false;
	/* Overwriting the tag discards the answer to a query of an earlier run. */
	c->cpu_tag = c->kernel->tells_cpu ? 0 : process_ask_cpu(s, c->process);
	c->cpu_next_ns = c->begun_ns + CPU_PACE_MS * NS_PER_MS;
	c->cpu_limited = s->config.cpu_ms && c->run.timeout_ms * n_cpus() > s->config.cpu_ms;
	c->channel.bytes.len = c->channel.at = 0;
	(void)buf_add(&c->channel.bytes, c->code.data, c->code.len);
	outgoing_flush(s, &c->channel);
	session_set_timer(s);
	if (c->forgot)
		context_output(s, c, BRIG_STDERR, state_is_gone, strlen(state_is_gone));
	c->forgot = false;
}

/* The signal must not hit the next run, which is therefore held back until the steward has sent the signal. */
static void interrupt(struct session *s, struct context *c)
{
	c->signal_tag = process_kill(s, c->process, SIGINT);
}

/* At the output or CPU limit.  The interpreter has GRACE_MS to stop by itself. */
static void stop_run(struct session *s, struct context *c, enum run_ending why)
{
	c->outcome.ending = why;
	c->deadline_ns = clock_now_ns() + GRACE_MS * NS_PER_MS;
	c->interrupted = true;
	interrupt(s, c);
	session_set_timer(s);
}

static void send_if_ready(struct session *s, struct context *c)
{
	if (c->has_run && c->state == CONTEXT_IDLE && !c->signal_tag)
		send_run(s, c);
}

void context_signal_sent(struct session *s, uint64_t tag)
{
	for (struct context *c = s->contexts; c; c = c->next)
		if (c->signal_tag == tag) {
			c->signal_tag = 0;
			send_if_ready(s, c);
			return;
		}
}

void context_output(struct session *s, struct context *c, enum brig_stream stream, const char *data, size_t len)
{
	struct brig_session_event e = {
		.kind = BRIG_SESSION_OUTPUT, .fd = -1, .stream = stream, .data = data, .tag = c->run.tag
	};
	uint64_t left = s->config.output_bytes - min_u64(s->config.output_bytes, c->outcome.output_bytes);

	if (!c->has_run)
		return; /* from a thread or a child that outlived its run: discarded */
	e.len = (size_t)min_u64(len, left);
	c->outcome.output_bytes += e.len;
	if (e.len > 0)
		c->run.hooks.on_output(c->run.hooks.arg, stream, data, e.len);
	if (e.len > 0)
		session_tell(s, &e);
	if (e.len < len && c->outcome.ending == RUN_DONE)
		stop_run(s, c, RUN_OUTPUT);
}

/* ---- frames from the kernel -------------------------------------------------------------------- */

static uint64_t field_bytes(const struct frame *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n_fields; i++)
		n += f->field[i].len;
	return n;
}

/* The contents of a result count as output; one that was cut was larger than all of it may be. */
static void take_result(struct session *s, struct context *c, const struct frame *f)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_RESULT,
					.fd = -1,
					.tag = c->run.tag,
					.name = f->kind,
					.fields = f->field,
					.n_fields = f->n_fields,
					.count = c->count };
	const char *name = frame_value(f, "name"), *value = frame_value(f, "value");

	c->outcome.output_bytes += f->is_cut ? s->config.output_bytes : field_bytes(f);
	if (f->is_cut || c->outcome.output_bytes > s->config.output_bytes) {
		context_output(s, c, BRIG_STDERR, "", 1);
		return;
	}
	if (str_eq(f->kind, "error") && c->outcome.ending == RUN_DONE) {
		c->outcome.ending = RUN_ERROR;
		(void)str_copy(c->outcome.error_name, sizeof(c->outcome.error_name), name ? name : "");
		(void)str_copy(c->outcome.error_value, sizeof(c->outcome.error_value), value ? value : "");
	}
	session_tell(s, &e);
}

static void tell_ready(struct session *s, struct context *c, int error)
{
	struct brig_session_event e = { .kind = BRIG_SESSION_DONE, .tag = c->tag, .fd = -1, .error = error };

	if (!c->told)
		return;
	c->told = false;
	session_tell(s, &e);
}

static void finish_counting(struct session *s, struct context *c)
{
	c->state = CONTEXT_IDLE;
	end_run(s, c);
}

/* The code has ended.  told: CPU time in microseconds as reported by the kernel, or NULL. */
static void finish_run(struct session *s, struct context *c, const char *told)
{
	uint64_t us = 0, now = clock_now_ns();

	if (told && str_to_u64(told, &us))
		c->outcome.cpu_us = max_u64(c->outcome.cpu_us, us);
	c->state = CONTEXT_COUNTING;
	c->cpu_tag = 0; /* discards the answer to a query from before the end */
	if (c->cpu_known || !c->kernel->tells_cpu)
		c->cpu_tag = process_ask_cpu(s, c->process);
	if (!c->cpu_tag) {
		finish_counting(s, c);
		return;
	}
	c->deadline_ns = now + GRACE_MS * NS_PER_MS;
	session_set_timer(s);
}

/* False: a protocol error. */
static bool take_frame(struct session *s, struct context *c, const struct frame *f)
{
	if (str_eq(f->kind, "ready") && c->state == CONTEXT_STARTING) {
		c->state = CONTEXT_IDLE;
		tell_ready(s, c, 0);
		send_if_ready(s, c);
		return true;
	}
	if (c->state != CONTEXT_RUNNING || !c->has_run)
		return true; /* a late frame, from a thread or from a run that was given up */
	if (str_eq(f->kind, "result") || str_eq(f->kind, "error")) {
		take_result(s, c, f);
		return true;
	}
	if (!str_eq(f->kind, "done"))
		return false;
	process_read(s, c->process);
	finish_run(s, c, frame_value(f, "cpu"));
	return true;
}

static void kill_kernel(struct session *s, struct context *c)
{
	if (c->process)
		(void)process_kill(s, c->process, SIGKILL);
}

static void serve_channel(struct session *s, void *owner, uint32_t events)
{
	struct context *c = owner;
	struct frame f;
	ssize_t n;
	int rc = 0;

	if (events & EPOLLOUT)
		outgoing_flush(s, &c->channel);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	/* Output that the kernel wrote before its frame must be reported before the frame. */
	if (c->process)
		process_read(s, c->process);
	n = recv(c->channel.to.fd, s->piece, sizeof(s->piece), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && frame_add(&c->reader, s->piece, (size_t)n))
		while ((rc = frame_next(&c->reader, &f)) > 0 && (rc = take_frame(s, c, &f) ? 0 : -1) == 0)
			;
	else
		rc = -1;
	if (rc < 0) { /* a protocol error (a program may have taken the channel), or the kernel has exited */
		source_close(s, &c->channel.to);
		kill_kernel(s, c);
	}
}

/* ---- the kernel -------------------------------------------------------------------------------- */

/* The argv of a kernel; its last word, the text, is allocated. */
static char *fill_words(const struct kernel *k, const char *words[KERNEL_WORDS + 1], size_t *n)
{
	char *text = strndup((const char *)k->text, *k->size);

	for (*n = 0; *n < KERNEL_WORDS && k->words[*n]; (*n)++)
		words[*n] = k->words[*n];
	words[(*n)++] = text;
	return text;
}

static int start_kernel(struct session *s, struct context *c, struct brig_error *err)
{
	const char *words[KERNEL_WORDS + 1];
	struct brig_session_process what = BRIG_SESSION_PROCESS_INIT;
	AUTO_FREE char *text = fill_words(c->kernel, words, &what.n_argv);
	int ends[2], rc;

	if (!text)
		return err_nomem(err);
	what.argv = words;
	what.cwd = c->cwd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make the channel of a context");
	rc = process_begin(s, session_next_tag(s), &what, c, ends[1], &c->process, err);
	if (rc < 0) {
		(void)close(ends[0]);
		return rc;
	}
	frame_reader_reset(&c->reader);
	c->channel.socket = true;
	if (source_watch(s, &c->channel.to, ends[0], EPOLLIN, serve_channel, c) < 0)
		(void)close(ends[0]); /* the kernel exits when it finds the channel closed */
	c->state = CONTEXT_STARTING;
	c->count = c->signal_tag = 0;
	return 0;
}

void context_kernel_started(struct session *s, struct context *c, int error)
{
	if (error == 0 && c->closing)
		kill_kernel(s, c);
	if (error == 0)
		return;
	c->outcome.ending = RUN_UNBORN;
	if (!c->closing)
		tell_ready(s, c, error);
	context_kernel_gone(s, c, &(struct brig_session_event){ .exit_code = -1 });
}

static void context_free(struct session *s, struct context *c)
{
	struct context **at = &s->contexts;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	source_close(s, &c->channel.to);
	buf_release(&c->channel.bytes);
	buf_release(&c->code);
	frame_reader_release(&c->reader);
	free(c->cwd);
	free(c);
}

void context_kernel_gone(struct session *s, struct context *c, const struct brig_session_event *end)
{
	bool began = c->state != CONTEXT_STARTING; /* a kernel that dies before it is ready is not restarted */
	bool had_ended;                            /* the run had ended before the kernel died */

	/* Its last frames may still be in the channel. */
	if (c->channel.to.fd >= 0 && !c->closing)
		serve_channel(s, c, EPOLLIN);
	had_ended = c->state == CONTEXT_COUNTING;
	c->process = NULL;
	c->state = CONTEXT_DEAD;
	source_close(s, &c->channel.to);
	if (c->has_run) {
		if (c->outcome.ending == RUN_DONE && !had_ended)
			c->outcome.ending = s->stopping ? RUN_ENDED : RUN_DIED;
		c->outcome.signal = end->signal;
		if (c->outcome.ending == RUN_DIED)
			c->outcome.exit_code = end->signal ? -1 : end->exit_code;
		end_run(s, c);
	}
	if (c->closing)
		context_free(s, c);
	else if (c->told && (!began || start_kernel(s, c, NULL) < 0))
		tell_ready(s, c, ECHILD);
}

/* ---- requests ---------------------------------------------------------------------------------- */

static struct context *context_new(struct session *s, const struct kernel *k, const char *cwd)
{
	struct context *c = calloc(1, sizeof(*c));
	const uint64_t room = s->config.output_bytes + FRAME_ROOM;

	if (!c)
		return NULL;
	c->kernel = k;
	c->cwd = cwd ? strdup(cwd) : NULL;
	c->channel.to.fd = FD_NONE;
	c->channel.bytes.max = c->code.max = CODE_MAX;
	c->reader = (struct frame_reader)FRAME_READER_INIT(room);
	if (cwd && !c->cwd) {
		free(c);
		return NULL;
	}
	c->tag = session_next_tag(s);
	c->told = true;
	c->next = s->contexts;
	s->contexts = c;
	return c;
}

/* The steward would detect that, too, but could not say how to fix it. */
static int check_installed(const struct kernel *k, struct brig_error *err)
{
	const struct language *lang = lang_by_name(k->language);
	struct brig_error why = BRIG_ERROR_INIT;
	char path[PATH_MAX];
	bool bind;

	if (!lang || lang_find_tool(lang, &lang->run, path, sizeof(path), &bind, &why) == 0)
		return 0;
	return err_set(err, BRIG_E_USAGE, 0, "there are no contexts of '%s' on this host: %s", k->language, why.msg);
}

int session_context(struct session *s, const char *language, const char *cwd, uint64_t *ret_tag, struct brig_error *err)
{
	const struct kernel *k = find_kernel(language ? language : "python", err);
	struct context *c;
	size_t n = 0;
	int rc;

	if (!k)
		return -BRIG_E_USAGE;
	rc = check_installed(k, err);
	if (rc < 0)
		return rc;
	for (c = s->contexts; c; c = c->next)
		n++;
	if (n >= CONTEXTS_MAX)
		return err_set(err, BRIG_E_REFUSED, 0, "a session has at most %d contexts", CONTEXTS_MAX);
	c = context_new(s, k, cwd);
	if (!c)
		return err_nomem(err);
	rc = start_kernel(s, c, err);
	if (rc < 0) {
		context_free(s, c);
		return rc;
	}
	if (ret_tag)
		*ret_tag = c->tag;
	return 0;
}

int session_reserve(struct session *s, uint64_t context, struct brig_error *err)
{
	struct context *c = find_or_say(s, context, err);

	if (!c)
		return -BRIG_E_USAGE;
	if (c->reserved >= CONTEXT_QUEUE_MAX)
		return err_set(err, BRIG_E_REFUSED, EBUSY, "%d runs wait in this context already: wait for one of them",
			       CONTEXT_QUEUE_MAX);
	c->reserved++;
	return 0;
}

void session_unreserve(struct session *s, uint64_t context)
{
	struct context *c = find(s, context);

	if (c && c->reserved > 0)
		c->reserved--;
}

void session_expect(struct session *s, uint64_t context)
{
	struct context *c = find(s, context);

	if (!c || c->state != CONTEXT_IDLE || c->has_run || s->paused_ns || !c->kernel->gets_ready)
		return;
	/* What the socket does not accept now is discarded: send_run() empties the buffer. */
	c->channel.bytes.len = c->channel.at = 0;
	frame_write(&c->channel.bytes, "soon", NULL, 0);
	outgoing_flush(s, &c->channel);
}

static int fill_code(struct context *c, const struct session_run *run, struct brig_error *err)
{
	const size_t n = run->n_env + 2;
	AUTO_FREE struct brig_session_field *fields = calloc(n, sizeof(*fields));

	if (!fields)
		return err_nomem(err);
	if (run->n_env > VARIABLES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "more than %d variables of one run", VARIABLES_MAX);
	fields[0] = (struct brig_session_field){ .name = "code", .value = run->code, .len = run->code_len };
	fields[1] = (struct brig_session_field){ .name = "language",
						 .value = c->kernel->language,
						 .len = strlen(c->kernel->language) };
	for (size_t i = 2; i < n; i++)
		fields[i] = (struct brig_session_field){ .name = "env",
							 .value = run->env[i - 2],
							 .len = strlen(run->env[i - 2]) };
	c->code.len = 0;
	c->code.full = false;
	frame_write(&c->code, "run", fields, n);
	return c->code.full || c->code.no_memory ? err_set(err, BRIG_E_USAGE, 0, "the code is too long") : 0;
}

int session_run(struct session *s, const struct session_run *run, struct brig_error *err)
{
	struct context *c = find_or_say(s, run->context, err);
	int rc;

	if (!c)
		return -BRIG_E_USAGE;
	if (c->reserved > 0)
		c->reserved--;
	if (c->has_run)
		return err_set(err, BRIG_E_REFUSED, EBUSY, "something runs in this context already");
	rc = fill_code(c, run, err);
	if (rc == 0 && c->state == CONTEXT_DEAD)
		rc = start_kernel(s, c, err);
	if (rc < 0)
		return rc;
	c->run = *run;
	c->run.code = NULL;
	c->run.env = NULL;
	c->has_run = true;
	c->outcome = (struct run_outcome){ .ending = RUN_DONE };
	c->begun_ns = 0;
	c->deadline_ns = clock_now_ns() + run->timeout_ms * NS_PER_MS; /* applies also if the kernel never gets ready */
	send_if_ready(s, c);
	session_set_timer(s);
	return 0;
}

int session_interrupt(struct session *s, uint64_t context, struct brig_error *err)
{
	struct context *c = find_or_say(s, context, err);

	if (!c)
		return -BRIG_E_USAGE;
	if (c->state == CONTEXT_RUNNING)
		interrupt(s, c);
	return 0;
}

void session_cancel(struct session *s, uint64_t context, uint64_t run)
{
	struct context *c = find(s, context);

	if (!c || !c->has_run || c->run.tag != run)
		return;
	if (c->state == CONTEXT_COUNTING)
		return; /* the code has ended already */
	if (c->state != CONTEXT_RUNNING) {
		c->outcome.ending = RUN_CANCELLED; /* the kernel has not been sent the run */
		end_run(s, c);
		return;
	}
	interrupt(s, c);
	if (c->interrupted)
		return;
	c->interrupted = c->cancelled = true;
	c->deadline_ns = clock_now_ns() + GRACE_MS * NS_PER_MS;
	session_set_timer(s);
}

int session_restart(struct session *s, uint64_t context, struct brig_error *err)
{
	struct context *c = find_or_say(s, context, err);

	if (!c)
		return -BRIG_E_USAGE;
	c->told = true;
	if (c->state == CONTEXT_DEAD)
		return start_kernel(s, c, err);
	if (c->state == CONTEXT_STARTING)
		return 0;
	kill_kernel(s, c);
	return 0;
}

int session_close_context(struct session *s, uint64_t context, struct brig_error *err)
{
	struct context *c = find_or_say(s, context, err);

	if (!c)
		return -BRIG_E_USAGE;
	c->closing = true;
	if (c->state == CONTEXT_DEAD) {
		end_run(s, c);
		context_free(s, c);
	} else {
		kill_kernel(s, c);
	}
	return 0;
}

/* ---- CPU time ----------------------------------------------------------------------------------- */

/*
 * The steward knows the CPU time of a kernel and its children.  We ask for it CPU_PACE_MS after the run began, which
 * short runs do not reach; then whenever the limit could have been reached at the earliest, with all CPUs in use; and
 * at the end.  If the kernel does not report CPU time itself, we also ask at the beginning; otherwise the first
 * milliseconds rest on the kernel's word alone.
 */
static void ask_cpu(struct session *s, struct context *c, uint64_t now)
{
	if (!c->has_run || c->state != CONTEXT_RUNNING || c->interrupted || c->cpu_tag || !c->cpu_next_ns ||
	    now < c->cpu_next_ns)
		return;
	c->cpu_tag = c->process ? process_ask_cpu(s, c->process) : 0;
	c->cpu_next_ns = now + CPU_PACE_MS * NS_PER_MS; /* tries again if it could not be asked */
}

void context_cpu_told(struct session *s, uint64_t tag, uint64_t ms)
{
	struct context *c = s->contexts;
	uint64_t used, left;

	while (c && c->cpu_tag != tag)
		c = c->next;
	if (!c)
		return;
	c->cpu_tag = 0;
	if (!c->has_run || (c->state != CONTEXT_RUNNING && c->state != CONTEXT_COUNTING))
		return;
	if (!c->cpu_known)
		c->cpu_base_ms = ms;
	c->cpu_known = true;
	used = min_u64(ms - min_u64(ms, c->cpu_base_ms), UINT32_MAX);
	c->outcome.cpu_us = max_u64(c->outcome.cpu_us, used * 1000);
	if (c->state == CONTEXT_COUNTING) {
		finish_counting(s, c);
		send_if_ready(s, c);
		return;
	}
	c->cpu_next_ns = 0;
	if (!c->cpu_limited || c->outcome.ending != RUN_DONE)
		return;
	left = s->config.cpu_ms - min_u64(s->config.cpu_ms, used);
	if (left == 0) {
		stop_run(s, c, RUN_CPU);
		return;
	}
	c->cpu_next_ns = clock_now_ns() + (left / n_cpus() + CPU_PACE_MS) * NS_PER_MS;
	session_set_timer(s);
}

/* ---- deadlines and ends ------------------------------------------------------------------------- */

bool context_any_runs(const struct session *s)
{
	for (const struct context *c = s->contexts; c; c = c->next)
		if (c->has_run || c->reserved)
			return true;
	return false;
}

uint64_t context_next_deadline(const struct session *s)
{
	uint64_t at = UINT64_MAX;

	for (const struct context *c = s->contexts; c; c = c->next)
		if (c->has_run) {
			at = min_u64(at, c->deadline_ns ? c->deadline_ns : UINT64_MAX);
			at = min_u64(at,
				     c->cpu_next_ns && !c->cpu_tag && !c->interrupted ? c->cpu_next_ns : UINT64_MAX);
		}
	return at;
}

void context_put_off(struct session *s, uint64_t ns)
{
	for (struct context *c = s->contexts; c; c = c->next)
		if (c->has_run) {
			c->deadline_ns += c->deadline_ns ? ns : 0;
			c->cpu_next_ns += c->cpu_next_ns ? ns : 0;
		}
}

/* Its grace period is over. */
static void end_kernel(struct session *s, struct context *c)
{
	c->forgot = c->state == CONTEXT_RUNNING;
	kill_kernel(s, c);
}

void context_check_deadlines(struct session *s, uint64_t now)
{
	for (struct context *c = s->contexts; c; c = c->next) {
		ask_cpu(s, c, now);
		if (!c->has_run || !c->deadline_ns || now < c->deadline_ns)
			continue;
		if (c->state == CONTEXT_COUNTING) {
			c->cpu_tag = 0;
			finish_counting(s, c); /* the steward did not answer in time */
			continue;
		}
		c->deadline_ns = c->interrupted ? 0 : now + GRACE_MS * NS_PER_MS;
		if (c->outcome.ending == RUN_DONE)
			c->outcome.ending = c->cancelled ? RUN_STUBBORN : RUN_TIMEOUT;
		if (c->interrupted || c->state != CONTEXT_RUNNING)
			end_kernel(s, c);
		else
			interrupt(s, c);
		c->interrupted = true;
	}
}

void context_free_all(struct session *s)
{
	while (s->contexts) {
		struct context *c = s->contexts;

		if (c->has_run && c->outcome.ending == RUN_DONE)
			c->outcome.ending = RUN_ENDED;
		end_run(s, c);
		context_free(s, c);
	}
}
