/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell's file tree, built by cell init in its own mount namespace.
 *
 *   /                a small tmpfs of ours, sealed read-only before the program starts
 *   /usr, /bin ...   the host's (or the given rootfs'), mounted recursively, read-only, nosuid, nodev
 *   /etc             a few files of ours
 *   /dev             null zero full random urandom, its own ptys, and links to /proc/self/fd
 *   /proc            only the cell's processes: subset=pid, hidepid=ptraceable; and the machine files of machine.c
 *   /sys             how many CPUs there are
 *   /run/brig/bin    the last directory of $PATH: `python`, for hosts that have only python3
 *   /run/brig/ca-certificates.crt   with an egress proxy: the certificates that the host trusts; /etc has links to it
 *   /workspace, /tmp, /dev/shm   three directories of one tmpfs, whose size is the disk limit; with a project, the
 *                                first
 *                    is made by root_project.c
 *
 * The skeleton is ours even with a given rootfs, so that nothing in a hostile tree (a symbolic link named /dev or
 * /proc) is ever used as a mount target.  Every mount is made below the descriptor of that skeleton; pivot_root
 * detaches from the host's tree at the end.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/sendfile.h>

#include "backend/native/cell_spec.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "sys/mnt.h"

/*
 * Parts of the host's /etc that programs below /usr require, if they exist: Debian's /usr/bin/cc, awk ... are links
 * through alternatives; a Java without its security settings and an R without its paths do not start; a PHP without its
 * list of modules lacks most of its library; and programs that draw text need fonts.  Of PHP only the settings of the
 * command line, not those of its servers.
 */
static const char *const etc_dirs[] = {
	"alternatives",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"java-25-openjdk",
	"R",
	"fonts",
	"php/7.4/cli/conf.d",
	"php/7.4/mods-available",
	"php/8.1/cli/conf.d",
	"php/8.1/mods-available",
	"php/8.2/cli/conf.d",
	"php/8.2/mods-available",
	"php/8.3/cli/conf.d",
	"php/8.3/mods-available",
	"php/8.4/cli/conf.d",
	"php/8.4/mods-available",
};
_Static_assert(ARRAY_LEN(etc_dirs) <= ETC_DIRS_MAX, "room for each");

/*
 * Opened again here: a descriptor of the supervisor's refers to a mount in another namespace, which cannot be cloned.
 */
static bool is_the_one(const struct extra_bind *e, int tree)
{
	struct stat st;

	return !e->checked || (fstat(tree, &st) == 0 && st.st_dev == e->device && st.st_ino == e->inode);
}

/*
 * Clones, still detached, of the host mounts that the cell will show.  Made while this process has the supervisor's
 * ids: with the cell's own it could not enter a home directory, for instance.
 */
int root_open_trees(struct cell_build *b)
{
	const struct cell_spec *s = b->spec;

	for (size_t i = 0; i < s->n_dirs; i++) {
		if (s->dirs[i].link[0])
			continue;
		b->dir_tree[i] = mount_copy(AT_FDCWD, s->dirs[i].source, MNT_RO | MNT_RECURSIVE);
		if (b->dir_tree[i] < 0)
			return b->dir_tree[i];
	}
	for (size_t i = 0; i < s->n_binds; i++) {
		b->bind_tree[i] = mount_copy(AT_FDCWD, s->binds[i].source, MNT_RO | MNT_RECURSIVE);
		if (b->bind_tree[i] >= 0 && !is_the_one(&s->binds[i], b->bind_tree[i]))
			return -ESTALE;
		if (b->bind_tree[i] < 0)
			return b->bind_tree[i];
	}
	for (size_t i = 0; i < ARRAY_LEN(etc_dirs); i++) {
		char path[64];

		(void)stpcpy(stpcpy(path, "/etc/"), etc_dirs[i]);
		b->etc_tree[i] = s->own_etc ? mount_copy(AT_FDCWD, path, MNT_RO | MNT_RECURSIVE) : -ENOENT;
		if (b->etc_tree[i] < 0 && b->etc_tree[i] != -ENOENT)
			return b->etc_tree[i];
	}
	return 0;
}

/*
 * The workspace's other name.  A workspace of the cell's own is mounted there, so that the program sees this name as
 * its working directory, too.  A project gets a symbolic link, since its masks are at one place only.
 */
