/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory in which brig keeps what outlives a run: audit log, keys, history, metrics, compiled programs.
 *
 * Everything is reached beneath descriptors of folders that were checked when they were opened: a real folder, not a
 * link; ours; not writable by others.  So nobody else can plant a name in it, and what is opened beneath is checked
 * nevertheless.  Nothing is repaired: a directory or file that is not as expected is refused, with what to do.
 *
 * Failures are -BRIG_E_REFUSED (it is unsafe, or not there: err->sys == ENOENT) or -BRIG_E_SYSTEM, with errno in
 * err->sys.
 */
#ifndef SYS_STATEDIR_H
#define SYS_STATEDIR_H

#include "base/err.h"

#define STATEDIR_PATH_MAX 1024

struct statedir {
	int fd;
	char path[STATEDIR_PATH_MAX]; /* for messages */
};
#define STATEDIR_INIT         \
	{                     \
		.fd = FD_NONE \
	}

/* Where the state folder is: wanted (may be NULL or ""), else $BRIG_STATE, else /var/lib/brig for root and
 * $XDG_STATE_HOME/brig or ~/.local/state/brig for others. */
int statedir_path(const char *wanted, char *dst, size_t size, struct brig_error *err);
/* Opens it; with make, it and its parents are made (0700) if they are not there. */
int statedir_open(const char *wanted, bool make, struct statedir *ret, struct brig_error *err);
/* A folder beneath: one name. */
int statedir_open_sub(const struct statedir *parent, const char *name, bool make, struct statedir *ret,
		      struct brig_error *err);
/* The same where it may be missing: 1, or 0 if it is. */
int statedir_open_if_there(const struct statedir *parent, const char *name, struct statedir *ret,
			   struct brig_error *err);
void statedir_close(struct statedir *d);

/*
 * A regular file in it, as openat() with flags (O_CLOEXEC and O_NOFOLLOW are added; O_CREAT makes it 0600): the
 * descriptor, or negative.
 */
int statedir_open_file(const struct statedir *d, const char *name, int flags, struct brig_error *err);
/* A small file, whole: bytes read, at most size - 1, NUL-terminated; negative: *err.  Larger ones are refused. */
ssize_t statedir_read(const struct statedir *d, const char *name, void *dst, size_t size, struct brig_error *err);
/* Replaces a small file so that there is always the old or the new one, on disk when this returns. */
int statedir_replace(const struct statedir *d, const char *name, const void *data, size_t len, struct brig_error *err);

/* Fills *err for something that failed with errno sys at path/name (name may be NULL), and what to do about it. */
int statedir_trouble(struct brig_error *err, int sys, const char *what, const char *path, const char *name);

#define AUTO_STATEDIR           \
	CLEANUP(statedir_close) \
	struct statedir

#endif
