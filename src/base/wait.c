/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation
 *
 * A run is a long sequence: resolve, build, inspect, watch, read back, remove, record.  The code is written in that
 * order and waits in some forty places.  So that one thread can drive a thousand runs, each can be executed in steps:
 * it then has a stack of its own (a task), and wherever it would block it registers what it waits for, keeps its stack
 * as it is, and returns to the stepper.
 *
 *	stepper                               task
 *	task_step  ---- swapcontext ---->     ... wait_poll(fds, timeout):
 *	                                          enter fds and timeout in the task's epoll
 *	poll task_fd() <-- swapcontext --         (asleep)
 *	task_step  ---- swapcontext ---->         take them out again, poll(fds, 0), go on
 *
 * Code that runs in no task (brig_run(), a child process, a helper thread) uses the same functions, which are then
 * poll(2) and nanosleep(2) at the cost of one comparison.
 *
 * What keeps this correct:
 *
 *   - Nothing but the task is kept from one step to the next.  Descriptors are in the epoll only while it sleeps, so
 *     they may be closed and recreated between two waits, and copies of them in forked children keep nothing alive.
 *   - A fork copies the task, too.  A child that waits here must not wake up its parent's caller: the page of the
 *     task that says "here" is one that the kernel wipes on fork (MADV_WIPEONFORK), by whatever call the fork was made,
 *     and in whatever pid namespace the child is.
 *   - swapcontext() gives each side its own signal mask.  A signal sent to the thread does not know about sides:
 *     code that blocks SIGPIPE to write must consume it before the next wait.
 *   - A lock that is held while others step is held for long.  Waiting for the short file locks (fd_lock()) therefore
 *     does not yield: it blocks like a slow disk, and is over before anything else can run in this thread.
 *   - All steps of one task are made by one thread: the compiler may cache the address of errno.
 *   - A task that always finds something ready yields after TURNS_MAX waits, and is immediately ready again.
 *
 * The stack is allocated lazily by the kernel, with a guard page below it.  Code that needs much of it, or that calls
 * code that is not ours, switches back to the stepper's stack meanwhile: wait_outside().
 */
#include "base/wait.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define STACK_BYTES ((size_t)MiB)
#define TURNS_MAX   32 /* waits that end immediately before others get their turn */
#define SPARES_MAX  4
#define FEW_TASKS   16

#if SANITIZED
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size)  ((void)(save), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#endif

struct side {
	ucontext_t context;
	const void *bottom; /* of its stack; only AddressSanitizer wants to know */
	size_t size;
	void *shadow;
};

struct task {
	void (*fn)(void *arg);
	void *arg;
	struct side own, stepper;
	bool running, begun, ended;
	bool is_woken;  /* by task_wake() */
	bool is_hidden; /* its stack, from children */
	unsigned turns; /* waits in this step */
	void (*outside)(void *arg);
	void *outside_arg;
	int epoll, timer;
	uint64_t due_ns; /* when the timer expires; 0: it is not set */
	int always;      /* an eventfd that is readable: in the epoll while there is a step to make whatever happens */
	struct task *next_spare;
	char *memory; /* a page to stumble over, the stack, and the page with `here` */
	size_t page;
	const volatile bool *here; /* false in a forked child */
};

static _Thread_local struct task *current;
static atomic_uint n_tasks; /* of all threads, with spare ones */

/* ---- switching --------------------------------------------------------------------------------- */

/* last: from will never be come back to. */
static void switch_to(struct side *from, struct side *to, bool last)
{
	__sanitizer_start_switch_fiber(last ? NULL : &from->shadow, to->bottom, to->size);
	(void)swapcontext(&from->context, &to->context);
	__sanitizer_finish_switch_fiber(from->shadow, &to->bottom, &to->size);
}

/* The task sleeps until the next step. */
static void give_way(struct task *t)
{
	switch_to(&t->own, &t->stepper, /* last= */ false);
}

static void task_main(void)
{
	struct task *t = current;

	__sanitizer_finish_switch_fiber(NULL, &t->stepper.bottom, &t->stepper.size);
	t->fn(t->arg);
	t->ended = true;
	switch_to(&t->own, &t->stepper, /* last= */ true);
}

/* The task to switch from; NULL: we are in none, or in a child that only has a copy of one. */
static struct task *here(void)
{
	return current && *current->here ? current : NULL;
}

bool wait_gives_way(void)
{
	return here() != NULL;
}

void wait_outside(void (*fn)(void *arg), void *arg)
{
	struct task *t = here();

	if (!t) {
		fn(arg);
		return;
	}
	t->outside = fn;
	t->outside_arg = arg;
	give_way(t);
}

/* Until the task wants to wait, or has ended. */
static void go_on(struct task *t)
{
	struct task *outer = current; /* in which it is being stepped */

	do {
		void (*fn)(void *arg) = t->outside;

		if (fn) {
			t->outside = NULL;
			fn(t->outside_arg);
		}
		current = t;
		switch_to(&t->stepper, &t->own, /* last= */ false);
		current = outer;
	} while (t->outside);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

/* 0: it is not set, which also discards an unread expiry. */
static void set_timer(struct task *t, uint64_t due_ns)
{
	const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(due_ns / NS_PER_SEC),
						       .tv_nsec = (long)(due_ns % NS_PER_SEC) } };

	if (due_ns == t->due_ns)
		return;
	t->due_ns = due_ns;
	(void)timerfd_settime(t->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/*
 * Most waits end long before their timeout, and the next one of the task has one like it: a timer that is due before that stays
 * as it is.  If it expires in the next wait, the task looks around, finds that it is too early, and sleeps on.
 */
static void set_timer_by(struct task *t, uint64_t due_ns)
{
	if (t->due_ns == 0 || due_ns < t->due_ns)
		set_timer(t, due_ns);
}

/* What an earlier entry for the same descriptor wants, too. */
static uint32_t events_of(const struct pollfd *fds, nfds_t n, int fd)
{
	uint32_t events = 0;

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].fd == fd)
			events |= (uint32_t)fds[i].events;
	return events;
}