static int make_alias(struct cell_build *b)
{
	const char *alias = workspace_alias_name[b->spec->plan->workspace_alias];
	char above[32];

	if (b->spec->plan->workspace_alias == WORKSPACE_ALIAS_NONE)
		return 0;
	(void)str_copy(above, sizeof(above), alias + 1);
	*strchr(above, '/') = '\0';
	if (mkdirat(b->root, above, 0755) < 0)
		return -errno;
	if (b->spec->plan->workspace)
		return symlinkat(PLAN_WORKSPACE, b->root, alias + 1) < 0 ? -errno : 0;
	return mkdirat(b->root, alias + 1, 0755) < 0 ? -errno : 0;
}

int root_make(struct cell_build *b)
{
	const struct mount_param params[] = { { "size", "4m" },
					      { "nr_inodes", b->spec->root_inodes },
					      { "mode", "0755" } };
	static const char *const dirs[] = { "etc", "dev", "dev/shm",  "dev/pts",      "proc",
					    "tmp", "run", "run/brig", "run/brig/bin", "workspace" };
	int rc;

	b->root = mount_new("tmpfs", params, ARRAY_LEN(params), 0);
	if (b->root < 0)
		return b->root;
	/* On top of "/": absolute paths still resolve in the host's tree below; we use the descriptor. */
	rc = mount_attach(b->root, AT_FDCWD, "/");
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(b->root, dirs[i], 0755) < 0)
			return -errno;
	rc = make_alias(b);
	if (rc < 0)
		return rc;
	/* Without a python3 the link dangles, which a search along $PATH treats like a missing file. */
	return symlinkat("/usr/bin/python3", b->root, "run/brig/bin/python") < 0 ? -errno : 0;
}

