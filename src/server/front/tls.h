/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for the front's connections: OpenSSL 3, loaded only if the service has a certificate.
 *
 * A session sits between a connection's socket and client.c.  Its functions behave like non-blocking recv() and send():
 * a count, 0 for end of file, or -1 and errno, with EAGAIN for "not now".
 *
 *   RULE T1  The private key is in the front's memory, and in a file in memory that the master passes to each front
 *   (server/certificate.h): no file is opened here.
 *   RULE T2  TLS 1.2 or later, no renegotiation, no compression, no early data; ALPN offers only http/1.1.
 *   RULE T3  A read consumes whole records, and the library reads no byte beyond the current record: while data is
 *   left, the socket is readable, and epoll reports it.
 *   RULE T4  The handshake is part of the first read, so it must be complete before the deadline of the first head.
 */
#ifndef SERVER_FRONT_TLS_H
#define SERVER_FRONT_TLS_H

#include <sys/uio.h>

#include "base/err.h"
#include "server/certificate.h"

struct tls;
struct tls_session;

/* Paths of the files, for error messages. */
struct tls_names {
	const char *chain, *key;
};

/* Lives as long as the process; has no certificate yet. */
int tls_open(struct tls **ret, struct brig_error *err);
/*
 * Uses these certificates (PEM; the host's own first) and the key of the first for new sessions: 0, or -code and
 * nothing has changed.  Opens no file.
 */
int tls_use(struct tls *tls, const struct certificate *files, const struct tls_names *names, struct brig_error *err);

/* A session on a connected non-blocking socket, which stays the caller's; NULL: out of memory. */
struct tls_session *tls_begin(struct tls *tls, int fd);
/* Sends close_notify, if that is possible without blocking. */
void tls_say_end(struct tls_session *s);
void tls_free(struct tls_session *s);

/* size must be at least TLS_RECORD_MAX. */
#define TLS_RECORD_MAX ((size_t)16384)
ssize_t tls_read(struct tls_session *s, char *dst, size_t size);
/* Unsent data must be passed again, in the same order; more may follow it. */
ssize_t tls_write(struct tls_session *s, const struct iovec *pieces, size_t n);
/* The next read needs the socket to be writable. */
bool tls_wants_out(const struct tls_session *s);

#endif
