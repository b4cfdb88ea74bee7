/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting cells, seen from the supervisor.
 *
 * A waiting cell is built by the same steps as any other, with every limit in force and every process confined.  The
 * only differences: its program's file is empty, the wall clock starts with the program, and a process in it waits
 * (guest/wait.h):
 *
 *	the interpreter, executed at once with a library that stops it when it opens that file; or
 *	the payload, fully confined, before it executes anything: for interpreters that cannot be stopped or have
 *	nothing to do before
 *	they open their program, and for programs that are executed themselves
 *
 *	claim	sends the program to the waiting process, which writes it into the file itself: with the program's ids,
 *		in its cgroup, under its restrictions
 *	go	starts init's clock and lets the waiting process continue; this is when the first instruction of the
 *		program runs
 *
 * What the request determines (the program, and when it starts) comes after the claim; everything else is the same for
 * all requests of this kind, or they would not get this cell (INV-6).  A cell is used once.
 */
#include "backend/native/waiting.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "backend/guest/steward.h"
#include "backend/guest/wait.h"
#include "backend/native/cell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sealed.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define LIBRARY_FD_MIN 16 /* does not collide with the numbers that a payload fills */

int zygote_sealed_file(const char *name, const void *bytes, size_t size, unsigned flags)
{
	AUTO_FD fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	int rc;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every memfd was executable */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, bytes, size);
	if (rc == 0)
		rc = sealed_close(fd);
	if (rc == 0)
		rc = fd_move_up(&fd, LIBRARY_FD_MIN);
	return rc < 0 ? rc : fd_move(&fd);
}

/* Shared by all waiting cells of this host. */
static int open_library(struct backend_host *h)
{
	int fd = h->wait_library;

	if (fd < 0)
		fd = zygote_sealed_file("brig-wait", guest_wait_bytes, guest_wait_size, MFD_EXEC);
	if (fd < 0)
		return fd;
	h->wait_library = fd;
	return 0;
}

/* The program's environment, followed by the variables that make the interpreter wait; one allocation. */
static int add_environment(struct cell *c)
{
	const struct plan *plan = c->spec.plan;
	const char *const words[][2] = {
		{ GUEST_WAIT_PRELOAD, "" },
		{ GUEST_WAIT_PATHS, plan->waits_at },
		{ GUEST_WAIT_WARM, plan->warm ? plan->warm : "" },
		{ GUEST_WAIT_FORKS, "1" }, /* last: only for a zygote */
	};
	const size_t n_words = ARRAY_LEN(words) - !c->spec.joined;
	size_t n = 0, room = 0;
	const char **envp;
	char *text;

	while (plan->envp[n])
		n++;
	for (size_t i = 0; i < n_words; i++)
		room += strlen(words[i][0]) + strlen(words[i][1]) + 1;
	c->wait_env = calloc(1, (n + n_words + 1) * sizeof(*envp) + room);
	if (!c->wait_env)
		return -ENOMEM;
	envp = (const char **)(void *)c->wait_env;
	text = c->wait_env + (n + n_words + 1) * sizeof(*envp);
	memcpy(envp, plan->envp, n * sizeof(*envp));
	for (size_t i = 0; i < n_words; i++) {
		envp[n + i] = text;
		text = stpcpy(stpcpy(text, words[i][0]), words[i][1]) + 1;
	}
	c->spec.envp = envp;
	return 0;
}

/* Shared by all sessions of this host. */
static int open_steward(struct cell *c, struct brig_error *err)
{
	int fd = c->host->steward;

	if (fd < 0)
		fd = zygote_sealed_file("brig-steward", steward_program_bytes, steward_program_size, MFD_EXEC);
	if (fd < 0)
		return cell_step_failed(STEP_exec, -fd, err);
	c->spec.steward = c->host->steward = fd;
	return 0;
}

int cell_wait_prepare(struct cell *c, struct brig_error *err)
{
	int rc;

	c->spec.envp = c->spec.plan->envp;
	if (c->spec.plan->session)
		return open_steward(c, err);
	if (!c->spec.plan->waits_at || c->zygote) /* the zygote has it */
		return 0;
	rc = FAULT_HIT(STEP_wait) ? -FAULT_ERRNO : 0;
	if (rc == 0 && !c->spec.plan->interpreter_waits)
		return 0;
	if (rc == 0)
		rc = open_library(c->host);
	if (rc == 0)
		rc = add_environment(c);
	if (rc < 0)
		return cell_step_failed(STEP_wait, -rc, err);
	c->spec.wait_library = c->host->wait_library;
	return 0;
}

int native_waiting_begin(struct backend_host *h, const struct plan *plan, struct zygote *from, struct cell **ret,
			 struct brig_error *err)
{
	struct cell *c = NULL;
	char leftovers[256];
	int rc = cell_begin(h, plan, from != NULL, from, &c, err);

