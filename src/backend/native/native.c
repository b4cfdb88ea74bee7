/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/native.c - life of one native cell, seen from the supervisor.
 *
 *   supervisor   this process: creates groups, namespaces and id maps, monitors, reads evidence, cleans up
 *   janitor      a fork that removes the cgroups, also if the supervisor dies (janitor.c)
 *   cell init    PID 1 inside: builds the file tree, starts the payload, reaps (cell_init.c, rootfs.c)
 *   payload      the program (payload.c until exec)
 *
 * Channels, none of which the program holds: ctl (supervisor <-> init) and go (supervisor <-> payload; exec closes it),
 * both SOCK_SEQPACKET with the records of report.h.
 *
 *   begin   clone and id maps; then, while init builds the cell inside: janitor, groups, limits (INV-2)
 *   finish  returns when init and payload have reported that they are confined
 *   start   one byte on ctl, for init's clock, and one on go.  With start_at_once finish does this first: every limit
 *           is written by then.  End of file on go means that exec has happened
 *   silence the filter's listener reports that no process of the program will make another call: evidence is read while
 *   the kernel
 *           frees their memory, and init is told that it need not wait for us (events.c)
 *   end     init reports the program's end but does not reap it, so that read_back() can still read its /proc
 *   stop    SIGKILL to init; the kernel kills the whole pid namespace before wait returns
 *   destroy asks the janitor to remove the groups; settle waits for it
 */
#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "backend/guest/steward.h"
#include "backend/native/cell.h"
#include "backend/native/waiting.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"
#include "files/beneath.h"
#include "sys/proc.h"
#include "sys/seccomp_listen.h"

#define LISTED_NS (100 * NS_PER_MS)

/* The errno says nothing about the host: the process in question has died. */
static bool is_lost_process(int sys)
{
	return sys == ESRCH || sys == EPIPE || sys == ECONNRESET;
}

int cell_step_failed(enum step step, int sys, struct brig_error *err)
{
	const struct step_info *s = &step_info[step];

	if (is_lost_process(sys))
		return err_set(
			err, BRIG_E_SYSTEM, sys,
			"cannot %s (step %s): a process of the cell has ended; it may have been killed from outside",
			s->what, s->name);
	if (s->protection == PROT_COUNT)
		return err_set(err, BRIG_E_SYSTEM, sys, "cannot %s (step %s)", s->what, s->name);
	return err_set(err, BRIG_E_REFUSED, sys, "cannot %s (step %s), so '%s' cannot be kept; %s", s->what, s->name,
		       protection_info[s->protection].name, protection_info[s->protection].fix);
}

static struct cell *cell_new(struct backend_host *h, const struct plan *plan)
{
	struct cell *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->remains = calloc(1, sizeof(*c->remains));
	c->looks = looks_take(h);
	if (!c->remains || !c->looks) {
		if (c->looks)
			looks_give_back(h, c->looks);
		free(c->remains);
		free(c);
		return NULL;
	}
	c->init_pidfd = c->dying = c->ctl = c->go = c->in = c->out = c->err = c->poll = c->listener = c->told =
		c->way_out = FD_NONE;
	c->spec.ctl = c->spec.go = c->spec.ld_cache = c->spec.wait_library = c->spec.steward = FD_NONE;
	for (int i = 0; i < 3; i++)
		c->spec.stdio[i] = FD_NONE;
	for (size_t i = 0; i < HANDED_COUNT; i++)
		c->handed[i] = FD_NONE;
	cell_project_init(&c->project);
	c->tasks_left = -1;
	c->host = h;
	c->spec.plan = plan;
	return c;
}

/* The strings that the kernel put on our stack at exec, as far as they are still contiguous. */
static void find_environment(struct cell_spec *s)
{
	char **e = environ;

	if (!e || !*e)
		return;
	s->env_start = s->env_end = *e;
	for (; *e && *e == s->env_end; e++)
		s->env_end = *e + strlen(*e) + 1;
}

