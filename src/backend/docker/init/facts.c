/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in force, read inside the container: the payload's /proc entry (its process before exec, or its zombie),
 * init's own namespaces, mounts and interfaces.  Said once before the program starts and once when it is dead.
 * No stdio: the numbers are few.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backend/docker/init/inside.h"
#include "base/fd.h"
#include "base/str.h"
#include "model/facts.h"
#include "sys/proc.h"

/* ---- small texts --------------------------------------------------------------------------------- */

struct text {
	char s[200];
	size_t len;
};

static void add(struct text *t, const char *s)
{
	while (*s && t->len < sizeof(t->s) - 1)
		t->s[t->len++] = *s++;
	t->s[t->len] = '\0';
}

static void add_number(struct text *t, uint64_t n, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	add(t, digits + at);
}

static void add_word(struct text *t, const char *word)
{
	if (t->len > 0)
		add(t, " ");
	add(t, word);
}

static uint64_t number_at(const char **at, unsigned base)
{
	uint64_t n = 0;

	while (**at == ' ' || **at == '\t')
		(*at)++;
	for (;; (*at)++) {
		unsigned digit = **at >= '0' && **at <= '9'   ? (unsigned)(**at - '0')
				 : **at >= 'a' && **at <= 'f' ? (unsigned)(**at - 'a' + 10)
							      : 99;

		if (digit >= base)
			return n;
		n = n * base + digit;
	}
}

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

/* The value behind "Name:" at the beginning of a line; NULL. */
static const char *field(const char *status, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1;
	return NULL;
}

/* All four of a "Uid:" or "Gid:" line, if they are the same; else 0, which no program may have. */
static uint64_t one_id(const char *at)
{
	uint64_t first = number_at(&at, 10);
	bool same = true;

	for (int i = 1; i < 4; i++)
		same = number_at(&at, 10) == first && same;
	return same ? first : 0;
}

/* What an id of this user namespace is one level up; the init namespace maps everything to itself. */
static bool map_id(const char *map, uint64_t id, uint64_t *ret)
{
	while (*map) {
		uint64_t inside = number_at(&map, 10), outside = number_at(&map, 10), count = number_at(&map, 10);

		if (id >= inside && id - inside < count) {
			*ret = outside + (id - inside);
			return true;
		}
		if (*map != '\n')
			return false;
		map++;
	}
	return false;
}

static void say_map(struct inside *in, const char *map)
{
	struct text t = { .len = 0 };

	for (const char *at = map; *at;) {
		if (t.len > 0)
			add(&t, " ");
		add_number(&t, number_at(&at, 10), 10);
		add(&t, "->");
		add_number(&t, number_at(&at, 10), 10);
		add(&t, "+");
		add_number(&t, number_at(&at, 10), 10);
		if (*at != '\n')
			break;
		at++;
	}
	say_text(in, FACT_uid_map, t.s, "init: /proc/self/uid_map");
}

static void say_ids(struct inside *in, const char *status)
{
	const char *uid = field(status, "Uid"), *gid = field(status, "Gid"), *groups = field(status, "Groups");
	char map[512];
	uint64_t outside;

	if (!uid || !gid || !groups)
		return;
	say_number(in, FACT_uid, one_id(uid), "init: status of the payload");
	say_number(in, FACT_gid, one_id(gid), "init: status of the payload");
	if (fd_get_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) > 0) {
		say_map(in, map);
		if (map_id(map, one_id(uid), &outside))
			say_number(in, FACT_host_uid, outside, "init: /proc/self/uid_map");
		if (map_id(map, getuid(), &outside))
			say_number(in, FACT_init_host_uid, outside, "init: /proc/self/uid_map");
	}
	/* The engine gives the program's own group as the one supplementary group. */
	groups += strspn(groups, " \t");
	if (*groups == '\n' || (number_at(&groups, 10) == one_id(gid) && groups[strspn(groups, " ")] == '\n'))
		say_text(in, FACT_groups, "", "init: status of the payload");
	else
		say_text(in, FACT_groups, "others", "init: status of the payload");
}

static void say_privileges(struct inside *in, const char *status)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	static const struct {
		const char *name;
		enum fact_id fact;
	} numbers[] = {
		{ "NoNewPrivs", FACT_no_new_privs },
		{ "Seccomp", FACT_seccomp_mode },
		{ "Seccomp_filters", FACT_seccomp_filters },
	};
	struct text t = { .len = 0 };
	uint64_t caps = 0;
	bool all = true;

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		const char *at = field(status, sets[i]);

		all = all && at;
		caps |= at ? number_at(&at, 16) : 0;
	}
	add_number(&t, caps, 16);
	if (all)
		say_text(in, FACT_capabilities, t.s, "init: status of the payload");
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const char *at = field(status, numbers[i].name);

		if (at)
			say_number(in, numbers[i].fact, number_at(&at, 10), "init: status of the payload");
	}
}

static void say_limits(struct inside *in)
{
	char pattern[256] = "|";
	struct rlimit files, core;

	if (prlimit(in->payload, RLIMIT_NOFILE, NULL, &files) < 0 || prlimit(in->payload, RLIMIT_CORE, NULL, &core) < 0)
		return;
	say_number(in, FACT_open_files_max, files.rlim_max, "init: prlimit(2)");
	/* 1 is too small for a core file and keeps a piped core_pattern from starting; 0 does only the first. */
	if (core.rlim_max == 0)
		(void)fd_get_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	say_text(in, FACT_core_dumps,
		 core.rlim_max == 1 || (core.rlim_max == 0 && pattern[0] != '|') ? "none" : "possible",
		 "init: prlimit(2)");
}

