/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of kept cells, from building to removal.  All code here runs from the event loop and must not block.
 *
 * A request whose cell could not be made, or was lost, gets KEEP_FAILED.  A request whose program has started gets
 * KEEP_FINAL once the last process is dead, whatever ended it.  A request that does not read its channel is treated
 * like one that closed it.
 */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "keeper/inside.h"

static void serve_cell(struct keeper *k, struct kept *c);
static void serve_channel(struct keeper *k, struct kept *c);

/* ---- building and removing -------------------------------------------------------------------------- */

/* The counter of its kind that an unclaimed cell in this state belongs to; a dummy for any other cell. */
static unsigned *count_of(struct kept *c)
{
	static unsigned other;

	if (c->tied)
		return &other;
	return c->state == KEPT_BUILDING ? &c->kind->building : c->state == KEPT_WAITING ? &c->kind->waiting : &other;
}

static void enter_state(struct kept *c, enum kept_state state)
{
	(*count_of(c))--;
	c->state = state;
	(*count_of(c))++;
}

static struct kept *kept_new(struct kind *kind)
{
	struct kept *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = kind;
	c->plan = kind->job->plan;
	c->channel = c->program = c->told = c->of_cell.fd = c->of_told.fd = c->of_channel.fd = FD_NONE;
	return c;
}

static void set_deadline(struct kept *c, uint64_t ms)
{
	c->deadline_ns = clock_now_ns() + ms * NS_PER_MS;
}

/* A cell built ahead gets an id of its own, since its request is not known yet. */
static int begin_cell(struct keeper *k, struct kept *c, struct brig_error *err)
{
	int rc;

	if (c->kind->single)
		return native_backend.begin(k->host, &c->plan, NULL, &c->cell, err);
	rc = id_random(c->plan.id, RUN_ID_LEN);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "no random number for a cell's id")
		      : native_waiting_begin(k->host, &c->plan, zygotes_of(k, c->kind), &c->cell, err);
}

struct kept *kept_begin(struct keeper *k, struct kind *kind, struct brig_error *err)
{
	struct kept *c = kept_new(kind);

	if (!c) {
		(void)err_nomem(err);
		return NULL;
	}
	if (begin_cell(k, c, err) < 0) {
		free(c);
		return NULL;
	}
	c->state = KEPT_BUILDING;
	kind->made++;
	(*count_of(c))++;
	c->next = k->cells;
	k->cells = c;
	k->n_cells++;
	/*
	 * The startup deadline begins when the caller sends KEEP_GO or the project's stream: both are up to the caller.
	 */
	if (kind->single && (c->plan.start_at_once || native_made_wants_stream(c->cell)))
		c->deadline_ns = UINT64_MAX;
	else
		set_deadline(c, c->plan.limits.startup_ms);
	if (keeper_watch(k, &c->of_cell, native_waiting_fd(c->cell), c, serve_cell) < 0)
		kept_kill(c);
	return c;
}

static void leave_listener(struct keeper *k, struct kept *c)
{
	int copy = c->of_told.fd;

	keeper_unwatch(k, &c->of_told);
	fd_closep(&copy);
	c->told = FD_NONE;
}

/*
 * The cell opens and closes its seccomp listener as it likes.  We watch a duplicate of our own: close(2) removes a
 * descriptor from an epoll set only if no other process has the open file, and children that are building other cells
 * hold it for a while.
 */
static void follow_listener(struct keeper *k, struct kept *c)
{
	int now = c->cell ? native_told_fd(c->cell) : FD_NONE, copy;

	if (now == c->told)
		return;
	leave_listener(k, c);
	copy = now >= 0 ? fcntl(now, F_DUPFD_CLOEXEC, 0) : FD_NONE;
	if (copy >= 0 && keeper_watch(k, &c->of_told, copy, c, serve_cell) == 0)
		c->told = now;
	else
		fd_closep(&copy);
}

void kept_kill(struct kept *c)
{
	if (c->state == KEPT_DYING)
		return;
	if (c->state == KEPT_RUNNING && (c->facts = calloc(1, sizeof(*c->facts))))
		native_backend.read_back(c->cell, c->facts);
	native_waiting_kill(c->cell);
	enter_state(c, KEPT_DYING);
	set_deadline(c, c->plan.limits.cleanup_ms);
}