static void fill_confine(struct cell *c)
{
	const struct plan *plan = c->spec.plan;
	const struct limits *l = &plan->limits;
	const bool strict = plan->profile == SECCOMP_PROFILE_STRICT;
	struct guest_confine *g = &c->spec.confine;

	/* A piped core_pattern ignores 0 and starts a helper on the host; only 1 makes the kernel skip it. */
	guest_add_rlimit(g, RLIMIT_CORE, 1);
	/* A copied project, which is at most half of the memory, may contain larger files. */
	guest_add_rlimits(g, l->open_files, l->disk_bytes + (plan->workspace ? l->memory_bytes / 2 : 0),
			  l->cpu_time_ms);
	/* Substitutes, if there is no controller and the policy accepts that. */
	if (!c->spec.has_cgroup && plan->may_degrade & PROT_BIT(PROT_pids_limit))
		guest_add_rlimit(g, RLIMIT_NPROC, l->pids);
	if (!c->spec.has_cgroup && plan->may_degrade & PROT_BIT(PROT_memory_limit))
		guest_add_rlimit(g, RLIMIT_DATA, l->memory_bytes);
	g->deny_write_exec = plan->deny_write_exec;
	g->own_ids = c->spec.two_ids;
	g->uid = plan->uid;
	g->gid = plan->gid;
	g->landlock_abi = c->host->landlock_abi;
	g->filter = seccomp_filter_for(plan->family, strict);
	if (plan->report_denied && seccomp_can_listen())
		g->telling_filter = seccomp_filter_telling(plan->family, strict);
}

static void fill_spec(struct cell *c)
{
	struct cell_spec *s = &c->spec;
	const struct plan *plan = s->plan;
	struct timespec mono, boot;

	s->has_cgroup = c->host->has_cgroups;
	s->enters_first = c->host->ids.kind == IDMAP_SUBORDINATE && !c->host->enters_at_clone;
	s->two_ids = c->host->ids.kind != IDMAP_OWN;
	s->has_ptys = plan->profile != SECCOMP_PROFILE_STRICT;
	fill_confine(c);
	s->init_filter = seccomp_filter_init();
	(void)snprintf(s->root_inodes, sizeof(s->root_inodes), "%zu",
		       1024 + (plan->workspace ? plan->workspace->n_hidden : 0));
	(void)clock_gettime(CLOCK_MONOTONIC, &mono);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	/* One second less than now: the cell's clocks must not be negative. */
	(void)snprintf(s->time_offsets, sizeof(s->time_offsets), "monotonic -%lld 0\nboottime -%lld 0\n",
		       (long long)(mono.tv_sec > 1 ? mono.tv_sec - 1 : 0),
		       (long long)(boot.tv_sec > 1 ? boot.tv_sec - 1 : 0));
	find_environment(s);
}

/* ---- building -------------------------------------------------------------------------------- */

int cell_lost_init(struct cell *c, enum step step, int rc, struct brig_error *err)
{
	return cell_pump(c, err) < 0 ? -err->code : cell_step_failed(step, -rc, err);
}

/*
 * On cgroup v1 the kernel lets a task enter through a file that was opened by root or by the task's own id.  An
 * ordinary user's init has an id of the range when it enters, so we open the files with that id.  If we cannot take it,
 * the files are opened with the user's id, and init enters before it changes its own (spec.enters_first).
 */
static int make_groups(struct cell *c, struct brig_error *err)
{
	const uid_t own = geteuid();
	const bool as_init = own != 0 && c->host->ids.kind == IDMAP_DIRECT && c->init_pid > 0;
	int rc = as_init ? idmap_act_as(idmap_of_init(c)) : 0;

	rc = rc < 0 ? cell_step_failed(STEP_make_cgroup, -rc, err) : cgroup_make(c->cgroup, err);
	if (as_init)
		idmap_act_as_ourselves(own);
	return rc;
}

