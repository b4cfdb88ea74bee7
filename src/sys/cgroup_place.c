/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where cells may be made in a cgroup v2 hierarchy.
 *
 * Two rules of the kernel decide.  A group that hands controllers to its children holds no tasks
 * itself (but for the hierarchy's real root), and one may only make groups where one may write.
 * So leaves go, in this order:
 *
 *  1. Next to us, if our group is named brig-supervisor: an earlier step 3, or whoever started us,
 *     prepared the group around it.  The cheapest way for an ordinary user: no move is needed.
 *  2. Root that sees the real root of the hierarchy: below the top-level group "brig", which exists
 *     only while cells do.  It hands the controllers on, so that a service manager that tidies the
 *     root's cgroup.subtree_control cannot take them from running cells.  A group that the manager
 *     delegated to us (Delegate=yes) comes first: its limits should hold for cells too.
 *  3. In our own group, if we may write there: a container, a delegated service or scope.  If we are
 *     its only task, we move into the child brig-supervisor; it stays until our group goes.
 *  4. In a scope from the user's service manager, which then is case 3.
 *
 * If a group is available but controllers are not, cells still get a leaf: it counts cpu time and has cgroup.kill.
 */
#include "sys/cgroup_internal.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/proc.h"
#include "sys/systemd_scope.h"

#define SUPERVISOR       "brig-supervisor"
#define BASE             "brig"
#define SCOPE_TIMEOUT_MS 4000 /* a manager that has just started on a slow machine takes more than two seconds */

struct place {
	struct cgroup_host *host;
	const struct cgroup_v2_mount *mount;
	unsigned wanted;
	char *why;
	char own[CGROUP_PATH_MAX]; /* our group below the mount point: "" or "/a/b" */
};

/* ---- controllers ----------------------------------------------------------------------------- */

static unsigned get_controllers(int dir, const char *file)
{
	char text[512];
	unsigned found = 0;

	if (fd_get_at(dir, file, text, sizeof(text)) < 0)
		return 0;
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (proc_list_has(text, ' ', cgroup_v2_name[c]))
			found |= CONTROLLER_BIT(c);
	return found;
}

int cgroup_v2_enable(int dir, unsigned controllers)
{
	unsigned lacking = controllers & ~get_controllers(dir, "cgroup.subtree_control");
	char text[64] = "";
	size_t len = 0;

	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (lacking & CONTROLLER_BIT(c))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s+%s", len ? " " : "",
						cgroup_v2_name[c]);
	return lacking ? fd_put_at(dir, "cgroup.subtree_control", text) : 0;
}

static int PRINTF(2, 3) give_up(const struct place *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(p->why, CGROUP_WHY_MAX, fmt, ap);
	va_end(ap);
	return -ENOTSUP;
}

/* ---- trees ----------------------------------------------------------------------------------- */

static void add_tree(const struct place *p, int *dir, const char *path, const char *base, unsigned controllers)
{
	struct cgroup_tree *tree = &p->host->tree[p->host->n_trees++];

	*tree = (struct cgroup_tree){ .ops = &cgroup_v2_ops,
				      .dir = fd_move(dir),
				      .base = base,
				      .controllers = (controllers & p->wanted) | CONTROLLER_BIT(CONTROLLER_CPUACCT) };
	(void)snprintf(tree->path, sizeof(tree->path), "%.*s%.*s%s%s", CGROUP_PATH_MAX / 2 - 32, p->mount->point,
		       CGROUP_PATH_MAX / 2 - 32, path, base ? "/" : "", base ? base : "");
}

/* Hands the controllers to children of dir and uses it; with those that it has, if it cannot have all. */
static void use_dir(const struct place *p, int *dir, const char *path, const char *base)
{
	unsigned domain = p->wanted & ~CONTROLLER_BIT(CONTROLLER_CPUACCT);
	unsigned offered = get_controllers(*dir, "cgroup.controllers") & domain;
	int r = cgroup_v2_enable(*dir, offered);

	/* The kernel takes all or none; a cpu controller kept away by realtime tasks should not cost us the others. */
	for (int c = 0; r < 0 && c < CONTROLLER_COUNT; c++)
		if (offered & CONTROLLER_BIT(c))
			(void)cgroup_v2_enable(*dir, CONTROLLER_BIT(c));
	if (r < 0)
		(void)give_up(p, "controllers cannot be enabled in %.120s%.120s (%s)", p->mount->point, path,
			      strerrordesc_np(-r) ?: "unknown error");
	else if (offered != domain)
		(void)give_up(p,
			      "the controller is not delegated to %.90s%.90s: as root, put [Service] Delegate=cpu "
			      "memory pids "
			      "into a drop-in of user@.service and log in again",
			      p->mount->point, path);
	add_tree(p, dir, path, base, r < 0 ? get_controllers(*dir, "cgroup.subtree_control") : offered);
}

