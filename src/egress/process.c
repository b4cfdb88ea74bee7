/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy is a separate process, because it parses what the program writes (INV-1).
 *
 *	supervisor				proxy
 *	  table, channel, fork  --------------->  0-2 /dev/null, 3 the offered sockets, 4 the channel, nothing else open
 *	  waits for a word  <-------------------  as root: groups, ids and capabilities given up for an id of nobody's
 *						  no_new_privs, limits, read-only files (Landlock), a filter without
 *						  fork and exec (data/syscalls), dies with the supervisor
 *	  a byte when the cell is dead  ------->  delivers what the program had sent before, _exit
 *	  kills it if it does not, reads the table
 *
 * It is forked and not executed: it needs nothing but the rules, and libbrig has no program of its own to execute.  So it
 * starts with a copy of the caller's memory; see docs/EGRESS.md for what that means.
 *
 * glibc's fork() is used, because the proxy needs malloc() and getaddrinfo() even when the caller has threads.  One of
 * those may hold the resolver's lock at this moment; then lookups time out and the rows say so.
 */
#include <assert.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"
#include "egress/server.h"
#include "model/plan.h"
#include "sys/caps.h"
#include "sys/landlock.h"
#include "sys/proc.h"
#include "sys/seccomp.h"

#define OFFER_FD     3
#define CHANNEL_FD   4
#define SAFE_FD      16
#define START_NS     (5 * NS_PER_SEC)
#define STOP_NS      (DRAIN_NS + NS_PER_SEC)
#define MEMORY_EXTRA (128 * MiB)
#define OPEN_FILES   (2 * OPEN_MAX_CONNS + EGRESS_PLACES_MAX + 64)

#define PROXY_URL "http://127.0.0.1:3128"
static_assert(EGRESS_PORT == 3128, "PROXY_URL has another port");

/* Both cases: programs disagree which one counts.  What the cell serves itself is reached without the proxy. */
const char *const egress_env[] = {
	"http_proxy=" PROXY_URL, "https_proxy=" PROXY_URL,
	"all_proxy=" PROXY_URL,  "no_proxy=localhost,127.0.0.1,::1",
	"HTTP_PROXY=" PROXY_URL, "HTTPS_PROXY=" PROXY_URL,
	"ALL_PROXY=" PROXY_URL,  "NO_PROXY=localhost,127.0.0.1,::1",
	"NODE_USE_ENV_PROXY=1",  NULL,
};

struct egress {
	pid_t pid;
	int pidfd, channel;
	struct table *table; /* shared */
};

/* ---- the proxy's side ---------------------------------------------------------------------------------- */

/* The message on the channel before the first connection is served. */
struct hello {
	int32_t rc; /* 0 or -errno */
	char step[24];
};

struct birth {
	const struct egress_rules *rules;
	const struct rule_list *list;
	struct table *table;
	int offer, channel;
	pid_t parent;
	struct server *server; /* made by its step */
};

static int take_descriptors(struct birth *b)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int offer = fcntl(b->offer, F_DUPFD, SAFE_FD), channel = fcntl(b->channel, F_DUPFD, SAFE_FD);

	if (null < 0 || offer < 0 || channel < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (dup2(offer, OFFER_FD) < 0 || dup2(channel, CHANNEL_FD) < 0 || close_range(CHANNEL_FD + 1, ~0U, 0) < 0)
		return -errno;
	null = FD_NONE;
	return 0;
}

/*
 * Cells have their ids by the numbers of their user namespaces.  A namespace of this process' own, which it has no other
 * use for, gives it a number of the same kind, that no cell and no other proxy has.  Where that is forbidden its pid must
 * do, counted from the far end.
 */
static uint64_t own_number(uint64_t ids)
{
	uint64_t number;

	if (unshare(CLONE_NEWUTS) == 0 && proc_ns_number(getpid(), "uts", &number) == 0 && number < ids)
		return number;
	return ids - 1 - (uint64_t)getpid() % (ids / 2 + 1);
}

/* As root: an unused id, for this process alone.  Otherwise there is nothing to drop but capabilities. */
static int give_up_ids(struct birth *b)
{
	const struct egress_rules *r = b->rules;
	uid_t id;
	int rc;

	if (geteuid() != 0)
		return caps_clear();
	if (r->ids == 0)
		return -EPERM;
	id = (uid_t)(r->first_id + 2 * own_number(r->ids));
	rc = caps_lock();
	if (rc < 0)
		return rc;
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return -errno;
	return caps_clear();
}

/* After the ids: changing them makes the kernel forget the signal. */
static int die_with_parent(struct birth *b)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return getppid() == b->parent ? 0 : -ESRCH;
}