/* False: one of them cannot be waited for, which poll(2) takes for ready: a file, say. */
static bool enter(const struct task *t, const struct pollfd *fds, nfds_t n)
{
	bool sleeps = true;

	for (nfds_t i = 0; i < n; i++) {
		struct epoll_event ev = { .events = events_of(fds, n, fds[i].fd) };

		if (fds[i].fd >= 0 && epoll_ctl(t->epoll, EPOLL_CTL_ADD, fds[i].fd, &ev) < 0 && errno != EEXIST)
			sleeps = false;
	}
	return sleeps;
}

static void take_out(const struct task *t, const struct pollfd *fds, nfds_t n)
{
	struct epoll_event ev = { .events = 0 };

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			(void)epoll_ctl(t->epoll, EPOLL_CTL_DEL, fds[i].fd, &ev);
}

/* One sleep: until something is ready or, unless that is never, this time has come; or sooner for no reason. */
static void sleep_once(struct task *t, const struct pollfd *fds, nfds_t n, uint64_t due_ns)
{
	if (!enter(t, fds, n))
		due_ns = clock_now_ns();
	if (due_ns != UINT64_MAX)
		set_timer_by(t, due_ns);
	give_way(t);
	if (t->due_ns != 0 && t->due_ns <= clock_now_ns())
		set_timer(t, 0);
	take_out(t, fds, n);
}

/* poll() without waiting; what is ready is used immediately, but not forever. */
static int look(struct task *t, struct pollfd *fds, nfds_t n, bool waits)
{
	int ready = poll(fds, n, 0);

	if (ready == 0 || !waits || t->turns++ < TURNS_MAX)
		return ready;
	sleep_once(t, fds, n, clock_now_ns());
	return poll(fds, n, 0);
}

int wait_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct task *t = here();
	uint64_t deadline;
	int ready;

	if (!t)
		return poll(fds, n, timeout_ms);
	deadline = timeout_ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	while ((ready = look(t, fds, n, timeout_ms != 0)) == 0) {
		if (clock_now_ns() >= deadline)
			return 0;
		sleep_once(t, fds, n, deadline);
	}
	return ready;
}

void wait_sleep(uint64_t ns)
{
	const struct timespec pause = { .tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC) };
	struct task *t = here();
	uint64_t due_ns = clock_now_ns() + ns;

	if (!t)
		(void)nanosleep(&pause, NULL);
	else
		do
			sleep_once(t, NULL, 0, due_ns);
		while (clock_now_ns() < due_ns);
}

/* Whether a step is due: the first one, or the one that notices the end.  (A zero timer would do, but costs more.) */
static int set_always(const struct task *t, bool ready)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(t->epoll, ready ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, t->always, &ev) < 0 ? -errno : 0;
}