static void say_payload(struct inside *in)
{
	struct text path = { .len = 0 };
	char status[4096];

	add(&path, "/proc/");
	add_number(&path, (uint64_t)in->payload, 10);
	add(&path, "/status");
	if (fd_get_at(AT_FDCWD, path.s, status, sizeof(status) - 1) < 0)
		return;
	memcpy(status + strlen(status), "\n", 2); /* fd_get_at takes the last one off */
	say_ids(in, status);
	say_privileges(in, status);
	say_limits(in);
	/* From ABI 5 on the probe must have been denied; before, restrict_self's word is all there is. */
	say_number(in, FACT_landlock,
		   in->landlock_abi < 5 || in->landlock_said == EACCES ? (uint64_t)in->landlock_abi : 0,
		   in->landlock_abi < 5 ? "init: landlock_restrict_self(2)"
					: "init: landlock_restrict_self(2) and a denied ioctl");
}

#define DOT_ENTRY 24 /* bytes that "." and ".." take each among the names of a folder */

/* ---- the container ------------------------------------------------------------------------------- */

/* Eight numbers about receiving, then bytes and packets sent. */
static uint64_t packets_sent(const char *at)
{
	uint64_t n = 0;

	for (int i = 0; i < 10; i++)
		n = number_at(&at, 10);
	return n;
}

static void say_network(struct inside *in)
{
	char text[4096];
	struct text names = { .len = 0 };
	uint64_t sent = 0;

	if (fd_get_at(AT_FDCWD, "/proc/self/net/dev", text, sizeof(text)) < 0)
		return;
	/* Two lines of headings, then "name: numbers". */
	for (char *line = text, *next; line; line = next) {
		char *colon;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		colon = strchr(line, ':');
		line += strspn(line, " ");
		if (!colon || strchr(line, '|'))
			continue;
		*colon = '\0';
		add_word(&names, line);
		if (!str_eq(line, "lo"))
			sent += packets_sent(colon + 1);
	}
	say_text(in, FACT_interfaces, names.s, "init: /proc/self/net/dev");
	say_number(in, FACT_packets_out, sent, "init: /proc/self/net/dev");
}

struct mount_scan {
	struct inside *in;
	struct text writable;
};

static bool is_sealed(const struct inside *in, const char *point)
{
	bool workspace = in->job.flags & WIRE_READ_ONLY && str_eq(point, place_name[0]);

	return in->landlock_abi > 0 && (workspace || (in->job.shown[0] && str_eq(point, in->job.shown)));
}

/* A mount counts as writable if the program's user could write there; device nodes store nothing. */
static bool visit_mount(char *line, void *arg)
{
	struct mount_scan *s = arg;
	struct mount_line m;

	if (!proc_parse_mount(line, &m))
		return true;
	if (str_eq(m.point, "/"))
		say_text(s->in, FACT_root_flags, m.options, "init: /proc/self/mountinfo");
	/* A tmpfs of the container: whatever lies in it is a copy. */
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
	/* A container's places cannot be sealed once they are filled: Landlock does it. */
	if (is_sealed(s->in, m.point))
		return true;
	if (!proc_list_has(m.options, ',', "ro") && access(m.point, W_OK) == 0) {
		struct stat st;

		if (stat(m.point, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) &&
		    !proc_list_has(s->writable.s, ' ', m.point))
			add_word(&s->writable, m.point);
	}
	return true;
}

static void say_mounts(struct inside *in)
{
	struct mount_scan scan = { .in = in };

	if (proc_each_line("/proc/self/mountinfo", visit_mount, &scan) == 0)
		say_text(in, FACT_writable_mounts, scan.writable.s,
			 in->job.flags & WIRE_READ_ONLY || in->job.shown[0]
				 ? "init: /proc/self/mountinfo, access(2), and Landlock's rules"
				 : "init: /proc/self/mountinfo and access(2)");
}

void facts_note_disk(struct inside *in)
{
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		struct statfs now;

		/* A write fails when its last page does not fit; so "full" is less than a page cluster left. */
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
		if (now.f_blocks == 0 || now.f_files == 0) { /* a tmpfs without a limit */
			bytes = inodes = UINT64_MAX;
			break;
		}
		bytes += now.f_blocks * (uint64_t)now.f_bsize;
		inodes += now.f_files;
	}
	if (bytes != UINT64_MAX) { /* what brig added for the project that it sent */
		bytes -= min_u64(bytes, in->job.room_bytes);
		inodes -= min_u64(inodes, in->job.room_inodes);
	}
	say_number(in, FACT_disk_max, bytes, "init: fstatfs of the writable places");
	say_number(in, FACT_inodes_max, inodes, "init: fstatfs of the writable places");
}

/* The engine's user namespace has them; nobody in the container could write them. */
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
		struct text path = { .len = 0 };
		struct stat st;

		add(&path, "/proc/self/ns/");
		add(&path, names[i]);
		if (stat(path.s, &st) == 0)
			spaces.inode[i] = st.st_ino;
	}
	wire_put_spaces(&in->out, &spaces);
}

/* The engine lays an empty folder or the null device over what it masks; what is not there needs no mask. */
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
#include "backend/docker/masks.def"
	};
	struct text bare = { .len = 0 };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (!is_masked(paths[i]))
			add_word(&bare, paths[i]);
	say_text(in, FACT_machine_files, bare.len ? bare.s : "masked", "init: read(2) of each");
}

/* Before the program, which may make files of these names, has started. */
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

void facts_add(struct inside *in, bool ended)
{
	say_payload(in);
	say_network(in);
	say_mounts(in);
	say_disk(in);
	counters_say_limits(in);
	if (ended)
		return;
	say_masks(in);
	say_machine_files(in);
	say_user_counts(in);
	say_spaces(in);
}