static int make_cgroup(struct cell *c, struct brig_error *err)
{
	const struct plan *plan = c->spec.plan;
	char id[CELL_GROUP_ID_MAX];
	int rc;

	cell_group_id(plan->id, c->host->owner && !plan->waits_at ? c->host->owner : getpid(), id);
	rc = cgroup_prepare(c->host->cgroups, id, &c->cgroup, err);
	if (rc < 0)
		return rc;
	rc = FAULT_HIT(STEP_start_janitor) ? -FAULT_ERRNO : janitor_guard(&c->host->janitors, c->cgroup, &c->guarded);
	if (rc < 0)
		return cell_step_failed(STEP_start_janitor, -rc, err);
	rc = make_groups(c, err);
	return rc == 0 && FAULT_HIT(STEP_make_cgroup) ? cell_step_failed(STEP_make_cgroup, FAULT_ERRNO, err) : rc;
}

/*
 * The steward pauses a session's processes and continues to run itself, so it gets a cgroup for them.  The message is
 * the first one in its socket, before anything from the owner.  Without such a group it stops them by signals, which
 * the evidence says.
 */
static void offer_freezer(struct cell *c)
{
	struct cgroup_freezer f = CGROUP_FREEZER_INIT;
	struct steward_head head = { .kind = STEWARD_FREEZER };
	int fds[3];

	(void)str_copy(c->pause, sizeof(c->pause), "signals");
	(void)str_copy(c->pause_source, sizeof(c->pause_source), "kill(2)");
	if (!c->cgroup || cgroup_make_freezer(c->cgroup, &f) < 0)
		return;
	head.number[0] = f.version;
	fds[0] = f.procs;
	fds[1] = f.state;
	fds[2] = f.events;
	if (steward_send(c->in, &head, NULL, 0, fds, f.version == 2 ? 3 : 2, MSG_DONTWAIT) == 0) {
		(void)snprintf(c->pause, sizeof(c->pause), "freezer-v%u", f.version);
		(void)str_copy(c->pause_source, sizeof(c->pause_source), f.source);
	}
	cgroup_freezer_close(&f);
}

/* cgroup v2: the clone puts init into its group. */
static int make_cgroup_first(struct cell *c, struct brig_error *err)
{
	return c->host->has_cgroups && c->host->enters_at_clone ? make_cgroup(c, err) : 0;
}

/* cgroup v1: while init builds the cell; init then enters through the descriptors that we send. */
static int make_cgroup_beside(struct cell *c, struct brig_error *err)
{
	struct report enter = report_make(REPORT_ENTER);
	int fds[CGROUP_ENTRIES_MAX];
	size_t n;
	int rc = 0;

	if (!c->host->has_cgroups)
		return 0;
	if (!c->host->enters_at_clone)
		rc = make_cgroup(c, err);
	if (rc < 0)
		return rc;
	n = cgroup_entries(c->cgroup, fds, ARRAY_LEN(fds));
	rc = report_send(c->ctl, &enter, fds, n);
	if (rc == 0 && !c->spec.joined && !c->spec.enters_first)
		rc = report_send(c->go, &enter, fds, n);
	return rc < 0 ? cell_lost_init(c, STEP_enter_cgroup, rc, err) : 0;
}

/* Also in parallel with init: on cgroup v1 the first socket limit makes the kernel patch its code. */
static int limit_cgroup(struct cell *c, struct brig_error *err)
{
	const struct limits *l = &c->spec.plan->limits;
	const struct cgroup_limits limits = { .memory_bytes = l->memory_bytes,
					      .pids = l->pids,
					      .cpu_percent = l->cpu_percent,
					      .disk_io_bps = c->spec.plan->disk_io_bps,
					      .disks = &c->disks,
					      .outlives_oom = c->spec.plan->session };
	int rc = 0;

	c->limited = !c->cgroup;
	if (c->spec.plan->session)
		offer_freezer(c);
	if (!c->cgroup)
		return 0;
	if (FAULT_HIT(STEP_limit_cgroup))
		return cell_step_failed(STEP_limit_cgroup, FAULT_ERRNO, err);
	if (limits.disk_io_bps > 0)
		rc = cell_find_disks(c, err);
	if (rc == 0)
		rc = cgroup_limit(c->cgroup, &limits, err);
	c->limited = rc == 0;
	return rc;
}

