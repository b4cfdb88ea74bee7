/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that can be determined without a child process. */
#include "sys/probe.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "sys/proc.h"

const struct probe_info probe_info[] = {
#define PROBE(name, area, fix) { #name, area, fix },
#include "sys/probes.def"
};
static_assert(ARRAY_LEN(probe_info) == PROBE_COUNT, "probe_info[] misses a row");

void probe_set(struct probe_report *r, enum probe_id id, enum probe_status status, int sys, const char *fmt, ...)
{
	struct probe *row = &r->row[id];
	va_list ap;

	row->status = status;
	row->sys = sys;
	va_start(ap, fmt);
	(void)vsnprintf(row->detail, sizeof(row->detail), fmt, ap);
	va_end(ap);
}

/* ---- host ------------------------------------------------------------------------------------ */

static void probe_kernel(struct probe_report *r)
{
	struct utsname u;

	if (uname(&u) < 0)
		probe_set(r, PROBE_kernel, PROBE_INFO, errno, "unknown");
	else
		probe_set(r, PROBE_kernel, PROBE_INFO, 0, "%s %s %s", u.sysname, u.release, u.machine);
}

/* Marks that container engines leave; a hint for messages, never a decision. */
static void probe_container(struct probe_report *r)
{
	static const struct {
		const char *path, *engine;
	} marks[] = {
		{ "/.dockerenv", "Docker" },
		{ "/run/.containerenv", "Podman" },
		{ "/run/systemd/container", "systemd" },
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
	};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (access(marks[i].path, F_OK) == 0) {
			probe_set(r, PROBE_container, PROBE_INFO, 0,
				  "looks like a container (%s exists, a mark of %s): its own limits and filters apply "
				  "too",
				  marks[i].path, marks[i].engine);
			return;
		}
	probe_set(r, PROBE_container, PROBE_INFO, 0, "no mark of a container engine");
}

