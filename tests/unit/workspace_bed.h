/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for each test of workspaces: project/, view/ and out/ in it, and the state folder. */
#ifndef WORKSPACE_BED_H
#define WORKSPACE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "policy/policy.h"
#include "workspace/workspace.h"
#include "temp_folder.h"

static char folder[80];
static int top; /* project/, view/, state/, out/ in it */
static struct statedir state_dir = STATEDIR_INIT;
static struct settings set;
static struct changes changes;

static const char *in_folder(const char *name)
{
	static char path[4][128];
	static int next;
	char *p = path[next++ % 4];

	(void)snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static int make_folder(void **state)
{
	static const char *const names[] = { "project", "view", "out" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *policy = NULL;

	(void)state;
	if (temp_folder_make(folder, sizeof(folder), "work") < 0 ||
	    policy_load(&(struct policy_sources){ .file = NULL }, &policy, NULL, &err) < 0)
		return -1;
	set = *policy_base(policy);
	policy_free(policy);
	top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (mkdirat(top, names[i], 0755) < 0)
			return -1;
	return statedir_open(in_folder("state"), true, &state_dir, &err);
}

static int remove_folder(void **state)
{
	(void)state;
	changes_release(&changes);
	statedir_close(&state_dir);
	(void)close(top);
	return temp_folder_remove(folder);
}

/* Paths are below the test's folder; folders on the way are made. */
static void put(const char *path, const char *text)
{
	char parent[PATH_MAX];
	AUTO_FD fd = FD_NONE;

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(beneath_make_dirs(top, parent), 0);
	fd = openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

UNUSED static void put_link(const char *path, const char *target)
{
	assert_int_equal(symlinkat(target, top, path), 0);
}

UNUSED static void put_whiteout(const char *path)
{
	char parent[PATH_MAX];

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(beneath_make_dirs(top, parent), 0);
	if (mknodat(top, path, S_IFCHR, makedev(0, 0)) < 0)
		skip();
}

UNUSED static void put_opaque(const char *path)
{
	assert_int_equal(beneath_make_dirs(top, path), 0);
	if (setxattr(in_folder(path), "user.overlay.opaque", "y", 1, 0) < 0 &&
	    setxattr(in_folder(path), "trusted.overlay.opaque", "y", 1, 0) < 0)
		skip();
}

UNUSED static bool is_there(const char *path)
{
	return faccessat(top, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

UNUSED static void assert_text(const char *path, const char *want)
{
	char text[512];
	AUTO_FD fd = beneath_open_file(top, path, NULL);
	ssize_t n;

	if (fd < 0)
		fail_msg("'%s': error %d", path, fd);
	n = fd_read_all(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, want);
}

static struct workspace *open_project(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct workspace *w = NULL;

	if (workspace_open(in_folder("project"), in_folder("state"), &set, &w, &err) < 0)
		fail_msg("%s", err.msg);
	return w;
}

UNUSED static int open_at(const char *name)
{
	int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Collects view/ into changes: as the whole tree, or as the upper layer of an overlay. */
UNUSED static void collect_view(const char *id, bool whole, const char *const *ours, size_t n_ours)
{
	struct workspace *w = open_project();
	struct workspace_view view = { .fd = open_at("view"), .whole = whole };
	const struct collect_ask ask = { .workspace = w,
					 .view = &view,
					 .state = &state_dir,
					 .id = id,
					 .ours = ours,
					 .n_ours = n_ours,
					 .set = &set };
	struct brig_error err = BRIG_ERROR_INIT;

	changes_release(&changes);
	if (workspace_collect(&ask, &changes, &err) < 0)
		fail_msg("%s", err.msg);
	(void)close(view.fd);
	workspace_close(w);
}

UNUSED static void collect_as(const char *id)
{
	collect_view(id, /* whole= */ false, NULL, 0);
}

/* Everything of view/ into a folder. */
UNUSED static int fetch_into(const struct folder *out, bool overwrite, struct buf *why, struct artifacts *ret)
{
	static const char *const all[] = { "**" };
	struct workspace_view view = { .fd = open_at("view"), .whole = true };
	const struct artifacts_ask ask = { .view = &view,
					   .pattern = all,
					   .n_patterns = 1,
					   .out = out,
					   .overwrite = overwrite,
					   .not_copied = why,
					   .set = &set };
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = workspace_artifacts(&ask, ret, &err);

	(void)close(view.fd);
	return rc;
}

/* What is not moved over goes into text, if there is one. */
UNUSED static int apply_as(const char *id, struct buf *text, struct brig_error *err)
{
	*err = (struct brig_error)BRIG_ERROR_INIT;
	return changeset_apply(&state_dir, id, NULL, false, text, err);
}

UNUSED static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(top, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

UNUSED static void set_mode(const char *path, unsigned mode)
{
	assert_int_equal(fchmodat(top, path, mode, 0), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

#endif
