/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper/main.c - the keeper.
 *
 * A long-lived process with one thread that makes, watches, reads back and removes native cells for the process that
 * started it, and keeps some of them ready ahead of requests.  It is a program of its own, carried inside brig as bytes, so that
 * nothing of its caller's memory is in it, and nothing that reads JSON, YAML or source code: it has no such parser (INV-1).  Only
 * the command line, whose first act may be one short run, forks it (start.c): before it has read more than the name of its command.
 *
 *	caller		reads policies and requests, inspects code, reads what programs write, assembles results
 *	keeper		takes jobs of numbers and strings (model/job.h), compares them with ceilings that it was
 *			started with, and turns them into cells; the streams of a program it hands to the caller unread
 *
 * Where the caller hears of strangers' requests it is started by another process, which has chosen the ceilings before (a service's
 * master); its caller is whoever has made the socket that it serves.
 *
 * One epoll: the caller's socket, and of each cell its own events, its listener for refused calls and the channel with the
 * request that it is tied to.  No call of the loop waits for a cell.  When the caller's socket ends, every cell is killed and
 * waited for, then the keeper ends; if the keeper is killed, the kernel kills its cells and janitors remove their groups (INV-3).
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
#define LOOK_MS 200 /* at clocks that wake nobody: of cells that are built or die, of janitors */

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

/* Before the descriptor is closed: children may still have it, and the epoll would go on to tell of it. */
void keeper_unwatch(struct keeper *k, struct source *s)
{
	if (s->fd >= 0)
		(void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = FD_NONE;
}

/* False: these were made by a program that was built from other sources, or are none. */
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

/* Those that we were started with, which no greeting changes.  False: what is there is none that nobody can change. */
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

/* Who has made our socket, and so is the process that these cells are made for; 0: nobody knows. */
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
	set = calloc(1, sizeof(*set)); /* of which opening asks for one number */
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
		(void)native_enter_range(
			k->host); /* else cells are made with the helpers, as by any other supervisor */
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

/* A cell for a job that waits for its program, waiting or begun; NULL, and why. */
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
	/* Where none waits one that is made for the request is there sooner: it has no interpreter started that may not be wanted. */
	if (!c && kind->job->plan.session) {
		(void)err_set(err, BRIG_E_SYSTEM, 0, "no session of this kind waits");
		return NULL;
	}
	return c ? c : kept_begin(k, kind, err);
}

/* A job that may be; NULL, and why. */
static struct job *read_job(struct keeper *k, const struct keep_message *m, uint64_t *ret_size, struct brig_error *err)
{
	struct job *job;

	if (open_host(k, err) < 0) /* which confines us, too */
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

/* False: the caller is gone, or says what nobody would who was built with us. */
static bool serve_caller(struct keeper *k)
{
	struct keep_message m;
	int rc = keep_receive(k->caller, k->buffer, &m);
	bool sound;

	if (rc == -EAGAIN || rc == -EMFILE) /* who asked sees the end of its channel; the other cells go on */
		return true;
	if (rc <= 0)
		return false;
	sound = k->greeted ? is_asked(&m) : take_hello(k, &m);
	if (sound && m.head.kind == KEEP_POOLS) { /* which is no business of its own, and delays no refill */
		kinds_tell(k, m.fds[KEEP_FD_CHANNEL]);
		keep_message_release(&m);
		return true;
	}
	if (sound && m.head.kind == KEEP_RUN) {
		take_run(k, &m);
	} else if (sound) {
		struct brig_error err = BRIG_ERROR_INIT;

		(void)open_host(k, &err); /* while the caller does other things; the first run hears why not */
	}
	k->busy_ns = clock_now_ns();
	keep_message_release(&m);
	return sound;
}

/* The janitor removes the groups of dead cells.  What it cannot remove it goes on trying to; `brig reap` finds it, too. */
static void settle(struct keeper *k)
{
	if (k->host) {
		native_settle_ended(k->host, kept_settled, k);
		kept_close_channels(k);
	}
	proc_reap_late();
}

/* Until when nothing is to be done unless something happens, in ms. */
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

/* Its folder and its streams, which somebody may wait for the end of; and each cell takes some thirty descriptors. */
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

	if (!take_given_ceilings(k)) /* before a descriptor of ours can have that number */
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
