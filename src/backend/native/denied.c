/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the supervisor learns what a program was refused.
 *
 * The payload installs the form of its filter that has a listener (sys/seccomp_listen.h) and sends the listener to the
 * supervisor, fully confined and before exec; the program never holds it.  From then on a refused call sleeps in the
 * kernel until it is answered here, with the same errno that the plain form of the filter gives: seccomp_decide()
 * evaluates the plain form, so the two cannot differ. Every path through this file refuses the call unless the plain
 * form allows it.
 *
 *   supervisor stopped   the call sleeps until init's wall clock ends the cell
 *   supervisor dead      the cell dies with it, by the parent-death signal
 *   listener closed      the kernel answers ENOSYS
 *   no listener          the payload installed the plain form; nothing is listed, and the result says so
 *
 * connect(2) is reported too, although it is allowed: the address is read from the program's memory.  The program may
 * change that memory before the kernel reads it again, so the listed address may differ from the real one.  Only the
 * list depends on it: where a connection can go is decided by the network namespace.
 *
 * Answers cost the supervisor CPU time that is not charged to the cell, so they are rate-limited: ANSWERS_AT_ONCE in a
 * burst, then ANSWERS_PER_SECOND; callers beyond that wait (INV-7).  All memory used here is bounded.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include "backend/native/cell.h"
#include "backend/native/masks.h"
#include "base/clock.h"
#include "base/str.h"
#include "sys/seccomp_listen.h"

#define CALLS_MAX 1024 /* no architecture has numbers near this */

#define ANSWERS_AT_ONCE    4096
#define ANSWERS_PER_SECOND 25000
#define PAUSE_NS           (10 * NS_PER_MS)

struct host_tried {
	struct in6_addr address; /* IPv4: v4-mapped */
	uint16_t port;
	uint64_t count;
};

struct denials {
	uint64_t calls[CALLS_MAX];
	struct host_tried hosts[DENIED_MAX];
	size_t n_hosts;
	uint64_t hosts_dropped;
	uint64_t credit; /* answers that may be given now (token bucket) */
	uint64_t filled_ns;
	int timer; /* runs while there is no credit; FD_NONE: never needed so far */
	bool paused;
};

static struct denials *denials_new(void)
{
	struct denials *d = calloc(1, sizeof(*d));

	if (d) {
		d->timer = FD_NONE;
		d->credit = ANSWERS_AT_ONCE;
		d->filled_ns = clock_now_ns();
	}
	return d;
}

/* ---- listening -------------------------------------------------------------------------------- */

bool cell_starts_at_once(const struct cell *c)
{
	return c->spec.plan->start_at_once && !plan_watches_hidden(c->spec.plan);
}

void cell_denied_ready(struct cell *c)
{
	if (plan_watches_hidden(c->spec.plan))
		c->masks = masks_begin(c->handed[HANDED_MASKS], c->spec.plan->workspace->n_hidden);
}

void cell_denied_stopped(struct cell *c)
{
	masks_end(c->masks);
}

void cell_denied_begin(struct cell *c, int *listener)
{
	c->told = c->listener = fd_move(listener);
}

static void stop_listening(struct cell *c)
{
	c->told = FD_NONE;
	fd_closep(&c->listener);
}

/*
 * So that callers do not sleep forever: the kernel answers ENOSYS from now on, and the result says that calls were not
 * recorded.
 */
static void give_up_listening(struct cell *c)
{
	stop_listening(c);
	c->tells = false;
}

void cell_denied_end(struct cell *c)
{
	masks_free(c->masks);
	c->masks = NULL;
	stop_listening(c);
	if (c->denials)
		fd_closep(&c->denials->timer);
	free(c->denials);
	c->denials = NULL;
}

/* ---- rate limit ----------------------------------------------------------------------------- */

static void refill(struct denials *d)
{
	uint64_t now = clock_now_ns();
	uint64_t due = (now - d->filled_ns) / (NS_PER_SEC / ANSWERS_PER_SECOND);

	if (due == 0)
		return;
	d->credit = min_u64(d->credit + due, ANSWERS_AT_ONCE);
	d->filled_ns = now;
}