/* Init waits for this byte before its first step that needs an identity. */
static int write_id_maps(struct cell *c, struct brig_error *err)
{
	int rc = FAULT_HIT(STEP_write_id_maps) ? -FAULT_ERRNO : idmap_write(c);

	if (rc < 0)
		return cell_step_failed(STEP_write_id_maps, -rc, err);
	return send(c->ctl, "m", 1, MSG_NOSIGNAL) == 1 ? 0 : cell_lost_init(c, STEP_write_id_maps, -errno, err);
}

int cell_begin_time(struct cell *c)
{
	return send(c->ctl, "c", 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/*
 * Starts the program, or permits it to start as soon as it is confined.  Init's clock is started first: if we are
 * stopped between the two, nothing has begun.  For a waiting cell this starts only the interpreter; native_waiting_go()
 * starts the clock.
 */
int cell_let_go(struct cell *c, struct brig_error *err)
{
	int rc = c->spec.plan->waits_at ? 0 : cell_begin_time(c);

	assert(c->limited); /* INV-2: limits come before the first guest instruction */
	c->started_ns = clock_now_ns();
	if (rc == 0 && send(c->go, "g", 1, MSG_NOSIGNAL) != 1)
		rc = -errno;
	c->let_go = rc == 0;
	return rc < 0 ? cell_lost_init(c, STEP_exec, rc, err) : 0;
}

static int native_stop(struct cell *c, struct brig_error *err);
static int native_destroy(struct cell *c, char *leftovers, size_t size);

static int build(struct cell *c, struct brig_error *err)
{
	static int (*const steps[])(struct cell *, struct brig_error *) = {
		cell_look_at_project, cell_find_host_trees, cell_open_pipes,    make_cgroup_first, cell_clone_init,
		write_id_maps,        make_cgroup_beside,   cell_offer_project, limit_cgroup,
	};

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int rc = steps[i](c, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/*
 * Refuses hosts that would run a helper on a crashed program's memory.  RLIMIT_CORE must be 1 to stop a piped
 * core_pattern (0 does not); if our own hard limit is 0 already, there must be no pipe.
 */
static int check_core_dumps(struct brig_error *err)
{
	struct rlimit core;
	char pattern[256];

	if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max >= 1)
		return 0;
	if (fd_get_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) > 0 && pattern[0] != '|')
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the hard limit on core dumps is 0 and kernel.core_pattern starts a program, which ignores that: "
		"raise the limit (ulimit -H -c 1) or set kernel.core_pattern=core");
}

/* Stops the cell before it waits for the packer, which may be blocked on its reader. */
static int blame(struct cell *c, int rc, struct brig_error *err)
{
	(void)native_stop(c, NULL);
	return project_stream_blame(&c->project.stream, rc, err);
}

int cell_begin(struct backend_host *h, const struct plan *plan, bool joined, struct zygote *from, struct cell **ret,
	       struct brig_error *err)
{
	struct cell *c = cell_new(h, plan);
	char leftovers[256];
	int rc;

	if (!c)
		return err_nomem(err);
	c->spec.joined = joined;
	c->zygote = from;
	zygote_keep(from);
	fault_arm();
	fill_spec(c);
	rc = machine_describe(&c->spec.machine, &plan->limits) < 0 ? err_nomem(err) : cell_wait_prepare(c, err);
	if (rc == 0)
		rc = check_core_dumps(err);
	if (rc == 0)
		rc = build(c, err);
	if (rc < 0) {
		rc = blame(c, rc, err);
		(void)native_destroy(c, leftovers, sizeof(leftovers));
		return rc;
	}
	*ret = c;
	return 0;
}

static int native_begin(struct backend_host *h, const struct plan *plan, const struct backend_notice *notify,
			struct cell **ret, struct brig_error *err)
{
	(void)notify; /* no step takes long */
	return cell_begin(h, plan, /* joined= */ false, NULL, ret, err);
}

static int native_finish(struct cell *c, struct brig_error *err)
{
	int rc = cell_starts_at_once(c) ? cell_let_go(c, err) : 0;

	if (rc == 0)
		rc = cell_await_confined(c, err);
	return rc < 0 ? blame(c, rc, err) : 0;
}

static int native_start(struct cell *c, struct cell_fds *ret, struct brig_error *err)
{
	int rc = c->let_go ? 0 : cell_let_go(c, err);

	if (rc < 0)
		return rc;
	*ret = (struct cell_fds){ .in = c->in,
				  .out = c->out,
				  .err = c->err,
				  .event = c->poll,
				  .told = &c->told,
				  .started_ns = c->started_ns };
	cell_read_back_start(c); /* costs no time: the program is busy starting */
	return 0;
}

static void native_close_stdin(struct cell *c)
{
	fd_closep(&c->in);
}

static void note_disk(struct cell *c)
{
	struct statfs now;

	if (c->handed[HANDED_SCRATCH] < 0 || fstatfs(c->handed[HANDED_SCRATCH], &now) < 0)
		return;
	/* A write fails when its last page does not fit, so "full" means that at most a few blocks are left. */
	if (now.f_bavail <= 4 || now.f_ffree == 0)
		c->disk_full = true;
	c->disk_bytes = (uint64_t)(now.f_blocks - now.f_bfree) * (uint64_t)now.f_bsize;
}

static uint64_t native_disk_bytes(struct cell *c)
{
	return c->disk_bytes;
}

/*
 * The pid may have been reused if the program has ended, since init may reap it at any time.  So we open a pidfd first,
 * and send the signal only if that process is in this cell's pid namespace.
 */
static void native_send_signal(struct cell *c, int signal)
{
	char path[48];
	struct stat its, cells;
	AUTO_FD pidfd = c->payload_pid > 0 && !c->ended ? pidfd_open(c->payload_pid, 0) : FD_NONE;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", c->payload_pid);
	if (pidfd < 0 || c->handed[HANDED_NS_PID] < 0 || fstat(c->handed[HANDED_NS_PID], &cells) < 0 ||
	    stat(path, &its) < 0 || its.st_ino != cells.st_ino || its.st_dev != cells.st_dev)
		return;
	(void)pidfd_send_signal(pidfd, signal, NULL, 0);
}

/* Only the program's share: a waiting cell has used CPU time before. */
static uint64_t own_cpu_ns(const struct cell *c, uint64_t ns)
{
	return ns - min_u64(ns, c->cpu_ns_before);
}

static int native_sample(struct cell *c, struct sample *ret)
{
	note_disk(c);
	if (!c->cgroup || cgroup_read(c->cgroup, &c->last_usage) < 0)
		return -ENODATA;
	ret->cpu_ms = own_cpu_ns(c, c->last_usage.cpu_ns) / NS_PER_MS;
	ret->memory_bytes = c->last_usage.memory_bytes;
	ret->pids = c->last_usage.pids;
	return 0;
}

/* Without a cgroup: CPU time of the program and the children that it waited for, which is most of it. */
static uint64_t payload_cpu_ns(const struct cell *c)
{
	char path[48], text[1024], *after;
	unsigned long long t[4];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", c->payload_pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	after = strrchr(text, ')'); /* the command name before it may contain anything */
	if (!after || sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &t[0], &t[1],
			     &t[2], &t[3]) != 4)
		return 0;
	return (t[0] + t[1] + t[2] + t[3]) * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t native_cpu_ns(struct cell *c)
{
	uint64_t ns = 0;

	if (c->cgroup)
		(void)cgroup_read_cpu_ns(c->cgroup, &ns);
	else
		ns = payload_cpu_ns(c);
	return max_u64(own_cpu_ns(c, ns), c->cpu_ns_seen);
}

static uint64_t native_oom_kills(struct cell *c)
{
	uint64_t n = 0;

	if (c->cgroup)
		(void)cgroup_read_oom_kills(c->cgroup, &n);
	return n;
}

void cell_note_end(struct cell *c)
{
	note_disk(c);
	c->cpu_ns_seen = native_cpu_ns(c);
}

void cell_let_go_of(struct cell *c)
{
	for (size_t i = 0; i < HANDED_COUNT; i++)
		if (i != HANDED_WORKSPACE && !cell_project_needs(c, i))
			fd_closep(&c->handed[i]);
}

/*
 * Init has sent its last report and exits by itself, and no group has another process.  The time that the kernel takes
 * to remove init is waited for in settle.  If a workspace is examined afterwards, stop waits anyway, to be on the safe
 * side.
 */
bool native_dies_alone(struct cell *c)
{
	const struct plan *plan = c->spec.plan;

	if (!c->alone) /* it stays true: init creates no process */
		c->alone = c->parted && c->ended && !plan->workspace && !plan->wants_view && c->cgroup &&
			   cgroup_count_tasks(c->cgroup, c->init_pid) == 0;
	return c->alone;
}

/*
 * For a warm cell, init exits only when the cell is destroyed, right after the answer: its death takes the kernel
 * longer than the rest of the answer, and would take CPU time from the processes that pass the answer on.
 */
bool cell_dies_last(const struct cell *c)
{
	return c->spec.plan->waits_at != NULL;
}

/*
 * Every process is dead.  The kernel lists a process in its cgroup until it has left the CPU for the last time, which
 * on a busy machine may be after it was reaped; a process that is listed for longer is really left.
 */
static int count_left(const struct cgroup *groups)
{
	const uint64_t deadline = clock_now_ns() + LISTED_NS;
	int n;

	while ((n = cgroup_count_tasks(groups, 0)) > 0 && clock_now_ns() < deadline)
		wait_sleep(NS_PER_MS);
	return n;
}

/* When init is dead, so is everything in its pid namespace. */
static int await_init(struct cell *c, struct brig_error *err)
{
	const uint64_t patience_ms = c->spec.plan->limits.cleanup_ms;
	int rc = proc_reap(&c->init_pidfd, clock_now_ns() + patience_ms * NS_PER_MS, NULL);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc,
			       "the cell's processes did not die within cleanup_timeout_ms (%llu ms)",
			       (unsigned long long)patience_ms);
	c->tasks_left = c->cgroup ? count_left(c->cgroup) : 0;
	return 0;
}

