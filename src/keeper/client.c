/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's cells as a backend.  Each cell has its own channel to the keeper (protocol.h), which is also the
 * descriptor to poll for its events.  Runs share nothing, so any number of them can be in progress in one process.
 *
 *	begin	sends the job and the contents of its files (request.c); the keeper copies the program into a waiting
 *		cell, or starts to build a cell
 *	finish	waits for KEEP_CREATED, which brings streams and workspace.  With start_at_once KEEP_GO is sent before
 *		that
 *	pack	if the keeper cannot mount the project in the cell, this process packs it with its own rights, and init
 *		unpacks it
 *	start	sends KEEP_GO
 *	end	once the last process is dead, the keeper reads everything back and sends it in one record.  read_back,
 *		stop, usage and denied only look at that record; if it has not arrived, they first ask the keeper to
 *		stop the cell
 *	settle	waits until the keeper reports that nothing of the run's cells is left, or what is left
 */
#include "keeper/client.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/native/project_stream.h"
#include "backend/native/project_view.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"
#include "files/beneath.h"
#include "sys/proc.h"

#define END_PATIENCE_NS   (5 * NS_PER_SEC)
#define POOLS_PATIENCE_MS 5

struct cell {
	struct backend_host *host;
	const struct plan *plan;
	int channel;
	int fds[KEEP_CREATED_FDS_MAX];                /* FD_NONE: not received */
	bool created, gone, told_started, told_ended; /* gone: KEEP_GO was sent */
	bool was_waiting, was_forked;
	uint64_t started_ns;
	struct project_stream stream; /* of a project that is packed for the cell */
	bool is_packed;
	bool has_counts;
	struct keep_counts counts;
	bool has_final;
	struct keep_final final;
	struct denied_row *denied; /* allocated */
	bool lost;                 /* the channel has ended, or KEEP_FAILED came; why has the reason */
	struct brig_error why;
	char buffer[KEEP_BODY_MAX];
};

void keeper_release(struct backend_host *h)
{
	fd_closep(&h->socket);
	fd_closep(&h->pools_channel);
	free(h->pools);
	h->pools = NULL;
	if (h->pidfd >= 0)
		(void)proc_reap(&h->pidfd, clock_now_ns() + END_PATIENCE_NS, NULL);
	proc_leave(&h->pidfd);
}

void keeper_hang_up(struct backend_host *h)
{
	fd_closep(&h->socket);
}

/*
 * A dying keeper's socket closes some time before its pidfd reports the exit.  On a busy machine that is long enough
 * for another request, so both are polled.
 */
bool keeper_is_alive(const struct backend_host *h)
{
	struct pollfd p[] = { { .fd = h->pidfd, .events = POLLIN }, { .fd = h->socket } };

	return poll(p, ARRAY_LEN(p), 0) == 0;
}

bool keeper_cell_was_waiting(const struct cell *c)
{
	return c->was_waiting;
}

bool keeper_cell_was_forked(const struct cell *c)
{
	return c->was_forked;
}

static int ask_pools(struct backend_host *h)
{
	AUTO_FD theirs = FD_NONE;
	int rc = keeper_open_channel(&h->pools_channel, &theirs);

	if (rc == 0)
		rc = keep_send(h->socket, KEEP_POOLS, NULL, 0, NULL, 0, &theirs, 1);
	if (rc < 0)
		fd_closep(&h->pools_channel);
	return rc;
}

/* Keeps the rows if the record is well-formed. */
static void take_pools(struct backend_host *h, const struct keep_message *m)
{
	size_t n = m->head.size / sizeof(*h->pools);

	if (m->head.kind != KEEP_POOLS || m->head.size % sizeof(*h->pools) != 0 || n > KEEP_POOLS_MAX || m->n_fds != 0)
		return;
	if (!h->pools)
		h->pools = calloc(KEEP_POOLS_MAX, sizeof(*h->pools));
	if (!h->pools)
		return;
	memcpy(h->pools, m->body, m->head.size);
	h->n_pools = n;
	for (size_t i = 0; i < n; i++) {
		h->pools[i].language[sizeof(h->pools[i].language) - 1] = '\0';
		h->pools[i].environment[sizeof(h->pools[i].environment) - 1] = '\0';
	}
}