static int set_limits(struct birth *b UNUSED)
{
	const struct {
		int what;
		uint64_t max;
	} rows[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_FSIZE, 0 },
		{ RLIMIT_MEMLOCK, 0 },
		{ RLIMIT_NOFILE, OPEN_FILES },
		/* AddressSanitizer reserves terabytes of address space. */
		{ RLIMIT_AS, SANITIZED ? RLIM_INFINITY : proc_address_space() + MEMORY_EXTRA },
	};
	int rc = 0;

	(void)mallopt(M_ARENA_MAX, 1); /* each thread would reserve 64 MB of its own */
	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++)
		rc = proc_lower_limit(rows[i].what, rows[i].max);
	return rc;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What resolvers read: their configuration and their libraries.  Nothing can be written. */
static int confine_files(struct birth *b UNUSED)
{
	static const char *const places[] = {
		"/etc",
		"/usr",
		"/lib",
		"/lib64",
		"/nix",
		"/gnu",
		"/run/systemd/resolve",
		"/run/resolvconf",
		"/run/NetworkManager",
		"/run/connman",
		"/run/nscd",
	};
	struct landlock_rule rules[ARRAY_LEN(places)];
	int abi = landlock_abi();
	size_t n = 0;

	if (abi == 0) /* then cells have none either, and the policy has agreed to that */
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (is_folder(places[i]))
			rules[n++] = (struct landlock_rule){ .path = places[i], .grant = LANDLOCK_READ };
	return landlock_confine(abi, rules, n);
}

static int install_filter(void)
{
	/* AddressSanitizer makes calls of its own; the plain build is the one that is used. */
	return SANITIZED ? 0 : seccomp_install(seccomp_filter_for(FAMILY_PROXY, false));
}

static struct server *make_server(const struct birth *b)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->rules = b->list;
	s->connections_max = b->rules->connections;
	s->bytes_max = b->rules->bytes;
	s->table = b->table;
	s->lookups = FD_NONE;
	s->channel = CHANNEL_FD;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->doors = epoll_create1(EPOLL_CLOEXEC);
	return s;
}

static int watch(struct server *s, int fd, void *what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int add_door(struct server *s, int sock)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = s->n_listeners };
	int rc = fd_set_nonblock(sock);

	if (rc < 0 || epoll_ctl(s->doors, EPOLL_CTL_ADD, sock, &ev) < 0)
		return rc < 0 ? rc : -errno;
	s->listener[s->n_listeners++] = sock;
	return 0;
}

/* Which is which is known by the list; where each of them listens, its connections say themselves. */
static int take_sockets(struct birth *b)
{
	struct server *s = b->server = make_server(b);
	AUTO_FREE struct plan_egress *plan = malloc(sizeof(*plan));
	AUTO_FREE int *socks = calloc(EGRESS_PLACES_MAX, sizeof(*socks));
	int n, rc = 0;

	if (!s || !plan || !socks)
		return -ENOMEM;
	if (s->epoll < 0 || s->doors < 0)
		return -EMFILE;
	names_begin(&s->names, b->list, plan);
	n = loopback_take(OFFER_FD, socks, EGRESS_PLACES_MAX);
	if (n < 0 || (size_t)n != plan->n_places)
		return n < 0 ? n : -EPROTO;
	for (int i = 0; i < n && rc == 0; i++)
		if (plan->place[i].datagrams)
			s->lookups = socks[i];
		else
			rc = add_door(s, socks[i]);
	return rc == 0 && close(OFFER_FD) < 0 ? -errno : rc;
}

static int prepare_server(struct birth *b)
{
	struct server *s = b->server;
	int rc = watch(s, s->lookups, &s->lookups);

	if (rc < 0)
		return rc;
	rc = resolver_start(install_filter, &s->resolver);
	if (rc == 0)
		rc = watch(s, CHANNEL_FD, &s->channel);
	return rc == 0 ? watch(s, resolver_fd(s->resolver), &s->resolver) : rc;
}

static int filter_step(struct birth *b UNUSED)
{
	return install_filter();
}

static const struct {
	const char *name;
	int (*run)(struct birth *b);
} steps[] = {
	{ "descriptors", take_descriptors }, { "user ids", give_up_ids },
	{ "parent", die_with_parent },       { "limits", set_limits },
	{ "sockets", take_sockets },         { "Landlock", confine_files },
	{ "resolver", prepare_server },      { "system call filter", filter_step },
};

