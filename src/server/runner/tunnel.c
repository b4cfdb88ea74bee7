/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/tunnel.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/service.h"

#define EVENTS_OF_A_TURN 32
#define PIECES_OF_A_TURN 4 /* of one tunnel, so that others get their turn */

struct tunnel {
	TAILQ_ENTRY(tunnel) in_list;
	char front[EXECUTION_ID_LEN + 1], subject[64], key[SEAL_KEY_HEX + 1];
	uint64_t serial;
	int fd;
	uint32_t events;               /* polled for; 0: not in the epoll set */
	uint64_t sent, acknowledged;   /* offsets in our stream: sent, and acknowledged by the other end */
	uint64_t taken, written, said; /* offsets in its stream: received, written to the socket, acknowledged */
	struct buf out;                /* received bytes; those before out_at are written */
	size_t out_at;                 /* there */
	/*
	 * Has_ended: our socket has reached end of file; others_ended: the other end's has; is_shut: our socket is shut
	 * down for writing
	 */
	bool has_ended, others_ended, is_shut;
	uint64_t heard_ns, says_ns;
};

void tunnels_init(struct tunnels *t)
{
	TAILQ_INIT(&t->all);
	t->epoll = FD_NONE;
}

int tunnels_open(struct tunnels *t, struct brig_error *err)
{
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	return t->epoll < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for connections to sessions elsewhere")
			    : 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* place: offset of the first byte, or the number of bytes written. */
static void tell(struct service *s, struct tunnel *t, const char *state, uint64_t place, const void *bytes, size_t len)
{
	AUTO_BUF inner = BUF_INIT(2 * TUNNEL_PIECE);
	AUTO_BUF m = BUF_INIT(4 * TUNNEL_PIECE);

	queue_begin(s, &inner, "bytes");
	message_put_text(&inner, FIELD_reply_to, t->front);
	message_put_number(&inner, FIELD_serial, t->serial);
	message_put_text(&inner, FIELD_state, state);
	message_put_number(&inner, FIELD_sequence, place);
	if (bytes)
		message_put_bytes(&inner, FIELD_text, bytes, len);
	message_put_text(&m, FIELD_subject, t->subject);
	if (queue_seal(s, &inner, &m))
		queue_tell(s, LINK_TELL, &m);
	t->says_ns = clock_now_ns() + TUNNEL_SAYS_NS;
}

static void acknowledge(struct service *s, struct tunnel *t)
{
	t->said = t->written;
	tell(s, t, "written", t->written, NULL, 0);
}

static void end(struct service *s, struct tunnel *t)
{
	TAILQ_REMOVE(&s->tunnels.all, t, in_list);
	s->tunnels.n--;
	fd_closep(&t->fd); /* this also removes it from the epoll set */
	buf_release(&t->out);
	free(t);
}

/* Tells the other end that the connection is closed. */
static void break_off(struct service *s, struct tunnel *t)
{
	tell(s, t, "over", 0, NULL, 0);
	end(s, t);
}

/* ---- one end --------------------------------------------------------------------------------------------------------- */

static size_t waiting(const struct tunnel *t)
{
	return t->out.len - t->out_at;
}

/*
 * Updates the epoll set; false: that failed.  A socket with nothing to poll for is removed, because EPOLLHUP would be
 * reported endlessly.
 */
static bool watch(struct service *s, struct tunnel *t)
{
	uint32_t wanted = (!t->has_ended && t->sent - t->acknowledged < TUNNEL_WINDOW ? (uint32_t)EPOLLIN : 0) |
			  (waiting(t) > 0 ? (uint32_t)EPOLLOUT : 0);
	struct epoll_event ev = { .events = wanted, .data = { .ptr = t } };
	int op = !t->events ? EPOLL_CTL_ADD : wanted ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (wanted == t->events)
		return true;
	if (epoll_ctl(s->tunnels.epoll, op, t->fd, &ev) < 0)
		return false;
	t->events = wanted;
	return true;
}

/* Sends bytes from the socket to the other end.  False: the connection is broken. */
static bool read_some(struct service *s, struct tunnel *t)
{
	static char piece[TUNNEL_PIECE];

	for (int i = 0; i < PIECES_OF_A_TURN && !t->has_ended && t->sent - t->acknowledged < TUNNEL_WINDOW; i++) {
		ssize_t n = recv(t->fd, piece, sizeof(piece), MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0) {
			t->has_ended = true;
			tell(s, t, "end", t->sent, NULL, 0);
		} else {
			tell(s, t, "piece", t->sent, piece, (size_t)n);
			t->sent += (uint64_t)n;
		}
	}
	return true;
}

static bool write_some(struct service *s, struct tunnel *t)
{
	while (waiting(t) > 0) {
		ssize_t n = send(t->fd, t->out.data + t->out_at, waiting(t), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n < 0)
			break;
		t->out_at += (size_t)n;
		t->written += (uint64_t)n;
	}
	if (waiting(t) == 0) {
		buf_release(&t->out);
		t->out = (struct buf)BUF_INIT(2 * TUNNEL_WINDOW);
		t->out_at = 0;
	}
	if (t->written - t->said >= TUNNEL_WINDOW / 4 || (waiting(t) == 0 && t->written > t->said))
		acknowledge(s, t);
	if (t->others_ended && waiting(t) == 0 && !t->is_shut) {
		t->is_shut = true;
		(void)shutdown(t->fd, SHUT_WR);
	}
	return true;
}

/* May free the tunnel. */
static void go_on(struct service *s, struct tunnel *t, bool is_hung_up)
{
	bool is_whole = write_some(s, t) && read_some(s, t);

	if (is_whole && t->has_ended && t->is_shut)
		end(s, t); /* both directions have ended, and both ends know it */
	else if (!is_whole || (is_hung_up && t->has_ended) || !watch(s, t))
		break_off(s, t);
}

void tunnels_go_on(struct service *s)
{
	struct epoll_event ev[EVENTS_OF_A_TURN];
	int n = epoll_wait(s->tunnels.epoll, ev, EVENTS_OF_A_TURN, 0);

	for (int i = 0; i < n; i++) /* handling one event never frees another tunnel */
		go_on(s, ev[i].data.ptr, (ev[i].events & (EPOLLHUP | EPOLLERR)) != 0);
}

bool tunnel_begin(struct service *s, const struct tunnel_name *name, int *fd)
{
	struct tunnel *t = s->tunnels.n < TUNNELS_MAX ? calloc(1, sizeof(*t)) : NULL;

	if (!t || !str_copy(t->front, sizeof(t->front), name->front) || !str_copy(t->key, sizeof(t->key), name->key) ||
	    !str_copy(t->subject, sizeof(t->subject), name->subject)) {
		free(t);
		return false;
	}
	t->serial = name->serial;
	t->out = (struct buf)BUF_INIT(2 * TUNNEL_WINDOW);
	t->heard_ns = clock_now_ns();
	t->says_ns = t->heard_ns + TUNNEL_SAYS_NS;
	t->fd = *fd;
	if (!watch(s, t)) {
		free(t);
		return false;
	}
	(void)fd_move(fd);
	TAILQ_INSERT_TAIL(&s->tunnels.all, t, in_list);
	s->tunnels.n++;
	return true;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static struct tunnel *find(const struct service *s, const char *front, uint64_t serial)
{
	struct tunnel *t;

	TAILQ_FOREACH(t, &s->tunnels.all, in_list)
	if (t->serial == serial && str_eq(t->front, front))
		return t;
	return NULL;
}

/* False: a message was lost, or the other end exceeds the window. */
static bool take_piece(struct tunnel *t, const struct message *m, uint64_t place)
{
	size_t len;
	const char *bytes = message_bytes(m, FIELD_text, &len);

	if (!bytes || place < t->taken)
		return bytes != NULL; /* a duplicate */
	if (place != t->taken || t->others_ended || waiting(t) + len > TUNNEL_WINDOW + TUNNEL_PIECE ||
	    !buf_add(&t->out, bytes, len))
		return false;
	t->taken += len;
	return true;
}

static bool take(struct tunnel *t, const struct message *m, const char *state)
{
	uint64_t place = message_number(m, FIELD_sequence, 0);

	if (str_eq(state, "piece"))
		return take_piece(t, m, place);
	if (str_eq(state, "written") && place >= t->acknowledged && place <= t->sent)
		t->acknowledged = place;
	if (str_eq(state, "end"))
		t->others_ended = true;
	return !str_eq(state, "end") || place == t->taken;
}

void tunnel_on_told(struct service *s, const struct message *m)
{
	struct queue_sealed said;
	const char *front, *state;
	struct tunnel *t;

	if (!queue_unseal(s, m, "bytes", PEER_WORKER | PEER_FRONT, &said))
		return;
	front = message_text(&said.m, FIELD_reply_to);
	state = message_text(&said.m, FIELD_state);
	t = front && state ? find(s, front, message_number(&said.m, FIELD_serial, 0)) : NULL;
	if (!t)
		return;
	if (!str_eq(t->key, said.by->key)) {
		queue_complain(s, "refused bytes of %s for a connection that it has no end of", said.by->name);
		return;
	}
	t->heard_ns = clock_now_ns();
	if (str_eq(state, "over"))
		end(s, t);
	else if (!take(t, &said.m, state))
		break_off(s, t);
	else
		go_on(s, t, false);
}

void tunnels_tick(struct service *s)
{
	uint64_t now = clock_now_ns();

	for (struct tunnel *t = TAILQ_FIRST(&s->tunnels.all), *next; t; t = next) {
		next = TAILQ_NEXT(t, in_list);
		if (now - t->heard_ns > TUNNEL_SILENCE_NS)
			break_off(s, t);
		else if (now >= t->says_ns)
			acknowledge(s, t);
	}
}

void tunnels_close(struct service *s)
{
	while (!TAILQ_EMPTY(&s->tunnels.all))
		end(s, TAILQ_FIRST(&s->tunnels.all));
	fd_closep(&s->tunnels.epoll);
}