static void hear_pools(struct backend_host *h)
{
	AUTO_FREE char *buffer = malloc(KEEP_BODY_MAX);
	struct keep_message m;

	if (buffer && keep_receive(h->pools_channel, buffer, &m) == 1) {
		take_pools(h, &m);
		keep_message_release(&m);
	}
	fd_closep(&h->pools_channel);
}

size_t keeper_pools(struct backend_host *h, struct keep_pool rows[KEEP_POOLS_MAX])
{
	struct pollfd p = { .events = POLLIN };

	if (h->pools_channel < 0 && ask_pools(h) < 0)
		return 0;
	p.fd = h->pools_channel;
	if (wait_poll(&p, 1, POOLS_PATIENCE_MS) == 1)
		hear_pools(h);
	if (h->n_pools > 0)
		memcpy(rows, h->pools, h->n_pools * sizeof(*rows));
	return h->n_pools;
}

static void ended_free(struct ended *e)
{
	fd_closep(&e->channel);
	free(e);
}

static void keeper_close(struct backend_host *h)
{
	struct ended *e;

	if (!h)
		return;
	while ((e = h->ended)) {
		h->ended = e->next;
		ended_free(e);
	}
	keeper_release(h);
	free(h);
}

/* ---- records from the keeper -------------------------------------------------------------------- */

/* End of file without a record while the keeper is alive: it had no descriptor left for the channel. */
static int lose(struct cell *c, int rc)
{
	bool is_full = rc == -EMFILE || (rc == 0 && keeper_is_alive(c->host));

	if (!c->lost && is_full)
		(void)err_set(&c->why, BRIG_E_SYSTEM, 0,
			      "no descriptor is left for another cell in %s: raise the limit on open files (ulimit -n, "
			      "LimitNOFILE= of a unit) or have fewer cells at once (--jobs)",
			      rc < 0 ? "the process that asked" : "the keeper of cells");
	else if (!c->lost)
		(void)err_set(&c->why, BRIG_E_SYSTEM, rc < 0 ? -rc : 0,
			      rc < 0 ? "the keeper of cells does not answer as it should"
				     : "the keeper of cells has ended");
	c->lost = true;
	return -BRIG_E_SYSTEM;
}

/* Whether the plan makes the keeper send this descriptor. */
static bool has_fd(const struct plan *plan, size_t which)
{
	return which < KEEP_CREATED_FDS || (which == KEEP_FD_WAY_OUT ? plan->egress != NULL : keep_shows_rest(plan));
}

static int take_born(struct cell *c, struct keep_message *m)
{
	struct keep_created created;
	size_t n = 0;

	for (size_t i = 0; i < KEEP_CREATED_FDS_MAX; i++)
		n += has_fd(c->plan, i);
	if (c->created || m->n_fds != n || m->head.size != sizeof(created))
		return -EPROTO;
	memcpy(&created, m->body, sizeof(created));
	n = 0;
	for (size_t i = 0; i < KEEP_CREATED_FDS_MAX; i++)
		if (has_fd(c->plan, i))
			c->fds[i] = fd_move(&m->fds[n++]);
	c->was_waiting = created.was_waiting;
	c->was_forked = created.was_forked;
	if (c->gone && created.started_ns > c->started_ns && created.started_ns <= clock_now_ns())
		c->started_ns = created.started_ns; /* not charged for time in which the keeper was busy */
	c->created = true;
	return 0;
}