int root_show_system(struct cell_build *b)
{
	for (size_t i = 0; i < b->spec->n_dirs; i++) {
		const struct system_dir *d = &b->spec->dirs[i];
		int rc;

		if (d->link[0]) {
			if (symlinkat(d->link, b->root, d->name) < 0)
				return -errno;
			continue;
		}
		if (mkdirat(b->root, d->name, 0755) < 0 && errno != EEXIST)
			return -errno;
		rc = mount_attach(b->dir_tree[i], b->root, d->name);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int root_write_file(int dir, const char *name, mode_t mode, const void *data, size_t len)
{
	AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, data, len);
	/* The mode again: the umask was applied to the first one. */
	return rc < 0 ? rc : fchmod(fd, mode) < 0 ? -errno : 0;
}

static int copy_ld_cache(int etc, int source)
{
	AUTO_FD fd = openat(etc, "ld.so.cache", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	off_t from = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = sendfile(fd, source, &from, 1 << 20);
	} while (n > 0);
	return n < 0 ? -errno : 0;
}

/* Creates a directory and its missing parents. */
static int make_folders(int at, const char *path)
{
	char part[64];

	for (const char *end = path; *end; end++) {
		if (end[1] != '/' && end[1] != '\0')
			continue;
		memcpy(part, path, (size_t)(end + 1 - path));
		part[end + 1 - path] = '\0';
		if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int show_etc_dirs(struct cell_build *b, int etc)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(etc_dirs) && rc == 0; i++) {
		if (b->etc_tree[i] < 0)
			continue;
		rc = make_folders(etc, etc_dirs[i]);
		if (rc == 0)
			rc = mount_attach(b->etc_tree[i], etc, etc_dirs[i]);
	}
	return rc;
}

/* DNS is configured only if there is a server for it: plan->egress, on 127.0.0.1. */
static int write_lookups(int etc, const struct plan_egress *egress)
{
	static const char files_only[] = "passwd: files\ngroup: files\nhosts: files\n",
			  and_asking[] = "passwd: files\ngroup: files\nhosts: files dns\n",
			  resolver[] = "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n";
	int rc;

	if (!egress)
		return root_write_file(etc, "nsswitch.conf", 0644, files_only, strlen(files_only));
	rc = root_write_file(etc, "nsswitch.conf", 0644, and_asking, strlen(and_asking));
	return rc < 0 ? rc : root_write_file(etc, "resolv.conf", 0644, resolver, strlen(resolver));
}

/* For libraries that ignore the environment variables.  A rootfs with its own /etc keeps that. */
static int link_certificates(struct cell_build *b)
{
	static const char *const dirs[] = { "etc/ssl", "etc/ssl/certs", "etc/pki", "etc/pki/tls", "etc/pki/tls/certs" };
	static const char *const links[] = { "etc/ssl/certs/ca-certificates.crt", "etc/ssl/cert.pem",
					     "etc/pki/tls/certs/ca-bundle.crt" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(b->root, dirs[i], 0755) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(CERTIFICATES_PATH, b->root, links[i]) < 0)
			return -errno;
	return 0;
}

int root_write_certificates(struct cell_build *b)
{
	const struct plan_egress *egress = b->spec->plan->egress;
	const struct plan_file *f = egress ? egress->certificates : NULL;
	int rc;

	if (!f)
		return 0;
	rc = root_write_file(b->root, CERTIFICATES_PATH + 1, 0444, f->data, f->len);
	return rc == 0 && b->spec->own_etc ? link_certificates(b) : rc;
}

#define PASSWD(user, home, shell)                                                            \
	"root:x:0:0:root:/:/usr/sbin/nologin\n" user ":x:1000:1000:" user ":" home ":" shell \
	"\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
#define GROUP(name) "root:x:0:\n" name ":x:1000:\nnogroup:x:65534:\n"

int root_write_etc(struct cell_build *b)
{
	const bool is_home = b->spec->plan->workspace_alias == WORKSPACE_HOME_USER;
	const struct {
		const char *name, *text;
	} files[] = {
		{ "passwd",
		  is_home ? PASSWD("user", "/home/user", "/bin/bash") : PASSWD(PLAN_USER, PLAN_WORKSPACE, "/bin/sh") },
		{ "group", is_home ? GROUP("user") : GROUP(PLAN_USER) },
		{ "hosts", "127.0.0.1 localhost cell\n::1 localhost cell\n" },
		{ "hostname", "cell\n" },
		/* Debian's Matplotlib has its defaults below /usr, and does not start without a file of this name. */
		{ "matplotlibrc", "# the defaults hold\n" },
	};
	AUTO_FD etc = FD_NONE;
	int rc = 0;

	if (!b->spec->own_etc)
		return 0;
	etc = openat(b->root, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (etc < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(files) && rc == 0; i++)
		rc = root_write_file(etc, files[i].name, 0644, files[i].text, strlen(files[i].text));
	if (rc == 0)
		rc = write_lookups(etc, b->spec->plan->egress);
	if (rc == 0 && symlinkat("../usr/lib/os-release", etc, "os-release") < 0)
		rc = -errno;
	if (rc == 0 && b->spec->ld_cache >= 0)
		rc = copy_ld_cache(etc, b->spec->ld_cache);
	return rc < 0 ? rc : show_etc_dirs(b, etc);
}

/* The node must be the device that it claims to be: a mask made from a replaced /dev/null hides nothing. */
static int show_device(struct cell_build *b, const char *source, const char *target, unsigned major, unsigned minor)
{
	AUTO_FD tree = mount_copy(AT_FDCWD, source, MNT_DEV | MNT_NOEXEC);
	struct stat st;
	int rc;

	if (tree < 0)
		return tree;
	if (fstat(tree, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(major, minor))
		return -ENODEV;
	rc = root_write_file(b->root, target, 0644, "", 0);
	return rc < 0 ? rc : mount_attach(tree, b->root, target);
}

/*
 * An instance for this cell, with only its terminals.  The limit matters since the kernel has a few thousand in total.
 */
static int show_ptys(struct cell_build *b)
{
	static const struct mount_param params[] = { { "mode", "0620" }, { "ptmxmode", "0666" }, { "max", "16" } };
	AUTO_FD tree = mount_new("devpts", params, ARRAY_LEN(params), MNT_DEV | MNT_NOEXEC);

	return tree < 0 ? tree : mount_attach(tree, b->root, "dev/pts");
}

/* The complete /sys of a cell. */
int root_write_sys(struct cell_build *b)
{
	static const char *const dirs[] = { "sys", "sys/devices", "sys/devices/system", "sys/devices/system/cpu" };
	static const char *const files[] = { "sys/devices/system/cpu/possible", "sys/devices/system/cpu/present",
					     "sys/devices/system/cpu/online" };
	const char *cpus = b->spec->machine.cpus;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(b->root, dirs[i], 0755) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(files) && rc == 0; i++)
		rc = root_write_file(b->root, files[i], 0444, cpus, strlen(cpus));
	return rc;
}

int root_show_devices(struct cell_build *b)
{
	static const struct {
		const char *source;
		unsigned major, minor;
	} nodes[] = {
		{ "/dev/null", 1, 3 },   { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
		{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 },
	};
	static const char *const links[][2] = {
		{ "/proc/self/fd", "dev/fd" },       { "/proc/self/fd/0", "dev/stdin" },
		{ "/proc/self/fd/1", "dev/stdout" }, { "/proc/self/fd/2", "dev/stderr" },
		{ "pts/ptmx", "dev/ptmx" },
	};

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		int rc = show_device(b, nodes[i].source, nodes[i].source + 1, nodes[i].major, nodes[i].minor);

		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i][0], b->root, links[i][1]) < 0)
			return -errno;
	return b->spec->has_ptys ? show_ptys(b) : 0;
}