void kept_refuse(int channel, const struct brig_error *why)
{
	struct keep_failed f = { .code = why->code, .sys = why->sys };

	(void)str_copy(f.text, sizeof(f.text), why->msg);
	(void)keep_send(channel, KEEP_FAILED, &f, sizeof(f), NULL, 0, NULL, 0);
}

/* The cell could not be built or was lost. */
static void fail(struct kept *c, const struct brig_error *why)
{
	if (c->tied && !c->told_final)
		kept_refuse(c->channel, why);
	c->told_final = true;
	kept_kill(c);
}

/* ---- the program has ended -------------------------------------------------------------------------- */

static void tell_final(struct kept *c)
{
	struct denied denied = { .row = NULL };
	struct keep_final *f = calloc(1, sizeof(*f));

	if (f) {
		f->ended = c->ended;
		f->exit = c->exit;
		if (c->facts)
			f->facts = *c->facts;
		native_backend.read_back(c->cell, &f->facts);
		native_backend.usage(c->cell, &f->usage);
		native_backend.denied(c->cell, &denied);
		f->n_denied = (uint32_t)denied.n;
		f->dropped = denied.dropped;
		f->unseen = denied.unseen == NULL                     ? KEEP_SEEN
			    : denied.unseen == denied_without_watches ? KEEP_WITHOUT_WATCHES
								      : KEEP_WITHOUT_LISTENER;
		(void)keep_send(c->channel, KEEP_FINAL, f, sizeof(*f), denied.row, denied.n * sizeof(*denied.row), NULL,
				0);
	}
	c->told_final = true;
	denied_release(&denied);
	free(f);
}

static void tell_left(int channel, const char *leftovers)
{
	struct keep_left left = { .text = "" };

	(void)str_copy(left.text, sizeof(left.text), leftovers);
	if (left.text[0])
		(void)keep_send(channel, KEEP_LEFT, &left, sizeof(left), NULL, 0, NULL, 0);
}

/* Only wakes the loop, which settles janitors after every event. */
static void only_wake(struct keeper *k UNUSED, struct kept *c UNUSED)
{
}

/* The cell is gone except for its cgroups, which the janitor removes; the channel stays open until that is done. */
static void leave(struct keeper *k, struct kept *c, const char *leftovers)
{
	int janitor = FD_NONE, copy;
	const void *rest = native_rest_of(k->host, c->plan.id, &janitor);
	struct leaving *l;

	if (!c->tied)
		return;
	tell_left(c->channel, leftovers);
	l = rest ? calloc(1, sizeof(*l)) : NULL;
	copy = l ? fcntl(janitor, F_DUPFD_CLOEXEC, 0) : FD_NONE;
	if (copy < 0 || keeper_watch(k, &l->of_janitor, copy, NULL, only_wake) < 0) {
		fd_closep(&copy);
		free(l);
		return;
	}
	l->channel = fd_move(&c->channel);
	l->rest = rest;
	l->next = k->leaving;
	k->leaving = l;
}

static void leaving_free(struct keeper *k, struct leaving *l)
{
	int copy = l->of_janitor.fd;

	keeper_unwatch(k, &l->of_janitor);
	fd_closep(&copy);
	fd_closep(&l->channel);
	free(l);
}

void kept_settled(void *arg, const void *rest, const char *leftovers)
{
	const struct keeper *k = arg;

	for (const struct leaving *l = k->leaving; l; l = l->next)
		if (l->rest == rest)
			tell_left(l->channel, leftovers);
}

/*
 * Checks every entry, not only those settled in this turn: removing the second cell of a run that compiles settles the
 * first.
 */