static int take_failed(struct cell *c, const struct keep_message *m)
{
	struct keep_failed f;

	if (m->head.size != sizeof(f))
		return -EPROTO;
	memcpy(&f, m->body, sizeof(f));
	f.text[sizeof(f.text) - 1] = '\0';
	c->why = (struct brig_error){ .code = f.code > 0 && f.code <= BRIG_E_INTERNAL ? f.code : BRIG_E_SYSTEM,
				      .sys = f.sys };
	(void)str_copy(c->why.msg, sizeof(c->why.msg), f.text);
	c->lost = true;
	return 0;
}

/* Terminates all strings: the keeper's records are not trusted to be well-formed. */
static void close_strings(struct keep_final *f, struct denied_row *rows)
{
	for (size_t i = 0; i < FACT_COUNT; i++) {
		f->facts.row[i].text[sizeof(f->facts.row[i].text) - 1] = '\0';
		f->facts.row[i].source[sizeof(f->facts.row[i].source) - 1] = '\0';
	}
	for (size_t i = 0; i < f->n_denied; i++) {
		rows[i].what[sizeof(rows[i].what) - 1] = '\0';
		rows[i].why[sizeof(rows[i].why) - 1] = '\0';
		rows[i].fix[sizeof(rows[i].fix) - 1] = '\0';
		if ((unsigned)rows[i].kind >= DENIED_KIND_COUNT)
			rows[i].kind = DENIED_SYSCALL;
	}
}

static int take_final(struct cell *c, const struct keep_message *m)
{
	size_t rest;

	if (c->has_final || m->head.size < sizeof(c->final))
		return -EPROTO;
	memcpy(&c->final, m->body, sizeof(c->final));
	rest = m->head.size - sizeof(c->final);
	if (c->final.n_denied > DENIED_MAX || rest != c->final.n_denied * sizeof(*c->denied))
		return -EPROTO;
	if (rest > 0) {
		c->denied = malloc(rest);
		if (!c->denied)
			return -ENOMEM;
		memcpy(c->denied, m->body + sizeof(c->final), rest);
	}
	close_strings(&c->final, c->denied);
	c->has_final = true;
	return 0;
}

static int take_counts(struct cell *c, const struct keep_message *m)
{
	if (m->head.size != sizeof(c->counts))
		return -EPROTO;
	memcpy(&c->counts, m->body, sizeof(c->counts));
	c->has_counts = true;
	return 0;
}

/* Packs the project, once; the keeper passes the stream on to init. */
static int send_stream(struct cell *c)
{
	struct project_stream *s = &c->stream;
	struct keep_stream body;
	int rc = 0;

	if (c->is_packed)
		return 0;
	if (!c->plan->workspace)
		return -EPROTO;
	c->is_packed = true;
	if (project_stream_begin(s, c->plan, &c->why) < 0) {
		c->lost = true;
		return 0;
	}
	body = (struct keep_stream){ .bytes = s->bytes, .inodes = s->inodes };
	rc = keep_send(c->channel, KEEP_STREAM, &body, sizeof(body), NULL, 0, &s->source, 1);
	fd_closep(&s->source);
	return rc;
}

/* Takes in all queued records; negative if the cell is lost. */
static int pump(struct cell *c)
{
	while (!c->lost && !c->has_final) {
		struct keep_message m;
		int rc = keep_receive(c->channel, c->buffer, &m);

		if (rc == -EAGAIN)
			return 0;
		if (rc <= 0)
			return lose(c, rc);
		rc = m.head.kind == KEEP_CREATED  ? take_born(c, &m)
		     : m.head.kind == KEEP_FAILED ? take_failed(c, &m)
		     : m.head.kind == KEEP_FINAL  ? take_final(c, &m)
		     : m.head.kind == KEEP_COUNTS ? take_counts(c, &m)
		     : m.head.kind == KEEP_PACK   ? send_stream(c)
						  : -EPROTO;
		keep_message_release(&m);
		if (rc < 0)
			return lose(c, rc);
	}
	return c->lost ? -c->why.code : 0;
}

