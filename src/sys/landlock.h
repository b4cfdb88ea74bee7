/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as a second wall behind the mount namespace.  Async-signal-safe. */
#ifndef SYS_LANDLOCK_H
#define SYS_LANDLOCK_H

#include "base/util.h"

enum landlock_grant {
	LANDLOCK_READ = 1 << 0,
	LANDLOCK_WRITE = 1 << 1, /* create, change and remove everything but device nodes */
	LANDLOCK_EXEC = 1 << 2,
	LANDLOCK_WRITE_FILE = 1 << 3, /* write to files that are there, nothing else: device nodes */
	LANDLOCK_LIST = 1 << 4,       /* see the names in directories, nothing else */
	LANDLOCK_IOCTL = 1 << 5,      /* requests to devices */
};

struct landlock_rule {
	const char *path; /* NULL: the object is behind fd */
	unsigned grant;
	int fd; /* the caller's */
};

/* The ABI of the running kernel; 0 if Landlock is absent or switched off. */
int landlock_abi(void);
/* Confines this process to the rules: everything else in the file system is denied, and from ABI 6 on
 * signals and abstract sockets stay inside.  Needs no_new_privs.  0 or -errno. */
int landlock_confine(int abi, const struct landlock_rule *rules, size_t n);

#endif
