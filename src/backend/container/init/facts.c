/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about what is in force, read inside the container: the payload's /proc entry (before exec, or of its zombie),
 * init's own namespaces, mounts and interfaces.  Reported once before the program starts and once when it is dead.  No
 * stdio: there are few numbers.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backend/container/init/inside.h"
#include "backend/guest/facts.h"
#include "base/fd.h"
#include "base/str.h"
#include "model/facts.h"
#include "sys/proc.h"

static void say_number(struct inside *in, enum fact_id id, uint64_t n, const char *source)
{
	struct wire_fact f = { .id = id, .num = n, .text = "", .source = source };

	wire_put_fact(&in->out, &f);
}

static void say_text(struct inside *in, enum fact_id id, const char *text, const char *source)
{
	struct wire_fact f = { .id = id, .is_text = true, .text = text, .source = source };

	wire_put_fact(&in->out, &f);
}

/* ---- the payload's process ----------------------------------------------------------------------- */

/* Maps an id of this user namespace to the one above; the initial namespace maps each id to itself. */
static void say_outside(struct inside *in, enum fact_id fact, const struct guest_id_row *row, uint64_t id)
{
	if (id >= row->inside && id - row->inside < row->count)
		say_number(in, fact, row->outside + (id - row->inside), "init: /proc/self/uid_map");
}

static void say_map(struct inside *in, uint64_t uid)
{
	struct guest_id_row row;
	struct guest_text text;
	char map[512];
	const char *at = map;

	if (fd_get_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) <= 0)
		return;
	guest_id_map_text(map, &text);
	say_text(in, FACT_uid_map, text.s, "init: /proc/self/uid_map");
	while (guest_id_row_next(&at, &row)) {
		say_outside(in, FACT_host_uid, &row, uid);
		say_outside(in, FACT_init_host_uid, &row, getuid());
	}
}

/* The engine sets the program's own group as its only supplementary group. */
static bool is_own_group(const char *groups, uint64_t gid)
{
	return *groups == '\0' || (guest_number(&groups, 10) == gid && *groups == '\0');
}

static void say_limits(struct inside *in)
{
	struct rlimit files, core;

	if (prlimit(in->payload, RLIMIT_NOFILE, NULL, &files) < 0 || prlimit(in->payload, RLIMIT_CORE, NULL, &core) < 0)
		return;
	say_number(in, FACT_open_files_max, files.rlim_max, "init: prlimit(2)");
	say_text(in, FACT_core_dumps, guest_core_dumps(core.rlim_max), "init: prlimit(2)");
}

static void say_landlock(struct inside *in)
{
	struct guest_text source = { .len = 0 };

	guest_text_add(&source, "init: ");
	guest_text_add(&source, guest_landlock_source(in->landlock_abi));
	say_number(in, FACT_landlock, (uint64_t)guest_landlock_in_force(in->landlock_abi, in->landlock_said), source.s);
}

static void say_status(struct inside *in, const struct guest_status *s)
{
	static const enum fact_id fact_of[STATUS_CAPABILITIES] = {
		[STATUS_UID] = FACT_uid,
		[STATUS_GID] = FACT_gid,
		[STATUS_NO_NEW_PRIVS] = FACT_no_new_privs,
		[STATUS_SECCOMP] = FACT_seccomp_mode,
		[STATUS_SECCOMP_FILTERS] = FACT_seccomp_filters,
	};
	static const char source[] = "init: status of the payload";
	struct guest_text caps = { .len = 0 };

	for (size_t i = 0; i < ARRAY_LEN(fact_of); i++)
		if (s->known[i])
			say_number(in, fact_of[i], s->number[i], source);
	guest_text_number(&caps, s->number[STATUS_CAPABILITIES], 16);
	if (s->known[STATUS_CAPABILITIES])
		say_text(in, FACT_capabilities, caps.s, source);
	if (s->has_groups)
		say_text(in, FACT_groups, is_own_group(s->groups, s->number[STATUS_GID]) ? "" : "others", source);
}

static void say_payload(struct inside *in)
{
	struct guest_text path = { .len = 0 };
	struct guest_status status;

	guest_text_add(&path, "/proc/");
	guest_text_number(&path, (uint64_t)in->payload, 10);
	guest_text_add(&path, "/status");
	if (!guest_status_read(path.s, &status))
		return;
	say_status(in, &status);
	if (status.known[STATUS_UID])
		say_map(in, status.number[STATUS_UID]);
	say_limits(in);
	say_landlock(in);
}

