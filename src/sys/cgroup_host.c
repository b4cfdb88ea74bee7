/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what this process may use.  /proc/self/cgroup says in which group we are in each hierarchy. Nearly every host
 * mounts them in the same places, so those are checked first; only if one is not there is /proc/self/mountinfo read,
 * which is slow (60 us here, milliseconds on a host with thousands of mounts).  v1 hierarchies take the controllers
 * they have; what is left over is looked for in v2.
 *
 * The usual places are checked to be of the right filesystem and to hold our group.  Inside a cgroup namespace paths
 * mean something else, so there mountinfo decides.  Should a mount show only a part of its hierarchy that by chance has
 * a group of our group's name, cells get their limits nevertheless.
 */
#include "sys/cgroup_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h> /* ST_RDONLY */
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/proc.h"

const char *const cgroup_v1_name[CONTROLLER_COUNT] = {
	[CONTROLLER_CPU] = "cpu",   [CONTROLLER_CPUACCT] = "cpuacct", [CONTROLLER_MEMORY] = "memory",
	[CONTROLLER_PIDS] = "pids", [CONTROLLER_IO] = "blkio",
};
const char *const cgroup_v2_name[CONTROLLER_COUNT] = {
	[CONTROLLER_CPU] = "cpu",   [CONTROLLER_CPUACCT] = "cpuacct", [CONTROLLER_MEMORY] = "memory",
	[CONTROLLER_PIDS] = "pids", [CONTROLLER_IO] = "io",
};

#define USUAL_PLACE       "/sys/fs/cgroup"
#define INITIAL_CGROUP_NS 0xEFFFFFFBu /* inode of the host's own cgroup namespace, the same on every Linux */

/* A file that only the controller's own hierarchy has; pids has none in the root group. */
static const char *const witness[CONTROLLER_COUNT] = {
	[CONTROLLER_CPU] = "cpu.shares",
	[CONTROLLER_CPUACCT] = "cpuacct.usage",
	[CONTROLLER_MEMORY] = "memory.limit_in_bytes",
	[CONTROLLER_IO] = "blkio.reset_stats",
};

/* Which controller a resource needs. */
static const enum cgroup_controller controller_of[CGROUP_RESOURCE_COUNT] = {
	[CGROUP_MEMORY] = CONTROLLER_MEMORY,    [CGROUP_SWAP] = CONTROLLER_MEMORY,
	[CGROUP_PIDS] = CONTROLLER_PIDS,        [CGROUP_CPU] = CONTROLLER_CPU,
	[CGROUP_CPU_TIME] = CONTROLLER_CPUACCT, [CGROUP_SOCKET_MEMORY] = CONTROLLER_MEMORY,
	[CGROUP_DISK_IO] = CONTROLLER_IO,
};

struct discovery {
	struct cgroup_host *host;
	unsigned wanted;                             /* controllers that are looked for */
	char own[CONTROLLER_COUNT][CGROUP_PATH_MAX]; /* our group in v1 hierarchies; "": none */
	uint64_t hierarchy[CONTROLLER_COUNT];        /* the same number: mounted together */
	char why[CONTROLLER_COUNT][CGROUP_WHY_MAX];  /* a hierarchy was there, but not to be used */
	unsigned found;                              /* controllers of usable v1 trees */
	bool v1_mounted, v2_mounted;
	struct cgroup_v2_mount v2;
};

/* ---- reading /proc --------------------------------------------------------------------------- */

const char *cgroup_path_in_mount(const char *own, const char *mount_root)
{
	size_t len = strlen(mount_root);

	/* Outside our cgroup namespace: "/../.." */
	if (strncmp(own, "/..", 3) == 0 || strncmp(mount_root, "/..", 3) == 0)
		return NULL;
	if (len == 1)
		len = 0; /* "/": everything is below it */
	if (strncmp(own, mount_root, len) != 0 || (own[len] != '/' && own[len] != '\0'))
		return NULL;
	return str_eq(own + len, "/") ? "" : own + len;
}

