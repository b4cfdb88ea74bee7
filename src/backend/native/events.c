/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes in the reports of a cell's processes.  Records are processed as they arrive and only set flags in struct cell;
 * events for the watcher, and their order, are derived from the flags.  So nothing is lost if several things happen
 * between two calls: a program may have started, ended and taken init with it.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "backend/native/cell.h"
#include "base/clock.h"
#include "base/wait.h"

static int take_ready(struct cell *c, const struct received *r)
{
	if (r->n_fds != HANDED_COUNT || c->ready)
		return -EPROTO;
	memcpy(c->handed, r->fds, sizeof(c->handed));
	c->root_free_blocks = r->report.blocks;
	c->root_free_inodes = r->report.inodes;
	c->project.own_bytes = r->report.own_bytes;
	c->project.own_inodes = r->report.own_inodes;
	c->ready = true;
	cell_denied_ready(c);
	cell_read_back_ready(c);
	return 0;
}

static int take_confined(struct cell *c, struct received *r)
{
	if (r->n_fds > 1 || c->confined)
		return -EPROTO;
	c->confined = true;
	c->payload_pid = r->sender;
	c->landlock_probe = r->report.value;
	c->tells = r->n_fds == 1;
	if (c->tells)
		cell_denied_begin(c, &r->fds[0]);
	return 0;
}

/* At most once, and only if the plan has an egress proxy. */
static int take_listener(struct cell *c, struct received *r)
{
	if (r->n_fds != 1 || !c->spec.plan->egress || c->had_way_out)
		return -EPROTO;
	c->way_out = fd_move(&r->fds[0]);
	c->had_way_out = true;
	return 0;
}

static int take_failure(const struct cell *c, const struct report *r, struct brig_error *err)
{
	if (r->step == STEP_exec)
		return err_set(err, BRIG_E_SYSTEM, r->sys, "cannot execute %s in the cell", c->spec.plan->argv[0]);
	return cell_step_failed(r->step, r->sys, err);
}

/* Processes one record.  0, or negative if it reports a failure or is invalid in this state. */
static int take_report(struct cell *c, struct received *r, struct brig_error *err)
{
	const struct report *p = &r->report;
	int rc = -EPROTO;

	switch (p->kind) {
	case REPORT_FAILED:
		c->cannot_wait = p->step == STEP_wait;
		return take_failure(c, p, err);
	case REPORT_READY:
		rc = take_ready(c, r);
		break;
	case REPORT_LISTENER:
		rc = take_listener(c, r);
		break;
	case REPORT_CONFINED:
		rc = take_confined(c, r);
		break;
	case REPORT_SEALED:
		rc = c->spec.joined && !c->sealed ? 0 : -EPROTO;
		c->sealed = true;
		break;
	case REPORT_WAITING:
		rc = c->confined && c->spec.plan->waits_at && !c->waiting ? 0 : -EPROTO;
		c->waiting = true;
		break;
	case REPORT_ENDED:
	case REPORT_EXPIRED:
		c->ended = true;
		c->end = (struct exit_info){ .expired = p->kind == REPORT_EXPIRED,
					     .exited = p->exited,
					     .at_ns = p->at_ns };
		*(p->exited ? &c->end.code : &c->end.signal) = p->kind == REPORT_EXPIRED ? SIGKILL : p->value;
		return 0;
	}
	return rc < 0 ? err_set(err, BRIG_E_INTERNAL, 0, "the cell sent a record that makes no sense at this point")
		      : 0;
}

/* Takes in all records of one socket; closes it at end of file. */
static int drain(struct cell *c, int *sock, const char *who, struct brig_error *err)
{
	while (*sock >= 0) {
		struct received r;
		int rc = report_receive(*sock, /* wait= */ false, &r);

		if (rc == -EAGAIN)
			return 0;
		/*
		 * Closing alone would not remove it from the epoll set: children that build other cells may hold it for
		 * a while.
		 */
		if (rc == 0) {
			(void)epoll_ctl(c->poll, EPOLL_CTL_DEL, *sock, NULL);
			fd_closep(sock);
		} else if (rc == -EMFILE)
			return err_set(err, BRIG_E_SYSTEM, 0,
				       "no descriptor is left for what %s hands over: raise the limit on open files "
				       "(ulimit -n, LimitNOFILE= of a unit) or have fewer cells at once (--jobs)",
				       who);
		else if (rc < 0)
			return err_set(err, BRIG_E_INTERNAL, -rc, "unsound record from %s", who);
		else if (take_report(c, &r, err) < 0)
			return -err->code;
	}
	return 0;
}