#define DOT_ENTRY 24 /* size of "." and of ".." in a directory listing */

/* ---- the container ------------------------------------------------------------------------------- */

static void say_network(struct inside *in)
{
	struct guest_network net;

	if (!guest_network_read("/proc/self/net/dev", &net))
		return;
	if (in->local_only) { /* what the program can reach; the interface's packets are the kernel's own */
		struct guest_text source = { .len = 0 };

		guest_text_add(&source, "init: no socket but local ones can be made, tried; the pod has ");
		guest_text_add(&source, net.interfaces.s);
		say_text(in, FACT_interfaces, "", source.s);
		say_number(in, FACT_packets_out, 0, "init: no socket to send by");
		return;
	}
	say_text(in, FACT_interfaces, net.interfaces.s, "init: /proc/self/net/dev");
	say_number(in, FACT_packets_out, net.packets_out, "init: /proc/self/net/dev");
}

struct mount_scan {
	struct inside *in;
	struct guest_text writable;
};

static bool is_sealed(const struct inside *in, const char *point)
{
	bool workspace = in->job.flags & WIRE_READ_ONLY && str_eq(point, place_name[0]);

	/* Kubernetes mounts a file there for a final message; only init could write to it. */
	bool message = in->job.flags & WIRE_IN_POD && str_eq(point, "/dev/termination-log");

	/* crun mounts a tmpfs that anybody may write to below the hierarchies of cgroup v1; the rules let nobody read it even. */
	bool groups = in->job.flags & WIRE_IN_POD && str_eq(point, "/sys/fs/cgroup");

	return in->landlock_abi > 0 &&
	       (workspace || message || groups || (in->job.shown[0] && str_eq(point, in->job.shown)));
}

/* A mount counts as writable if the program's user can write there; device nodes store nothing. */
static bool visit_mount(char *line, void *arg)
{
	struct mount_scan *s = arg;
	struct mount_line m;

	if (!proc_parse_mount(line, &m))
		return true;
	if (str_eq(m.point, "/"))
		say_text(s->in, FACT_root_flags, m.options, "init: /proc/self/mountinfo");
	/* A tmpfs of the container, so its contents are a copy. */
	if (str_eq(m.point, place_name[0]))
		say_text(s->in, FACT_workspace,
			 !str_eq(m.fstype, "tmpfs")             ? "the project itself"
			 : !(s->in->job.flags & WIRE_READ_ONLY) ? "cow"
			 : s->in->landlock_abi > 0              ? "ro"
								: "cow",
			 "init: /proc/self/mountinfo and Landlock's rules");
	if (str_eq(m.point, "/proc"))
		say_text(s->in, FACT_proc_flags, proc_list_has(m.super, ',', "subset=pid") ? "subset=pid" : m.super,
			 "init: /proc/self/mountinfo");
	/* A container's places cannot be made read-only after they are filled; Landlock rules protect them. */
	if (is_sealed(s->in, m.point))
		return true;
	if (!proc_list_has(m.options, ',', "ro") && access(m.point, W_OK) == 0) {
		struct stat st;

		if (stat(m.point, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) &&
		    !proc_list_has(s->writable.s, ' ', m.point))
			guest_text_word(&s->writable, m.point);
	}
	return true;
}

static void say_mounts(struct inside *in)
{
	struct mount_scan scan = { .in = in };

	if (proc_each_line("/proc/self/mountinfo", visit_mount, &scan) == 0)
		say_text(in, FACT_writable_mounts, scan.writable.s,
			 in->job.flags & (WIRE_READ_ONLY | WIRE_IN_POD) || in->job.shown[0]
				 ? "init: /proc/self/mountinfo, access(2), and Landlock's rules"
				 : "init: /proc/self/mountinfo and access(2)");
}

void facts_note_disk(struct inside *in)
{
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		struct statfs now;

		/* A write fails when its last page does not fit, so "full" means that at most a few blocks are left. */
		if (fstatfs(in->place[i], &now) == 0 && (now.f_bavail <= 4 || now.f_ffree == 0) && now.f_blocks > 4)
			in->disk_full = true;
	}
}