/* Kills the whole pid namespace, including frozen processes. */
void cell_kill_init(struct cell *c)
{
	(void)pidfd_send_signal(c->init_pidfd, SIGKILL, NULL, 0);
	if (c->cgroup && c->spec.plan->session)
		cgroup_thaw(c->cgroup);
}

static int native_stop(struct cell *c, struct brig_error *err)
{
	int rc;

	if (c->init_pidfd < 0)
		return 0;
	if (cell_dies_last(c) && native_dies_alone(c)) {
		c->dying = fd_move(&c->init_pidfd);
		c->tasks_left = 0;
		cell_denied_stopped(c);
		return 0;
	}
	cell_kill_init(c);
	/* A limit may be hit before the program is seen to have started; the cell exists nevertheless. */
	if (c->ready && !c->parted)
		cell_read_back_dying(c); /* costs no time: the kernel is busy with the cell's end */
	cell_note_end(c);
	cell_let_go_of(c);
	if (c->cgroup && !c->ended) /* not needed if the program ended by itself */
		cgroup_lift_quota(c->cgroup);
	if (native_dies_alone(c)) {
		c->dying = fd_move(&c->init_pidfd);
		c->tasks_left = 0;
	} else {
		rc = await_init(c, err);
		if (rc < 0)
			return rc;
	}
	cell_denied_stopped(c);
	return 0;
}