void kept_close_channels(struct keeper *k)
{
	for (struct leaving **at = &k->leaving; *at;) {
		struct leaving *l = *at;

		if (native_has_rest(k->host, l->rest)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		leaving_free(k, l);
	}
}

/* Every process is dead, or only init is left and dying. */
static void conclude(struct keeper *k, struct kept *c)
{
	if (c->tied && !c->told_final)
		tell_final(c);
	k->busy_ns = c->tied ? clock_now_ns() : k->busy_ns;
	keeper_unwatch(k, &c->of_cell);
	leave_listener(k, c);
	keeper_unwatch(k, &c->of_channel);
}

static void remove_cell(struct keeper *k, struct kept *c)
{
	char leftovers[256];

	(void)native_backend.destroy(c->cell, leftovers, sizeof(leftovers));
	c->cell = NULL;
	leave(k, c, leftovers);
	fd_closep(&c->channel);
	fd_closep(&c->program);
	c->gone = true;
	k->n_cells--;
}

static void end_cell(struct keeper *k, struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (native_backend.stop(c->cell, &err) < 0 && c->tied && !c->told_final) {
		kept_refuse(c->channel, &err);
		c->told_final = true;
	}
	conclude(k, c);
	remove_cell(k, c);
}

/*
 * Only the cell of a warm run is removed later: every other result waits for the removal, or has no reader, and gains
 * nothing from a delay.
 */
static bool may_stay(const struct kept *c)
{
	return c->tied && !c->kind->single && !c->plan.session;
}

/* The program has ended by itself, and no process but init is left. */
static void finish(struct keeper *k, struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!may_stay(c) || native_backend.stop(c->cell, &err) < 0) {
		end_cell(k, c);
		return;
	}
	conclude(k, c);
	enter_state(c, KEPT_ANSWERED);
	set_deadline(c, ANSWER_MS);
	k->n_answered++;
}

/* ---- events ------------------------------------------------------------------------------------- */

/* Sends the request its descriptors: streams, workspace, egress sockets. */
static void hand_over(const struct keeper *k, struct kept *c)
{
	struct keep_created created = { .was_waiting = c->was_waiting,
					.was_forked = native_waiting_is_forked(c->cell) };
	int fds[KEEP_CREATED_FDS_MAX];
	size_t n = KEEP_CREATED_FDS;

	if (c->went_early)
		created.started_ns = native_made_started_ns(c->cell);
	native_waiting_take(c->cell, fds);
	if (c->plan.egress)
		fds[n++] = native_made_way_out(c->cell);
	if (keep_shows_rest(&c->plan)) {
		native_made_rest(c->cell, &fds[n]);
		n += MADE_REST_FDS;
	}
	if (keep_send(c->channel, KEEP_CREATED, &created, sizeof(created), NULL, 0, fds, n) < 0)
		kept_kill(c);
	/*
	 * After the send, while the caller continues.  The caller's pid comes from the kernel (SO_PEERCRED), not from
	 * the job.
	 */
	if (!c->kind->single)
		native_waiting_mark(c->cell, c->run, k->owner ? k->owner : getppid());
	for (size_t i = 0; i < n; i++)
		fd_closep(&fds[i]);
}

static void start(struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	enter_state(c, KEPT_RUNNING);
	if ((c->kind->single ? native_made_go(c->cell, &err) : native_waiting_go(c->cell, &err)) < 0)
		fail(c, &err);
}

/*
 * The program is in place and waits for KEEP_GO, unless that was sent early.  A single cell has no deadline in this
 * state: its request may still be busy, for instance with the inspection, and closes the channel if it gives up.
 */
static void claim(const struct keeper *k, struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = 0;

	enter_state(c, KEPT_CLAIMED);
	c->kind->lost = 0;
	if (native_waiting_is_forked(c->cell))
		c->kind->forks_lost = 0;
	if (c->kind->single)
		c->deadline_ns = UINT64_MAX;
	else
		set_deadline(c, c->plan.limits.startup_ms);
	if (!c->kind->single)
		rc = native_waiting_claim(c->cell, c->program, c->program_size, &err);
	fd_closep(&c->program);
	if (rc < 0) {
		fail(c, &err);
		return;
	}
	hand_over(k, c);
	if (c->went_early && c->state == KEPT_CLAIMED)
		start(c);
}

/* An unclaimed cell is kept only if the memory limit for waiting cells permits. */
static void begin_to_wait(struct keeper *k, struct kept *c)
{
	c->bytes = c->kind->bytes = native_waiting_bytes(c->cell);
	if (kinds_have_room(k, c->bytes))
		enter_state(c, KEPT_WAITING);
	else
		kept_kill(c);
}