/* Waits until *something is true, the final record has come, the cell is lost, or the timeout has passed. */
static bool await(struct cell *c, const bool *something, uint64_t patience_ns)
{
	const uint64_t deadline = clock_now_ns() + patience_ns;

	while (pump(c) == 0 && !*something && !c->has_final) {
		struct pollfd p = { .fd = c->channel, .events = POLLIN };
		uint64_t now = clock_now_ns();

		if (now >= deadline)
			return false;
		(void)wait_poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1);
	}
	return *something;
}

static void say(struct cell *c, enum keep_kind kind)
{
	int rc = c->lost ? 0 : keep_send(c->channel, kind, NULL, 0, NULL, 0, NULL, 0);

	/* EPIPE or ECONNRESET: the keeper has sent its last record and closed the channel */
	if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
		(void)lose(c, rc);
}

/* ---- the backend -------------------------------------------------------------------------------- */

/*
 * The keeper goes on to remove the cell and reports leftovers, which settle reads.  Not for a warm run: the removal
 * takes longer than the whole run.
 */
static void leave_channel(struct cell *c)
{
	bool listens = c->has_final && (!c->plan->waits_at || c->plan->session);
	struct ended *e = listens ? calloc(1, sizeof(*e)) : NULL;

	if (!e)
		return;
	*e = (struct ended){ .next = c->host->ended,
			     .channel = fd_move(&c->channel),
			     .patience_ns = c->plan->limits.cleanup_ms * NS_PER_MS + END_PATIENCE_NS };
	memcpy(e->id, c->plan->id, sizeof(e->id));
	c->host->ended = e;
}

static int keeper_destroy(struct cell *c, char *leftovers, size_t size)
{
	if (size)
		*leftovers = '\0';
	if (!c)
		return 0;
	leave_channel(c);
	for (size_t i = 0; i < KEEP_CREATED_FDS_MAX; i++)
		fd_closep(&c->fds[i]);
	fd_closep(&c->channel); /* makes the keeper kill a cell that has not ended */
	project_stream_end(&c->stream);
	free(c->denied);
	free(c);
	return 0;
}

/* A keeper of an ordinary user never mounts projects, so packing starts before KEEP_PACK arrives. */
static int pack_ahead(struct cell *c, struct brig_error *err)
{
	if (!c->plan->workspace || geteuid() == 0)
		return 0;
	if (send_stream(c) < 0) /* if the keeper is gone, the next receive reports it */
		return 0;
	if (!c->lost)
		return 0;
	*err = c->why;
	return -err->code;
}

static int keeper_begin(struct backend_host *h, const struct plan *plan, const struct backend_notice *notify UNUSED,
			struct cell **ret, struct brig_error *err)
{
	struct cell *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(err);
	c->host = h;
	c->plan = plan;
	c->channel = FD_NONE;
	c->stream = (struct project_stream)PROJECT_STREAM_NONE;
	for (size_t i = 0; i < KEEP_CREATED_FDS_MAX; i++)
		c->fds[i] = FD_NONE;
	rc = keeper_send_job(h, plan, &c->channel, err);
	if (rc == 0)
		rc = pack_ahead(c, err);
	if (rc < 0) {
		(void)keeper_destroy(c, NULL, 0);
		return rc;
	}
	*ret = c;
	return 0;
}

static void let_go(struct cell *c)
{
	if (c->gone)
		return;
	c->gone = true;
	c->started_ns = clock_now_ns();
	say(c, KEEP_GO);
}

static int keeper_finish(struct cell *c, struct brig_error *err)
{
	uint64_t patience = (c->plan->limits.startup_ms + 1000) * NS_PER_MS; /* the keeper's own deadline comes first */

	if (keeper_starts_early(c->plan))
		let_go(c);
	if (await(c, &c->created, patience))
		return 0;
	if (!c->lost)
		(void)lose(c, -ETIMEDOUT);
	*err = c->why;
	return project_stream_blame(&c->stream, -err->code, err);
}

