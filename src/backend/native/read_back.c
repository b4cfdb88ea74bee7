/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads back from the kernel what is in force: cgroup files, /proc of the payload and of cell init, and the namespaces,
 * file systems and sysctls behind the descriptors that init sent.  Nothing here is taken from what was requested.
 *
 * The payload is dying by now, a zombie, or about to be killed.  Until it is reaped it shows its credentials, filters,
 * limits and privileges.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "backend/guest/facts.h"
#include "backend/native/cell.h"
#include "backend/native/covers.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "sys/proc.h"
#include "sys/scheduling.h"

struct looks *looks_take(struct backend_host *h)
{
	struct looks *l = h->free_looks;

	if (l) {
		h->free_looks = l->next_free;
		memset(l, 0, sizeof(*l));
		return l;
	}
	l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l == MAP_FAILED)
		return NULL;
	(void)madvise(l, sizeof(*l), MADV_DONTFORK); /* failure only costs performance */
	return l;
}

void looks_give_back(struct backend_host *h, struct looks *l)
{
	l->next_free = h->free_looks;
	h->free_looks = l;
}

void looks_free_all(struct backend_host *h)
{
	for (struct looks *l = h->free_looks, *next; l; l = next) {
		next = l->next_free;
		(void)munmap(l, sizeof(*l));
	}
	h->free_looks = NULL;
}

/* A zombie still has its limits, although its /proc entry no longer shows them. */
static void read_limits(struct cell *c, struct facts *f)
{
	struct rlimit files, core;

	bool known;

	/*
	 * prlimit(2) requires CAP_SYS_RESOURCE in the process's user namespace; root without that capability has it in
	 * namespaces that it owns.
	 */
	known = zygote_enter_owner(c->zygote) == 0 && prlimit(c->payload_pid, RLIMIT_NOFILE, NULL, &files) == 0 &&
		prlimit(c->payload_pid, RLIMIT_CORE, NULL, &core) == 0;
	zygote_leave_owner(c->zygote);
	if (!known)
		return;
	fact_num(f, FACT_open_files_max, files.rlim_max, "prlimit(2)");
	fact_text(f, FACT_core_dumps, guest_core_dumps(core.rlim_max), "prlimit(2)");
}

static void read_landlock(struct cell *c, struct facts *f)
{
	const int abi = c->spec.confine.landlock_abi;

	fact_num(f, FACT_landlock, (uint64_t)guest_landlock_in_force(abi, c->landlock_probe), "%s",
		 guest_landlock_source(abi));
}

static void read_cgroup(struct cell *c, struct facts *f)
{
	static const struct {
		enum cgroup_resource resource;
		enum fact_id fact;
	} rows[] = {
		{ CGROUP_MEMORY, FACT_memory_max },
		{ CGROUP_SWAP, FACT_swap_max },
		{ CGROUP_PIDS, FACT_pids_max },
		{ CGROUP_CPU, FACT_cpu_quota_percent },
		{ CGROUP_SOCKET_MEMORY, FACT_socket_memory_max },
	};

	for (size_t i = 0; c->cgroup && i < ARRAY_LEN(rows); i++) {
		struct cgroup_readback r = { .known = false };

		cgroup_readback(c->cgroup, rows[i].resource, &r);
		if (r.known)
			fact_num(f, rows[i].fact, r.value, "%s", r.source);
	}
}

static void read_pause(struct cell *c, struct facts *f)
{
	if (c->spec.plan->session && c->pause[0])
		fact_text(f, FACT_pause, c->pause, "%s", c->pause_source);
}

static void read_disk_io(struct cell *c, struct facts *f)
{
	struct cgroup_readback r = { .known = false };

	if (c->spec.plan->disk_io_bps == 0 || !c->cgroup)
		return;
	cgroup_readback_disks(c->cgroup, &c->disks, &r);
	if (r.known)
		fact_num(f, FACT_disk_io_bps, c->unlimited_disk ? UINT64_MAX : r.value, "%s", r.source);
}