static _Noreturn void proxy_main(struct birth *b)
{
	struct hello hello = { .rc = 0 };

	(void)prctl(PR_SET_NAME, "brig-egress");
	for (size_t i = 0; i < ARRAY_LEN(steps) && hello.rc == 0; i++) {
		hello.rc = steps[i].run(b);
		(void)str_copy(hello.step, sizeof(hello.step), steps[i].name);
		if (i == 0 && hello.rc < 0)
			_exit(1); /* there is no channel to say it on */
	}
	if (send(CHANNEL_FD, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) || hello.rc < 0)
		_exit(1);
	server_run(b->server);
}

/* ---- the supervisor's side ----------------------------------------------------------------------------- */

/* All signals stay blocked in the child, so that no handler of the caller's ever runs there. */
static pid_t fork_proxy(struct birth *b)
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		proxy_main(b);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static int await_hello(struct egress *e, struct brig_error *err)
{
	struct pollfd p = { .fd = e->channel, .events = POLLIN };
	uint64_t deadline = clock_now_ns() + START_NS;
	struct hello h = { .rc = 0 };
	ssize_t n = -1;
	int rc;

	do {
		uint64_t now = clock_now_ns();

		rc = now < deadline ? wait_poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) : 0;
	} while (rc < 0 && errno == EINTR);
	if (rc > 0)
		n = recv(e->channel, &h, sizeof(h), MSG_DONTWAIT);
	if (n != (ssize_t)sizeof(h))
		return err_set(err, BRIG_E_SYSTEM, rc == 0 ? ETIMEDOUT : 0, "the egress proxy did not start");
	h.step[sizeof(h.step) - 1] = '\0';
	if (h.rc < 0)
		return err_set(err, BRIG_E_REFUSED, -h.rc, "the egress proxy cannot be confined (%s)", h.step);
	return 0;
}

/* Waits until it has ended by itself, or ends it. */
static void reap(struct egress *e)
{
	if (e->pidfd < 0)
		return;
	if (proc_reap(&e->pidfd, clock_now_ns() + STOP_NS, NULL) < 0) {
		(void)syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL, 0);
		(void)proc_reap(&e->pidfd, clock_now_ns() + STOP_NS, NULL);
	}
}

static void egress_free(struct egress *e)
{
	fd_closep(&e->channel);
	proc_leave(&e->pidfd);
	if (e->table)
		(void)munmap(e->table, sizeof(*e->table));
	free(e);
}

static struct egress *egress_new(void)
{
	struct egress *e = calloc(1, sizeof(*e));
	void *shared;

	if (!e)
		return NULL;
	e->pidfd = e->channel = FD_NONE;
	shared = mmap(NULL, sizeof(*e->table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		free(e);
		return NULL;
	}
	e->table = shared;
	return e;
}

static int start(struct egress *e, int offer, const struct egress_rules *rules, const struct rule_list *list,
		 struct brig_error *err)
{
	struct birth b = { .rules = rules, .list = list, .table = e->table, .offer = offer, .parent = getpid() };
	AUTO_FD theirs = FD_NONE;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "egress: cannot make a socket");
	e->channel = ends[0];
	b.channel = theirs = ends[1];
	e->pid = fork_proxy(&b);
	if (e->pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "egress: cannot start the proxy process");
	e->pidfd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	fd_closep(&theirs);
	if (e->pidfd < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "egress: cannot watch the proxy process");
	return await_hello(e, err);
}

int egress_start(int *offer, const struct egress_rules *rules, struct egress **ret, struct brig_error *err)
{
	AUTO_FREE struct rule_list *list = malloc(sizeof(*list));
	AUTO_FD sock = fd_move(offer);
	struct egress *e = list ? egress_new() : NULL;
	int rc;

	if (!e)
		return err_nomem(err);
	rc = rules_parse(rules->hosts, list, err);
	if (rc == 0)
		rc = start(e, sock, rules, list, err);
	if (rc < 0) {
		if (e->pidfd >= 0)
			(void)syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL, 0);
		reap(e);
		egress_free(e);
		return rc;
	}
	*ret = e;
	return 0;
}

/* It never exits on its own before it is told to. */
static bool is_dead(const struct egress *e)
{
	struct pollfd p = { .fd = e->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

void egress_stop(struct egress *e, struct network *net, struct denied *denied)
{
	bool died;

	if (!e)
		return;
	died = is_dead(e);
	(void)send(e->channel, "q", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	reap(e);
	table_read(e->table, net, denied);
	if (died)
		table_report(WHY_died, net, denied);
	egress_free(e);
}

uint64_t egress_received(const struct egress *e)
{
	return e ? table_received(e->table) : 0;
}
