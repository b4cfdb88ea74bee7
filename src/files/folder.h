/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's folder whose files a program gets, or that receives a program's files: a project, a folder for artifacts.
 *
 * It is opened once and from then on used through its descriptor: its path may lead anywhere a moment later, because
 * anyone who may write to its parent can replace it with a link or another folder.  Everything in it is reached beneath
 * that descriptor (beneath.h).  What is written obeys foreign.h, where it may be is up to place.h, and writers hold its
 * lock.
 */
#ifndef FILES_FOLDER_H
#define FILES_FOLDER_H

#include <limits.h>

#include "base/err.h"

#define FOLDER_BOOT_LEN 36

/* The identity of a folder.  Inode numbers alone are reused: the birth time tells them apart. */
struct folder_id {
	uint64_t device, inode;
	int64_t born_ns; /* 0: the file system does not know it */
	uint64_t mount;  /* 0: the kernel does not tell; numbers of another boot mean nothing */
};

struct folder {
	int fd;
	struct folder_id id;
	char path
		[PATH_MAX]; /* of what was opened, without links; for messages, rules about places, and the next brig */
};
#define FOLDER_INIT           \
	{                     \
		.fd = FD_NONE \
	}

/* Of an open folder (O_PATH is enough).  0 or -errno. */
int folder_id_of(int fd, struct folder_id *ret);
/* with_mount: also the same mount, which only folders of one boot can be compared by. */
bool folder_id_same(const struct folder_id *a, const struct folder_id *b, bool with_mount);
/* The name that the kernel gave this boot; false: it does not tell. */
bool folder_boot(char dst[FOLDER_BOOT_LEN + 1]);

/*
 * Opens it.  what: "workspace", for messages.  Links of other people that lead to folders that are not theirs are
 * refused.  no_links: path is one that folder.path gave, so there was no link in it; any that is there now is refused.
 */
int folder_open(const char *path, const char *what, bool no_links, struct folder *ret, struct brig_error *err);
/* Another descriptor of one that is open, with the path that it has now. */
int folder_again(const struct folder *f, struct folder *ret, struct brig_error *err);
void folder_close(struct folder *f);
#define AUTO_FOLDER           \
	CLEANUP(folder_close) \
	struct folder

/*
 * Locks it against other writers of brig's, for as long as *ret_fd, another descriptor of it, is open.  Waits some
 * seconds for them.
 */
int folder_lock(const struct folder *f, int *ret_fd, struct brig_error *err);
/* Whether nothing is in it; -errno. */
int folder_is_empty(int fd);

/*
 * A new file in an open folder, without a name yet or with an unpredictable one.  It is filled and given its
 * permissions through its descriptor, and then gets its final name; if dropped, nothing is left of it.
 */
struct folder_file {
	int fd;
	char name[32]; /* "": it has none */
};
#define FOLDER_FILE_INIT      \
	{                     \
		.fd = FD_NONE \
	}
int folder_file_begin(int dir, struct folder_file *ret);
/* -EEXIST: there is something of that name, and replace is not given. */
int folder_file_name(struct folder_file *f, int dir, const char *name, bool replace);
void folder_file_drop(struct folder_file *f, int dir);

#endif