static const struct {
	const char *name;
	enum fact_id fact;
} namespaces[] = {
	{ "user", FACT_user_ns }, { "pid", FACT_pid_ns }, { "mnt", FACT_mount_ns },     { "net", FACT_net_ns },
	{ "ipc", FACT_ipc_ns },   { "uts", FACT_uts_ns }, { "cgroup", FACT_cgroup_ns }, { "time", FACT_time_ns },
};
static_assert(ARRAY_LEN(namespaces) == HANDED_COUNT - HANDED_NS_FIRST,
	      "namespaces[] is in the order of enum handed_fd");

/* Our own namespaces, from which the cell's must differ.  Looked up once per host, while there is time. */
static void find_own(struct backend_host *h)
{
	struct guest_status s;

	if (h->own_ns[0].st_ino)
		return;
	if (guest_status_read("/proc/self/status", &s))
		h->own_filters = s.number[STATUS_SECCOMP_FILTERS];
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
		char path[40];

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i].name);
		if (stat(path, &h->own_ns[i]) < 0)
			h->own_ns[i].st_ino = 0;
	}
}

static void read_namespaces(struct cell *c, struct facts *f)
{
	find_own(c->host);
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
		const struct stat *ours = &c->host->own_ns[i];
		struct stat theirs;
		bool own;

		if (ours->st_ino == 0 || fstat(c->handed[HANDED_NS_FIRST + i], &theirs) < 0)
			continue;
		/* Only a descriptor on nsfs is a namespace. */
		own = theirs.st_dev == ours->st_dev && theirs.st_ino != ours->st_ino;
		fact_text(f, namespaces[i].fact, own ? "own" : "shared", "%s:[%llu]", namespaces[i].name,
			  (unsigned long long)theirs.st_ino);
	}
}

static void read_payload(struct cell *c, struct facts *f)
{
	static const enum fact_id fact_of[STATUS_NUMBERS] = {
		[STATUS_UID] = FACT_host_uid,
		[STATUS_GID] = FACT_COUNT,
		[STATUS_NO_NEW_PRIVS] = FACT_no_new_privs,
		[STATUS_SECCOMP] = FACT_seccomp_mode,
		[STATUS_SECCOMP_FILTERS] = FACT_seccomp_filters,
		[STATUS_CAPABILITIES] = FACT_COUNT,
	};
	struct guest_text caps = { .len = 0 };
	struct guest_status s;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", c->payload_pid);
	if (!guest_status_read(path, &s))
		return;
	find_own(c->host);
	/* Filters are inherited: our own (keeper/confine.c, a container's) must not be counted as the program's. */
	if (s.known[STATUS_SECCOMP_FILTERS] && s.number[STATUS_SECCOMP_FILTERS] <= c->host->own_filters)
		s.number[STATUS_SECCOMP] = 0;
	for (size_t i = 0; i < STATUS_NUMBERS; i++)
		if (s.known[i] && fact_of[i] != FACT_COUNT)
			fact_num(f, fact_of[i], s.number[i], "%s", path);
	if (s.has_groups)
		fact_text(f, FACT_groups, c->spec.two_ids || s.groups[0] == '\0' ? s.groups : "the caller's", "%s",
			  path);
	guest_text_number(&caps, s.number[STATUS_CAPABILITIES], 16);
	if (s.known[STATUS_CAPABILITIES])
		fact_text(f, FACT_capabilities, caps.s, "%s", path);
}

static void read_scheduling(struct cell *c, struct facts *f)
{
	const char *what = scheduling_of(c->payload_pid);

	if (what)
		fact_text(f, FACT_scheduling, what, "sched_getscheduler(2), getpriority(2)");
}

/* From the kernel's id map: which host ids the cell has, and which of them the payload. */
static void read_id_map(struct cell *c, struct facts *f)
{
	char path[48], text[512];
	const char *at = text;
	struct guest_text map;
	struct guest_id_row row;

	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", c->init_pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return;
	while (guest_id_row_next(&at, &row)) {
		if (f->row[FACT_host_uid].known && row.outside == f->row[FACT_host_uid].num && row.count == 1)
			fact_num(f, FACT_uid, row.inside, "%s", path);
		if (row.inside == 0 || !c->spec.two_ids)
			fact_num(f, FACT_init_host_uid, row.outside, "%s", path);
	}
	guest_id_map_text(text, &map);
	fact_text(f, FACT_uid_map, map.s, "%s", path);
}

