/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes on descriptors.  All functions here are async-signal-safe unless noted. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <sys/types.h>

#include "base/util.h"

/* Writes everything; 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t len);
/* The same from this offset, without moving the file position. */
int fd_write_all_at(int fd, const void *data, size_t len, uint64_t at);
/* Reads until len bytes or end of file; the count or -errno. */
ssize_t fd_read_all(int fd, void *data, size_t len);
/* One file beneath a directory (or AT_FDCWD), never created, in one write: for /proc and cgroup files. 0 or -errno. */
int fd_put_at(int dir, const char *path, const char *text);
int fd_putf_at(int dir, const char *path, const char *fmt, ...) PRINTF(3, 4); /* not signal-safe */
/* One small text file, NUL-terminated, trailing newline removed.  The length or -errno; -EFBIG if it does not fit. */
ssize_t fd_get_at(int dir, const char *path, char *text, size_t size);
/* A file that holds one decimal number, or "max" (UINT64_MAX).  0 or -errno. */
int fd_get_u64_at(int dir, const char *path, uint64_t *ret);
int fd_set_nonblock(int fd);
/* Moves a descriptor to the lowest free number from min on, close-on-exec.  0 or -errno. */
int fd_move_up(int *fd, int min);
/* A pipe to or from a child: our end does not block, the child's end has a number from min on.  0 or -errno. */
int fd_pipe_to_child(int *child, int *ours, bool child_reads, int min);
/*
 * flock() with how (LOCK_EX, LOCK_SH), waiting for others at most patience_ns: 0, -ETIMEDOUT or -errno.  Closing the
 * descriptor, or LOCK_UN, releases it; so does the kernel when the process dies.
 */
int fd_lock(int fd, int how, uint64_t patience_ns);
struct msghdr;
struct iovec;
/* One record from several pieces, with descriptors attached (at most FD_BESIDE_MAX): 0 or -errno.  No SIGPIPE. */
#define FD_BESIDE_MAX 48
int fd_send_record(int sock, struct iovec *pieces, size_t n_pieces, const int *fds, size_t n_fds, int flags);
/*
 * recvmsg(2) of one record from a Unix SOCK_SEQPACKET socket, in order.  The kernel does not guarantee that: if the
 * peer closed with unread records of ours, that error is reported before its own last records, and so is its hang-up if
 * they arrived during the call.
 */
ssize_t fd_receive_record(int sock, struct msghdr *msg, int flags);
/* Descriptors that came with it, at most max; further ones are closed: because of alignment, the buffer for an odd
 * number has room for one more. */
size_t fd_take_beside(struct msghdr *msg, int *fds, size_t max);
/*
 * One descriptor, or an -errno in its place, over a SOCK_SEQPACKET socket: 0 or -errno.  Receiving blocks; it returns
 * the descriptor, the peer's -errno, or -EPIPE if the peer closed without sending.
 */
int fd_send(int sock, int fd);
int fd_receive(int sock);

#endif
