/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept cells, from their beginning to their removal.  Everything here is an answer to an event: nothing waits.
 *
 * Who is told what: a request whose cell could not be had, or was lost, gets KEEP_FAILED; one whose program has begun gets
 * KEEP_FINAL when the last process is dead, however that came about.  A request that does not read what it is told is
 * treated like one that went away.
 */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "keeper/inside.h"

static void serve_cell(struct keeper *k, struct kept *c);
static void serve_talk(struct keeper *k, struct kept *c);

/* ---- beginnings and ends ------------------------------------------------------------------------ */

/* Counts of cells that are nobody's. */
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
	c->talk = c->program = c->told = c->of_cell.fd = c->of_told.fd = c->of_talk.fd = FD_NONE;
	return c;
}

static void set_deadline(struct kept *c, uint64_t ms)
{
	c->deadline_ns = clock_now_ns() + ms * NS_PER_MS;
}

struct kept *kept_begin(struct keeper *k, struct kind *kind, struct brig_error *err)
{
	struct zygote *from = zygotes_of(k, kind);
	struct kept *c = kept_new(kind);

	if (!c) {
		(void)err_nomem(err);
		return NULL;
	}
	if (id_random(c->plan.id, RUN_ID_LEN) < 0 || native_waiting_begin(k->host, &c->plan, from, &c->cell, err) < 0) {
		free(c);
		return NULL;
	}
	c->state = KEPT_BUILDING;
	(*count_of(c))++;
	c->next = k->cells;
	k->cells = c;
	k->n_cells++;
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
 * Its listener comes and goes as the cell likes.  What is watched is a copy of ours: closing a descriptor takes it out of an
 * epoll only if nobody else has the file, and children that are building other cells have it for a while.
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
	if (c->state == KEPT_RUNNING)
		native_backend.read_back(c->cell, &c->facts);
	native_waiting_kill(c->cell);
	enter_state(c, KEPT_DYING);
	set_deadline(c, c->plan.limits.cleanup_ms);
}

void kept_refuse(int talk, const struct brig_error *why)
{
	struct keep_failed f = { .code = why->code, .sys = why->sys };

	(void)str_copy(f.text, sizeof(f.text), why->msg);
	(void)keep_send(talk, KEEP_FAILED, &f, sizeof(f), NULL, 0, NULL, 0);
}

/* The cell did not become what was asked for, or is lost. */
static void fail(struct kept *c, const struct brig_error *why)
{
	if (c->tied && !c->told_final)
		kept_refuse(c->talk, why);
	c->told_final = true;
	kept_kill(c);
}

/* ---- the end of a program ----------------------------------------------------------------------- */

static void tell_final(struct kept *c)
{
	struct denied denied = { .row = NULL };
	struct keep_final *f = calloc(1, sizeof(*f));

	if (f) {
		f->ended = c->ended;
		f->exit = c->exit;
		f->facts = c->facts;
		native_backend.read_back(c->cell, &f->facts);
		native_backend.usage(c->cell, &f->usage);
		native_backend.denied(c->cell, &denied);
		f->n_denied = (uint32_t)denied.n;
		f->dropped = denied.dropped;
		f->unseen = denied.unseen != NULL;
		(void)keep_send(c->talk, KEEP_FINAL, f, sizeof(*f), denied.row, denied.n * sizeof(*denied.row), NULL,
				0);
	}
	c->told_final = true;
	denied_release(&denied);
	free(f);
}

/* Every process is dead, or dying alone. */
static void remove_cell(struct keeper *k, struct kept *c)
{
	char leftovers[256];

	if (c->tied && !c->told_final)
		tell_final(c);
	k->busy_ns = c->tied ? clock_now_ns() : k->busy_ns;
	keeper_unwatch(k, &c->of_cell);
	leave_listener(k, c);
	keeper_unwatch(k, &c->of_talk);
	(void)native_backend.destroy(c->cell, leftovers, sizeof(leftovers));
	c->cell = NULL;
	fd_closep(&c->talk);
	fd_closep(&c->program);
	c->gone = true;
	k->n_cells--;
}

static void end_cell(struct keeper *k, struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (native_backend.stop(c->cell, &err) < 0 && c->tied && !c->told_final) {
		kept_refuse(c->talk, &err);
		c->told_final = true;
	}
	remove_cell(k, c);
}