static bool visit_own(char *line, void *arg)
{
	struct discovery *d = arg;
	struct cgroup_line l;

	if (!proc_parse_cgroup(line, &l) || strlen(l.path) >= CGROUP_PATH_MAX)
		return true;
	if (l.id == 0 && !l.controllers[0]) {
		(void)str_copy(d->v2.own, sizeof(d->v2.own), l.path);
		return true;
	}
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		if (!(d->wanted & CONTROLLER_BIT(c)) || !proc_list_has(l.controllers, ',', cgroup_v1_name[c]))
			continue;
		(void)str_copy(d->own[c], CGROUP_PATH_MAX, l.path);
		d->hierarchy[c] = l.id;
	}
	return true;
}

struct own_v2 {
	char *path;
	size_t size;
	int r;
};

static bool visit_own_v2(char *line, void *arg)
{
	struct own_v2 *own = arg;
	struct cgroup_line l;

	if (!proc_parse_cgroup(line, &l) || l.id != 0 || l.controllers[0])
		return true;
	own->r = str_copy(own->path, own->size, l.path) ? 0 : -ENAMETOOLONG;
	return false;
}

int cgroup_v2_own_path(char *dst, size_t size)
{
	struct own_v2 own = { .path = dst, .size = size, .r = -ENODATA };
	int r = proc_each_line("/proc/self/cgroup", visit_own_v2, &own);

	return r < 0 ? r : own.r;
}

bool cgroup_no_swap_device(void)
{
	char text[4096];
	ssize_t n = fd_get_at(AT_FDCWD, "/proc/swaps", text, sizeof(text));

	/* A heading, then a line for each device.  A kernel without the file has no swap. */
	return n == -ENOENT || (n >= 0 && !strchr(text, '\n'));
}

/* ---- v1 -------------------------------------------------------------------------------------- */

static void add_v1_tree(struct discovery *d, int *dir, const char *path, unsigned controllers)
{
	struct cgroup_tree *tree = &d->host->tree[d->host->n_trees++];

	tree->ops = &cgroup_v1_ops;
	tree->dir = fd_move(dir);
	tree->base = NULL;
	tree->controllers = controllers;
	(void)str_copy(tree->path, sizeof(tree->path), path);
	d->found |= controllers;
}

static bool may_make_groups(int dir)
{
	return faccessat(dir, ".", W_OK, AT_EACCESS) == 0;
}

static bool is_filesystem(int fd, long type)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == type && !(fs.f_flags & ST_RDONLY);
}

static bool add_usual_v1(struct discovery *d, int controller)
{
	char path[CGROUP_PATH_MAX];
	int len = snprintf(path, sizeof(path), USUAL_PLACE "/%s%s", cgroup_v1_name[controller], d->own[controller]);
	unsigned controllers = 0;
	AUTO_FD dir = FD_NONE;

	if (len < 1 || (size_t)len >= sizeof(path) || strstr(d->own[controller], "/.."))
		return false;
	if (path[len - 1] == '/')
		path[len - 1] = '\0';
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !is_filesystem(dir, CGROUP_SUPER_MAGIC) || !may_make_groups(dir))
		return false;
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		if (!d->own[c][0] || d->hierarchy[c] != d->hierarchy[controller])
			continue;
		if (witness[c] && faccessat(dir, witness[c], F_OK, 0) < 0)
			return false;
		controllers |= CONTROLLER_BIT(c);
	}
	add_v1_tree(d, &dir, path, controllers);
	return true;
}

static void visit_v1_group(struct discovery *d, const char *point, const char *below, unsigned controllers, char *why)
{
	char path[CGROUP_PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s%s", point, below);
	AUTO_FD dir = FD_NONE;

	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && may_make_groups(dir))
		add_v1_tree(d, &dir, path, controllers);
	else
		(void)snprintf(
			why, CGROUP_WHY_MAX,
			"uid %u may not make groups in %.100s (%s): run as root, or use cgroup v2, where groups can be "
			"delegated to users",
			(unsigned)geteuid(), path, strerrordesc_np(errno) ?: "");
}