static void native_usage(struct cell *c, struct cell_usage *ret)
{
	*ret = (struct cell_usage){ .disk_full = c->disk_full, .cpu_ms = c->cpu_ns_seen / NS_PER_MS };
	if (!c->cgroup || (!c->parted && cgroup_read(c->cgroup, &c->last_usage) < 0))
		return;
	if (!c->parted)
		ret->cpu_ms = own_cpu_ns(c, c->last_usage.cpu_ns) / NS_PER_MS;
	ret->memory_peak_bytes = c->last_usage.memory_peak_bytes;
	ret->pids_peak = c->last_usage.pids_peak;
	ret->oom_kills = c->last_usage.oom_kills;
	ret->pids_refused = c->last_usage.pids_refused;
}

/* INV-8: links are not followed. */
static int native_open_output(struct cell *c, const char *name)
{
	return beneath_open_file(c->handed[HANDED_WORKSPACE], name, NULL);
}

/* The sockets were reported before the payload was confined, so they are here when finish returns. */
static int native_listener(struct cell *c, struct brig_error *err)
{
	if (c->way_out < 0)
		return err_set(err, BRIG_E_INTERNAL, 0, "the cell has no sockets for the egress proxy");
	return fd_move(&c->way_out);
}

static int native_open_folder(struct cell *c, const char *name)
{
	return beneath_open_dir(c->handed[HANDED_WORKSPACE], name);
}

