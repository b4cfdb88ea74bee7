/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper/main.c - the keeper.
 *
 * A long-lived, single-threaded process that creates, monitors, reads back and removes native cells for its caller, and
 * keeps some of them ready ahead of requests.  It is a program of its own, embedded in brig as bytes, so that it has
 * nothing of its caller's memory and no parser for JSON, YAML or source code (INV-1).  Only the command line, which may
 * live for one short run, forks its keeper instead (start.c), before it has read more than the name of its command.
 *
 *	caller		reads policies and requests, inspects code, reads what programs write, assembles results
 *	keeper		takes jobs of numbers and strings (model/job.h), compares them with the ceilings that it was
 *			started with, and turns them into cells; passes the streams of a program to the caller unread
 *
 * If the caller handles requests of strangers, another process (the master of a service) starts the keeper and has
 * chosen the ceilings beforehand.  The caller is then the process that created the socket which the keeper serves.
 *
 * One epoll set has the caller's socket and, for each cell, its own events, its listener for refused calls and the
 * channel of the request that it is tied to.  Nothing in the loop waits for a cell.  When the caller's socket ends, the
 * keeper kills every cell, waits for it and exits.  If the keeper is killed, the kernel kills its cells and the janitor
 * removes their cgroups (INV-3).
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "keeper/inside.h"
#include "keeper/program.h"
#include "sys/proc.h"
#include "sys/scheduling.h"

#define EVENTS  64
#define LOOK_MS 200 /* for deadlines that no descriptor reports: of cells being built or dying, of janitors */

int keeper_watch(struct keeper *k, struct source *s, int fd, struct kept *c,
		 void (*serve)(struct keeper *, struct kept *))
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };

	*s = (struct source){ .serve = serve, .cell = c, .fd = fd };
	if (epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	s->fd = FD_NONE;
	return -errno;
}

/* Call before closing the descriptor: children may hold the open file, and epoll would go on reporting it. */
void keeper_unwatch(struct keeper *k, struct source *s)
{
	if (s->fd >= 0)
		(void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = FD_NONE;
}

/* False: not a keep_hello, or one of another build. */
static bool adopt_ceilings(struct keeper *k, const void *bytes, size_t size)
{
	struct keep_hello *h = &k->ceilings;

	if (k->greeted || size != sizeof(*h))
		return false;
	memcpy(h, bytes, sizeof(*h));
	for (size_t i = 0; i < KEEP_ROOTS_MAX; i++)
		h->root[i][KEEP_PATH_MAX - 1] = '\0';
	for (size_t i = 0; i < KEEP_SHOWN_MAX; i++)
		h->shown[i][KEEP_PATH_MAX - 1] = '\0';
	k->greeted = h->version == KEEP_VERSION && h->build == KEEP_BUILD;
	return k->greeted;
}

static bool take_hello(struct keeper *k, const struct keep_message *m)
{
	return m->head.kind == KEEP_HELLO && m->n_fds == 0 && adopt_ceilings(k, m->body, m->head.size);
}

/*
 * Ceilings that the keeper was started with, which no KEEP_HELLO can replace.  False: the descriptor is not a sealed
 * file.
 */
static bool take_given_ceilings(struct keeper *k)
{
	const int sealed = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	int seals = fcntl(KEEPER_CEILINGS_FD, F_GET_SEALS);
	ssize_t n;

	if (seals < 0 && errno == EBADF)
		return true;
	if (seals < 0 || (seals & sealed) != sealed)
		return false;
	n = pread(KEEPER_CEILINGS_FD, k->buffer, sizeof(k->buffer), 0);
	(void)close(KEEPER_CEILINGS_FD);
	return n > 0 && adopt_ceilings(k, k->buffer, (size_t)n);
}

/* The process that created our socket, and for which the cells are made; 0: unknown. */
static pid_t owner_of(int sock)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? who.pid : 0;
}