static void read_network(struct cell *c, struct facts *f)
{
	struct guest_network net;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/net/dev", c->init_pid);
	if (!guest_network_read(path, &net))
		return;
	fact_text(f, FACT_interfaces, net.interfaces.s, "%s", path);
	fact_num(f, FACT_packets_out, net.packets_out, "%s", path);
}

struct mount_scan {
	struct facts *facts;
	const char *path;
	char writable[200];
	size_t own_proc;       /* our files mounted over names in /proc */
	char other_proc[64];   /* the first other mount there */
	const char *workspace; /* type of the last mount on it, which covers the others */
	struct covers covers;
};

static void note_writable(struct mount_scan *s, const char *point)
{
	size_t len = strlen(s->writable);

	/* Several mounts may be stacked at one place; list it once. */
	if (proc_list_has(s->writable, ' ', point))
		return;
	(void)snprintf(s->writable + len, sizeof(s->writable) - len, "%s%s", len ? " " : "", point);
}

/* Below /proc only our own files may be mounted, each at its own name. */
static void note_proc(struct mount_scan *s, const struct mount_line *m)
{
	const char *name = m->point + strlen("/proc/");

	if (strncmp(m->point, "/proc/", strlen("/proc/")) != 0)
		return;
	for (size_t i = 0; i < MACHINE_FILES; i++)
		if (str_eq(name, machine_names[i]) && str_eq(m->root, m->point) && str_eq(m->fstype, "tmpfs") &&
		    proc_list_has(m->options, ',', "ro")) {
			s->own_proc++;
			return;
		}
	if (!s->other_proc[0])
		(void)str_copy(s->other_proc, sizeof(s->other_proc), name);
}

/* Writes never reach the project itself: they go to an overlay's upper layer, to a copy, or fail. */
static void note_workspace(struct mount_scan *s, const struct mount_line *m)
{
	bool ro = proc_list_has(m->options, ',', "ro");

	covers_note(&s->covers, m);
	if (!str_eq(m->point, PLAN_WORKSPACE))
		return;
	if (str_eq(m->fstype, "tmpfs") && str_eq(m->root, "/workspace"))
		s->workspace = "none";
	else if (str_eq(m->fstype, "overlay") || (str_eq(m->fstype, "tmpfs") && str_eq(m->root, "/copy")))
		s->workspace = ro ? "ro" : "cow";
	else
		s->workspace = "the project itself";
}

static bool visit_mount(char *line, void *arg)
{
	struct mount_scan *s = arg;
	struct mount_line m;

	if (!proc_parse_mount(line, &m))
		return true;
	if (str_eq(m.point, "/"))
		fact_text(s->facts, FACT_root_flags, m.options, "%s", s->path);
	if (str_eq(m.point, "/proc")) {
		bool pid_only = proc_list_has(m.super, ',', "subset=pid");

		fact_text(s->facts, FACT_proc_flags, pid_only ? "subset=pid" : m.super, "%s", s->path);
	}
	note_proc(s, &m);
	note_workspace(s, &m);
	/* A directory on the way to a protected file: writes there go to the workspace. */
	if (strncmp(m.point, PLAN_WORKSPACE "/", strlen(PLAN_WORKSPACE "/")) == 0 &&
	    (str_eq(m.fstype, "overlay") || (str_eq(m.fstype, "tmpfs") && strncmp(m.root, "/copy/", 6) == 0)))
		return true;
	/* Device nodes and /proc are mounts too, but nothing can be stored in them. */
	if (!proc_list_has(m.options, ',', "ro") && !str_eq(m.fstype, "proc") && !str_eq(m.fstype, "devtmpfs") &&
	    !(strncmp(m.point, "/dev/", 5) == 0 && !str_eq(m.point, "/dev/shm")))
		note_writable(s, m.point);
	return true;
}

/*
 * Without its mask, a hidden path shows the project's file or, in a copy, the one that existed when the copy was made.
 */