	if (rc < 0)
		return rc;
	h->janitors.stays = true; /* more cells will follow */
	if (from) {
		*ret = c;
		return 0;
	}
	rc = cell_let_go(c, err); /* all limits are written (INV-2) */
	if (rc < 0) {
		(void)native_backend.destroy(c, leftovers, sizeof(leftovers));
		return rc;
	}
	if (c->cgroup)
		cgroup_mark(c->cgroup, CELL_MARK_WAITING);
	*ret = c;
	return 0;
}

/* If the cell is complete and has no payload, tells the zygote to fork one into it. */
static int await_child(struct cell *c, struct brig_error *err)
{
	int rc = !c->ordered && c->ready && c->sealed ? zygote_order(c) : 0;

	if (rc < 0)
		return cell_step_failed(STEP_child_fork, -rc, err);
	if (c->confined && !c->came) {
		c->came = true;
		zygote_child_came(c->zygote);
	}
	return 0;
}

/* Reads what only processes show, while there is time. */
static int look_at_waiting(struct cell *c, struct brig_error *err)
{
	enum step missed;
	int rc = c->zygote ? zygote_check_child(c, &missed) : 0;

	if (rc < 0)
		return cell_step_failed(missed, -rc, err);
	cell_read_back_start(c);
	if (c->cgroup)
		(void)cgroup_read_cpu_ns(c->cgroup, &c->cpu_ns_before);
	c->seen_waiting = true;
	return 0;
}

void native_waiting_mark(struct cell *c, const char *run, pid_t caller)
{
	char mark[CELL_MARK_MAX];

	if (!c->cgroup)
		return;
	(void)snprintf(mark, sizeof(mark), "%.16s %d", run, (int)caller);
	cgroup_mark(c->cgroup, mark);
}

enum cell_readiness native_waiting_pump(struct cell *c, struct brig_error *err)
{
	if (cell_pump(c, err) < 0)
		return c->cannot_wait ? CELL_DOES_NOT_WAIT : CELL_SPOILED;
	if (c->zygote && await_child(c, err) < 0)
		return CELL_SPOILED;
	if (c->started || c->ended) { /* its socket was closed without a GUEST_GO */
		(void)err_set(err, BRIG_E_SYSTEM, 0, "%s does not wait for its program", c->spec.plan->argv[0]);
		return c->waiting ? CELL_SPOILED : CELL_DOES_NOT_WAIT;
	}
	if (!c->ready || !c->waiting)
		return CELL_BUILDING;
	if (!c->seen_waiting && look_at_waiting(c, err) < 0)
		return CELL_SPOILED;
	return CELL_CAN_BE_CLAIMED;
}

int native_waiting_fd(const struct cell *c)
{
	return c->poll;
}

int native_told_fd(const struct cell *c)
{
	return c->told;
}

static int say(const struct cell *c, const struct guest_word *w, int fd)
{
	struct guest_word copy = *w;
	struct iovec whole = { .iov_base = &copy, .iov_len = sizeof(copy) };

	return fd_send_record(c->go, &whole, 1, &fd, fd >= 0, 0);
}

int native_waiting_claim(struct cell *c, int program, uint64_t size, struct brig_error *err)
{
	const struct guest_word w = { .magic = GUEST_WORD_MAGIC, .kind = GUEST_CLAIM, .value = size };
	int rc = say(c, &w, program);

	return rc < 0 ? cell_lost_init(c, STEP_wait, rc, err) : 0;
}

int native_waiting_go(struct cell *c, struct brig_error *err)
{
	const struct guest_word w = { .magic = GUEST_WORD_MAGIC, .kind = GUEST_GO };
	int rc;

	c->started_ns = clock_now_ns();
	rc = cell_begin_time(c);
	if (rc == 0)
		rc = say(c, &w, FD_NONE);
	return rc < 0 ? cell_lost_init(c, STEP_wait, rc, err) : 0;
}

void native_waiting_take(struct cell *c, int ret[WAITING_FDS])
{
	ret[WAITING_IN] = fd_move(&c->in);
	ret[WAITING_OUT] = fd_move(&c->out);
	ret[WAITING_ERR] = fd_move(&c->err);
	ret[WAITING_WORKSPACE] = fd_move(&c->handed[HANDED_WORKSPACE]);
}

uint64_t native_waiting_bytes(const struct cell *c)
{
	uint64_t bytes = 0;

	return c->cgroup && cgroup_read_memory(c->cgroup, &bytes) == 0 ? bytes : 0;
}

bool native_waiting_is_forked(const struct cell *c)
{
	return c->zygote != NULL;
}

void native_waiting_kill(struct cell *c)
{
	if (c->init_pidfd >= 0)
		cell_kill_init(c);
}

bool native_waiting_is_dead(const struct cell *c)
{
	struct pollfd p = { .fd = c->init_pidfd, .events = POLLIN };

	return c->init_pidfd < 0 || poll(&p, 1, 0) > 0;
}