static int open_host(struct keeper *k, struct brig_error *err)
{
	struct settings *set;
	protection_set missing;
	int rc;

	if (k->host)
		return 0;
	set = calloc(1, sizeof(*set)); /* open() reads only one setting */
	if (!set)
		return err_nomem(err);
	set->disk_io_bps = k->ceilings.disk_io_bps ? k->ceilings.disk_io_bps : setting_info[SET_disk_io_bps].max;
	rc = native_backend.open(set, &k->host, &missing, err);
	free(set);
	if (rc == 0) {
		native_set_owner(k->host, k->owner);
		native_ask_for_streams(k->host, /* always= */ !k->ceilings.maps_projects);
	}
	if (rc == 0)
		(void)native_enter_range(k->host); /* on failure, cells use the helpers, as with any other supervisor */
	if (rc == 0)
		rc = keeper_confine(native_runs_helpers(k->host), err);
	if (rc < 0) {
		native_backend.close(k->host);
		k->host = NULL;
	}
	return rc;
}

static struct kept *refuse_more(const struct keeper *k, struct brig_error *err)
{
	(void)err_set(err, BRIG_E_REFUSED, 0, "%u cells are there already, which is the keeper's limit",
		      k->ceilings.cells);
	return NULL;
}

/* A cell for a job whose program waits: a waiting cell or a new one.  NULL and err on failure. */
static struct kept *find_cell(struct keeper *k, struct job *job, struct brig_error *err)
{
	struct kept *c;
	struct kind *kind = kind_of(k, job);

	if (!kind || k->n_cells >= k->ceilings.cells)
		return refuse_more(k, err);
	if (kind->never_waits) {
		(void)err_set(err, BRIG_E_SYSTEM, 0, "%s", kind->why);
		return NULL;
	}
	zygotes_await(k, kind);
	c = kind_take(k, kind);
	/*
	 * No session cell is built on demand here: the caller's own cell is ready sooner, because it starts no Python
	 * in advance.
	 */
	if (!c && kind->job->plan.session) {
		(void)err_set(err, BRIG_E_SYSTEM, 0, "no session of this kind waits");
		return NULL;
	}
	return c ? c : kept_begin(k, kind, err);
}

/* Decodes and checks a job.  NULL and err on failure. */
static struct job *read_job(struct keeper *k, const struct keep_message *m, uint64_t *ret_size, struct brig_error *err)
{
	struct job *job;

	if (open_host(k, err) < 0) /* also installs our filter */
		return NULL;
	job = job_decode(m->body, m->head.size);
	if (!job) {
		(void)err_set(err, BRIG_E_INTERNAL, 0, "the keeper was sent what is no job");
	} else if (ceilings_check(&k->ceilings, &job->plan, err) < 0 ||
		   ceilings_check_descriptors(job, m, ret_size, err) < 0) {
		job_destroy(job);
		job = NULL;
	}
	return job;
}

static void take_run(struct keeper *k, struct keep_message *m)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct kept *c = NULL;
	uint64_t size = 0;
	struct job *job = read_job(k, m, &size, &err);
	char run[RUN_ID_LEN + 1] = "";

	if (job)
		(void)str_copy(run, sizeof(run), job->plan.id);
	if (job && job->plan.waits_at)
		c = find_cell(k, job, &err);
	else if (job && k->n_cells < k->ceilings.cells)
		c = single_begin(k, job, m, size, &err);
	else if (job) {
		job_destroy(job);
		c = refuse_more(k, &err);
	}
	if (c)
		kept_tie(k, c, run, fd_move(&m->fds[KEEP_FD_CHANNEL]), fd_move(&m->fds[KEEP_FD_CONTENTS]), size);
	else
		kept_refuse(m->fds[KEEP_FD_CHANNEL], &err);
}

static bool is_asked(const struct keep_message *m)
{
	return (m->head.kind == KEEP_RUN && m->n_fds >= KEEP_RUN_FDS) ||
	       (m->head.kind == KEEP_POOLS && m->head.size == 0 && m->n_fds == KEEP_FD_CHANNEL + 1);
}