static void visit_v1(struct discovery *d, const struct mount_line *m)
{
	char why[CGROUP_WHY_MAX] = "";
	const char *own = NULL, *below;
	unsigned controllers = 0;

	d->v1_mounted = true;
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		if (!d->own[c][0] || (d->found & CONTROLLER_BIT(c)) || !proc_list_has(m->super, ',', cgroup_v1_name[c]))
			continue;
		controllers |= CONTROLLER_BIT(c);
		own = d->own[c]; /* the same for all that are mounted together */
	}
	if (!own)
		return;
	below = cgroup_path_in_mount(own, m->root);
	if (!below)
		(void)snprintf(why, sizeof(why),
			       "our group %.100s is not below the mount at %.100s: give the container its own "
			       "cgroup namespace",
			       own, m->point);
	else if (proc_list_has(m->options, ',', "ro"))
		(void)snprintf(why, sizeof(why),
			       "%.120s is mounted read-only: give the container a writable cgroup mount", m->point);
	else
		visit_v1_group(d, m->point, below, controllers, why);
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (controllers & CONTROLLER_BIT(c))
			memcpy(d->why[c], why, sizeof(why));
}

static void visit_v2(struct discovery *d, const struct mount_line *m)
{
	if (d->v2_mounted || strlen(m->point) >= CGROUP_PATH_MAX || strlen(m->root) >= CGROUP_PATH_MAX)
		return;
	d->v2_mounted = true;
	(void)str_copy(d->v2.point, sizeof(d->v2.point), m->point);
	(void)str_copy(d->v2.root, sizeof(d->v2.root), m->root);
	d->v2.read_only = proc_list_has(m->options, ',', "ro");
}

static bool visit_mount(char *line, void *arg)
{
	struct discovery *d = arg;
	struct mount_line m;

	/* Most lines are something else: look before taking them apart. */
	if (!strstr(line, " - cgroup") || !proc_parse_mount(line, &m))
		return true;
	if (str_eq(m.fstype, "cgroup"))
		visit_v1(d, &m);
	else if (str_eq(m.fstype, "cgroup2"))
		visit_v2(d, &m);
	return true;
}

static bool add_usual_v2(struct discovery *d)
{
	char path[CGROUP_PATH_MAX];
	int len = snprintf(path, sizeof(path), USUAL_PLACE "%s", d->v2.own);
	AUTO_FD dir = FD_NONE;

	if (len < 0 || (size_t)len >= sizeof(path) || strstr(d->v2.own, "/.."))
		return false;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !is_filesystem(dir, CGROUP2_SUPER_MAGIC))
		return false;
	(void)str_copy(d->v2.point, sizeof(d->v2.point), USUAL_PLACE);
	(void)str_copy(d->v2.root, sizeof(d->v2.root), "/");
	return true;
}

static void forget(struct discovery *d)
{
	while (d->host->n_trees > 0)
		fd_closep(&d->host->tree[--d->host->n_trees].dir);
	d->found = 0;
	d->v1_mounted = d->v2_mounted = false;
}

static bool in_initial_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino == INITIAL_CGROUP_NS;
}

/* Everything is where it usually is and may be used; otherwise nothing was done. */
static bool look_in_usual_places(struct discovery *d)
{
	bool ok = in_initial_namespace(), all_v1 = true;

	for (int c = 0; ok && c < CONTROLLER_COUNT; c++) {
		if (d->own[c][0]) {
			d->v1_mounted = true;
			ok = (d->found & CONTROLLER_BIT(c)) || add_usual_v1(d, c);
		} else if (d->wanted & CONTROLLER_BIT(c)) {
			all_v1 = false;
		}
	}
	d->v2_mounted = d->v2.own[0]; /* the kernel only lists it once it has been mounted */
	ok = ok && (all_v1 || (d->v2_mounted && add_usual_v2(d)));
	if (!ok)
		forget(d);
	return ok;
}

/* ---- what that amounts to -------------------------------------------------------------------- */

static const struct cgroup_tree *tree_with(const struct cgroup_host *h, enum cgroup_controller c)
{
	for (size_t i = 0; i < h->n_trees; i++)
		if (h->tree[i].controllers & CONTROLLER_BIT(c))
			return &h->tree[i];
	return NULL;
}

static bool has_file(const struct cgroup_tree *tree, const char *v1_file, const char *v2_file)
{
	return faccessat(tree->dir, tree->ops == &cgroup_v1_ops ? v1_file : v2_file, F_OK, 0) == 0;
}