static void serve_building(struct keeper *k, struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	switch (c->kind->single ? native_made_pump(c->cell, &err) : native_waiting_pump(c->cell, &err)) {
	case CELL_BUILDING:
		return;
	case CELL_DOES_NOT_WAIT:
		kind_never_waits(c->kind, &err);
		fail(c, &err);
		return;
	case CELL_SPOILED:
		if (native_waiting_is_forked(c->cell))
			c->kind->forks_lost++;
		else if (!c->tied)
			kind_lost(c->kind);
		fail(c, &err);
		return;
	case CELL_CAN_BE_CLAIMED:
		if (c->state == KEPT_BUILDING && c->tied)
			claim(k, c);
		else if (c->state == KEPT_BUILDING)
			begin_to_wait(k, c);
		return;
	}
}

static void serve_running(struct keeper *k, struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	switch (native_backend.on_event(c->cell, &c->exit, &err)) {
	case CELL_STARTED:
		serve_running(k, c); /* more events may be queued */
		return;
	case CELL_FINISHED:
		c->ended = true;
		if (native_dies_alone(c->cell))
			finish(k, c);
		else
			kept_kill(c);
		return;
	case CELL_FAILED:
		fail(c, &err);
		return;
	case CELL_NOTHING:
		return;
	}
}

static void serve_cell(struct keeper *k, struct kept *c)
{
	if (c->gone)
		return;
	switch (c->state) {
	case KEPT_BUILDING:
	case KEPT_WAITING:
	case KEPT_CLAIMED:
		serve_building(k, c);
		if (c->state == KEPT_RUNNING) /* its records are received already: no event will come */
			serve_running(k, c);
		break;
	case KEPT_RUNNING:
		serve_running(k, c);
		break;
	case KEPT_ANSWERED:
		return; /* a stale event of the same epoll_wait() */
	case KEPT_DYING:
		if (native_waiting_is_dead(c->cell))
			end_cell(k, c);
		break;
	}
	if (!c->gone && c->state != KEPT_ANSWERED)
		follow_listener(k, c);
}

/* KEEP_GO before the cell is built: it is queued for the payload, which reads it once it is confined. */
static void go_early(struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	c->went_early = true;
	if (native_made_wants_stream(c->cell)) /* init unpacks the project first */
		return;
	set_deadline(c, c->plan.limits.startup_ms);
	if (native_made_let_go(c->cell, &err) < 0)
		fail(c, &err);
}

/* False: not a valid KEEP_STREAM, or the cell does not wait for one. */
static bool take_stream(struct kept *c, const struct keep_message *m)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct keep_stream s;

	if (m->head.kind != KEEP_STREAM || m->head.size != sizeof(s) || m->n_fds != 1 || c->state != KEPT_BUILDING ||
	    !native_made_wants_stream(c->cell))
		return false;
	memcpy(&s, m->body, sizeof(s));
	if (ceilings_check_stream(&c->plan, &s, m->fds[0], &err) < 0 ||
	    native_made_offer_stream(c->cell, m->fds[0], s.bytes, s.inodes, &err) < 0) {
		fail(c, &err);
		return true;
	}
	set_deadline(c, c->plan.limits.startup_ms);
	if (c->went_early)
		go_early(c);
	else if (c->plan.start_at_once)
		c->deadline_ns = UINT64_MAX;
	return true;
}

static void go(struct kept *c)
{
	if (c->state == KEPT_CLAIMED)
		start(c);
	else if (c->state == KEPT_BUILDING && c->kind->single && c->plan.start_at_once && !c->went_early)
		go_early(c);
	else
		kept_kill(c); /* a protocol error */
}

static void tell_counts(struct kept *c)
{
	struct keep_counts counts = { 0 };
	struct sample s = { 0 };

	if (native_backend.sample(c->cell, &s) == 0) {
		counts.memory_bytes = s.memory_bytes;
		counts.pids = s.pids;
		counts.disk_bytes = native_backend.disk_bytes(c->cell);
	}
	counts.cpu_ns = native_backend.cpu_ns(c->cell);
	counts.oom_kills = native_backend.oom_kills(c->cell);
	(void)keep_send(c->channel, KEEP_COUNTS, &counts, sizeof(counts), NULL, 0, NULL, 0);
}