static bool has_nothing_to_hide(const struct cell *c, size_t i)
{
	const struct plan_workspace *w = c->spec.plan->workspace;
	AUTO_FD fd = FD_NONE;

	if (c->project.way == PROJECT_STREAM)
		return c->spec.hidden[i] == HIDDEN_GONE;
	fd = beneath_look(w->fd, w->hidden[i], NULL);
	return fd == -ENOENT || fd == -ENOTDIR;
}

/* Whether a seal is missing although there is something to seal. */
static bool lacks_seal(const struct cell *c, struct covers *covers, const char *path)
{
	AUTO_FD fd = FD_NONE;

	if (covers_seal(covers, path))
		return false;
	fd = beneath_look(c->spec.plan->workspace->fd, path, NULL);
	return fd != -ENOENT && fd != -ENOTDIR;
}

static const char *bind_in_workspace(const struct plan_bind *b)
{
	size_t len = strlen(PLAN_WORKSPACE "/");

	return strncmp(b->target, PLAN_WORKSPACE "/", len) == 0 ? b->target + len : NULL;
}

static bool note_cover(char *line, void *arg)
{
	struct mount_line m;

	if (proc_parse_mount(line, &m))
		covers_note(arg, &m);
	return true;
}

/*
 * Checks everything that must be covered in the workspace, path by path: masks and seals of a project, protected test
 * files, and binds of the plan.
 */
void cell_read_back_ready(struct cell *c)
{
	const struct plan *plan = c->spec.plan;
	const struct plan_workspace *w = plan->workspace;
	struct covers covers = { .row = NULL };
	char path[48];

	if (!w)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", c->init_pid);
	c->project.uncovered = proc_each_line(path, note_cover, &covers) != 0;
	for (size_t i = 0; i < w->n_hidden; i++) {
		bool found = covers_hide(&covers, w->hidden[i], i);

		c->project.masks += found;
		c->project.uncovered += !found && !has_nothing_to_hide(c, i);
	}
	for (size_t i = 0; i < w->n_held; i++)
		c->project.uncovered += lacks_seal(c, &covers, w->held[i]);
	for (size_t i = 0; i < plan->n_binds; i++) {
		const char *bind = bind_in_workspace(&plan->binds[i]);

		c->project.uncovered += bind && !covers_seal(&covers, bind);
	}
	c->project.seals = covers_seals(&covers);
	covers_release(&covers);
	fact_text(&c->looks->early, FACT_masks, c->project.uncovered == 0 ? "in place" : "missing",
		  "%s: %zu masks of %zu, %zu seals", path, c->project.masks, w->n_hidden, c->project.seals);
}

/*
 * After the end: checks that what was covered at the start still is, wherever it is now.  A program that moves a
 * directory with a mask below very long paths produces a mountinfo line that we cannot parse; then the result from
 * before its start stands.
 */
static void read_covers(const struct cell *c, struct covers *covers, bool left_out, const char *path, struct facts *f)
{
	const struct project *p = &c->project;
	size_t n = c->spec.plan->workspace ? c->spec.plan->workspace->n_hidden : 0, masks = 0;
	size_t seals = covers_seals(covers);

	for (size_t i = 0; i < n; i++)
		masks += covers_have(covers, i);
	if (left_out && p->uncovered == 0)
		return;
	fact_text(f, FACT_masks, p->uncovered == 0 && masks >= p->masks && seals >= p->seals ? "in place" : "missing",
		  "%s: found at the start %zu masks of %zu and %zu seals, at the end %zu and %zu", path, p->masks, n,
		  p->seals, masks, seals);
}

