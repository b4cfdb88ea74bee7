/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run gets a warm container.  Without a pool this costs one failed connect.  On any irregularity (another user's
 * socket, a late or malformed answer, an additional descriptor) the run proceeds as if there were no pool, and creates
 * its own container.  A claimed container is not trusted either: before the program starts, the engine's account of it
 * is compared with the plan by the same table as for a container that the run has created itself.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "backend/docker/pool.h"
#include "base/str.h"

#define PATIENCE_MS 2000

static int connect_pool(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	char place[POOL_PATH_MAX];
	struct ucred peer;
	socklen_t len = sizeof(peer);
	AUTO_FD sock = FD_NONE;

	if (pool_place(place) < 0)
		return FD_NONE;
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/pool", place);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0)
		return FD_NONE;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid())
		return FD_NONE;
	return fd_move(&sock);
}

/* Receives a reply with at most one descriptor, which must be a stream socket; closes any other. */
static bool receive(int sock, struct pool_reply *reply, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	char bytes[POOL_REPLY_BYTES + 1];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	size_t fds = 0;

	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
				       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				       : 0;

		for (size_t i = 0; i < count; i++, fds++) {
			fd_closep(ret_fd);
			memcpy(ret_fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	}
	return n >= 0 && !(msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) && pool_reply_decode(bytes, (size_t)n, reply) &&
	       fds == (reply->answer == POOL_HERE);
}

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

bool pool_take(struct cell *c)
{
	struct pool_reply reply;
	struct pool_claim claim;
	char bytes[POOL_CLAIM_BYTES];
	AUTO_FD stream = FD_NONE;
	AUTO_FD sock = FD_NONE;

	if (!engine_about(c->host->engine)->local || engine_about(c->host->engine)->podman)
		return false;
	sock = connect_pool();
	if (sock < 0 || !pool_key(c, claim.key))
		return false;
	(void)str_copy(claim.run, sizeof(claim.run), c->plan->id);
	pool_claim_encode(&claim, bytes);
	if (send(sock, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes) ||
	    !receive(sock, &reply, &stream) || reply.answer != POOL_HERE || !is_stream(stream))
		return false;
	c->pump.stream = http_stream_adopt(stream);
	if (!c->pump.stream)
		return false; /* the pool sees our end close, and removes the container */
	(void)fd_move(&stream);
	(void)str_copy(c->id, sizeof(c->id), reply.container);
	/*
	 * The labels are the pool's.  That the container is ours follows from the pool's directory and from the same
	 * user id.
	 */
	(void)json_object_del(c->asked, "Labels");
	c->pool = fd_move(&sock);
	return true;
}

bool pool_is_there(const struct cell *c)
{
	struct pollfd p = { .fd = c->pool, .events = POLLIN };

	return c->pool >= 0 && poll(&p, 1, 0) == 0; /* any event means that the pool is gone */
}

void pool_give_up(struct cell *c)
{
	char path[POOL_PATH_MAX];
	AUTO_FD place = c->pool >= 0 && pool_place(path) == 0 ? pool_place_open(path, /* make= */ false) : FD_NONE;

	if (place >= 0)
		pool_record_remove(place, c->id);
	fd_closep(&c->pool);
}
