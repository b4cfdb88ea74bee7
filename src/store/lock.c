/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of locks in one file, told apart by the byte that is locked: byte 0 is the writer's, the others are
 * claims of keys.  A file per key would have to be removed some day, and removing lock files is a race; bytes of a
 * file that is empty need no removal.  Two keys may share a byte with a chance of one in 2^62, and then only wait.
 *
 * Locks of the open file description: they exclude threads with handles of their own as well as processes, end when the
 * last descriptor closes, and are given back explicitly because a child that was forked meanwhile may still have a
 * copy.  The kernel cannot wait for one with a deadline, so waiting means polling.
 */
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/wait.h"
#include "store/internal.h"

#define FIRST_PAUSE_MS 1
#define LAST_PAUSE_MS  50

static int try_lock(int fd, short type, uint64_t byte)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1 };

	for (;;) {
		if (fcntl(fd, F_OFD_SETLK, &l) == 0)
			return 0;
		if (errno != EINTR)
			return errno == EACCES ? -EAGAIN : -errno;
	}
}

/* Whether cancel_fd turned readable within this time. */
static bool pause_or_cancel(int cancel_fd, uint64_t ms)
{
	struct pollfd p = { .fd = cancel_fd, .events = POLLIN };

	return wait_poll(&p, 1, (int)ms) > 0 && cancel_fd >= 0;
}

int store_lock_byte(struct store *s, uint64_t byte, uint64_t patience_ms, int cancel_fd)
{
	uint64_t begin = clock_now_ns(), pause = FIRST_PAUSE_MS;
	int rc;

	if (s->lock < 0)
		return -EROFS;
	while ((rc = try_lock(s->lock, F_WRLCK, byte)) == -EAGAIN) {
		if ((clock_now_ns() - begin) / NS_PER_MS >= patience_ms)
			return -ETIME;
		if (pause_or_cancel(cancel_fd, pause))
			return -ECANCELED;
		pause = min_u64(2 * pause, LAST_PAUSE_MS);
	}
	return rc;
}

void store_unlock_byte(struct store *s, uint64_t byte)
{
	(void)try_lock(s->lock, F_UNLCK, byte);
}

int store_writer_lock(struct store *s, struct brig_error *err)
{
	int rc = store_lock_byte(s, 0, STORE_WRITER_PATIENCE_MS, -1);

	if (rc == -ETIME)
		return err_set(err, BRIG_E_SYSTEM, EBUSY, "another process keeps the store locked");
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot lock the store");
	return 0;
}

void store_writer_unlock(struct store *s)
{
	store_unlock_byte(s, 0);
}

/* ---- claims ----------------------------------------------------------------------------------- */

static uint64_t claim_byte(const struct store_key *key)
{
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(n); i++)
		n = n << 8 | key->hash[i];
	return (n >> 2) + 1;
}

int store_claim(struct store *s, const struct store_key *key, uint64_t patience_ms, int cancel_fd,
		struct brig_error *err)
{
	uint64_t byte = claim_byte(key);
	int rc;

	store_release(s);
	rc = store_lock_byte(s, byte, patience_ms, cancel_fd);
	if (rc == -ETIME || rc == -EROFS)
		return STORE_BUSY;
	if (rc == -ECANCELED)
		return STORE_CANCELLED;
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot lock a key of the store");
	s->claim = byte;
	return STORE_CLAIMED;
}

void store_release(struct store *s)
{
	if (s->claim)
		store_unlock_byte(s, s->claim);
	s->claim = 0;
}