static void close_all(struct cell *c)
{
	int *const fds[] = { &c->ctl, &c->go, &c->in, &c->out, &c->err, &c->poll, &c->way_out };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_closep(fds[i]);
	for (size_t i = 0; i < HANDED_COUNT; i++)
		fd_closep(&c->handed[i]);
	cell_close_child_ends(c);
	proc_leave(&c->init_pidfd); /* a process that did not die in time */
	cell_denied_end(c);
}

/* The janitor removes the groups while we do other work. */
static void leave_groups(struct cell *c, uint64_t deadline_ns)
{
	struct backend_host *h = c->host;
	struct remains *r = MOVE_PTR(c->remains);

	*r = (struct remains){ .next = h->remains,
			       .init_pid = c->init_pid,
			       .init_pidfd = fd_move(&c->dying),
			       .deadline_ns = deadline_ns };
	r->cgroup = MOVE_PTR(c->cgroup);
	r->guarded = MOVE_PTR(c->guarded);
	(void)str_copy(r->id, sizeof(r->id), c->spec.plan->id);
	janitor_finish(&h->janitors, r->guarded, r->init_pidfd);
	h->remains = r;
}

/*
 * Accepts half-built cells.  The order matters: first no process, then no descriptor into its tmpfs (which would keep
 * the memory group charged), then the groups.
 */
static int native_destroy(struct cell *c, char *leftovers, size_t size)
{
	uint64_t deadline;
	int left;

	*leftovers = '\0';
	if (!c)
		return 0;
	deadline = clock_now_ns() + c->spec.plan->limits.cleanup_ms * NS_PER_MS;
	left = native_settle(c->host, c->spec.plan->id, leftovers, size); /* an earlier cell of the same run */
	if (native_stop(c, NULL) < 0) {
		size_t len = strlen(leftovers);

		(void)snprintf(leftovers + len, size - len, "%sprocess %d", len ? ", " : "", c->init_pid);
		left++;
	}
	cell_project_release(&c->project);
	close_all(c);
	if (c->dying >= 0) /* with our descriptors closed, the dying process tears down namespaces and mounts */
		(void)pidfd_send_signal(c->dying, SIGKILL, NULL, 0);
	if (c->cgroup && !c->guarded)
		cgroup_free(MOVE_PTR(c->cgroup)); /* nothing was created */
	if (c->cgroup)
		leave_groups(c, deadline);
	fd_closep(&c->dying);
	if (c->zygote && !c->came)
		zygote_child_came(c->zygote);
	zygote_let_go(c->zygote);
	free(c->remains);
	free(c->wait_env);
	free(c->spec.dirs);
	free(c->spec.machine.text);
	looks_give_back(c->host, c->looks);
	free(c);
	return left;
}

const struct backend_ops native_backend = {
	.name = "native",
	.holds_files = true,
	.has_sessions = true,
	.open = native_open,
	.same_host = native_same_host,
	.settle = native_settle,
	.close = native_close,
	.begin = native_begin,
	.finish = native_finish,
	.start = native_start,
	.on_event = cell_on_event,
	.close_stdin = native_close_stdin,
	.send_signal = native_send_signal,
	.sample = native_sample,
	.cpu_ns = native_cpu_ns,
	.oom_kills = native_oom_kills,
	.disk_bytes = native_disk_bytes,
	.read_back = cell_read_back,
	.stop = native_stop,
	.usage = native_usage,
	.open_output = native_open_output,
	.denied = native_denied,
	.listener = native_listener,
	.certificates = CERTIFICATES_PATH,
	.open_folder = native_open_folder,
	.workspace = cell_workspace,
	.list = native_list,
	.reap = native_reap,
	.destroy = native_destroy,
};
