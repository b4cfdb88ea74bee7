/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of a run in a container, as its init reports it.  How the container is created, and what its engine
 * says about it, is up to the backend; from the job that is sent to init's last frame it is the same for all backends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backend/container/pump.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

/*
 * In a native cell one limit bounds workspace, /tmp and /dev/shm together.  A container has a separate tmpfs for each,
 * so the limit is divided: five eighths, a quarter and an eighth.  The sum never exceeds it.
 */
struct place_sizes lifecycle_places(const struct limits *l)
{
	const uint64_t page = 4 * KiB;
	struct place_sizes s;

	s.bytes[1] = max_u64(l->disk_bytes / 4 / page * page, page);
	s.bytes[2] = max_u64(l->disk_bytes / 8 / page * page, page);
	s.bytes[0] = l->disk_bytes - s.bytes[1] - s.bytes[2];
	s.inodes[1] = l->inodes / 4;
	s.inodes[2] = l->inodes / 8;
	s.inodes[0] = l->inodes - s.inodes[1] - s.inodes[2];
	return s;
}

int lifecycle_make_keys(struct pump *p, struct brig_error *err)
{
	uint8_t keys[2][WIRE_KEY];

	if (getrandom(keys, sizeof(keys), 0) != (ssize_t)sizeof(keys))
		return err_set(err, BRIG_E_SYSTEM, errno, "the kernel gives no random numbers");
	wire_reader_init(&p->reader, (const uint8_t(*)[WIRE_KEY])keys);
	explicit_bzero(keys, sizeof(keys));
	return 0;
}

/* ---- ready ---------------------------------------------------------------------------------------- */

static const struct {
	enum protection protection;
	const char *text;
} step_info[WIRE_STEPS] = {
#define PROT_NONE              PROT_COUNT
#define STEP(name, prot, what) [WIRE_STEP_##name] = { PROT_##prot, what },
#include "backend/container/steps.def"
#undef PROT_NONE
};

static int step_failed(const struct pump *p, struct brig_error *err)
{
	enum protection protection = step_info[p->failure.step].protection;
	const char *what = step_info[p->failure.step].text;

	if (p->failure.step == WIRE_STEP_exec)
		return err_set(err, BRIG_E_SYSTEM, (int)p->failure.sys, "cannot execute %s in the container",
			       p->plan->argv[0]);
	/* Landlock may be missing from any Linux, and be given up. */
	if (p->failure.sys == ENOSYS && protection != PROT_landlock)
		return err_set(err, BRIG_E_REFUSED, ENOSYS,
			       "the container's init could not %s: the kernel that its runtime gives it lacks a system "
			       "call for that. Use a runtime whose containers have Linux below them (runc, crun), "
			       "5.13 or newer; gVisor is not Linux",
			       what);
	if (protection == PROT_COUNT)
		return err_set(err, BRIG_E_SYSTEM, (int)p->failure.sys, "the container's init could not %s", what);
	return err_set(err, BRIG_E_REFUSED, (int)p->failure.sys,
		       "the container's init could not %s; protection '%s': %s", what, protection_info[protection].name,
		       protection_info[protection].fix);
}

int lifecycle_await_ready(struct pump *p, uint64_t deadline_ns, struct brig_error *err)
{
	for (;;) {
		if (pump_turn(p, err) < 0)
			return p->reader.state == WIRE_BROKEN ? 0 : -err->code;
		if (p->failed_step)
			return step_failed(p, err);
		if (p->ready && p->reader.state == WIRE_IN_GUEST)
			return 1;
		if (p->stream_over)
			return 0;
		if (clock_now_ns() >= deadline_ns)
			return err_set(err, BRIG_E_SYSTEM, ETIMEDOUT,
				       "the container was not ready in time (startup_timeout_ms)");
		pump_wait(p, deadline_ns);
	}
}

int lifecycle_check_limits(const struct pump *p, const char *who, struct brig_error *err)
{
	const struct limits *l = &p->plan->limits;
	const struct {
		enum fact_id fact;
		enum protection protection;
		uint64_t most;
	} rows[] = {
		{ FACT_memory_max, PROT_memory_limit, l->memory_bytes },
		{ FACT_swap_max, PROT_swap_limit, 0 },
		{ FACT_pids_max, PROT_pids_limit, l->pids },
		{ FACT_cpu_quota_percent, PROT_cpu_quota, l->cpu_percent },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct fact *f = &p->early.row[rows[i].fact];

		if (!f->known || f->num <= rows[i].most || p->plan->may_degrade & PROT_BIT(rows[i].protection))
			continue;
		return err_set(err, BRIG_E_REFUSED, 0,
			       "%s took the limit but does not enforce '%s' (%s says %llu). To have it: run the "
			       "engine as root, or delegate that controller to it. To run without it, name it in "
			       "allow_degraded",
			       who, protection_info[rows[i].protection].name, f->source, (unsigned long long)f->num);
	}
	return 0;
}

int lifecycle_start_program(struct pump *p, struct brig_error *err)
{
	p->started_ns = clock_now_ns();
	p->go_sent = true;
	if (!pump_message(p, WIRE_GO))
		return err_set(err, BRIG_E_INTERNAL, 0, "the container's init is ready but has not read its job");
	return pump_turn(p, err);
}