/* False: the caller closed the socket, or sent a record that no caller of this build sends. */
static bool serve_caller(struct keeper *k)
{
	struct keep_message m;
	int rc = keep_receive(k->caller, k->buffer, &m);
	bool sound;

	if (rc == -EAGAIN || rc == -EMFILE) /* only that request's channel was closed */
		return true;
	if (rc <= 0)
		return false;
	sound = k->greeted ? is_asked(&m) : take_hello(k, &m);
	if (sound && m.head.kind == KEEP_POOLS) { /* does not count as activity, so it delays no refill */
		kinds_tell(k, m.fds[KEEP_FD_CHANNEL]);
		keep_message_release(&m);
		return true;
	}
	if (sound && m.head.kind == KEEP_RUN) {
		take_run(k, &m);
	} else if (sound) {
		struct brig_error err = BRIG_ERROR_INIT;

		(void)open_host(k, &err); /* in advance; the first run reports a failure */
	}
	k->busy_ns = clock_now_ns();
	keep_message_release(&m);
	return sound;
}

/* The janitor removes the cgroups of dead cells, and keeps trying if it cannot; `brig reap` finds those, too. */
static void settle(struct keeper *k)
{
	if (k->host) {
		native_settle_ended(k->host, kept_settled, k);
		kept_close_channels(k);
	}
	proc_reap_late();
}

/* The timeout for epoll_wait() in ms; -1: none. */
static int pause_ms(const struct keeper *k)
{
	int refill = kinds_pause_ms(k), look = k->n_answered > 0 ? ANSWER_MS : LOOK_MS;

	if (k->n_cells == 0 && !(k->host && native_has_remains(k->host)))
		look = -1;
	return refill < 0 || (look >= 0 && look < refill) ? look : refill;
}

static void loop(struct keeper *k)
{
	struct epoll_event events[EVENTS];

	for (;;) {
		int n = epoll_wait(k->epoll, events, EVENTS, pause_ms(k));
		bool goes_on = true;

		if (n < 0 && errno != EINTR)
			return;
		for (int i = 0; i < n; i++) {
			struct source *s = events[i].data.ptr;

			if (s && s->fd >= 0)
				s->serve(k, s->cell);
			else if (!s)
				goes_on = serve_caller(k);
		}
		if (!goes_on)
			return;
		kept_check_deadlines(k);
		kept_sweep(k);
		settle(k);
		kinds_refill(k);
	}
}

/*
 * Leaves the caller's directory and closes its standard streams, whose end of file a reader may wait for.  Raises the
 * descriptor limit: each cell takes about thirty.
 */
static int leave_caller(void)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rlimit files;

	if (null < 0 || chdir("/") < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

static int begin(struct keeper *k)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int rc;

	if (!take_given_ceilings(k)) /* before we open a descriptor that could get this number */
		return -EPROTO;
	rc = leave_caller();
	if (rc == 0)
		rc = scheduling_reset(); /* for zygotes, and for cells that are cloned into their groups */
	if (rc < 0)
		return rc;
	k->caller = KEEPER_CALLER_FD;
	k->owner = owner_of(k->caller);
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (k->epoll < 0 || fcntl(k->caller, F_SETFD, FD_CLOEXEC) < 0 ||
	    epoll_ctl(k->epoll, EPOLL_CTL_ADD, k->caller, &ev) < 0)
		return -errno;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "brig-keeper");
	return 0;
}

int keeper_main(void)
{
	struct keeper *k = calloc(1, sizeof(*k));

	if (!k || begin(k) < 0)
		return 1;
	loop(k);
	kept_end_all(k);
	for (size_t i = 0; i < KINDS_MAX; i++)
		zygotes_end(k, &k->kinds[i]);
	if (k->host)
		native_backend.close(k->host);
	return 0;
}