static uint64_t count_oom_kills(const struct cell *c)
{
	uint64_t kills = 0;

	if (c->cgroup)
		(void)cgroup_read_oom_kills(c->cgroup, &kills);
	return kills;
}

static int early_death(const struct cell *c, const char *who, struct brig_error *err)
{
	return err_set(err, BRIG_E_SYSTEM, 0, "%s died unexpectedly%s", who,
		       count_oom_kills(c) ? ": the memory limit is too small to build a cell" : "");
}

/* PID 1 died without a report: the OOM killer took the whole group, or it was killed from the host. */
static int take_init_death(struct cell *c, struct brig_error *err)
{
	if (!c->started || count_oom_kills(c) == 0)
		return early_death(c, "cell init", err);
	c->ended = true;
	c->end = (struct exit_info){ .signal = SIGKILL, .at_ns = clock_now_ns() };
	return 0;
}

/*
 * The program has run its last instruction, and the kernel is still freeing its memory: reading now costs no time.
 * Init learns of the end only after that, and need not wait for us then.
 */
static void part(struct cell *c)
{
	c->parted = true;
	cell_read_back_silent(c);
	cell_note_end(c);
	if (!cell_dies_last(c)) {
		cell_let_go_of(c);
		(void)send(c->ctl, "e", 1, MSG_NOSIGNAL); /* fails only if init is dead already */
	}
	if (c->cgroup)
		(void)cgroup_read(c->cgroup, &c->last_usage);
}

int cell_pump(struct cell *c, struct brig_error *err)
{
	struct pollfd p[] = { { .fd = c->init_pidfd, .events = POLLIN }, { .fd = c->listener, .events = POLLIN } };
	/* Before draining: everything that a dead init has sent is then read below. */
	bool dead = poll(p, ARRAY_LEN(p), 0) > 0 && p[0].revents;
	int rc = drain(c, &c->go, "the payload", err);

	cell_denied_pump(c, p[1].revents);
	/*
	 * The payload's socket is closed by exec, that of a waiting interpreter when it continues.  If the payload died
	 * instead, init reports its end.
	 */
	if (rc == 0 && c->go < 0 && c->confined)
		c->started = true;
	if (rc == 0 && c->silent && c->started && c->ready && !c->parted)
		part(c);
	if (rc == 0)
		rc = drain(c, &c->ctl, "cell init", err);
	if (rc == 0 && dead && !c->ended)
		rc = take_init_death(c, err);
	if (rc == 0 && c->go < 0 && !c->confined)
		rc = early_death(c, "the program's process", err);
	return rc;
}

enum cell_event cell_on_event(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	if (cell_pump(c, err) < 0)
		return CELL_FAILED;
	if (c->started && !c->told_started) {
		c->told_started = true;
		return CELL_STARTED;
	}
	if (c->ended && !c->told_ended) {
		c->told_ended = true;
		*info = c->end;
		return CELL_FINISHED;
	}
	return CELL_NOTHING;
}

/* From here on init's reports wake the poller. */
int cell_listen_to_init(struct cell *c, struct brig_error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = c->ctl };

	if (c->ctl >= 0 && epoll_ctl(c->poll, EPOLL_CTL_MOD, c->ctl, &ev) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the cell");
	return 0;
}

int cell_await_confined(struct cell *c, struct brig_error *err)
{
	uint64_t deadline = clock_now_ns() + c->spec.plan->limits.startup_ms * NS_PER_MS;

	for (;;) {
		struct pollfd p = { .fd = c->poll, .events = POLLIN };
		uint64_t now = clock_now_ns();

		if (cell_pump(c, err) < 0)
			return -err->code;
		if (c->ready && c->confined)
			return cell_listen_to_init(c, err);
		if (now >= deadline)
			return err_set(err, BRIG_E_SYSTEM, ETIMEDOUT,
				       "the cell was not ready within startup_timeout_ms (%llu ms)",
				       (unsigned long long)c->spec.plan->limits.startup_ms);
		if (wait_poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the cell");
	}
}