static int keeper_go(struct cell *c, struct cell_fds *ret, struct brig_error *err)
{
	let_go(c);
	if (c->lost) {
		*err = c->why;
		return -err->code;
	}
	*ret = (struct cell_fds){ .in = c->fds[KEEP_FD_IN],
				  .out = c->fds[KEEP_FD_OUT],
				  .err = c->fds[KEEP_FD_ERR],
				  .event = c->channel,
				  .started_ns = c->started_ns };
	return 0;
}

static enum cell_event keeper_on_event(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	if (pump(c) < 0) {
		*err = c->why;
		return CELL_FAILED;
	}
	if (!c->told_started) {
		c->told_started = true;
		return CELL_STARTED;
	}
	if (c->has_final && c->final.ended && !c->told_ended) {
		c->told_ended = true;
		*info = c->final.exit;
		return CELL_FINISHED;
	}
	return CELL_NOTHING;
}

static void keeper_close_stdin(struct cell *c)
{
	fd_closep(&c->fds[KEEP_FD_IN]);
}

static void ask_counts(struct cell *c)
{
	if (c->has_final || c->lost)
		return;
	c->has_counts = false;
	say(c, KEEP_ASK);
	(void)await(c, &c->has_counts, END_PATIENCE_NS);
}

static int keeper_sample(struct cell *c, struct sample *ret)
{
	ask_counts(c);
	ret->cpu_ms = c->counts.cpu_ns / NS_PER_MS;
	ret->memory_bytes = c->counts.memory_bytes;
	ret->pids = c->counts.pids;
	return 0;
}

static uint64_t keeper_cpu_ns(struct cell *c)
{
	ask_counts(c);
	return c->counts.cpu_ns;
}

/* Called right after sample, which has fetched the counts. */
static uint64_t keeper_oom_kills(struct cell *c)
{
	return c->counts.oom_kills;
}

static uint64_t keeper_disk_bytes(struct cell *c)
{
	return c->counts.disk_bytes;
}

static bool await_final(struct cell *c)
{
	if (c->has_final || c->lost)
		return c->has_final;
	say(c, KEEP_STOP);
	return await(c, &c->has_final, c->plan->limits.cleanup_ms * NS_PER_MS + END_PATIENCE_NS);
}

static void keeper_read_back(struct cell *c, struct facts *ret)
{
	if (await_final(c))
		*ret = c->final.facts;
}

static void keeper_send_signal(struct cell *c, int signal)
{
	const struct keep_signal body = { .number = signal };

	if (!c->lost && !c->has_final)
		(void)keep_send(c->channel, KEEP_SIGNAL, &body, sizeof(body), NULL, 0, NULL, 0);
}

static int keeper_stop(struct cell *c, struct brig_error *err)
{
	if (await_final(c))
		return 0;
	if (!c->lost)
		(void)lose(c, -ETIMEDOUT);
	if (err)
		*err = c->why;
	return -c->why.code;
}

static void keeper_usage(struct cell *c, struct cell_usage *ret)
{
	*ret = c->final.usage;
}

static int keeper_open_output(struct cell *c, const char *name)
{
	return beneath_open_file(c->fds[KEEP_FD_WORKSPACE], name, NULL);
}

static int keeper_open_folder(struct cell *c, const char *name)
{
	return beneath_open_dir(c->fds[KEEP_FD_WORKSPACE], name);
}

static int keeper_listener(struct cell *c, struct brig_error *err)
{
	if (c->fds[KEEP_FD_WAY_OUT] < 0)
		return err_set(err, BRIG_E_INTERNAL, 0, "the cell has no sockets for the egress proxy");
	return fd_move(&c->fds[KEEP_FD_WAY_OUT]);
}