/* Switches that take user namespaces away from ordinary users. */
static void probe_userns_switches(struct probe_report *r)
{
	static const struct {
		enum probe_id id;
		const char *path;
		uint64_t bad;
		bool binds_root;
	} switches[] = {
		{ PROBE_userns_apparmor, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1, false },
		{ PROBE_userns_sysctl, "/proc/sys/kernel/unprivileged_userns_clone", 0, false },
		{ PROBE_userns_max, "/proc/sys/user/max_user_namespaces", 0, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
		bool bound = switches[i].binds_root || geteuid() != 0;
		uint64_t value;

		if (fd_get_u64_at(AT_FDCWD, switches[i].path, &value) < 0)
			probe_set(r, switches[i].id, PROBE_INFO, 0, "%s does not exist here", switches[i].path);
		else if (value == switches[i].bad)
			probe_set(r, switches[i].id, bound ? PROBE_MISSING : PROBE_INFO, 0, "%s is %llu%s",
				  switches[i].path, (unsigned long long)value,
				  bound ? "" : ", which does not bind root");
		else
			probe_set(r, switches[i].id, PROBE_OK, 0, "%s is %llu", switches[i].path,
				  (unsigned long long)value);
	}
}

static void probe_core_pattern(struct probe_report *r)
{
	char text[160];

	if (fd_get_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", text, sizeof(text)) < 0)
		probe_set(r, PROBE_core_pattern, PROBE_INFO, 0, "unknown");
	else if (text[0] == '|')
		probe_set(r, PROBE_core_pattern, PROBE_INFO, 0,
			  "crash dumps go to a program of the host ('%.100s'); programs in cells are not dumpable",
			  text);
	else
		probe_set(r, PROBE_core_pattern, PROBE_INFO, 0, "crash dumps go to files ('%.100s'); cells have none",
			  text);
}

static bool count_line(char *line, void *arg)
{
	(void)line;
	(*(unsigned *)arg)++;
	return true;
}

static void probe_swap(struct probe_report *r)
{
	unsigned lines = 0;

	if (proc_each_line("/proc/swaps", count_line, &lines) < 0)
		probe_set(r, PROBE_swap, PROBE_INFO, 0, "unknown");
	else if (lines > 1)
		probe_set(r, PROBE_swap, PROBE_INFO, 0,
			  "%u swap devices; swap_limit says whether cells can be kept off them", lines - 1);
	else
		probe_set(r, PROBE_swap, PROBE_INFO, 0, "no swap device");
}

#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities"

static void probe_cpu_mitigations(struct probe_report *r)
{
	DIR *dir = opendir(VULNERABILITIES);
	AUTO_BUF open_ones = BUF_INIT(180);
	unsigned known = 0;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char text[256];

		if (e->d_name[0] == '.' || fd_get_at(dirfd(dir), e->d_name, text, sizeof(text)) < 0)
			continue;
		known++;
		if (strncmp(text, "Vulnerable", 10) == 0)
			(void)buf_addf(&open_ones, "%s%s", open_ones.len ? ", " : "", e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	if (known == 0)
		probe_set(r, PROBE_cpu_mitigations, PROBE_INFO, 0, "unknown: " VULNERABILITIES " is not there");
	else if (open_ones.len > 0)
		probe_set(r, PROBE_cpu_mitigations, PROBE_INFO, 0, "the cpu is open to: %s", buf_str(&open_ones));
	else
		probe_set(r, PROBE_cpu_mitigations, PROBE_INFO, 0, "%u known cpu flaws, none open", known);
}

/* ---- identity -------------------------------------------------------------------------------- */

struct subid_search {
	const char *user;
	const char *uid;
	uint64_t count;
};

/* One line "name-or-uid:first:count". */
static bool find_subid(char *line, void *arg)
{
	struct subid_search *s = arg;
	char *rest = NULL, *who = strtok_r(line, ":", &rest);
	const char *first = strtok_r(NULL, ":", &rest), *count = strtok_r(NULL, ":", &rest);
	uint64_t n;

	if (who && first && count && (str_eq(who, s->user) || str_eq(who, s->uid)) && str_to_u64(count, &n))
		s->count = max_u64(s->count, n);
	return true;
}

static uint64_t subid_count(const char *path, const char *user, const char *uid)
{
	struct subid_search s = { .user = user, .uid = uid };

	(void)proc_each_line(path, find_subid, &s);
	return s.count;
}

/* Whether a helper may write id maps for us: set-uid, or with a file capability. */
static bool is_map_helper(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && access(path, X_OK) == 0 &&
	       ((st.st_mode & S_ISUID) || getxattr(path, "security.capability", NULL, 0) > 0);
}

#define UNUSED_ID 0x70000000u /* an unused one: cells of root get such ids */

struct id_search {
	uint64_t id;
	bool found;
};

/* One line "first-inside first-outside count" of an id map. */
static bool find_mapped(char *line, void *arg)
{
	struct id_search *s = arg;
	unsigned long long first, outside, count;

	if (sscanf(line, "%llu %llu %llu", &first, &outside, &count) == 3 && s->id >= first && s->id - first < count)
		s->found = true;
	return !s->found;
}

/* Root of a container or of a user namespace may have few ids to give away. */
static bool root_has_ids(void)
{
	struct id_search uid = { .id = UNUSED_ID }, gid = { .id = UNUSED_ID };

	(void)proc_each_line("/proc/self/uid_map", find_mapped, &uid);
	(void)proc_each_line("/proc/self/gid_map", find_mapped, &gid);
	return uid.found && gid.found;
}

static void probe_id_separation(struct probe_report *r)
{
	struct passwd pw, *found = NULL;
	char names[4096], uid[16];
	const char *user;
	uint64_t uids, gids;

	if (geteuid() == 0) {
		if (root_has_ids())
			probe_set(r, PROBE_id_separation, PROBE_OK, 0, "root can map a cell to ids of its own");
		else
			probe_set(r, PROBE_id_separation, PROBE_MISSING, 0,
				  "this root is root of a user namespace with few ids: /proc/self/uid_map lacks those "
				  "of cells");
		return;
	}
	(void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	(void)getpwuid_r(geteuid(), &pw, names, sizeof(names), &found);
	user = found ? found->pw_name : "";
	uids = subid_count("/etc/subuid", user, uid);
	gids = subid_count("/etc/subgid", user, uid);
	if (!is_map_helper("/usr/bin/newuidmap") || !is_map_helper("/usr/bin/newgidmap"))
		probe_set(r, PROBE_id_separation, PROBE_MISSING, 0, "newuidmap and newgidmap are not installed");
	else if (!found)
		probe_set(r, PROBE_id_separation, PROBE_MISSING, 0, "uid %s has no account, which newuidmap asks for",
			  uid);
	else if (uids < 2 || gids < 2)
		probe_set(r, PROBE_id_separation, PROBE_MISSING, 0,
			  "%.64s has no range of two or more ids in /etc/sub%s", user, uids < 2 ? "uid" : "gid");
	else
		probe_set(r, PROBE_id_separation, PROBE_OK, 0,
			  "%llu user ids and %llu group ids in /etc/subuid and /etc/subgid", (unsigned long long)uids,
			  (unsigned long long)gids);
}

/* Nothing follows from it but time: where there are none, each warm cell has an interpreter that was started in it. */
static void probe_warm_forks(struct probe_report *r)
{
	if (r->row[PROBE_id_separation].status == PROBE_OK)
		probe_set(r, PROBE_warm_forks, PROBE_OK, 0,
			  "where cells have control groups and Landlock, a warm Python is forked");
	else
		probe_set(r, PROBE_warm_forks, PROBE_INFO, 0,
			  "a warm Python is started in its cell: to fork it takes ids that are not the user's own");
}

/* ---- engines --------------------------------------------------------------------------------- */

static void probe_docker(struct probe_report *r)
{
	static const char scheme[] = "unix://";
	const char *host = secure_getenv("DOCKER_HOST");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	AUTO_FD fd = FD_NONE;

	if (!host || !*host)
		host = "unix:///var/run/docker.sock";
	if (strncmp(host, scheme, strlen(scheme)) != 0 ||
	    !str_copy(addr.sun_path, sizeof(addr.sun_path), host + strlen(scheme))) {
		probe_set(r, PROBE_docker, PROBE_INFO, 0, "DOCKER_HOST names no Unix socket: not tried");
		return;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		probe_set(r, PROBE_docker, PROBE_INFO, errno, "no engine at %s: %s", addr.sun_path, strerror(errno));
	else
		probe_set(r, PROBE_docker, PROBE_OK, 0, "an engine listens at %s", addr.sun_path);
}

static void probe_kvm(struct probe_report *r)
{
	AUTO_FD fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int version;

	if (fd < 0) {
		probe_set(r, PROBE_kvm, PROBE_INFO, errno, "/dev/kvm: %s", strerror(errno));
		return;
	}
	version = ioctl(fd, KVM_GET_API_VERSION, 0);
	if (version == KVM_API_VERSION)
		probe_set(r, PROBE_kvm, PROBE_OK, 0, "/dev/kvm answers with API %d", version);
	else
		probe_set(r, PROBE_kvm, PROBE_INFO, errno, "/dev/kvm answers, but not with API %d", KVM_API_VERSION);
}

void probe_host(struct probe_report *ret)
{
	static void (*const probes[])(struct probe_report *) = {
		probe_kernel,       probe_container,     probe_userns_switches,
		probe_core_pattern, probe_swap,          probe_cpu_mitigations,
		probe_cell,         probe_id_separation, probe_warm_forks,
		probe_docker,       probe_kvm,
	};

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < ARRAY_LEN(probes); i++)
		probes[i](ret);
}