static int open_group(const struct place *p, const char *path)
{
	char full[2 * CGROUP_PATH_MAX];
	int fd;

	(void)snprintf(full, sizeof(full), "%s%s", p->mount->point, path);
	fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool may_write(int dir)
{
	return faccessat(dir, ".", W_OK, AT_EACCESS) == 0 &&
	       faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0 &&
	       faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

/* ---- the four places ------------------------------------------------------------------------- */

static pid_t along; /* 0: nobody */

void cgroup_take_along(pid_t pid)
{
	along = pid;
}

static bool is_alone(int dir)
{
	char text[64], *rest = text, *line;
	uint64_t pid;

	/* Too many lines do not fit, and the last of them is cut. */
	if (fd_get_at(dir, "cgroup.procs", text, sizeof(text)) <= 0)
		return false;
	while ((line = strsep(&rest, "\n")))
		if (*line && (!str_to_u64(line, &pid) || (pid != (uint64_t)getpid() && pid != (uint64_t)along)))
			return false;
	return true;
}

/* Into a child of our group, so that the group may hand on its controllers. */
static int step_aside(int dir)
{
	int r;

	if (mkdirat(dir, SUPERVISOR, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = along ? fd_putf_at(dir, SUPERVISOR "/cgroup.procs", "%d", (int)along) : 0;
	if (r == 0 || r == -ESRCH)
		r = fd_put_at(dir, SUPERVISOR "/cgroup.procs", "0");
	return r;
}

static bool use_parent_of_supervisor(const struct place *p)
{
	const char *last = strrchr(p->own, '/');
	char parent[CGROUP_PATH_MAX];

	if (!last || !str_eq(last + 1, SUPERVISOR))
		return false;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(last - p->own), p->own);
	AUTO_FD dir = open_group(p, parent);
	if (dir < 0 || !may_write(dir))
		return false;
	use_dir(p, &dir, parent, NULL);
	return true;
}

static bool is_delegated(const struct place *p)
{
	char full[2 * CGROUP_PATH_MAX], value[4];

	(void)snprintf(full, sizeof(full), "%s%s", p->mount->point, p->own);
	return getxattr(full, "trusted.delegate", value, sizeof(value)) == 1 && value[0] == '1';
}

static bool use_top(const struct place *p)
{
	AUTO_FD top = open_group(p, "");

	/* Only the real root has no type. */
	if (top < 0 || geteuid() != 0 || faccessat(top, "cgroup.type", F_OK, 0) == 0 || !may_write(top))
		return false;
	use_dir(p, &top, "", BASE);
	return true;
}

/* 0, or -EBUSY if other tasks are in our group, or another -errno with the reason said. */
static int use_own(const struct place *p)
{
	AUTO_FD dir = open_group(p, p->own);
	int r;

	if (dir < 0)
		return give_up(p, "our control group %.120s%.120s cannot be opened: mount cgroup v2 for this container",
			       p->mount->point, p->own);
	if (!may_write(dir)) {
		(void)give_up(p,
			      "control group %.120s%.90s is not writable for uid %u: run as root, or have it delegated",
			      p->mount->point, p->own, (unsigned)geteuid());
		return -EACCES;
	}
	if (!is_alone(dir)) {
		(void)give_up(p,
			      "other processes share our control group %.100s%.70s: start brig in one of its own "
			      "(systemd-run --scope "
			      "-p Delegate=yes), or put them all into its child " SUPERVISOR,
			      p->mount->point, p->own);
		return -EBUSY;
	}
	r = step_aside(dir);
	if (r < 0)
		return give_up(p, "cannot move into %.120s%.90s/" SUPERVISOR " (%s)", p->mount->point, p->own,
			       strerrordesc_np(-r) ?: "unknown error");
	use_dir(p, &dir, p->own, NULL);
	return 0;
}

/* Without controllers even a shared group may have children. */
static void use_own_to_count(const struct place *p)
{
	AUTO_FD dir = open_group(p, p->own);

	if (dir >= 0 && may_write(dir))
		add_tree(p, &dir, p->own, NULL, 0);
}

static int set_own(struct place *p, const char *path)
{
	const char *below = cgroup_path_in_mount(path, p->mount->root);

	if (!below || !path[0])
		return give_up(
			p, "our control group \"%.120s\" is not below %.90s: mount cgroup v2 anew inside the namespace",
			path, p->mount->point);
	(void)str_copy(p->own, sizeof(p->own), below);
	return 0;
}

static int use_scope(struct place *p)
{
	char path[CGROUP_PATH_MAX], why[CGROUP_WHY_MAX / 2];
	int r = systemd_scope_enter(SCOPE_TIMEOUT_MS, why, sizeof(why));

	if (r < 0)
		return give_up(p, "our control group %.90s%.60s is not delegated to us alone, and %.150s",
			       p->mount->point, p->own, why);
	r = cgroup_v2_own_path(path, sizeof(path));
	if (r < 0)
		return give_up(p, "/proc/self/cgroup has no line for cgroup v2 (%s)",
			       strerrordesc_np(-r) ?: "unknown error");
	return set_own(p, path) < 0 ? -ENOTSUP : use_own(p);
}

void cgroup_v2_place(struct cgroup_host *h, const struct cgroup_v2_mount *m, unsigned wanted, char why[CGROUP_WHY_MAX])
{
	struct place p = { .host = h, .mount = m, .wanted = wanted, .why = why };
	int r;

	why[0] = '\0';
	if (m->read_only) {
		(void)give_up(&p,
			      "cgroup v2 is mounted read-only at %.120s: give the container a writable cgroup mount",
			      m->point);
		return;
	}
	if (set_own(&p, m->own) < 0 || use_parent_of_supervisor(&p))
		return;
	if (!is_delegated(&p) && use_top(&p))
		return;
	r = use_own(&p);
	if (r == 0 || use_top(&p))
		return;
	if ((r == -EBUSY || r == -EACCES) && geteuid() != 0 && use_scope(&p) == 0)
		return;
	use_own_to_count(&p);
}