static int arm_timer(const struct cell *c, struct denials *d)
{
	const struct itimerspec once = { .it_value.tv_nsec = PAUSE_NS };

	if (d->timer < 0) {
		struct epoll_event ev = { .events = EPOLLIN };

		d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		ev.data.fd = d->timer;
		if (d->timer < 0 || epoll_ctl(c->poll, EPOLL_CTL_ADD, d->timer, &ev) < 0)
			return -errno;
	}
	return timerfd_settime(d->timer, 0, &once, NULL) < 0 ? -errno : 0;
}

/* Without a timer there is no pause: exceeding the rate is better than not answering. */
static void pause_answers(struct cell *c, struct denials *d)
{
	if (arm_timer(c, d) < 0)
		return;
	d->paused = true;
	c->told = FD_NONE;
}

static void end_pause(struct cell *c, struct denials *d)
{
	uint64_t ticks;

	if (!d->paused || read(d->timer, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	d->paused = false;
	refill(d);
	c->told = c->listener;
}

/* ---- hosts ------------------------------------------------------------------------------------ */

/* Reads the sockaddr of a connect(2); false: neither IPv4 nor IPv6, or unreadable. */
static bool read_host(const struct cell *c, const struct told_call *t, struct host_tried *ret)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to = { .any.sa_family = AF_UNSPEC };
	struct iovec here = { .iov_base = &to, .iov_len = (size_t)min_u64(t->call.args[2], sizeof(to)) };
	struct iovec there = { .iov_len = here.iov_len };
	ssize_t n;

	/* An address in another process: a number here, not a pointer. */
	memcpy(&there.iov_base, &t->call.args[1], sizeof(there.iov_base));
	n = process_vm_readv(t->thread, &here, 1, &there, 1, 0);
	if (n < (ssize_t)sizeof(to.v4) || !seccomp_listen_waits(c->listener, t))
		return false;
	*ret = (struct host_tried){ .count = 1 };
	if (to.any.sa_family == AF_INET) {
		ret->address.s6_addr[10] = ret->address.s6_addr[11] = 0xff;
		memcpy(&ret->address.s6_addr[12], &to.v4.sin_addr, 4);
		ret->port = ntohs(to.v4.sin_port);
	} else if (to.any.sa_family == AF_INET6 && n >= (ssize_t)offsetof(struct sockaddr_in6, sin6_scope_id)) {
		ret->address = to.v6.sin6_addr;
		ret->port = ntohs(to.v6.sin6_port);
	} else {
		return false;
	}
	return true;
}

/* The cell's own addresses: 127/8, ::1, and the unspecified address, which stands for them. */
static bool is_own(const struct in6_addr *a)
{
	if (IN6_IS_ADDR_V4MAPPED(a))
		return a->s6_addr[12] == 127 || memcmp(&a->s6_addr[12], "\0\0\0", 4) == 0;
	return IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a);
}

static void note_host(struct denials *d, const struct host_tried *one)
{
	if (is_own(&one->address))
		return;
	for (size_t i = 0; i < d->n_hosts; i++)
		if (d->hosts[i].port == one->port && IN6_ARE_ADDR_EQUAL(&d->hosts[i].address, &one->address)) {
			d->hosts[i].count++;
			return;
		}
	if (d->n_hosts < ARRAY_LEN(d->hosts))
		d->hosts[d->n_hosts++] = *one;
	else
		d->hosts_dropped++;
}

/* ---- answers ---------------------------------------------------------------------------------- */

/* Counts the calls that were answered: a call interrupted by a signal is made again. */
static void answer(struct cell *c, struct denials *d, const struct told_call *t)
{
	uint32_t verdict = seccomp_decide(c->spec.confine.filter, &t->call);
	uint32_t action = verdict & SECCOMP_RET_ACTION_FULL;
	struct host_tried host;

	if (action == SECCOMP_RET_ALLOW && t->call.nr == SYS_connect) {
		bool known = read_host(c, t, &host);

		if (seccomp_listen_allow(c->listener, t) == 0 && known)
			note_host(d, &host);
		return;
	}
	/* Both forms agree, so the action is an errno; if not, the call is refused anyway. */
	if (seccomp_listen_refuse(c->listener, t,
				  action == SECCOMP_RET_ERRNO ? (int)(verdict & SECCOMP_RET_DATA) : EPERM) == 0 &&
	    t->call.nr >= 0 && t->call.nr < CALLS_MAX)
		d->calls[t->call.nr]++;
}