/* Created where /proc will cover it, so that the file has no second name. */
static int make_machine_file(struct cell_build *b, size_t i, const char *path)
{
	const struct machine *m = &b->spec->machine;
	size_t start = i ? m->end[i - 1] : 0;
	int rc = root_write_file(b->root, path, 0444, m->text + start, m->end[i] - start);

	return rc < 0 ? rc : mount_copy(b->root, path, MNT_RO | MNT_NOEXEC);
}

/*
 * With subset=pid, /proc has no files to mount on.  But a dentry that was looked up before stays as long as something
 * is mounted on it: so the full tree is mounted, our files cover the names that they stand for, and then it is
 * remounted with subset=pid.  No other name was looked up, so only the covered ones remain.
 */
static int mount_proc_of_machine(struct cell_build *b)
{
	static const struct mount_param hidden = { "hidepid", "ptraceable" }, reduced = { "subset", "pid" };
	char path[MACHINE_FILES][32];
	int tree[MACHINE_FILES], rc = 0;
	AUTO_FD proc = FD_NONE;
	size_t n = 0;

	for (; n < MACHINE_FILES && rc >= 0; n++) {
		(void)stpcpy(stpcpy(path[n], "proc/"), machine_names[n]);
		rc = tree[n] = make_machine_file(b, n, path[n]);
	}
	proc = rc < 0 ? rc : mount_new("proc", &hidden, 1, MNT_NOEXEC);
	rc = proc < 0 ? proc : mount_attach(proc, b->root, "proc");
	for (size_t i = 0; i < n; i++) {
		if (rc == 0)
			rc = mount_attach(tree[i], b->root, path[i]);
		fd_closep(&tree[i]);
	}
	return rc < 0 ? rc : mount_reconfigure(proc, &reduced, 1);
}

int root_mount_proc(struct cell_build *b)
{
	static const struct mount_param params[] = { { "subset", "pid" }, { "hidepid", "ptraceable" } };
	AUTO_FD proc = FD_NONE;

	if (mount_proc_of_machine(b) == 0)
		return 0;
	/* The kernel does not support that: mounts a plain /proc without machine files on top. */
	proc = mount_new("proc", params, ARRAY_LEN(params), MNT_NOEXEC);
	/* Without subset=pid it still shows only this pid namespace; that is the degraded form. */
	if (proc < 0 && b->spec->plan->may_degrade & PROT_BIT(PROT_proc_subset))
		proc = mount_new("proc", NULL, 0, MNT_NOEXEC);
	return proc < 0 ? proc : mount_attach(proc, b->root, "proc");
}

int root_show_scratch(struct cell_build *b, const char *name, const char *target, mode_t mode, unsigned flags)
{
	AUTO_FD tree = FD_NONE;

	if (mkdirat(b->scratch, name, 0700) < 0 || fchmodat(b->scratch, name, mode, 0) < 0)
		return -errno;
	tree = mount_copy(b->scratch, name, flags);
	return tree < 0 ? tree : mount_attach(tree, b->root, target);
}

