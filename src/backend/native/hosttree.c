/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of the host a cell shows.  The supervisor determines that before the clone, because the child may not
 * allocate, and reading a directory does.
 *
 * With the host's own tree that is /usr and the links or directories beside it (/bin, /lib ...).  With a rootfs it is
 * every top-level entry except those that a cell creates itself.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/native/cell.h"
#include "base/str.h"

static const char *const host_names[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
/* Created by the cell, or never shown. */
static const char *const own_names[] = {
	".", "..", "dev", "proc", "sys", "tmp", "run", "workspace", "mnt", "media", "boot", "lost+found",
};

static bool is_own_name(const struct plan *plan, const char *name)
{
	if (plan->workspace_alias == WORKSPACE_HOME_USER && str_eq(name, "home"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(own_names); i++)
		if (str_eq(name, own_names[i]))
			return true;
	return false;
}

/* Adds an entry of the root directory dir, whose path is base.  Skips anything but links and directories. */
static int add_entry(struct cell *c, int dir, const char *base, const char *name)
{
	struct cell_spec *s = &c->spec;
	struct system_dir *d;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	if (s->n_dirs == SYSTEM_DIRS_MAX)
		return -E2BIG;
	d = reallocarray(s->dirs, s->n_dirs + 1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	s->dirs = d;
	d += s->n_dirs;
	*d = (struct system_dir){ .link = "" };
	if (!str_copy(d->name, sizeof(d->name), name))
		return -ENAMETOOLONG;
	(void)snprintf(d->path, sizeof(d->path), "/%s", name);
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(dir, name, d->link, sizeof(d->link) - 1);

		if (n < 0 || n == (ssize_t)sizeof(d->link) - 1)
			return n < 0 ? -errno : -ENAMETOOLONG;
		d->link[n] = '\0';
	} else if ((size_t)snprintf(d->source, sizeof(d->source), "%s/%s", base, name) >= sizeof(d->source)) {
		return -ENAMETOOLONG;
	}
	s->n_dirs++;
	return 0;
}

static int add_host_entries(struct cell *c)
{
	AUTO_FD dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(host_names); i++) {
		int rc = add_entry(c, dir, "", host_names[i]);

		if (rc < 0)
			return rc;
	}
	c->spec.own_etc = true;
	c->spec.ld_cache = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	return 0;
}

static void dir_closep(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static int add_rootfs_entries(struct cell *c, const char *rootfs)
{
	CLEANUP(dir_closep)
	DIR *dir = opendir(rootfs);
	struct dirent *e;

	if (!dir)
		return -errno;
	c->spec.own_etc = true;
	while ((e = readdir(dir))) {
		int rc;

		if (is_own_name(c->spec.plan, e->d_name))
			continue;
		if (str_eq(e->d_name, "etc"))
			c->spec.own_etc = false;
		rc = add_entry(c, dirfd(dir), rootfs, e->d_name);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int add_bind(struct cell *c, const struct plan_bind *bind)
{
	struct cell_spec *s = &c->spec;
	struct extra_bind *e = &s->binds[s->n_binds];
	struct stat st;
	char *slash;

	if (s->n_binds == EXTRA_BINDS_MAX)
		return -E2BIG;
	if ((bind->checked ? fstat(bind->fd, &st) : stat(bind->source, &st)) < 0)
		return -errno;
	*e = (struct extra_bind){ .source = bind->source,
				  .is_dir = S_ISDIR(st.st_mode),
				  .checked = bind->checked,
				  .device = st.st_dev,
				  .inode = st.st_ino };
	if (!str_copy(e->target, sizeof(e->target), bind->target + 1) || !str_copy(e->dir, sizeof(e->dir), e->target))
		return -ENAMETOOLONG;
	slash = strrchr(e->dir, '/');
	if (slash)
		*slash = '\0';
	s->n_binds++;
	return 0;
}

/*
 * Binds may be executed, in /opt, in the workspace or elsewhere.  The rule for /opt needs the directory, which exists
 * only with a bind in it.
 */
static void add_bind_rules(struct cell_spec *s)
{
	static const char opt[] = "/opt/", workspace[] = PLAN_WORKSPACE "/";
	bool in_opt = false;

	for (size_t i = 0; i < s->n_binds; i++) {
		const char *target = s->plan->binds[i].target;

		if (strncmp(target, opt, strlen(opt)) == 0)
			in_opt = true;
		else if (s->binds[i].is_dir && strncmp(target, workspace, strlen(workspace)) != 0)
			guest_add_rule(&s->confine, target, LANDLOCK_READ | LANDLOCK_EXEC);
	}
	if (in_opt)
		guest_add_rule(&s->confine, "/opt", LANDLOCK_READ | LANDLOCK_EXEC);
}

/* Reading is permitted everywhere; executing and writing only where the plan says so. */
static void make_rules(struct cell_spec *s)
{
	guest_add_rule(&s->confine, "/", LANDLOCK_READ);
	for (size_t i = 0; i < s->n_dirs; i++)
		if (!s->dirs[i].link[0])
			guest_add_rule(&s->confine, s->dirs[i].path, LANDLOCK_READ | LANDLOCK_EXEC);
	add_bind_rules(s);
	guest_add_rule(&s->confine, "/dev", LANDLOCK_READ | LANDLOCK_WRITE_FILE);
	guest_add_rule(&s->confine, "/dev/shm", LANDLOCK_READ | LANDLOCK_WRITE);
	if (s->has_ptys)
		guest_add_rule(&s->confine, "/dev/pts", LANDLOCK_READ | LANDLOCK_WRITE_FILE | LANDLOCK_IOCTL);
	guest_add_rule(&s->confine, "/tmp",
		       LANDLOCK_READ | LANDLOCK_WRITE | (s->plan->workspace_exec ? LANDLOCK_EXEC : 0));
	guest_add_rule(&s->confine, PLAN_WORKSPACE,
		       LANDLOCK_READ | (s->plan->workspace && s->plan->workspace->read_only ? 0 : LANDLOCK_WRITE) |
			       (s->plan->workspace_exec ? LANDLOCK_EXEC : 0));
}

int cell_find_host_trees(struct cell *c, struct brig_error *err)
{
	const struct plan *plan = c->spec.plan;
	bool given = plan->rootfs[0] != '\0';
	int rc = given ? add_rootfs_entries(c, plan->rootfs) : add_host_entries(c);

	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, -rc, "cannot use '%s' as the cell's root",
			       given ? plan->rootfs : "/");
	for (size_t i = 0; i < plan->n_binds; i++) {
		rc = add_bind(c, &plan->binds[i]);
		if (rc < 0)
			return err_set(err, BRIG_E_SYSTEM, -rc, "cannot show '%s' in the cell", plan->binds[i].source);
	}
	make_rules(&c->spec);
	return 0;
}