static void say_disk(struct inside *in)
{
	uint64_t bytes = 0, inodes = 0;

	for (size_t i = 0; i < PLACE_COUNT; i++) {
		struct statfs now;

		if (fstatfs(in->place[i], &now) < 0)
			return;
		if (now.f_blocks == 0 || now.f_files == 0) { /* no limit */
			bytes = inodes = UINT64_MAX;
			break;
		}
		bytes += now.f_blocks * (uint64_t)now.f_bsize;
		inodes += now.f_files;
	}
	if (bytes != UINT64_MAX) { /* excludes what brig added for the project */
		bytes -= min_u64(bytes, in->job.room_bytes);
		inodes -= min_u64(inodes, in->job.room_inodes);
	}
	say_number(in, FACT_disk_max, bytes, "init: fstatfs of the writable places");
	say_number(in, FACT_inodes_max, inodes, "init: fstatfs of the writable places");
}

/* They belong to the engine's user namespace; no process in the container can write them. */
static void say_user_counts(struct inside *in)
{
	static const struct {
		enum fact_id fact;
		const char *path, *source;
	} rows[] = {
		{ FACT_nested_userns, "/proc/sys/user/max_user_namespaces", "init: user.max_user_namespaces" },
		{ FACT_inotify_instances, "/proc/sys/user/max_inotify_instances", "init: user.max_inotify_instances" },
		{ FACT_inotify_watches, "/proc/sys/user/max_inotify_watches", "init: user.max_inotify_watches" },
	};
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (fd_get_u64_at(AT_FDCWD, rows[i].path, &n) == 0)
			say_number(in, rows[i].fact, n, rows[i].source);
}

static void say_spaces(struct inside *in)
{
	static const char *const names[WIRE_SPACE_COUNT] = WIRE_SPACE_NAMES;
	struct wire_spaces spaces = { .inode = { 0 } };

	for (size_t i = 0; i < WIRE_SPACE_COUNT; i++) {
		struct guest_text path = { .len = 0 };
		struct stat st;

		guest_text_add(&path, "/proc/self/ns/");
		guest_text_add(&path, names[i]);
		if (stat(path.s, &st) == 0)
			spaces.inode[i] = st.st_ino;
	}
	wire_put_spaces(&in->out, &spaces);
}

/* The engine mounts an empty directory or /dev/null over what it masks; a path that does not exist needs no mask. */
static bool is_masked(const char *path)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char bytes[1024];
	ssize_t n;

	if (fd < 0)
		return true;
	n = read(fd, bytes, 1);
	if (n < 0 && errno == EISDIR)
		n = getdents64(fd, bytes, sizeof(bytes)) > 2 * DOT_ENTRY;
	return n <= 0;
}

static void say_machine_files(struct inside *in)
{
	static const char *const paths[] = {
#define MASK(path) path,
#define READ_ONLY(path)
#include "backend/container/masks.def"
	};
	struct guest_text bare = { .len = 0 };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (!is_masked(paths[i]))
			guest_text_word(&bare, paths[i]);
	say_text(in, FACT_machine_files, bare.len ? bare.s : "masked", "init: read(2) of each");
}

/* Before the program starts, since it may create files with these names. */
static void say_masks(struct inside *in)
{
	size_t seen = 0;

	for (size_t i = 0; in->job.hidden[i]; i++)
		seen += faccessat(in->place[0], in->job.hidden[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
			(errno != ENOENT && errno != ENOTDIR);
	if (in->job.flags & WIRE_PROJECT)
		say_text(in, FACT_masks, seen ? "missing" : "in place",
			 "init: each hidden path was looked for in the workspace, by faccessat(2)");
}

/*
 * Nothing outside counts changes in a pod's root, so this verifies that it cannot be changed: a read-only mount fails
 * with EROFS first.
 */
static void say_root(struct inside *in)
{
	static const char path[] = "/.brig-probe";
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool closed = fd < 0 && errno == EROFS;

	if (fd >= 0)
		(void)unlink(path);
	say_number(in, FACT_root_changed, !closed, "init: a new file in it is refused (EROFS)");
}

void facts_add(struct inside *in, bool ended)
{
	say_payload(in);
	say_network(in);
	say_mounts(in);
	say_disk(in);
	counters_say_limits(in, ended);
	if (in->job.flags & WIRE_IN_POD)
		say_root(in);
	if (ended)
		return;
	say_masks(in);
	say_machine_files(in);
	say_user_counts(in);
	say_spaces(in);
}