int root_open_workspace(struct cell_build *b)
{
	b->workspace = openat(b->root, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return b->workspace < 0 ? -errno : 0;
}

static int show_alias(struct cell_build *b, const char *alias)
{
	AUTO_FD tree = mount_copy(b->scratch, "workspace", b->spec->plan->workspace_exec ? 0 : MNT_NOEXEC);

	return tree < 0 ? tree : mount_attach(tree, b->root, alias + 1);
}

static int show_empty_workspace(struct cell_build *b)
{
	const struct plan *plan = b->spec->plan;
	int rc = root_show_scratch(b, "workspace", "workspace", 0755, plan->workspace_exec ? 0 : MNT_NOEXEC);

	if (rc == 0)
		rc = root_open_workspace(b);
	if (rc == 0 && plan->workspace_alias != WORKSPACE_ALIAS_NONE)
		rc = show_alias(b, workspace_alias_name[plan->workspace_alias]);
	if (rc < 0)
		return rc;
	return fchown(b->workspace, plan->uid, plan->gid) < 0 ? -errno : 0;
}

int root_mount_scratch(struct cell_build *b)
{
	struct scratch_room room;
	const struct mount_param params[] = { { "size", room.size }, { "nr_inodes", room.inodes }, { "mode", "0755" } };
	int rc;

	root_scratch_room(b, &room);
	b->scratch = mount_new("tmpfs", params, ARRAY_LEN(params), 0);
	if (b->scratch < 0)
		return b->scratch;
	/* Attached first, where the cell's /tmp will cover it: only attached trees can be cloned in part. */
	rc = mount_attach(b->scratch, b->root, "tmp");
	if (rc == 0 && !b->spec->plan->workspace)
		rc = show_empty_workspace(b);
	if (rc == 0)
		rc = root_show_scratch(b, "shm", "dev/shm", 01777, MNT_NOEXEC);
	if (rc == 0)
		rc = root_show_scratch(b, "tmp", "tmp", 01777, b->spec->plan->workspace_exec ? 0 : MNT_NOEXEC);
	return rc;
}

/* mkdir -p below the skeleton; the path comes from the supervisor. */
static int make_dirs(int root, const char *path)
{
	char part[sizeof(((struct extra_bind *)0)->target)];

	if (!str_copy(part, sizeof(part), path))
		return -ENAMETOOLONG;
	for (char *p = part;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (part[0] && mkdirat(root, part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = c;
		if (c == '\0')
			return 0;
	}
}

int root_show_extra(struct cell_build *b)
{
	for (size_t i = 0; i < b->spec->n_binds; i++) {
		const struct extra_bind *e = &b->spec->binds[i];
		int rc = make_dirs(b->root, e->dir);

		if (rc == 0 && e->is_dir)
			rc = make_dirs(b->root, e->target);
		else if (rc == 0)
			rc = root_write_file(b->root, e->target, 0644, "", 0);
		if (rc == 0)
			rc = mount_attach(b->bind_tree[i], b->root, e->target);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The directories on the way belong to the project, whose owner may create links at any time: none is followed. */
static int stage_file(const struct plan *plan, int dir, const struct plan_file *f)
{
	const char *name;
	AUTO_FD parent = beneath_open_parent(dir, f->name, &name);
	int rc = parent < 0 ? parent : root_write_file(parent, name, f->mode, f->data, f->len);

	if (rc < 0)
		return rc;
	return fchownat(parent, name, plan->uid, plan->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int root_stage_files_in(struct cell_build *b, int dir, bool covering)
{
	const struct plan *plan = b->spec->plan;
	const char *covered = plan->workspace ? plan->workspace->covered : NULL;
	int rc = 0;

	for (size_t i = 0; i < plan->n_files && rc == 0; i++)
		if ((covered && str_eq(plan->files[i].name, covered)) == covering)
			rc = stage_file(plan, dir, &plan->files[i]);
	return rc;
}

/* A copied project lacks the covered file; an overlay has the staged one in its upper layer already. */
int root_stage_files(struct cell_build *b)
{
	int rc = root_stage_files_in(b, b->workspace, /* covering= */ false);

	return rc == 0 && b->project.way == PROJECT_STREAM ? root_stage_files_in(b, b->workspace, true) : rc;
}

int root_seal(struct cell_build *b)
{
	return mount_restrict(b->root, MNT_RO);
}

int root_enter(struct cell_build *b)
{
	return mount_pivot(b->root);
}

int root_detach_host(struct cell_build *b UNUSED)
{
	return mount_detach_old_root();
}