static int keeper_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err)
{
	const struct project_rest rest = { .plan = c->plan,
					   .way = !c->plan->workspace ? PROJECT_NONE
						  : c->is_packed      ? PROJECT_STREAM
								      : PROJECT_LOWER,
					   .copy_bytes = c->stream.bytes,
					   .copy_inodes = c->stream.inodes,
					   .workspace = c->fds[KEEP_FD_WORKSPACE],
					   .upper = c->fds[KEEP_FD_UPPER],
					   .user_ns = c->fds[KEEP_FD_USER_NS] };

	if (!c->has_final) /* it comes only when every process is dead */
		return err_set(err, BRIG_E_INTERNAL, 0, "there is no workspace to be read back: the cell is not dead");
	return project_view(&rest, ret, err);
}

struct last_word {
	struct keep_head head;
	struct keep_left left;
};
static_assert(sizeof(struct last_word) == sizeof(struct keep_head) + sizeof(struct keep_left), "one record, no holes");

/*
 * Collects KEEP_LEFT records until the channel ends; returns their number.  Records of any other kind or size are
 * ignored.
 */
static int hear_left(struct ended *e, char *leftovers, size_t size)
{
	const uint64_t deadline = clock_now_ns() + e->patience_ns;
	struct last_word w;
	int left = 0;

	for (uint64_t now = clock_now_ns(); now < deadline; now = clock_now_ns()) {
		struct pollfd p = { .fd = e->channel, .events = POLLIN };
		size_t len = strlen(leftovers);
		ssize_t n;

		(void)wait_poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1);
		n = recv(e->channel, &w, sizeof(w), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
		if (n != sizeof(w) || w.head.magic != KEEP_MAGIC || w.head.kind != KEEP_LEFT ||
		    w.head.size != sizeof(w.left))
			continue;
		(void)snprintf(leftovers + len, size - len, "%s%.*s", len ? ", " : "", (int)sizeof(w.left.text) - 1,
			       w.left.text);
		left++;
	}
	return left;
}

static int keeper_settle(struct backend_host *h, const char *run_id, char *leftovers, size_t size)
{
	int left = 0;

	*leftovers = '\0';
	for (struct ended **at = &h->ended; *at;) {
		struct ended *e = *at;

		if (!str_eq(e->id, run_id)) {
			at = &e->next;
			continue;
		}
		*at = e->next; /* unlinked before waiting: another task may settle meanwhile */
		left += hear_left(e, leftovers, size);
		ended_free(e);
		at = &h->ended;
	}
	return left;
}

static void keeper_denied(struct cell *c, struct denied *ret)
{
	if (!c->has_final)
		return;
	for (size_t i = 0; i < c->final.n_denied; i++)
		(void)denied_add(ret, &c->denied[i]);
	ret->dropped += c->final.dropped;
	if (c->final.unseen != KEEP_SEEN)
		ret->unseen =
			c->final.unseen == KEEP_WITHOUT_WATCHES ? denied_without_watches : denied_without_listener;
}

const struct backend_ops keeper_backend = {
	.name = "native", /* its cells are native cells */
	.holds_files = true,
	.has_sessions = true,
	.settle = keeper_settle,
	.close = keeper_close,
	.begin = keeper_begin,
	.finish = keeper_finish,
	.start = keeper_go,
	.on_event = keeper_on_event,
	.close_stdin = keeper_close_stdin,
	.send_signal = keeper_send_signal,
	.sample = keeper_sample,
	.cpu_ns = keeper_cpu_ns,
	.oom_kills = keeper_oom_kills,
	.disk_bytes = keeper_disk_bytes,
	.read_back = keeper_read_back,
	.stop = keeper_stop,
	.usage = keeper_usage,
	.open_output = keeper_open_output,
	.open_folder = keeper_open_folder,
	.listener = keeper_listener,
	.workspace = keeper_workspace,
	.denied = keeper_denied,
	.destroy = keeper_destroy,
};