/* False: not a valid KEEP_SIGNAL. */
static bool send_signal(struct kept *c, const struct keep_message *m)
{
	struct keep_signal s;

	if (m->head.kind != KEEP_SIGNAL || m->head.size != sizeof(s) || m->n_fds != 0)
		return false;
	memcpy(&s, m->body, sizeof(s));
	if (c->state == KEPT_RUNNING)
		native_backend.send_signal(c->cell, s.number);
	return true;
}

static void serve_channel(struct keeper *k, struct kept *c)
{
	struct keep_message m;
	int rc;

	if (c->gone)
		return;
	rc = keep_receive(c->channel, k->buffer, &m);
	if (rc == -EAGAIN)
		return;
	if (rc > 0 && m.head.size == 0 && m.n_fds == 0) {
		if (m.head.kind == KEEP_GO) {
			go(c);
			return;
		}
		if (m.head.kind == KEEP_ASK) {
			tell_counts(c);
			return;
		}
		if (m.head.kind == KEEP_STOP) {
			kept_kill(c);
			return;
		}
	}
	if (rc > 0 && (send_signal(c, &m) || take_stream(c, &m))) {
		keep_message_release(&m);
		return;
	}
	/* End of file, or a protocol error: the request is abandoned. */
	if (rc > 0)
		keep_message_release(&m);
	c->told_final = true;
	keeper_unwatch(k, &c->of_channel);
	kept_kill(c);
}

void kept_tie(struct keeper *k, struct kept *c, const char *run, int channel, int program, uint64_t size)
{
	(*count_of(c))--;
	c->tied = true;
	(void)str_copy(c->run, sizeof(c->run), run);
	c->channel = channel;
	c->program = program;
	c->program_size = size;
	c->was_waiting = c->state == KEPT_WAITING;
	if (keeper_watch(k, &c->of_channel, channel, c, serve_channel) < 0 ||
	    (!c->was_waiting && native_made_wants_stream(c->cell) &&
	     keep_send(channel, KEEP_PACK, NULL, 0, NULL, 0, NULL, 0) < 0))
		kept_kill(c);
	else if (c->was_waiting)
		claim(k, c);
}

/* ---- called by the loop ------------------------------------------------------------------------- */

void kept_check_deadlines(struct keeper *k)
{
	const uint64_t now = clock_now_ns();
	struct brig_error late = BRIG_ERROR_INIT;

	for (struct kept *c = k->cells; c; c = c->next) {
		if (c->gone || now < c->deadline_ns)
			continue;
		if (c->state == KEPT_BUILDING || c->state == KEPT_CLAIMED) {
			(void)err_set(&late, BRIG_E_SYSTEM, ETIMEDOUT,
				      "the cell was not %s within startup_timeout_ms (%llu ms)",
				      c->state == KEPT_BUILDING ? "ready" : "let go",
				      (unsigned long long)c->plan.limits.startup_ms);
			fail(c, &late);
		} else if (c->state == KEPT_ANSWERED) {
			remove_cell(k, c);
			k->n_answered--;
		} else if (c->state == KEPT_DYING) {
			end_cell(k, c); /* stop() reports that the cell did not die in time */
		}
	}
}

void kept_sweep(struct keeper *k)
{
	for (struct kept **at = &k->cells; *at;) {
		struct kept *c = *at;

		if (c->gone) {
			*at = c->next;
			single_free(c->kind);
			free(c->facts);
			free(c);
		} else {
			at = &c->next;
		}
	}
}

void kept_end_all(struct keeper *k)
{
	for (struct kept *c = k->cells; c; c = c->next)
		if (!c->gone)
			native_waiting_kill(c->cell);
	for (struct kept *c = k->cells; c; c = c->next)
		if (!c->gone) {
			c->told_final = true;
			end_cell(k, c);
		}
	kept_sweep(k);
}