/* ---- events ------------------------------------------------------------------------------------- */

/* The request gets what is its own; the program is in its place and waits for the word. */
static void claim(struct kept *c)
{
	struct keep_born born = { .was_waiting = c->was_waiting, .was_forked = native_waiting_is_forked(c->cell) };
	struct brig_error err = BRIG_ERROR_INIT;
	int fds[KEEP_BORN_FDS];
	int rc;

	enter_state(c, KEPT_CLAIMED);
	c->kind->lost = 0;
	if (native_waiting_is_forked(c->cell))
		c->kind->forks_lost = 0;
	set_deadline(c, c->plan.limits.startup_ms);
	rc = native_waiting_claim(c->cell, c->program, c->program_size, &err);
	fd_closep(&c->program);
	if (rc < 0) {
		fail(c, &err);
		return;
	}
	native_waiting_take(c->cell, fds);
	if (keep_send(c->talk, KEEP_BORN, &born, sizeof(born), NULL, 0, fds, KEEP_BORN_FDS) < 0)
		kept_kill(c);
	/* When the caller is at work again.  Which caller that is the kernel says, and not the job. */
	native_waiting_mark(c->cell, c->run, getppid());
	for (size_t i = 0; i < KEEP_BORN_FDS; i++)
		fd_closep(&fds[i]);
}

/* It is nobody's, and stays if there is memory for it. */
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

	switch (native_waiting_pump(c->cell, &err)) {
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
			claim(c);
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
		serve_running(k, c); /* more may be behind it */
		return;
	case CELL_FINISHED:
		c->ended = true;
		if (native_dies_alone(c->cell))
			end_cell(k, c);
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
		break;
	case KEPT_RUNNING:
		serve_running(k, c);
		break;
	case KEPT_DYING:
		if (native_waiting_is_dead(c->cell))
			end_cell(k, c);
		break;
	}
	if (!c->gone)
		follow_listener(k, c);
}

static void go(struct kept *c)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (c->state != KEPT_CLAIMED) {
		kept_kill(c); /* nobody sane says that now */
		return;
	}
	enter_state(c, KEPT_RUNNING);
	if (native_waiting_go(c->cell, &err) < 0)
		fail(c, &err);
}

static void tell_counts(struct kept *c)
{
	struct keep_counts counts = { 0 };
	struct sample s = { 0 };

	if (native_backend.sample(c->cell, &s) == 0) {
		counts.memory_bytes = s.memory_bytes;
		counts.pids = s.pids;
	}
	counts.cpu_ns = native_backend.cpu_ns(c->cell);
	counts.oom_kills = native_backend.oom_kills(c->cell);
	(void)keep_send(c->talk, KEEP_COUNTS, &counts, sizeof(counts), NULL, 0, NULL, 0);
}

static void serve_talk(struct keeper *k, struct kept *c)
{
	struct keep_message m;
	int rc;

	if (c->gone)
		return;
	rc = keep_receive(c->talk, k->buffer, &m);
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
	/* The end, or what nobody sane says: nobody wants to know any more. */
	if (rc > 0)
		keep_message_release(&m);
	c->told_final = true;
	keeper_unwatch(k, &c->of_talk);
	kept_kill(c);
}

void kept_tie(struct keeper *k, struct kept *c, const char *run, int talk, int program, uint64_t size)
{
	(*count_of(c))--;
	c->tied = true;
	(void)str_copy(c->run, sizeof(c->run), run);
	c->talk = talk;
	c->program = program;
	c->program_size = size;
	c->was_waiting = c->state == KEPT_WAITING;
	if (keeper_watch(k, &c->of_talk, talk, c, serve_talk) < 0)
		kept_kill(c);
	else if (c->state == KEPT_WAITING)
		claim(c);
}

/* ---- for the loop ------------------------------------------------------------------------------- */

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
		} else if (c->state == KEPT_DYING) {
			end_cell(k, c); /* says that it did not die in time */
		}
	}
}

void kept_sweep(struct keeper *k)
{
	for (struct kept **at = &k->cells; *at;) {
		struct kept *c = *at;

		if (c->gone) {
			*at = c->next;
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