static bool can_limit_swap(const struct cgroup_tree *tree)
{
	char text[4096];

	if (has_file(tree, "memory.memsw.limit_in_bytes", "memory.swap.max") || cgroup_no_swap_device())
		return true;
	/* The root of v2 has none of its children's files: there only the kernel's command line can tell. */
	return tree->base && fd_get_at(AT_FDCWD, "/proc/cmdline", text, sizeof(text)) >= 0 &&
	       !strstr(text, "swapaccount=0");
}

static void judge(struct discovery *d, enum cgroup_resource r)
{
	struct cgroup_host *h = d->host;
	enum cgroup_controller c = controller_of[r];
	const struct cgroup_tree *tree = tree_with(h, c);
	const char *why = d->why[c];

	if (!tree && !why[0])
		why = "no mounted control group hierarchy has the controller: boot a kernel that has it, or mount "
		      "cgroup v2 at "
		      "/sys/fs/cgroup";
	else if (tree && r == CGROUP_SWAP && !can_limit_swap(tree))
		why = "the kernel does not account swap per group: boot with swapaccount=1, or turn swap off";
	else if (tree && r == CGROUP_SOCKET_MEMORY && tree->ops == &cgroup_v1_ops &&
		 !has_file(tree, "memory.kmem.tcp.limit_in_bytes", ""))
		why = "this kernel has no memory.kmem.tcp.limit_in_bytes: use cgroup v2, which counts socket buffers "
		      "as memory";
	else if (tree && r == CGROUP_CPU && tree->ops == &cgroup_v1_ops && !has_file(tree, "cpu.cfs_quota_us", ""))
		why = "the kernel was built without CONFIG_CFS_BANDWIDTH: use another kernel";
	else if (tree && r == CGROUP_DISK_IO && tree->ops == &cgroup_v1_ops &&
		 !has_file(tree, cgroup_v1_ops.disk_file, ""))
		why = "the kernel was built without CONFIG_BLK_DEV_THROTTLING: use another kernel";
	else if (tree)
		why = "";
	h->has[r] = why[0] == '\0';
	(void)str_copy(h->why[r], CGROUP_WHY_MAX, why);
}

static void place_rest_in_v2(struct discovery *d)
{
	unsigned wanted = d->wanted & ~d->found;
	char why[CGROUP_WHY_MAX];

	/* A controller that belongs to v1 cannot be in v2 at the same time, even where v1 is out of our reach. */
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (d->own[c][0])
			wanted &= ~CONTROLLER_BIT(c);
	if (!d->v2_mounted || !wanted)
		return;
	cgroup_v2_place(d->host, &d->v2, wanted, why);
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (wanted & CONTROLLER_BIT(c))
			memcpy(d->why[c], why, CGROUP_WHY_MAX);
}

int cgroup_host_open(bool with_disk_io, struct cgroup_host **ret, struct brig_error *err)
{
	AUTO_FREE struct discovery *d = calloc(1, sizeof(*d));
	struct cgroup_host *h = calloc(1, sizeof(*h));

	if (!d || !h) {
		free(h);
		return err_nomem(err);
	}
	d->host = h;
	d->wanted = CONTROLLERS_ALL & ~(with_disk_io ? 0 : CONTROLLER_BIT(CONTROLLER_IO));
	/* Without /proc nothing is found, and every resource says so. */
	(void)proc_each_line("/proc/self/cgroup", visit_own, d);
	if (!look_in_usual_places(d))
		(void)proc_each_line("/proc/self/mountinfo", visit_mount, d);
	place_rest_in_v2(d);
	cgroup_find_freezer(h);
	h->version = d->v1_mounted ? (d->v2_mounted ? "hybrid" : "v1") : (d->v2_mounted ? "v2" : "none");
	for (int r = 0; r < CGROUP_RESOURCE_COUNT; r++)
		judge(d, (enum cgroup_resource)r);
	*ret = h;
	return 0;
}

void cgroup_host_free(struct cgroup_host *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_trees; i++)
		fd_closep(&h->tree[i].dir);
	fd_closep(&h->freezer.dir);
	free(h);
}

bool cgroup_host_has(const struct cgroup_host *h, enum cgroup_resource r)
{
	return h->has[r];
}

const char *cgroup_host_why(const struct cgroup_host *h, enum cgroup_resource r)
{
	return h->why[r];
}

const char *cgroup_host_version(const struct cgroup_host *h)
{
	return h->version;
}