struct cell_fds lifecycle_fds(const struct pump *p)
{
	return (struct cell_fds){
		.in = p->in_write, .out = p->out.read, .err = p->err.read, .event = p->poll, .started_ns = p->started_ns
	};
}

/* ---- the end -------------------------------------------------------------------------------------- */

void lifecycle_await_final(struct pump *p, uint64_t deadline_ns)
{
	struct brig_error ignored = BRIG_ERROR_INIT;

	while (!p->final && !p->stream_over && clock_now_ns() < deadline_ns && pump_turn(p, &ignored) == 0)
		if (!p->final && !p->stream_over)
			pump_wait(p, deadline_ns);
}

void lifecycle_await_stream_end(struct pump *p, uint64_t deadline_ns)
{
	struct brig_error ignored = BRIG_ERROR_INIT;

	while (!p->stream_over && clock_now_ns() < deadline_ns) {
		if (pump_turn(p, &ignored) < 0)
			return; /* a malformed stream: nothing more of it is used */
		if (!p->stream_over)
			pump_wait(p, deadline_ns);
	}
}

bool lifecycle_await_mark(struct pump *p, uint64_t deadline_ns)
{
	struct brig_error ignored = BRIG_ERROR_INIT;

	while (!wire_mark_found(&p->out_end) && !p->stream_over && clock_now_ns() < deadline_ns &&
	       pump_turn(p, &ignored) == 0) {
		pump_request_mark(p); /* now, if input that the program did not read was in the way before */
		if (!wire_mark_found(&p->out_end) && !p->stream_over)
			pump_wait(p, deadline_ns);
	}
	return wire_mark_found(&p->out_end);
}

enum cell_event lifecycle_event(struct pump *p, struct exit_info *info, bool *ret_lost, struct brig_error *err)
{
	*ret_lost = false;
	if (p->told)
		return CELL_NOTHING;
	if (pump_turn(p, err) < 0) {
		p->told = true;
		return CELL_FAILED;
	}
	if (!p->final && !p->stream_over)
		return CELL_NOTHING;
	p->told = true;
	if (p->final && p->failed_step) {
		(void)err_set(err, BRIG_E_SYSTEM, (int)p->failure.sys, "cannot execute %s in the container",
			      p->plan->argv[0]);
		return CELL_FAILED;
	}
	if (!p->final || !p->has_exit) {
		*ret_lost = true;
		return CELL_NOTHING;
	}
	*info = (struct exit_info){ .exited = p->exit.exited,
				    .expired = p->exit.expired,
				    .at_ns = p->started_ns + p->exit.run_ns };
	*(p->exit.exited ? &info->code : &info->signal) = (int)p->exit.value;
	return CELL_FINISHED;
}

void lifecycle_usage(const struct pump *p, uint64_t cpu_seen_ns, uint64_t oom_seen, struct cell_usage *ret)
{
	*ret = (struct cell_usage){ .cpu_ms = cpu_seen_ns / NS_PER_MS, .oom_kills = oom_seen };
	if (!p->has_exit)
		return;
	/* Init's clock starts with the program, the watcher's a moment earlier; report the one that ended the run. */
	ret->cpu_ms = max_u64(cpu_seen_ns, p->exit.cpu_ns) / NS_PER_MS;
	ret->memory_peak_bytes = p->exit.memory_peak;
	ret->pids_peak = p->exit.pids_peak;
	ret->oom_kills = max_u64(oom_seen, p->exit.oom_kills);
	ret->pids_refused = p->exit.pids_refused;
	ret->disk_full = p->exit.disk_full;
}

void container_cell_close_stdin(struct cell *c)
{
	fd_closep(&pump_of(c)->in_write);
}

int container_cell_open_output(struct cell *c, const char *name)
{
	const struct pump *p = pump_of(c);

	if (!p->plan->output || !str_eq(name, p->plan->output) || p->output < 0 || p->output_got != p->output_size ||
	    lseek(p->output, 0, SEEK_SET) < 0)
		return -ENOENT;
	return fcntl(p->output, F_DUPFD_CLOEXEC, 3);
}

/* ---- facts ---------------------------------------------------------------------------------------- */

void lifecycle_facts(const struct pump *p, struct facts *ret)
{
	facts_add_missing(ret, &p->late, "");
	facts_add_missing(ret, &p->early, " (at start)");
}

/*
 * The checks of ids belong to protections that a container may lack (an id mapping of its own), and are excused with
 * them.  That the program had the requested user and group is promised nevertheless.
 */
bool lifecycle_ids(const struct pump *p, const struct facts *f, char *difference, size_t size)
{
	const struct fact *uid = &f->row[FACT_uid], *gid = &f->row[FACT_gid], *groups = &f->row[FACT_groups];

	if (uid->known && uid->num == p->plan->uid && gid->known && gid->num == p->plan->gid && groups->known &&
	    groups->text[0] == '\0')
		return true;
	(void)snprintf(difference, size, "the program's user, group or other groups are not %u:%u", p->plan->uid,
		       p->plan->gid);
	return false;
}
