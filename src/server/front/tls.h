/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of the front's connections: OpenSSL 3, loaded when the service is started with a certificate and not otherwise.
 *
 * A session stands between a connection's socket and what client.c reads and writes.  Both of its functions have the manners
 * of a non-blocking recv() and send(): a count, 0 for the end of what comes in, -1 and errno; EAGAIN is "not now".
 *
 *   RULE T1  The private key is in the memory of the front, and in a file in memory that the master hands to each front
 *          (server/certificate.h): nothing is opened here.
 *   RULE T2  TLS 1.2 or later, no renegotiation, no compression, no early data; the one protocol inside is http/1.1.
 *   RULE T3  A read takes whole records, and the library reads no byte beyond the record it is at: whenever bytes are left,
 *          the socket is readable, and epoll says so.
 *   RULE T4  The handshake is part of the first read, so it has to end before the deadline of the first head.
 */
#ifndef SERVER_FRONT_TLS_H
#define SERVER_FRONT_TLS_H

#include <sys/uio.h>

#include "base/err.h"
#include "server/certificate.h"

struct tls;
struct tls_session;

/* What is said of the files: their paths. */
struct tls_names {
	const char *chain, *key;
};

/* Lives as long as the process; has no certificate yet. */
int tls_open(struct tls **ret, struct brig_error *err);
/*
 * Certificates (PEM; the host's own first) and the key of the first, for sessions that begin from now on: 0, or -code and
 * everything is as it was.  Opens nothing.
 */
int tls_use(struct tls *tls, const struct certificate *files, const struct tls_names *names, struct brig_error *err);

/* A session over a connected non-blocking socket, which stays the caller's; NULL: no memory. */
struct tls_session *tls_begin(struct tls *tls, int fd);
/* Tells the other side, if it can be told without waiting, that nothing more comes. */
void tls_say_end(struct tls_session *s);
void tls_free(struct tls_session *s);

/* Room for at least one record: TLS_RECORD_MAX bytes. */
#define TLS_RECORD_MAX ((size_t)16384)
ssize_t tls_read(struct tls_session *s, char *dst, size_t size);
/* What did not go out must be given again, in the same order, with whatever more there is behind it. */
ssize_t tls_write(struct tls_session *s, const struct iovec *pieces, size_t n);
/* The read that was put off waits until the socket can be written. */
bool tls_wants_out(const struct tls_session *s);

#endif