void wait_for_wake(void)
{
	struct task *t = here();

	if (!t)
		return;
	while (!t->is_woken)
		give_way(t);
	t->is_woken = false;
	(void)set_always(t, false);
}

void task_wake(struct task *t)
{
	if (!t->is_woken)
		(void)set_always(t, true);
	t->is_woken = true;
}

/* ---- tasks ------------------------------------------------------------------------------------- */

static int map_memory(struct task *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = STACK_BYTES + 2 * page;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool *mark;

	if (memory == MAP_FAILED)
		return -errno;
	t->memory = memory;
	t->page = page;
	mark = (bool *)(void *)(memory + page + STACK_BYTES);
	if (mprotect(memory, page, PROT_NONE) < 0 || madvise(mark, page, MADV_WIPEONFORK) < 0)
		return -errno;
	*mark = true;
	t->here = mark;
	t->own.bottom = memory + page;
	t->own.size = STACK_BYTES;
	return 0;
}

static int open_epoll(struct task *t)
{
	struct epoll_event ev = { .events = EPOLLIN };

	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->timer, &ev) < 0)
		return -errno;
	return set_always(t, true);
}

static int open_descriptors(struct task *t)
{
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	t->always = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	return t->timer < 0 || t->always < 0 ? -errno : open_epoll(t);
}

int task_new(void (*fn)(void *arg), void *arg, struct task **ret)
{
	struct task *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	n_tasks++;
	t->fn = fn;
	t->arg = arg;
	t->epoll = t->timer = t->always = FD_NONE;
	rc = map_memory(t);
	if (rc == 0)
		rc = open_descriptors(t);
	if (rc < 0) {
		task_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void task_free(struct task *t)
{
	if (!t)
		return;
	if (t->memory)
		(void)munmap(t->memory, STACK_BYTES + 2 * t->page);
	fd_closep(&t->epoll);
	fd_closep(&t->timer);
	fd_closep(&t->always);
	n_tasks--;
	free(t);
}

int task_take(struct task_spares *from, void (*fn)(void *arg), void *arg, struct task **ret)
{
	struct task *t = from->first;
	int rc;

	if (!t)
		return task_new(fn, arg, ret);
	from->first = t->next_spare;
	from->n--;
	rc = open_epoll(t);
	if (rc < 0) {
		task_free(t);
		return rc;
	}
	t->fn = fn;
	t->arg = arg;
	t->begun = t->ended = t->is_woken = false;
	*ret = t;
	return 0;
}

void task_put(struct task_spares *to, struct task *t)
{
	/* AddressSanitizer remembers what lay on a stack. */
	if (SANITIZED || !t || !t->ended || to->n >= SPARES_MAX) {
		task_free(t);
		return;
	}
	fd_closep(&t->epoll);
	t->next_spare = to->first;
	to->first = t;
	to->n++;
}

void task_spares_release(struct task_spares *s)
{
	while (s->first) {
		struct task *t = s->first;

		s->first = t->next_spare;
		task_free(t);
	}
	s->n = 0;
}

int task_fd(const struct task *t)
{
	return t->epoll;
}

bool task_is_running(const struct task *t)
{
	return t->running;
}

static void begin(struct task *t)
{
	t->begun = true;
	(void)set_always(t, false);
	(void)getcontext(&t->own.context);
	t->own.context.uc_stack.ss_sp = t->memory + t->page;
	t->own.context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&t->own.context, task_main, 0);
}

/* A fork copies every mapping.  With many stacks, only the forking one is inherited. */
static void hide(struct task *t, bool hidden)
{
	if (hidden != t->is_hidden)
		(void)madvise(t->memory + t->page, STACK_BYTES, hidden ? MADV_DONTFORK : MADV_DOFORK);
	t->is_hidden = hidden;
}

bool task_step(struct task *t)
{
	struct epoll_event ready;

	if (t->ended)
		return false;
	if (!t->begun)
		begin(t);
	else if (epoll_wait(t->epoll, &ready, 1, 0) == 0)
		return true;
	t->running = true;
	t->turns = 0;
	hide(t, false);
	go_on(t);
	hide(t, n_tasks > FEW_TASKS);
	t->running = false;
	if (t->ended)
		(void)set_always(t, true); /* the next poll finds out */
	return !t->ended;
}