static void read_mounts(struct cell *c, struct facts *f)
{
	char path[48];
	struct mount_scan scan = { .facts = f, .path = path };
	bool left_out;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", c->init_pid);
	if (proc_each_short_line(path, visit_mount, &scan, &left_out) != 0) {
		covers_release(&scan.covers);
		return;
	}
	fact_text(f, FACT_writable_mounts, scan.writable, "%s", path);
	/* All or none: a kernel that cannot mount them shows no machine files. */
	if (!scan.other_proc[0] && scan.own_proc > 0 && scan.own_proc < MACHINE_FILES)
		(void)snprintf(scan.other_proc, sizeof(scan.other_proc), "%zu files of %d", scan.own_proc,
			       MACHINE_FILES);
	fact_text(f, FACT_machine_files, scan.other_proc[0] ? scan.other_proc : "masked", "%s", path);
	if (scan.workspace)
		fact_text(f, FACT_workspace, scan.workspace, "%s", path);
	read_covers(c, &scan.covers, left_out, path, f);
	covers_release(&scan.covers);
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void read_file_systems(struct cell *c, struct facts *f)
{
	const struct project *p = &c->project;
	struct statfs root, disk;
	struct statvfs lower;

	if (fstatfs(c->handed[HANDED_ROOT], &root) == 0)
		fact_num(f, FACT_root_changed,
			 difference(root.f_bfree, c->root_free_blocks) + difference(root.f_ffree, c->root_free_inodes),
			 "fstatfs of the root");
	if (fstatfs(c->handed[HANDED_SCRATCH], &disk) == 0) {
		const char *remark = p->way == PROJECT_STREAM ? ", less the copied project" : "";

		fact_num(f, FACT_disk_max, disk.f_blocks * (uint64_t)disk.f_bsize - p->own_bytes,
			 "fstatfs of the scratch space%s", remark);
		fact_num(f, FACT_inodes_max, disk.f_files - p->own_inodes, "fstatfs of the scratch space%s", remark);
	}
	if (p->way == PROJECT_STREAM)
		fact_text(f, FACT_project, "ro", "the cell has only a copy of it");
	else if (p->way == PROJECT_LOWER && fstatvfs(p->lower, &lower) == 0)
		fact_text(f, FACT_project, lower.f_flag & ST_RDONLY ? "ro" : "rw", "fstatvfs of its mount in the cell");
}

static void read_nested_userns(struct cell *c, struct facts *f)
{
	char text[32] = "";
	uint64_t n;

	if (pread(c->handed[HANDED_NESTED_USERNS], text, sizeof(text) - 1, 0) <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (str_to_u64(text, &n))
		fact_num(f, FACT_nested_userns, n, "user.max_user_namespaces");
}

/* What only living processes, or the payload's zombie, show. */
static void read_processes(struct cell *c, struct facts *f)
{
	read_payload(c, f);
	read_limits(c, f);
	read_scheduling(c, f);
	read_id_map(c, f);
	read_network(c, f);
	read_mounts(c, f);
}

/* What is readable through descriptors that we hold. */
static void read_held(struct cell *c, struct facts *f)
{
	read_cgroup(c, f);
	read_disk_io(c, f);
	read_pause(c, f);
	read_namespaces(c, f);
	read_file_systems(c, f);
	read_nested_userns(c, f);
	user_counts_read(c, f);
	read_landlock(c, f);
}

/* An early look at what only processes show; the rest can be read whatever happens to them. */
void cell_read_back_start(struct cell *c)
{
	read_processes(c, &c->looks->early);
	find_own(c->host);
}

void cell_read_back_silent(struct cell *c)
{
	read_processes(c, &c->looks->late);
	read_held(c, &c->looks->late);
}

void cell_read_back_dying(struct cell *c)
{
	read_held(c, &c->looks->late);
}

/*
 * Two looks after the program has run: at the processes while they exist and, once the cell is stopped, at the rest.
 * If PID 1 was gone before the first look (on cgroup v2 the OOM killer takes the whole group), what only it could show
 * stays as it was read at the start, and says so.
 */
void cell_read_back(struct cell *c, struct facts *ret)
{
	if (c->tasks_left < 0) {
		if (!c->parted)
			read_processes(c, ret);
		return;
	}
	facts_add_missing(ret, &c->looks->late, "");
	facts_add_missing(ret, &c->looks->early, " (at start)");
	fact_num(ret, FACT_processes_left, (uint64_t)c->tasks_left, "%s",
		 c->dying >= 0 ? "cgroup.procs, besides our init, which is dying"
		 : c->cgroup   ? "cgroup.procs"
			       : "waitid(2) of the pid namespace's init");
}