static bool has_call(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

static void take_calls(struct cell *c, struct denials *d)
{
	do {
		struct told_call t;
		int rc;

		if (d->credit == 0)
			refill(d);
		if (d->credit == 0) {
			pause_answers(c, d);
			return;
		}
		d->credit--;
		rc = seccomp_listen_receive(c->listener, &t);
		if (rc == 0)
			answer(c, d, &t);
		else if (rc != -ENOENT && rc != -EINTR) /* the caller was killed, or we were interrupted */
			give_up_listening(c);
	} while (has_call(c->listener));
}

void cell_denied_pump(struct cell *c, short listener)
{
	if (c->denials && c->denials->paused)
		end_pause(c, c->denials);
	if (listener & POLLIN && !c->denials) {
		c->denials = denials_new();
		if (c->denials)
			seccomp_listen_quickly(c->listener);
		else
			give_up_listening(c); /* no memory for the counters */
	}
	if (listener & POLLIN && c->denials && !c->denials->paused) {
		take_calls(c, c->denials);
	} else if (listener & (POLLHUP | POLLERR) && !(listener & POLLIN)) {
		stop_listening(c);
		c->silent = true;
	}
}

/* ---- the list --------------------------------------------------------------------------------- */

static void list_call(const struct cell *c, int nr, uint64_t count, struct denied *ret)
{
	struct denied_row row = { .kind = DENIED_SYSCALL, .count = count };
	const char *name = seccomp_call_name(nr);

	(void)snprintf(row.what, sizeof(row.what), "%s", name ? name : "unknown");
	(void)str_copy(row.why, sizeof(row.why),
		       seccomp_call_is_partly_allowed(c->spec.plan->family, nr)
			       ? "the filter allows this call, but not with these arguments; no setting changes that"
			       : "the filter allows this call to no program of this kind; no setting changes that");
	(void)denied_add(ret, &row); /* out of memory the list is incomplete, but the run is unaffected */
}

static void list_host(const struct cell *c, const struct host_tried *host, struct denied *ret)
{
	struct denied_row row = { .kind = DENIED_HOST, .count = host->count };
	bool v4 = IN6_IS_ADDR_V4MAPPED(&host->address), egress = c->spec.plan->egress;
	char text[INET6_ADDRSTRLEN] = "", place[INET6_ADDRSTRLEN + 16];

	(void)inet_ntop(v4 ? AF_INET : AF_INET6, &host->address.s6_addr[v4 ? 12 : 0], text, sizeof(text));
	(void)snprintf(place, sizeof(place), v4 ? "%s:%u" : "[%s]:%u", text, host->port);
	(void)str_copy(row.what, sizeof(row.what), place);
	(void)str_copy(row.why, sizeof(row.why),
		       egress ? "the cell reaches hosts through its proxy only, which was not asked"
			      : "the cell has no network");
	(void)snprintf(row.fix, sizeof(row.fix), "%s, with %s in whitelist",
		       egress ? "use the proxy that HTTPS_PROXY names" : "network_mode: allowlist", place);
	(void)denied_add(ret, &row);
}

void native_denied(struct cell *c, struct denied *ret)
{
	const struct denials *d = c->denials;

	if (c->spec.plan->report_denied && c->confined && !c->tells)
		ret->unseen = denied_without_listener;
	if (c->masks)
		masks_list(c->masks, c->spec.plan->workspace->hidden, ret);
	for (int nr = 0; d && nr < CALLS_MAX; nr++)
		if (d->calls[nr] > 0)
			list_call(c, nr, d->calls[nr], ret);
	for (size_t i = 0; d && i < d->n_hosts; i++)
		list_host(c, &d->hosts[i], ret);
	ret->dropped += d ? d->hosts_dropped : 0;
}
