/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a link of a project leads depends on where it is resolved.  On the host the kernel does it, which knows every
 * link and mount on the way; it opens nothing (O_PATH) and follows no magic links.  In a cell the project is
 * /workspace, and there is no such place on the host to ask the kernel in: the path is taken apart here, each component
 * of the project looked at beneath its folder.  Outside the workspace a cell has only folders of ours, so ".." there is
 * the folder above, and a path such as "../workspace/x" comes back in.
 *
 * Changing the project meanwhile can make either answer stale; the users of the answers check again.
 */
#include "workspace/resolve.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"

#define LINKS_MAX 40 /* as the kernel */
#define TOP       "workspace"

/* ---- on the host ------------------------------------------------------------------------------- */

static bool path_of(int fd, char ret[PATH_MAX])
{
	char link[48];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	return ret[0] == '/';
}

static bool is_same_object(int project, const char *path, const struct stat *st)
{
	struct stat own;
	AUTO_FD fd = beneath_look(project, path, &own);

	return fd >= 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

bool resolve_on_host(int project, const char *path, char ret[PATH_MAX], struct stat *st)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	AUTO_FD fd = (int)syscall(SYS_openat2, project, path, &how, sizeof(how));
	char top[PATH_MAX], found[PATH_MAX];
	size_t len;

	*st = (struct stat){ .st_mode = 0 };
	if (fd < 0 || fstat(fd, st) < 0 || !path_of(project, top) || !path_of(fd, found))
		return false;
	len = strlen(top);
	if (strncmp(found, top, len) != 0 || (found[len] != '/' && found[len] != '\0'))
		return false;
	(void)str_copy(ret, PATH_MAX, found + len + (found[len] == '/'));
	return is_same_object(project, ret, st);
}

/* ---- in the cell ------------------------------------------------------------------------------- */

struct route {
	int project;
	char at[PATH_MAX];   /* where we are, below the cell's root, without links; "" is the root */
	char rest[PATH_MAX]; /* what is still to be gone */
	int links;
};

/* The part of at that is below the workspace; NULL: we are outside. */
static const char *in_project(const char *at)
{
	size_t len = strlen(TOP);

	if (strncmp(at, TOP, len) != 0 || (at[len] != '/' && at[len] != '\0'))
		return NULL;
	return at + len + (at[len] == '/');
}

static void go_up(struct route *r)
{
	char *slash = strrchr(r->at, '/');

	*(slash ? slash : r->at) = '\0';
}

static bool go_down(struct route *r, const char *name, size_t len)
{
	size_t at = strlen(r->at);

	if (at + 1 + len >= sizeof(r->at))
		return false;
	if (at > 0)
		r->at[at++] = '/';
	memcpy(r->at + at, name, len);
	r->at[at + len] = '\0';
	return true;
}

/* Puts a link's target before what is left. */
static bool turn_off(struct route *r, int link)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

	if (n <= 0 || ++r->links > LINKS_MAX)
		return false;
	target[n] = '\0';
	if (target[0] == '/')
		r->at[0] = '\0';
	else
		go_up(r);
	if ((size_t)snprintf(rest, sizeof(rest), "%s/%s", target, r->rest) >= sizeof(rest))
		return false;
	return str_copy(r->rest, sizeof(r->rest), rest);
}

static bool step(struct route *r)
{
	size_t skip = strspn(r->rest, "/"), len = strcspn(r->rest + skip, "/");
	char name[NAME_MAX + 1];
	const char *below;
	struct stat st;
	AUTO_FD fd = FD_NONE;

	if (len > NAME_MAX)
		return false;
	memcpy(name, r->rest + skip, len);
	name[len] = '\0';
	memmove(r->rest, r->rest + skip + len, strlen(r->rest + skip + len) + 1);
	if (len == 0 || str_eq(name, "."))
		return true;
	if (str_eq(name, "..")) {
		go_up(r);
		return true;
	}
	if (!go_down(r, name, len))
		return false;
	below = in_project(r->at);
	if (!below)
		return true;
	fd = beneath_look(r->project, below, &st);
	if (fd < 0)
		return false;
	return S_ISLNK(st.st_mode) ? turn_off(r, fd) : S_ISDIR(st.st_mode) || !r->rest[strspn(r->rest, "/")];
}

bool resolve_in_cell(int project, const char *path, char ret[PATH_MAX])
{
	struct route r = { .project = project, .at = TOP };
	const char *below;

	if (!str_copy(r.rest, sizeof(r.rest), path))
		return false;
	while (*r.rest)
		if (!step(&r))
			return false;
	below = in_project(r.at);
	return below && str_copy(ret, PATH_MAX, below);
}
